"""Who is exempt, who is judged without being patched, and what nobody can forge."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import pytest
import yaml

from tests import definitions
from tests.building import (
    catalog,
    container,
    deployment,
    edited,
    job,
    pod,
    policy,
    reasons,
    request,
    served,
    shipped,
    table,
)
from webhook.admission.judge import decide_review
from webhook.admission.request_class import classify_request, is_made_verbatim
from webhook.catalog.build import Choices, assemble
from webhook.catalog.catalog import Catalog
from webhook.evaluation.installation import InstallationConfig
from webhook.evaluation.outcome import Allowed, Decision, Denied
from webhook.evaluation.references import References
from webhook.evaluation.request import Request, RequestClass, Stage
from webhook.sources.files import shipped_folder

JOB_CONTROLLER = "system:serviceaccount:kube-system:job-controller"
REPLICAS = "system:serviceaccount:kube-system:replicaset-controller"
RULES = "defaults: {workingDir: /w}\nrules: {image: {options: [{value: none}]}}"
REFUSED = [("image", "options")]


def owned(document: Any, kind: str, api_version: str, *, controller: bool = True) -> Any:
    owner = {"apiVersion": api_version, "kind": kind, "name": "o", "uid": "1"}
    if controller:
        owner["controller"] = True  # type: ignore[assignment]
    return edited(document, lambda each: each["metadata"].update(ownerReferences=[owner]))


def answer(rules: Catalog, asked: Request) -> Decision:
    return decide_review(asked, rules, References())


def of_job(**more: Any) -> Request:
    return request(owned(served(pod()), "Job", "batch/v1"), **more)


def test_children_that_their_controller_makes_are_exempt_from_writing() -> None:
    rules = catalog(RULES)
    for asked in (
        of_job(user=JOB_CONTROLLER),
        of_job(user="system:kube-controller-manager"),
        request(owned(served(pod()), "ReplicaSet", "apps/v1"), user=REPLICAS),
        request(
            owned(served(job()), "CronJob", "batch/v1"),
            user="system:serviceaccount:kube-system:cronjob-controller",
        ),
    ):
        decision = answer(rules, asked)
        assert isinstance(decision, Allowed), asked.user
        assert not decision.is_evaluated
        assert not decision.patch
        last = answer(rules, replace(asked, stage=Stage.VALIDATE))
        assert isinstance(last, Denied)
        assert last.needs is not None


@pytest.mark.parametrize(
    "user",
    [
        "someone@example.com",
        "",
        "system:serviceaccount:team:default",
        "system:serviceaccount:team:job-controller",
        "system:serviceaccount:kube-system:job-controller2",
        "System:serviceaccount:kube-system:job-controller",
        "system:serviceaccount:kube-system:deployment-controller",
    ],
)
def test_an_owner_reference_alone_exempts_nobody(user: str) -> None:
    rules = catalog(RULES)
    for stage in Stage:
        decision = answer(rules, of_job(user=user, stage=stage))
        assert reasons(decision) == REFUSED


@pytest.mark.parametrize(
    ("kind", "version", "verbatim"),
    [
        ("ReplicaSet", "apps/v1", True),
        ("PodTemplate", "v1", False),  # nobody makes Pods of it
        ("Thing", "example.com/v1", False),
    ],
)
def test_an_object_is_made_of_evaluated_pods_where_its_owners_kind_has_a_controller(
    kind: str, version: str, verbatim: bool
) -> None:
    asked = request(owned(served(pod()), kind, version))
    assert is_made_verbatim(asked, catalog(RULES)) is verbatim


def test_what_one_operator_makes_of_a_kind_widens_it_for_nobody() -> None:
    """Many kinds use Jobs and Deployments both; a Job's pods are made by the controller of Jobs."""
    rules = catalog(RULES)
    for user in (REPLICAS, "system:serviceaccount:jobset-system:jobset-controller-manager"):
        assert reasons(answer(rules, of_job(user=user))) == REFUSED
    # A kind that does not say who makes its children leaves it to those that use it.
    revision = owned(served(deployment()), "Revision", "serving.knative.dev/v1")
    made = request(revision, user="system:serviceaccount:knative-serving:controller")
    assert classify_request(made, rules) in (RequestClass.EXEMPT, RequestClass.CHILD)
    assert reasons(answer(rules, request(revision, user=JOB_CONTROLLER))) == REFUSED


