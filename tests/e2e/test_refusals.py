"""A refusal as people and programs get it: every violation, each on its own line, with its facts."""

from __future__ import annotations

import pytest

from tests.e2e.api import StatusError
from tests.e2e.gate import MANIFESTS, Gate

pytestmark = pytest.mark.e2e

CRON = "spec.jobTemplate.spec"
SET = "spec.replicatedJobs"
IMAGES = "registry.example.com/base/proxy:1, registry.example.com/base/python:3.12"
# Field, place, what was seen, what is allowed, and who says so; "" where a line does not tell it.
FACTS: dict[str, tuple[tuple[str, str, str, str, str], ...]] = {
    "pod": (
        ("priorityClass", "metadata.labels.priorityClassName", "high", "low", "platform"),
        ("environmentVariables", "spec.containers[0].env[0]", "CLUSTER", "", "platform"),
        ("imagePullPolicy", "spec.containers[0].imagePullPolicy", "Never", "Always", "platform"),
        ("compute.cpuCoreLimit", "spec.containers[0].resources.limits.cpu", "16", "8", "platform"),
        (
            "compute.gpuDevicesRequest",
            'spec.containers[0].resources.limits["nvidia.com/gpu"]',
            "8",
            "4",
            "platform",
        ),
        (
            "compute.cpuCoreRequest",
            "spec.containers[0].resources.requests.cpu",
            "0.125",
            "0.05",
            "platform",
        ),
        (
            "security.capabilities",
            "spec.containers[0].securityContext.capabilities.add",
            "SYS_ADMIN",
            "",
            "platform",
        ),
        (
            "security.runAsNonRoot",
            "spec.containers[0].securityContext.runAsNonRoot",
            "false",
            "true",
            "platform",
        ),
        (
            "security.runAsUid",
            "spec.containers[0].securityContext.runAsUser",
            "0",
            "1000",
            "platform",
        ),
        ("image", "spec.initContainers[0].image", "evil/miner:1", IMAGES, "platform"),
        (
            "security.privileged",
            "spec.initContainers[0].securityContext.privileged",
            "true",
            "false",
            "system",
        ),
        ("nodeType", 'spec.nodeSelector["run.ai/type"]', "h100", "a100, cpu", "platform"),
        (
            "terminationGracePeriodSeconds",
            "spec.terminationGracePeriodSeconds",
            "600",
            "120",
            "platform",
        ),
        ("storage.hostPath", "spec.volumes[0]", "host", "none", "platform"),
    ),
    "deployment": (
        ("scale.replicas", "spec.replicas", "9", "5", "platform"),
        ("labels", 'spec.template.metadata.labels["example.com/managed"]', "", "", "platform"),
        ("image", "spec.template.spec.containers[1].image", "nginx:latest", IMAGES, "platform"),
        (
            "security.privileged",
            "spec.template.spec.containers[1].securityContext.privileged",
            "true",
            "false",
            "system",
        ),
    ),
    "job": (
        ("backoffLimit", "spec.backoffLimit", "9", "4", "batch"),
        ("image", "spec.template.spec.containers[0].image", "library/python", IMAGES, "platform"),
        (
            "compute.cpuMemoryRequest",
            "spec.template.spec.containers[0].resources.requests.memory",
            "64Gi",
            "8Gi",
            "platform",
        ),
        ("storage.nfs", "spec.template.spec.volumes[0]", "exports", "datasets", "platform"),
    ),
    "cronjob": (
        ("backoffLimit", f"{CRON}.backoffLimit", "5", "4", "batch"),
        (
            "imagePullPolicy",
            f"{CRON}.template.spec.containers[0].imagePullPolicy",
            "Never",
            "Always",
            "platform",
        ),
        ("security.runAsUid", f"{CRON}.template.spec.containers[0].", "10", "1000", "platform"),
        (
            "security.runAsNonRoot",
            f"{CRON}.template.spec.securityContext.runAsNonRoot",
            "false",
            "true",
            "platform",
        ),
    ),
    "pytorchjob": (
        (
            "security.privileged",
            "spec.pytorchReplicaSpecs.Master.template.spec.containers[0].securityContext.privileged",
            "true",
            "false",
            "system",
        ),
        ("numWorkers", "spec.pytorchReplicaSpecs.Worker.replicas", "8", "4", "workers"),
        ("scale.replicas", "spec.pytorchReplicaSpecs.Worker.replicas", "8", "5", "platform"),
        (
            "image",
            "spec.pytorchReplicaSpecs.Worker.template.spec.containers[0].image",
            "pytorch-mnist",
            IMAGES,
            "platform",
        ),
        (
            "compute.gpuDevicesRequest",
            "spec.pytorchReplicaSpecs.Worker.template.spec.containers[0].resources.limits",
            "8",
            "4",
            "platform",
        ),
        ("backoffLimit", "spec.runPolicy.backoffLimit", "8", "4", "batch"),
    ),
    "raycluster": (
        (
            "image",
            "spec.headGroupSpec.template.spec.containers[0].image",
            "rayproject/ray:2.46.0",
            IMAGES,
            "platform",
        ),
        (
            "terminationGracePeriodSeconds",
            "spec.headGroupSpec.template.spec.terminationGracePeriodSeconds",
            "500",
            "120",
            "platform",
        ),
        ("numWorkers", "spec.workerGroupSpecs[0]", "12", "4", "workers"),
        (
            "security.capabilities",
            "spec.workerGroupSpecs[0].template.spec.containers[0].securityContext.capabilities.add",
            "NET_ADMIN",
            "",
            "platform",
        ),
        ("scale.replicas", "spec.workerGroupSpecs[1]", "9", "5", "platform"),
        (
            "compute.cpuCoreLimit",
            "spec.workerGroupSpecs[1].template.spec.containers[0].resources.limits.cpu",
            "64",
            "8",
            "platform",
        ),
    ),
    "jobset": (
        ("backoffLimit", f"{SET}[0].template.spec.backoffLimit", "9", "4", "batch"),
        (
            "environmentVariables",
            f"{SET}[0].template.spec.template.spec.containers[0].env[0]",
            "CLUSTER",
            "",
            "platform",
        ),
        ("scale.replicas", f"{SET}[1]", "12", "5", "platform"),
        (
            "storage.hostPath",
            f"{SET}[1].template.spec.template.spec.volumes[0]",
            "host",
            "none",
            "platform",
        ),
    ),
}
WAYS = {
    "create": ("create",),
    "apply": ("apply",),
    "server-side": ("apply", "--server-side"),
    "dry-run": ("create", "--dry-run=server"),
}


