"""Controllers that are no users: queues and rollouts are not held up, owners are told of refusals."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.gate import Gate, text_of, wait_for
from tests.e2e.objects import Json
from tests.e2e.served import Certificates, Served, serving

pytestmark = pytest.mark.e2e

KUEUE = "system:serviceaccount:kueue-system:kueue-controller-manager"
KSERVE = "system:serviceaccount:kserve:kserve-controller-manager"
POLICY = """\
apiVersion: podgate.dev/v1alpha1
kind: ClusterWorkloadPolicy
metadata: {name: held}
spec:
  defaults: {workingDir: /workspace}
  rules:
    image:
      options:
        - {value: registry.example.com/base/python:3.12}
        - {value: registry.example.com/base/python:3.13}
        - {value: registry.example.com/base/proxy:1}
    nodeType: {canEdit: false}
    tolerations: {instances: {canAdd: false}}
    scale: {replicas: {min: 2}}
"""
ADMITTED: dict[str, Any] = {
    "spec": {
        "suspend": False,
        "template": {
            "metadata": {"labels": {"kueue.x-k8s.io/podset": "main"}},
            "spec": {
                "nodeSelector": {"run.ai/type": "spot"},
                "tolerations": [{"key": "spot", "operator": "Exists"}],
            },
        },
    }
}


@pytest.fixture(scope="module")
def own(
    tmp_path_factory: pytest.TempPathFactory, certificates: Certificates, gate: Gate
) -> Iterator[Served]:
    """A podgate that may post events; afterwards the other one is back."""
    folder = tmp_path_factory.mktemp("held")
    (folder / "given").mkdir()
    (folder / "given" / "held.yaml").write_text(POLICY)
    settings = {"PODGATE_KUBECONFIG": str(gate.cluster.kubeconfig())}
    try:
        with serving(folder, folder / "given", certificates, settings) as served:
            gate.register(served.url)
            gate.wait_until_refused("governed")
            yield served
    finally:
        gate.register(gate.recorder.url)
        gate.wait_until_refused("governed")


@pytest.fixture
def space(gate: Gate, own: Served) -> str:
    """A governed namespace of the test's own, whose first object is refused by its policies."""
    space = gate.governed_namespace()
    bad = gate.manifest("pod")
    bad["spec"]["tolerations"] = [{"operator": "Exists"}]
    wait_for(
        lambda: "tolerations" in create(gate, space, bad, "--dry-run=server"),
        "the policy is not in force",
    )
    return space


def create(gate: Gate, space: str, document: Json, *more: str) -> str:
    """What kubectl says of creating an object."""
    command = ("create", "--filename=-", f"--namespace={space}", *more)
    return str(gate.kubectl(*command, input=text_of(document), check=False).stderr)


def patched(gate: Gate, space: str, name: str, patch: Json, user: str) -> str:
    """What kubectl says of a merge patch that somebody sends."""
    command = ("patch", name, f"--namespace={space}", "--type=merge", f"--as={user}")
    groups = ("--as-group=system:masters",)
    done = gate.kubectl(*command, *groups, f"--patch={json.dumps(patch)}", check=False)
    return str(done.stderr)


def test_a_queue_may_say_where_a_job_runs_and_nobody_else_may(gate: Gate, space: str) -> None:
    document = gate.manifest("job")
    document["spec"].update(suspend=True, parallelism=2, completions=2)
    assert create(gate, space, document) == ""
    name = f"job/{document['metadata']['name']}"
    for user in ("alice", f"system:serviceaccount:{space}:kueue-controller-manager"):
        told = patched(gate, space, name, ADMITTED, user)
        assert "nodeType at spec.template.spec" in told, told
        assert "tolerations at spec.template.spec" in told, told
    assert patched(gate, space, name, ADMITTED, KUEUE) == ""
    stored = gate.stored("Job", space, document["metadata"]["name"])
    assert stored["spec"]["suspend"] is False
    assert stored["spec"]["template"]["spec"]["nodeSelector"] == {"run.ai/type": "spot"}


def test_a_rollout_ends_under_a_minimum_of_replicas(gate: Gate, space: str) -> None:
    """Its last step scales the old ReplicaSet to none."""
    document = gate.manifest("deployment")
    document["spec"].update(replicas=2, strategy={"type": "Recreate"})
    assert create(gate, space, document) == ""

    def sizes() -> list[int]:
        return sorted(each["spec"]["replicas"] for each in gate.api.items("ReplicaSet", space))

    wait_for(lambda: sizes() == [2], "no ReplicaSet")
    image = "main=registry.example.com/base/python:3.13"
    gate.kubectl("set", "image", "deployment/web", image, f"--namespace={space}")
    wait_for(lambda: sizes() == [0, 2], "the rollout does not end")
    (few,) = (each for each in gate.api.items("ReplicaSet", space) if each["spec"]["replicas"])
    told = patched(
        gate, space, f"replicaset/{few['metadata']['name']}", {"spec": {"replicas": 1}}, "alice"
    )
    assert "scale.replicas at spec.replicas" in told


def child(gate: Gate, image: str) -> Json:
    """The Deployment that KServe makes of an InferenceService."""
    document = gate.manifest("deployment")
    owner = {
        "apiVersion": "serving.kserve.io/v1beta1",
        "kind": "InferenceService",
        "name": "llama",
        "uid": "0d9a1d1c-0000-4000-8000-000000000001",
        "controller": True,
    }
    document["metadata"].update(name="llama-predictor", ownerReferences=[owner])
    document["spec"]["template"]["spec"]["containers"][0]["image"] = image
    return document


def told_of(gate: Gate, space: str) -> list[Json]:
    """Our events there."""
    events = gate.api.items("Event", space)
    return [each for each in events if each["reason"] == "PolicyRefused"]


def test_the_owner_of_a_refused_child_is_told_once(gate: Gate, space: str) -> None:
    bad = child(gate, "registry.example.com/evil/miner:1")
    as_operator = (f"--as={KSERVE}", "--as-group=system:masters")
    create(gate, space, bad, *as_operator, "--dry-run=server")
    create(gate, space, bad, "--as=alice", "--as-group=system:masters")
    time.sleep(0.5)
    assert not told_of(gate, space)
    for _ in range(3):
        assert "podgate refused this object" in create(gate, space, bad, *as_operator)
    wait_for(lambda: told_of(gate, space), "the owner is not told")
    time.sleep(0.5)
    (event,) = told_of(gate, space)
    assert event["involvedObject"]["kind"] == "InferenceService"
    assert event["involvedObject"]["name"] == "llama"
    assert event["type"] == "Warning"
    for fact in ("Deployment llama-predictor", "registry.example.com/evil/miner:1", "policy held"):
        assert fact in event["message"], event["message"]