def test_a_preferred_profile_with_other_user_names_takes_the_shipped_ones_away() -> None:
    """Where an operator runs elsewhere, its usual name may be a tenant's."""
    mine = "system:serviceaccount:rays:operator"
    usual = "system:serviceaccount:default:kuberay-operator"
    file = shipped_folder() / "workloads" / "raycluster.ray.io.yaml"
    profile = next(
        each
        for each in yaml.safe_load_all(file.read_text("utf-8"))
        if each["kind"] == "WorkloadProfile"
    )
    profile["spec"]["controllers"] = [mine]
    given = [definitions.document(each) for each in (profile, policy(RULES))]
    pods = owned(served(pod()), "RayCluster", "ray.io/v1")
    for preferred, exempt in (((), usual), (("RayCluster.ray.io",), mine)):
        config = InstallationConfig(prefer_given=preferred)
        rules, _ = assemble(shipped(), given, Choices(config=config), table())
        assert rules is not None
        for user in (usual, mine):
            decision = answer(rules, request(pods, user=user))
            assert isinstance(decision, Allowed) is (user == exempt)


def test_a_controllers_name_alone_exempts_nothing() -> None:
    """Only what a governed kind controls is a child, with `controller: true` in so many words."""
    rules = catalog(RULES)
    bare = served(pod())
    for document in (
        bare,
        owned(bare, "Job", "batch/v1", controller=False),
        owned(bare, "Job", "example.com/v1"),
        owned(bare, "Thing", "batch/v1"),
        edited(bare, lambda each: each["metadata"].update(ownerReferences="Job")),
        edited(bare, lambda each: each["metadata"].update(ownerReferences=[None, "Job"])),
        owned(bare, "Deployment", "apps/v1"),
    ):
        decision = answer(rules, request(document, user=JOB_CONTROLLER))
        assert reasons(decision) == REFUSED


def test_metadata_updates_are_exempt_and_others_are_not() -> None:
    rules = catalog(RULES)
    old = owned(served(pod()), "Job", "batch/v1")
    finalized = edited(old, lambda each: each["metadata"].update(finalizers=["a"]))
    decision = answer(rules, request(finalized, old, user=JOB_CONTROLLER))
    assert isinstance(decision, Allowed)
    assert not decision.is_evaluated
    changed = edited(old, lambda each: each["spec"]["containers"][0].update(image="evil:1"))
    assert reasons(answer(rules, request(changed, old, user=JOB_CONTROLLER))) == REFUSED


DEPLOYMENTS = "system:serviceaccount:kube-system:deployment-controller"


def replica_set(replicas: int, **spec: Any) -> Any:
    def change(each: Any) -> None:
        each["kind"] = "ReplicaSet"
        each["spec"] = {
            "replicas": replicas,
            **{k: each["spec"][k] for k in ("selector", "template")},
        }

    return owned(edited(served(deployment(**spec)), change), "Deployment", "apps/v1")


def test_a_controller_says_how_many_pods_it_wants_of_what_it_owns() -> None:
    """The number follows from its owner's, which is judged; a rollout needs none at its end."""
    rules = catalog("rules: {scale: {replicas: {min: 2, max: 4}}}")
    for old, new in ((2, 0), (0, 1), (3, 5)):
        asked = request(replica_set(new), replica_set(old), user=DEPLOYMENTS)
        assert classify_request(asked, rules) is RequestClass.EXEMPT
        for user in ("alice", "system:serviceaccount:team:deployment-controller", JOB_CONTROLLER):
            asked = request(replica_set(new), replica_set(old), user=user)
            assert classify_request(asked, rules) is RequestClass.OWNED
    asked = request(replica_set(0), replica_set(2), user="alice")
    assert reasons(answer(rules, asked)) == [("scale.replicas", "min")]
    more = request(
        replica_set(0, hostNetwork=True), replica_set(2), user=DEPLOYMENTS, stage=Stage.VALIDATE
    )
    assert classify_request(more, rules) is RequestClass.DERIVED
    bare = request(served(deployment(replicas=9)), served(deployment(replicas=3)), user=DEPLOYMENTS)
    assert reasons(answer(rules, bare)) == [("scale.replicas", "max")]


def test_what_an_operator_says_of_a_rollout_beside_the_number_is_no_matter() -> None:
    """LeaderWorkerSet says maxUnavailable each time, which servers without that gate forget again."""
    rules = catalog("rules: {scale: {replicas: {max: 2}}}")

    def leaders(replicas: int, **more: Any) -> Any:
        def change(each: Any) -> None:
            each["kind"] = "StatefulSet"
            each["spec"]["replicas"] = replicas
            each["spec"]["updateStrategy"] = {"rollingUpdate": {"partition": 0, **more}}

        return owned(
            edited(served(deployment()), change), "LeaderWorkerSet", "leaderworkerset.x-k8s.io/v1"
        )

    operator = "system:serviceaccount:lws-system:lws-controller-manager"
    asked = request(leaders(3, maxUnavailable=1), leaders(2), user=operator)
    assert classify_request(asked, rules) is RequestClass.EXEMPT
    anybody = replace(asked, user="alice")
    assert reasons(answer(rules, anybody)) == [("scale.replicas", "max")]


