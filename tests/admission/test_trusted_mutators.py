"""Controllers that the installation trusts: by exact user, kind and field, and no further."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import pytest
import yaml

from tests.building import (
    catalog,
    container,
    deployment,
    edited,
    job,
    jobset,
    pod,
    policy,
    pytorchjob,
    reasons,
    request,
    served,
    shell,
)
from tests.decision.test_scale import scaling
from webhook.admission.judge import decide_review
from webhook.admission.request_class import classify_request
from webhook.catalog.catalog import Catalog
from webhook.decision.messages import problem_text
from webhook.documents.yaml_source import read_documents
from webhook.evaluation.outcome import Allowed
from webhook.evaluation.references import References
from webhook.evaluation.request import Request, RequestClass, Stage
from webhook.evaluation.trusted_mutators import TrustedMutators, parse_trusted, remove_path
from webhook.sources.load import trusted_list

KUEUE = "system:serviceaccount:kueue-system:kueue-controller-manager"
JOBSET = "system:serviceaccount:jobset-system:jobset-controller-manager"
UPDATER = "system:serviceaccount:kube-system:vpa-updater"
AUTOSCALER = "system:serviceaccount:kube-system:horizontal-pod-autoscaler"
HELD = """
defaults: {nodeType: cpu, workingDir: /w}
rules:
  nodeType: {canEdit: false}
  tolerations: {instances: {canAdd: false}}
  labels: {instances: {canAdd: false}}
  annotations: {instances: {canAdd: false}}
  image: {canEdit: false}
