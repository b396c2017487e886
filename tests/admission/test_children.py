"""What controllers make of workloads that leave something to them: judged, told, never patched."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.admission.test_exemptions import owned
from tests.building import catalog, container, deployment, edited, pod, policy, reasons, served
from tests.building import request as asking
from webhook.admission.judge import decide_review
from webhook.admission.request_class import classify_request
from webhook.evaluation.outcome import Allowed, Decision, Denied, OwnerReference
from webhook.evaluation.references import References
from webhook.evaluation.request import Request, RequestClass, Stage

KSERVE = "system:serviceaccount:kserve:kserve-controller-manager"
JOBS = "system:serviceaccount:kube-system:job-controller"
REPLICAS = "system:serviceaccount:kube-system:replicaset-controller"
RULES = policy(
    "defaults: {workingDir: /w}\n"
    "rules:\n"
    "  image: {options: [{value: 'registry.example.com/main:1'}]}\n"
    "  workingDir: {canEdit: false}\n"
    "  security: {hostNetwork: {canEdit: false}}\n"
    "  compute: {gpuDevicesRequest: {max: 1}}",
    workloadTypes=["inference"],
)


def child(**more: Any) -> Any:
    """The Deployment that KServe makes of an InferenceService."""
    document = served(deployment(container(**more)))
    return owned(document, "InferenceService", "serving.kserve.io/v1beta1")


def answer(document: Any, **more: Any) -> Decision:
    more.setdefault("user", KSERVE)
    return decide_review(asking(document, **more), catalog(RULES), References())


GPUS = {"limits": {"nvidia.com/gpu": "2"}, "requests": {"nvidia.com/gpu": "2"}}


@pytest.mark.parametrize("stage", Stage)
def test_what_a_merged_workload_becomes_meets_the_rules_for_children(stage: Stage) -> None:
    passed = answer(child(), stage=stage)
    assert isinstance(passed, Allowed)
    assert not passed.patch
    refused = answer(child(image="evil:1", resources=GPUS, workingDir="/x"), stage=stage)
    # What is neither safety nor image nor amount is the controller's own affair.
    assert reasons(refused) == [("compute.gpuDevicesRequest", "max"), ("image", "options")]


def test_a_refused_child_names_the_owner_to_be_told() -> None:
    refused = answer(child(image="evil:1"))
    assert isinstance(refused, Denied)
    assert refused.report_to == OwnerReference(
        "serving.kserve.io/v1beta1", "InferenceService", "o", "1"
    )


@pytest.mark.parametrize(
    "user",
    ["alice", "", "system:serviceaccount:team:kserve-controller-manager", f"{KSERVE}2", JOBS],
)
def test_nobody_else_has_anybody_told(user: str) -> None:
    """An event on somebody's workload is a controller's word, not that of whoever forges an owner."""
    refused = answer(child(image="evil:1", workingDir="/x"), user=user)
    assert reasons(refused) == [("image", "options"), ("workingDir", "canEdit")]
    assert isinstance(refused, Denied)
    assert refused.report_to is None


TRIED = policy(
    "rules: {security: {hostNetwork: {blocked: true}}}",
    name="tried",
    enforcement="Warn",
    workloadTypes=["inference"],
)


def test_a_policy_on_trial_warns_of_what_a_merged_workload_becomes() -> None:
    made = child()
    made["spec"]["template"]["spec"]["hostNetwork"] = True
    asked = asking(made, user=KSERVE, stage=Stage.VALIDATE)
    told = decide_review(asked, catalog(TRIED), References())
    assert isinstance(told, Allowed)
    assert [each.reason for each in told.warnings] == ["trial"]
    assert [(each.field, each.reason) for each in told.audit] == [
        ("security.hostNetwork", "blocked")
    ]
    # The API server does not ask the mutating hook about children of controllers.
    again = decide_review(asking(made, user=KSERVE), catalog(TRIED), References())
    assert isinstance(again, Allowed)
    assert (again.warnings, again.audit) == ((), ())


def test_a_refused_child_is_told_of_what_is_on_trial_as_well() -> None:
    made = child(image="evil:1")
    made["spec"]["template"]["spec"]["hostPID"] = True
    trial = policy(
        "rules: {security: {hostPid: {blocked: true}}}",
        name="tried",
        scope="tenant",
        enforcement="Warn",
        workloadTypes=["inference"],
    )
    asked = asking(made, user=KSERVE, stage=Stage.VALIDATE)
    refused = decide_review(asked, catalog(RULES, trial), References())
    assert reasons(refused) == [("image", "options")]
    assert isinstance(refused, Denied)
    assert [each.field for each in refused.audit] == ["security.hostPid"]
    assert refused.report_to is not None


BOUND = policy(
    "defaults: {security: {hostNetwork: false}}\n"
    "rules:\n"
    "  image: {options: [{value: 'registry.example.com/main:1'}]}\n"
    "  security: {hostNetwork: {canEdit: false}}",
    kinds=[{"group": "serving.kserve.io", "kind": "InferenceService"}],
)
CLOSED = policy(
    "rules: {arguments: {canEdit: false}, environmentVariables: {instances: {canAdd: false}}}",
    name="closed",
)


@pytest.mark.parametrize("stage", Stage)
def test_what_a_controller_makes_of_a_changed_workload_meets_the_rules_for_children(
    stage: Stage,
) -> None:
    """The workload may refer to another runtime now, whose pods nobody has judged for it."""
    before, evil = child(), child(image="evil:1")
    evil["spec"]["template"]["spec"]["hostNetwork"] = True
    asked = asking(evil, before, user=KSERVE, stage=stage)
    refused = decide_review(asked, catalog(BOUND), References())
    assert reasons(refused) == [("image", "options"), ("security.hostNetwork", "canEdit")]
    assert isinstance(refused, Denied)
    assert refused.report_to is not None
    same = asking(evil, evil, user=KSERVE, stage=stage)
    assert isinstance(decide_review(same, catalog(BOUND), References()), Allowed)


@pytest.mark.parametrize("stage", Stage)
def test_a_controller_may_change_what_it_was_free_to_make(stage: Stage) -> None:
    before = child(args=["--model=a"], env=[{"name": "X", "value": "1"}])
    after = child(args=["--model=b"], env=[{"name": "Y", "value": "1"}])
    asked = asking(after, before, user=KSERVE, stage=stage)
    passed = decide_review(asked, catalog(CLOSED), References())
    assert isinstance(passed, Allowed)
    assert not passed.patch
    people = asking(after, before, user="alice", stage=stage)
    assert reasons(decide_review(people, catalog(CLOSED), References())) == [
        ("args", "canEdit"),
        ("environmentVariables", "canAdd"),
    ]


LWS = "system:serviceaccount:lws-system:lws-controller-manager"


def leaders(revision: str, image: str = "registry.example.com/main:1") -> Any:
    """The StatefulSet that the operator makes verbatim, but for marks of its own rollout."""
    template = pod(container(image=image))
    template["metadata"] = {"labels": {"a": "b", "revision": revision}}
    template["metadata"]["annotations"] = {f"revision-{revision}": "1"}
    template = {"metadata": template["metadata"], "spec": template["spec"]}
    selector = {"matchLabels": {"a": "b"}}
    document = {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "leaders", "namespace": "team"},
        "spec": {"serviceName": "s", "selector": selector, "template": template},
    }
    return owned(served(document), "LeaderWorkerSet", "leaderworkerset.x-k8s.io/v1")


MARKS = (
    "rules:\n"
    "  labels: {instances: {canAdd: false}}\n"
    "  annotations: {instances: {canAdd: false}}\n"
    "  image: {options: [{value: 'registry.example.com/main:1'}]}"
)


@pytest.mark.parametrize("stage", [Stage.MUTATE, Stage.VALIDATE])
def test_an_operator_marks_its_own_rollouts_of_pods_made_verbatim(stage: Stage) -> None:
    asked = asking(leaders("2"), leaders("1"), user=LWS, stage=stage)
    assert isinstance(decide_review(asked, catalog(MARKS), References()), Allowed)
    people = asking(leaders("2"), leaders("1"), user="alice", stage=stage)
    assert reasons(decide_review(people, catalog(MARKS), References())) == [
        ("annotations", "canAdd"),
        ("labels", "canAdd"),
    ]
    # Only the validating pass sees what others have put there.
    evil = asking(leaders("2", "evil:1"), leaders("1"), user=LWS, stage=Stage.VALIDATE)
    assert reasons(decide_review(evil, catalog(MARKS), References())) == [("image", "options")]


def test_what_people_submit_tells_nobody() -> None:
    refused = answer(served(deployment(container(image="evil:1"))), user="alice")
    assert isinstance(refused, Denied)
    assert refused.report_to is None


def test_what_is_made_of_a_judged_child_in_turn_is_not_judged_again() -> None:
    made = owned(served(pod(container(image="evil:1"))), "ReplicaSet", "apps/v1")
    passed = answer(made, user=REPLICAS)
    assert isinstance(passed, Allowed)
    assert not passed.is_evaluated


def job_pod(**more: Any) -> Any:
    return owned(served(pod(container(**more))), "Job", "batch/v1")


def patching(new: Any, old: Any, user: str, **more: Any) -> Request:
    return asking(new, old, user=user, field_manager="kubectl-patch", **more)


@pytest.mark.parametrize("user", ["alice", "system:serviceaccount:team:default", JOBS])
@pytest.mark.parametrize("stage", Stage)
def test_a_patch_of_a_governed_jobs_pod_is_judged_whoever_sends_it(user: str, stage: Stage) -> None:
    old = job_pod()
    new = edited(old, lambda each: each["spec"]["containers"][0].update(image="evil:1"))
    refused = decide_review(
        patching(new, old, user, stage=stage),
        catalog(policy("rules: {image: {options: [{value: 'registry.example.com/main:1'}]}}")),
        References(),
    )
    assert reasons(refused) == [("image", "options")]


def test_a_patch_of_a_jobs_pod_that_changes_no_rule_passes_without_a_patch_of_ours() -> None:
    old = job_pod(image="evil:1")
    new = edited(old, lambda each: each["metadata"].update(labels={"mine": "1"}))
    rules = catalog(
        "defaults: {workingDir: /w}\nrules: {image: {options: [{value: good}]}}",
    )
    for stage in Stage:
        passed = decide_review(patching(new, old, "alice", stage=stage), rules, References())
        assert isinstance(passed, Allowed)
        assert not [each for each in passed.patch if "workingDir" in each["path"]]


@pytest.mark.parametrize(
    ("kind", "version"), [("Deployment", "apps/v1"), ("Thing", "example.com/v1")]
)
def test_what_a_controller_compares_with_its_template_is_never_patched(
    kind: str, version: str
) -> None:
    rules = catalog("defaults: {workingDir: /w, terminationGracePeriodSeconds: 5}")
    old = owned(served(deployment()), kind, version)
    new = edited(old, lambda each: each["spec"]["template"]["spec"].update(hostname="h"))
    for asked in (asking(old), asking(new, old), asking(new, old, user=KSERVE)):
        passed = decide_review(asked, rules, References())
        assert isinstance(passed, Allowed)
        assert not passed.patch


def test_treatments_of_one_child_by_who_sends_it() -> None:
    rules = catalog(RULES)
    made = asking(child(), user=KSERVE)
    assert classify_request(made, rules) is RequestClass.CHILD
    assert classify_request(replace(made, user="alice"), rules) is RequestClass.OWNED
    assert classify_request(replace(made, subresource="scale"), rules) is RequestClass.UNPATCHED
    later = asking(child(image="x:1"), child(), user=KSERVE)
    assert classify_request(later, rules) is RequestClass.CHILD
    assert classify_request(replace(later, user="alice"), rules) is RequestClass.OWNED
