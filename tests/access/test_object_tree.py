"""Trees of objects by their owners, each with its state, and each pod with its component."""

from __future__ import annotations

from typing import Any

from tests.conformance.fixtures import evaluator
from webhook.access.tree import DEEPEST, child_kinds, trees, walk
from webhook.cli import definitions
from webhook.jq.expressions import Evaluator

POD = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "main", "image": "x"}]}}


def job(name: str) -> dict[str, Any]:
    return {"name": name, "template": {"spec": {"template": POD}}}


def owned(kind: str, name: str, owner: str = "", **more: Any) -> dict[str, Any]:
    """An object whose uid is its name."""
    metadata: dict[str, Any] = {"name": name, "namespace": "team", "uid": name}
    if owner:
        metadata["ownerReferences"] = [{"uid": "other"}, {"uid": owner, "controller": True}]
    metadata |= more.pop("metadata", {})
    version = {"JobSet": "jobset.x-k8s.io/v1alpha2", "Job": "batch/v1"}.get(kind, "v1")
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **more}


def objects() -> list[dict[str, Any]]:
    labels = {
        "jobset.sigs.k8s.io/replicatedjob-name": "master",
        "batch.kubernetes.io/job-name": "training-master-0",
    }
    return [
        owned(
            "JobSet",
            "training",
            spec={"replicatedJobs": [job("master"), job("worker")]},
            status={"replicatedJobsStatus": [{"name": "master", "active": 1}]},
        ),
        owned("Job", "training-master-0", "training", status={"active": 1, "ready": 1}),
        owned(
            "Pod",
            "training-master-0-0",
            "training-master-0",
            metadata={"labels": labels},
            status={"phase": "Pending"},
        ),
        owned("Service", "pods", "training"),
        owned("Pod", "of-somebody-else"),
    ]


def test_a_walk_visits_each_object_before_its_children_in_order() -> None:
    found = trees(objects(), definitions.finder(definitions.all_of([])), Evaluator())
    assert [[each.body["metadata"]["name"] for each in walk(root)] for root in found] == [
        ["training", "training-master-0", "training-master-0-0", "pods"],
        ["of-somebody-else"],
    ]
    pod = found[0].children[0].children[0]
    assert (pod.state, pod.component, pod.instance) == ("Initializing", "replicatedjob", "master")


def test_circles_and_long_chains_of_owners_are_cut() -> None:
    circle = [owned("Pod", "a", "c"), owned("Pod", "b", "a"), owned("Pod", "c", "b")]
    itself = [owned("Pod", "d", "d")]
    chain = [owned("Pod", f"p{n}", f"p{n + 1}") for n in range(3 * DEEPEST)]
    found = trees([*circle, *itself, *chain], lambda _: None, Evaluator())
    seen = [each.body["metadata"]["name"] for root in found for each in walk(root)]
    assert sorted(seen) == sorted(each["metadata"]["name"] for each in (*circle, *itself, *chain))
    assert len(found) == 1 + 1 + 3
    assert max(sum(1 for _ in walk(root)) for root in found) <= DEEPEST


def test_kinds_below_are_those_of_every_version() -> None:
    known = definitions.all_of([])
    below = {kind: child_kinds(kind, known) for kind in known}
    assert ("batch", "Job") in below["kubeflow.org", "MPIJob"]
    for kind, versions in known.items():
        children = [
            child.kind.kind
            for each in versions
            for child in each.interface.spec.structure_definition.child_components
            if child.kind
        ]
        assert set(children) <= {name for _, name in below[kind]}


def test_an_instance_is_known_by_its_label_in_lower_case() -> None:
    labels = {"training.kubeflow.org/job-role": "worker"}
    replicas = {"Launcher": {"template": POD}, "Worker": {"template": POD}}
    job = owned("MPIJob", "pi", spec={"mpiReplicaSpecs": replicas})
    job["apiVersion"] = "kubeflow.org/v2beta1"
    worker = owned("Pod", "pi-worker-0", "pi", metadata={"labels": labels})
    other = owned("Pod", "pi-x", "pi", metadata={"labels": dict.fromkeys(labels, "x")})
    (root,) = trees([job, worker, other], definitions.finder(definitions.all_of([])), Evaluator())
    assert [(each.component, each.instance) for each in root.children] == [
        ("replica", "Worker"),
        ("replica", ""),
    ]


def test_an_object_without_a_status_is_at_its_start_and_templates_have_no_state() -> None:
    made = owned("JobSet", "training", spec={"replicatedJobs": [job("master")]})
    template = owned("PodTemplate", "a", template=POD, status={})
    found = trees([made, template], definitions.finder(definitions.all_of([])), evaluator())
    assert [each.state for each in found] == ["Initializing", ""]