"""
NODE_TYPE = "run.ai/type"


def trusting(*bodies: Any) -> Catalog:
    """A catalog with the shipped list of trusted mutators."""
    trusted, problems = trusted_list(None)
    assert not problems
    built = catalog(*bodies)
    built.config = replace(built.config, trusted=trusted)
    return built


def template_of(document: Any) -> Any:
    """The first pod template of a workload, the Pod itself of a Pod."""
    spec = document["spec"]
    if document["kind"] == "Pod":
        return document
    if "replicatedJobs" in spec:
        return spec["replicatedJobs"][0]["template"]["spec"]["template"]
    if "pytorchReplicaSpecs" in spec:
        return spec["pytorchReplicaSpecs"]["Worker"]["template"]
    return spec["template"]


def admit(document: Any) -> None:
    """What Kueue does to a workload that it lets run."""
    spec = document["spec"]
    if document["kind"] == "Pod":
        spec.pop("schedulingGates", None)
    elif document["kind"] == "PyTorchJob":
        spec.setdefault("runPolicy", {})["suspend"] = False
    else:
        spec["suspend"] = False
    template = template_of(document)
    template.setdefault("metadata", {}).setdefault("labels", {})["kueue.x-k8s.io/podset"] = "main"
    notes = template["metadata"].setdefault("annotations", {})
    notes["kueue.x-k8s.io/workload"] = "job-web"
    template["spec"]["nodeSelector"] = {"cloud/flavor": "spot", NODE_TYPE: "gpu"}
    template["spec"]["tolerations"] = [{"key": "spot", "operator": "Exists"}]


def suspended(document: Any) -> Any:
    """The workload as it waits."""

    def wait(each: Any) -> None:
        if each["kind"] == "Pod":
            each["spec"]["schedulingGates"] = [{"name": "kueue.x-k8s.io/admission"}]
        elif each["kind"] == "PyTorchJob":
            each["spec"]["runPolicy"] = {"suspend": True}
        else:
            each["spec"]["suspend"] = True

    return edited(served(document), wait)


WORKLOADS = {"Job": job, "JobSet": jobset, "PyTorchJob": pytorchjob, "Pod": pod}


@pytest.mark.parametrize("kind", WORKLOADS)
def test_a_queue_admits_what_users_may_not_write_and_nothing_is_filled_in(kind: str) -> None:
    rules = trusting(HELD)
    old = suspended(WORKLOADS[kind]())
    new = edited(old, admit)
    for stage in Stage:
        asked = request(new, old, user=KUEUE, stage=stage)
        assert classify_request(asked, rules) is RequestClass.TRUSTED
        decision = decide_review(asked, rules, References())
        assert isinstance(decision, Allowed), reasons(decision)
        assert not decision.patch
    alice = decide_review(request(new, old), rules, References())
    assert {field for field, _ in reasons(alice)} >= {"nodeType", "tolerations", "labels"}


def test_an_eviction_takes_back_what_an_admission_brought() -> None:
    rules = trusting(HELD)
    waiting = suspended(job())
    running = edited(waiting, admit)
    asked = request(waiting, running, user=KUEUE)
    assert classify_request(asked, rules) is RequestClass.TRUSTED
    assert isinstance(decide_review(asked, rules, References()), Allowed)


@pytest.mark.parametrize(
    "user",
    [
        "someone@example.com",
        "",
        "system:serviceaccount:team:kueue-controller-manager",
        "system:serviceaccount:kueue-system:kueue-controller-manager2",
        "system:serviceaccount:kueue-system:Kueue-controller-manager",
        " system:serviceaccount:kueue-system:kueue-controller-manager",
        "system:serviceaccount:kueue-system:default",
        "system:serviceaccounts:kueue-system",
        JOBSET,
    ],
)
def test_nobody_else_is_trusted(user: str) -> None:
    rules = trusting(HELD)
    old = suspended(jobset())
    asked = request(edited(old, admit), old, user=user, groups=("system:masters", KUEUE))
    assert classify_request(asked, rules) is RequestClass.FULL
    assert ("nodeType", "canEdit") in reasons(decide_review(asked, rules, References()))


def test_an_update_that_changes_nothing_makes_nobody_trusted() -> None:
    rules = trusting(HELD)
    old = suspended(job())
    assert classify_request(request(old, old, user=KUEUE), rules) is RequestClass.TRUSTED
    assert (
        classify_request(request(old, old, user="someone@example.com"), rules) is RequestClass.FULL
    )


def change_image(document: Any) -> None:
    template_of(document)["spec"]["containers"][0]["image"] = "evil:1"


CHANGES: dict[str, Any] = {
    "the image": change_image,
    "a variable": lambda each: template_of(each)["spec"]["containers"][0].update(
        env=[{"name": "A", "value": "b"}]
    ),
    "the owners": lambda each: each["metadata"].update(
        ownerReferences=[{"kind": "Job", "apiVersion": "batch/v1", "name": "x", "uid": "1"}]
    ),
    "an annotation that steers": lambda each: each["metadata"].update(
        annotations={"podgate.dev/exclude": "{}"}
    ),
    "another part of the spec": lambda each: each["spec"].update(backoffLimit=9),
    "a field that is new": lambda each: template_of(each)["spec"].update(hostNetwork=True),
    "a new kind of volume": lambda each: template_of(each)["spec"].update(
        volumes=[{"name": "v", "hostPath": {"path": "/"}}]
    ),
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_change_outside_the_list_makes_it_an_ordinary_request(what: str) -> None:
    rules = trusting(HELD)
    old = suspended(job())
    new = edited(edited(old, admit), CHANGES[what])
    asked = request(new, old, user=KUEUE)
    assert classify_request(asked, rules) is RequestClass.FULL
    assert ("nodeType", "canEdit") in reasons(decide_review(asked, rules, References()))


def test_trust_is_for_kinds_of_the_list() -> None:
    rules = trusting(HELD)
    old = suspended(deployment())
    asked = request(edited(old, admit), old, user=KUEUE)
    assert classify_request(asked, rules) is RequestClass.FULL
    assert ("nodeType", "canEdit") in reasons(decide_review(asked, rules, References()))


def test_creating_is_never_trusted() -> None:
    rules = trusting(HELD)
    document = edited(suspended(job()), admit)
    for asked in (
        request(document, user=KUEUE),
        replace(request(document, user=KUEUE), operation="UPDATE"),
    ):
        assert classify_request(asked, rules) is RequestClass.FULL
        assert ("nodeType", "canEdit") in reasons(decide_review(asked, rules, References()))


def test_final_rules_hold_for_the_trusted() -> None:
    """Options, bounds, required values and locked items are what the object has to be like."""
    locked = (
        "defaults: {tolerations: {instances: [{name: t, key: own, operator: Exists}]}}\n"
        "rules: {tolerations: {instances: {locked: [t]}}}"
    )
    for body, broken in (
        ("rules: {nodeType: {options: [{value: cpu}]}}", ("nodeType", "options")),
        (locked, ("tolerations", "locked")),
    ):
        rules = trusting(body)
        old = suspended(job(tolerations=[{"key": "own", "operator": "Exists"}]))
        for stage in Stage:
            asked = request(edited(old, admit), old, user=KUEUE, stage=stage)
            assert classify_request(asked, rules) is RequestClass.TRUSTED
            assert reasons(decide_review(asked, rules, References())) == [broken], stage


def test_what_the_server_counts_is_no_change() -> None:
    rules = trusting(HELD)
    old = suspended(job())
    new = edited(
        edited(old, admit),
        lambda each: each["metadata"].update(
            generation=2, resourceVersion="8", managedFields=[{"manager": "kueue"}]
        ),
    )
    assert classify_request(request(new, old, user=KUEUE), rules) is RequestClass.TRUSTED


def test_an_empty_map_that_an_admission_leaves_or_fills_is_no_change() -> None:
    rules = trusting(HELD)
    old = suspended(job())
    del old["spec"]["template"]["metadata"]
    new = edited(old, admit)
    assert classify_request(request(new, old, user=KUEUE), rules) is RequestClass.TRUSTED
    assert classify_request(request(old, new, user=KUEUE), rules) is RequestClass.TRUSTED
    emptied = edited(old, lambda each: each["spec"]["template"]["spec"].update(securityContext={}))
    asked = request(
        edited(emptied, lambda each: each["spec"]["template"]["spec"].pop("securityContext")),
        emptied,
        user=KUEUE,
    )
    assert classify_request(asked, rules) is RequestClass.FULL


def owned_by_set(document: Any) -> Any:
    owner = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "name": "o", "uid": "1"}
    return edited(
        document,
        lambda each: each["metadata"].update(ownerReferences=[{**owner, "controller": True}]),
    )


def test_an_operator_hands_on_what_a_queue_changed() -> None:
    rules = trusting(HELD)
    old = owned_by_set(suspended(job()))
    new = edited(old, admit)
    asked = request(new, old, user=JOBSET)
    assert classify_request(asked, rules) is RequestClass.TRUSTED
    assert isinstance(decide_review(asked, rules, References()), Allowed)
    changed = request(edited(new, change_image), old, user=JOBSET, stage=Stage.VALIDATE)
    assert classify_request(changed, rules) is RequestClass.DERIVED
    assert ("image", "canEdit") in reasons(decide_review(changed, rules, References()))


def resized(cpu: str) -> Any:
    return pod(container(resources={"limits": {"cpu": cpu}, "requests": {"cpu": cpu}}))


CPU = "defaults: {compute: {cpuCoreLimit: 1}}\nrules: {compute: {cpuCoreLimit: {%s}}}"


def test_an_autoscaler_resizes_within_the_bounds_whatever_users_may_write() -> None:
    held, bounded = trusting(CPU % "canEdit: false"), trusting(CPU % "max: 2")

    def resize(cpu: str, user: str) -> Request:
        old, new = served(resized("1")), served(resized(cpu))
        return request(new, old, user=user, subresource="resize", stage=Stage.VALIDATE)

    assert isinstance(decide_review(resize("3", UPDATER), held, References()), Allowed)
    assert reasons(decide_review(resize("3", "alice"), held, References())) == [
        ("compute.cpuCoreLimit", "canEdit")
    ]
    assert isinstance(decide_review(resize("2", UPDATER), bounded, References()), Allowed)
    assert reasons(decide_review(resize("3", UPDATER), bounded, References())) == [
        ("compute.cpuCoreLimit", "max")
    ]
    debugging = replace(resize("3", UPDATER), subresource="ephemeralcontainers")
    assert classify_request(debugging, held) is RequestClass.UNPATCHED


JOBS = ("kubeflow.org", "v1", "pytorchjobs")
WORKERS = policy(
    "defaults: {worker: {numWorkers: 2}}\nrules: {worker: {numWorkers: {canEdit: false, max: 8}}}",
    workloadTypes=["distributed"],
)


def test_an_autoscaler_scales_within_the_bounds_whatever_users_may_write() -> None:
    held = trusting(WORKERS)

    def scale(number: int, user: str) -> Any:
        return decide_review(replace(scaling(number, 2, JOBS), user=user), held, References())

    assert isinstance(scale(6, AUTOSCALER), Allowed)
    assert reasons(scale(9, AUTOSCALER)) == [("numWorkers", "max")]
    assert reasons(scale(6, "alice")) == [("numWorkers", "canEdit")]
    assert reasons(scale(6, "system:serviceaccount:team:horizontal-pod-autoscaler")) == [
        ("numWorkers", "canEdit")
    ]


def test_scales_may_be_left_to_somebody_by_the_kind_that_is_scaled() -> None:
    listed = parsed(
        "- {name: own, users: [own], kinds: [{group: kubeflow.org, kind: PyTorchJob}],"
        " subresource: scale, fields: [.spec.replicas]}"
    )[0]
    rules = trusting(WORKERS)
    rules.config = replace(rules.config, trusted=listed)
    assert classify_request(replace(scaling(4, 2, JOBS), user="own"), rules) is RequestClass.TRUSTED
    assert classify_request(replace(scaling(4, 2), user="own"), rules) is RequestClass.UNPATCHED


# The list


def parsed(text: str) -> tuple[TrustedMutators, list[str]]:
    documents, faults = read_documents(text.encode(), "trusted.yaml", kubernetes=False)
    assert not faults
    found, problems = parse_trusted(documents[0])
    return found, [problem_text(each) for each in problems]


GOOD = {
    "name": "n",
    "users": ["u"],
    "kinds": [{"group": "batch", "kind": "Job"}],
    "fields": [".spec.suspend"],
}


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"name": ""}, "name"),
        ({"users": []}, "exact user names"),
        ({"users": ["system:serviceaccount:*:x"]}, "exact user names"),
        ({"users": ["system:anonymous"]}, "exact user names"),
        ({"users": "u"}, "exact user names"),
        ({"kinds": [{"group": "batch", "kind": "*"}]}, "kinds"),
        ({"kinds": ["Job"]}, "kinds"),
        ({"kinds": []}, "kinds"),
        ({"subresource": "ephemeralcontainers"}, "subresource"),
        ({"fields": [".spec"]}, "no single field"),
        ({"fields": [".metadata"]}, "no single field"),
        ({"fields": [".spec.list[]"]}, "no single field"),
        ({"fields": ["spec.suspend"]}, "no single field"),
        ({"fields": [".spec.suspend | .x"]}, "no single field"),
        ({"fields": [7]}, "no single field"),
        ({"fields": ".spec.suspend"}, "no list"),
        ({"podFields": [".status.phase"]}, "no single field"),
        ({"fields": []}, "no fields"),
        ({"group": "x"}, "unknown member"),
    ],
)
def test_faults_of_the_list_are_told_with_their_place(change: dict[str, Any], told: str) -> None:
    found, problems = parsed(yaml.safe_dump([{**GOOD, **change}]))
    assert found == TrustedMutators()
    assert told in problems[0]
    assert problems[0].startswith("trusted.yaml:")


def test_a_good_list_is_read() -> None:
    found, problems = parsed(yaml.safe_dump([GOOD]))
    assert not problems
    assert found.entries[0].fields == (("spec", "suspend"),)
    assert parsed("a: b")[1]


def test_taking_a_place_out_of_a_copy_reaches_every_item_of_lists() -> None:
    document = {"a": [{"b": {"c": 1}, "d": 2}, {"b": {"c": 3, "e": 4}}, 5], "f": {"g": {"h": 1}}}
    left = copy.deepcopy(document)
    remove_path(left, ("a", "[]", "b", "c"))
    remove_path(left, ("f", "g", "h"))
    remove_path(left, ("x", "y"))
    assert left == {"a": [{"d": 2}, {"b": {"e": 4}}, 5]}


def workflow() -> Any:
    spec = {"entrypoint": "main", "templates": [{"name": "main", "container": container()}]}
    return shell("argoproj.io/v1alpha1", "Workflow", spec)


def test_a_controller_without_a_status_subresource_writes_its_status() -> None:
    rules = trusting(HELD)
    old = workflow()

    def progress(each: Any) -> None:
        each["metadata"]["labels"] = {"workflows.argoproj.io/phase": "Running"}
        each["status"] = {"phase": "Running", "nodes": {"main": {"phase": "Pending"}}}

    new = edited(old, progress)
    argo = "system:serviceaccount:argo:argo"
    for stage in Stage:
        asked = request(new, old, user=argo, stage=stage)
        assert classify_request(asked, rules) is RequestClass.TRUSTED
        decision = decide_review(asked, rules, References())
        assert isinstance(decision, Allowed)
        assert not decision.patch
    for change in (
        lambda each: each["metadata"]["labels"].update(mine="1"),
        lambda each: each["spec"]["templates"][0]["container"].update(image="evil:1"),
    ):
        other = request(edited(new, change), old, user=argo)
        assert classify_request(other, rules) is RequestClass.FULL
