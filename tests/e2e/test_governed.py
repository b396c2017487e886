"""Which namespaces are governed, what a refusal looks like, and what happens without podgate."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.conftest import HERE
from tests.e2e.expectations import lacking
from tests.e2e.gate import MANIFESTS, Gate, text_of, wait_for
from tests.e2e.objects import essence
from tests.e2e.served import Certificates, serving
from tests.e2e.workloads import WORKLOADS, Workload

pytestmark = [pytest.mark.e2e, pytest.mark.core]

EVERY = pytest.mark.parametrize("workload", WORKLOADS, ids=lambda each: each.kind)


@EVERY
def test_ungoverned_namespace_is_untouched(gate: Gate, workload: Workload) -> None:
    space = gate.plain_namespace()
    file = f"--filename={MANIFESTS / workload.manifest}.yaml"
    gate.kubectl("create", file, f"--namespace={space}")
    stored = gate.settled(workload.kind, space, workload.name)
    notes = stored["metadata"].get("annotations", {})
    if notes.pop("deployment.kubernetes.io/revision", None) and not notes:
        del stored["metadata"]["annotations"]
    assert essence(stored) == essence(gate.untouched[workload.kind])
    assert lacking(stored, workload.pods)
    assert not [x for x in gate.recorder.recordings() if x.request["namespace"] == space]


@EVERY
def test_governing_a_namespace_later_changes_nothing(gate: Gate, workload: Workload) -> None:
    space = gate.plain_namespace()
    file = f"--filename={MANIFESTS / workload.manifest}.yaml"
    gate.kubectl("apply", file, f"--namespace={space}")
    before = gate.settled(workload.kind, space, workload.name)
    gate.govern(space)
    gate.kubectl("apply", file, f"--namespace={space}")
    after = gate.stored(workload.kind, space, workload.name)
    assert after["metadata"] == before["metadata"]
    assert after["spec"] == before["spec"]


@pytest.mark.parametrize(
    "file", sorted((MANIFESTS / "refused").glob("*.yaml")), ids=lambda file: file.stem
)
def test_ungoverned_namespace_stores_what_breaks_rules(gate: Gate, file: Path) -> None:
    space = gate.plain_namespace()
    gate.kubectl("create", f"--filename={file}", f"--namespace={space}")
    refused = gate.kubectl("create", f"--filename={file}", "--namespace=governed", check=False)
    assert refused.returncode == 1
    assert "podgate refused this object" in refused.stderr


REPLICAS = "spec.pytorchReplicaSpecs"
# Field, place, what was seen, what is allowed and who says so.
BROKEN = (
    ("security.privileged", f"{REPLICAS}.Master.", "true", "false", "system policy system"),
    ("numWorkers", f"{REPLICAS}.Worker.replicas", "9", "4", "cluster policy workers"),
    ("scale.replicas", f"{REPLICAS}.Worker.replicas", "9", "5", "cluster policy platform"),
    ("image", f"{REPLICAS}.Worker.", '"evil/miner:1"', "python:3.12", "cluster policy platform"),
    ("compute.gpuDevicesRequest", f"{REPLICAS}.Worker.", "8", "4", "cluster policy platform"),
)


def test_refusal_as_kubectl_prints_it(gate: Gate) -> None:
    document = gate.manifest("pytorchjob")
    replicas = document["spec"]["pytorchReplicaSpecs"]
    (master,) = replicas["Master"]["template"]["spec"]["containers"]
    (worker,) = replicas["Worker"]["template"]["spec"]["containers"]
    master["securityContext"] = {"privileged": True}
    replicas["Worker"]["replicas"] = 9
    worker.update(image="evil/miner:1", resources={"limits": {"nvidia.com/gpu": 8}})
    command = ("create", "--filename=-", "--namespace=governed")
    done = gate.kubectl(*command, input=text_of(document), check=False)
    assert done.returncode == 1
    assert done.stdout == ""
    head, *lines = done.stderr.splitlines()
    assert head.startswith("Error from server (Forbidden): "), done.stderr
    assert 'admission webhook "mutate.podgate.dev" denied the request' in head, done.stderr
    assert head.endswith(f"podgate refused this object: {len(BROKEN)} rules are broken")
    assert len(lines) == len(BROKEN), done.stderr
    for line, (field, place, value, allowed, policy) in zip(lines, BROKEN, strict=True):
        assert line.startswith(f"- {field} at {place}"), done.stderr
        found, _, rest = line.partition(f" ({policy}). ")
        assert value in found, done.stderr
        assert allowed in found, done.stderr
        assert rest, done.stderr
    assert not gate.api.items("PyTorchJob", "governed")


def test_without_podgate_nothing_passes_unseen(
    gate: Gate, certificates: Certificates, tmp_path: Path
) -> None:
    command = ("create", f"--filename={MANIFESTS / 'pod.yaml'}")
    space, plain = gate.governed_namespace(), gate.plain_namespace()

    def complaint() -> str:
        asked = (*command, f"--namespace={space}", "--dry-run=server")
        return gate.kubectl(*asked, check=False).stderr

    try:
        with serving(tmp_path / "second", HERE / "policies", certificates) as second:
            gate.register(second.url)
        wait_for(complaint, "a podgate that is gone is not missed")
        done = gate.kubectl(*command, f"--namespace={space}", check=False)
        assert done.returncode == 1
        assert 'failed calling webhook "validate.podgate.dev"' in done.stderr, done.stderr
        assert "connection refused" in done.stderr, done.stderr
        assert not gate.api.items("Pod", space)
        gate.kubectl(*command, f"--namespace={plain}")
    finally:
        gate.register(gate.recorder.url)
        gate.wait_until_refused("governed")
    gate.kubectl(*command, f"--namespace={space}")
    assert not lacking(gate.stored("Pod", space, "notebook"), 1)