@pytest.mark.parametrize("subresource", ["resize", "ephemeralcontainers"])
def test_subresources_are_never_exempt(subresource: str) -> None:
    rules = catalog(RULES)
    old = owned(served(pod()), "Job", "batch/v1")
    body = {"name": "debug", "image": "evil:1"}
    new = edited(old, lambda each: each["spec"].update(ephemeralContainers=[body]))
    asked = request(new, old, user=JOB_CONTROLLER, subresource=subresource)
    assert classify_request(asked, rules) is RequestClass.UNPATCHED
    assert reasons(answer(rules, asked)) == REFUSED


def test_what_a_controller_owns_is_judged_and_gets_no_ordinary_defaults() -> None:
    soft = catalog("defaults: {workingDir: /w}")
    for document in (
        owned(served(deployment()), "Thing", "example.com/v1"),
        owned(served(job()), "JobSet", "jobset.x-k8s.io/v1alpha2"),
    ):
        decision = answer(soft, request(document))
        assert isinstance(decision, Allowed)
        assert decision.is_evaluated
        assert not decision.patch
        assert reasons(answer(catalog(RULES), request(document))) == REFUSED


def test_an_owned_pod_is_completed_like_any_other() -> None:
    decision = answer(catalog("defaults: {workingDir: /w}"), of_job())
    assert isinstance(decision, Allowed)
    assert decision.object["spec"]["containers"][0]["workingDir"] == "/w"


def test_a_required_or_locked_item_cannot_be_dodged_by_a_forged_owner() -> None:
    rules = catalog(
        "defaults: {environmentVariables: {instances: [{name: A, value: b}]}}\n"
        "rules: {environmentVariables: {instances: {locked: [A]}}}"
    )
    document = owned(served(deployment()), "Thing", "example.com/v1")
    final = request(document, stage=Stage.VALIDATE)
    assert reasons(answer(rules, final)) == [("environmentVariables", "locked")]
    written = answer(rules, request(document))
    assert isinstance(written, Allowed)
    main = written.object["spec"]["template"]["spec"]["containers"][0]
    assert main["env"] == [{"name": "A", "value": "b"}]


def for_kind(group: str, kind: str, body: str, name: str = "owner", **more: Any) -> dict[str, Any]:
    return policy(body, name, kinds=[{"group": group, "kind": kind}], **more)


def test_an_owned_pod_meets_its_own_policies_and_its_owners() -> None:
    own = for_kind("", "Pod", "rules: {workingDir: {blocked: true}}", "own")
    owners = for_kind(
        "batch", "Job", "defaults: {args: a}\nrules: {image: {options: [{value: x}]}}"
    )
    rules = catalog(own, owners)
    document = served(pod(container(workingDir="/x")))
    assert reasons(answer(rules, request(document))) == [("workingDir", "blocked")]
    child = owned(document, "Job", "batch/v1")
    for stage in Stage:
        assert reasons(answer(rules, request(child, stage=stage))) == [
            ("image", "options"),
            ("workingDir", "blocked"),
        ]
    fine = owned(served(pod(container(image="x"))), "Job", "batch/v1")
    decision = answer(rules, request(fine))
    assert isinstance(decision, Allowed)
    assert decision.object["spec"]["containers"][0]["args"] == ["a"]


def test_a_forged_owner_never_loosens() -> None:
    """A policy that opens something for one kind must not open it for whoever names that kind."""
    opened = for_kind(
        "ray.io",
        "RayCluster",
        "rules: {security: {privileged: {canEdit: true}}, compute: {gpuDevicesRequest: {max: 64}}}",
        scope="tenant",
    )
    held = for_kind("", "Pod", "rules: {compute: {gpuDevicesRequest: {max: 1}}}", "held")
    rules = catalog(opened, held)
    asked = {"limits": {"nvidia.com/gpu": "8"}}
    document = served(pod(container(resources=asked, securityContext={"privileged": True})))
    wanted = [("compute.gpuDevicesRequest", "max"), ("security.privileged", "canEdit")]
    assert reasons(answer(rules, request(document))) == wanted
    forged = owned(document, "RayCluster", "ray.io/v1")
    kept = copy.deepcopy(forged)
    for stage in Stage:
        assert reasons(answer(rules, request(forged, stage=stage))) == wanted
    assert forged == kept