@pytest.fixture(scope="module")
def space(gate: Gate) -> str:
    """A governed namespace in which nothing is ever stored."""
    return gate.governed_namespace()


@pytest.mark.parametrize("name", FACTS)
@pytest.mark.parametrize("how", WAYS)
def test_refusal_as_kubectl_prints_it(gate: Gate, space: str, name: str, how: str) -> None:
    file = MANIFESTS / "refused" / f"{name}.yaml"
    done = gate.kubectl(*WAYS[how], f"--filename={file}", f"--namespace={space}", check=False)
    text = done.stderr
    assert done.returncode == 1
    assert 'admission webhook "mutate.podgate.dev" denied the request: podgate refused' in text
    lines = [line for line in text.splitlines() if line.startswith("- ")]
    assert f"{len(lines)} rules are broken" in text, text
    for field, place, seen, allowed, policy in FACTS[name]:
        about = [line for line in lines if line.startswith(f"- {field} at {place}")]
        assert len(about) == 1, f"{field} at {place}, among:\n{text}"
        told = about[0].removeprefix(f"- {field} at {place}")
        assert seen in told, text
        assert allowed in told, text
        assert f"policy {policy})" in told, text
        assert policy != "platform" or "https://wiki.example.com/platform" in told, text
    assert "something-secret" not in text
    assert not gate.api.items(gate.manifest(f"refused/{name}")["kind"], space)


@pytest.mark.parametrize("name", FACTS)
def test_causes_for_programs(gate: Gate, space: str, name: str) -> None:
    with pytest.raises(StatusError) as caught:
        gate.api.create(gate.manifest(f"refused/{name}"), space)
    status, causes = caught.value.status, caught.value.causes()
    assert (status["code"], status["reason"]) == (403, "Forbidden"), status
    lines = [line[2:] for line in status["message"].splitlines() if line.startswith("- ")]
    assert [each["message"] for each in causes] == lines
    for field, place, *_ in FACTS[name]:
        mine = [each for each in causes if each["message"].startswith(f"{field} at {place}")]
        assert [each["field"].startswith(place) for each in mine] == [True], status
        assert mine[0]["reason"], status
