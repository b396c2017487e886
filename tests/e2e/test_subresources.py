"""What people change of a stored pod through its subresources, as kubectl does it."""

from __future__ import annotations

import json

import pytest

from tests.e2e.gate import MANIFESTS, Gate
from tests.e2e.objects import version_of

pytestmark = [pytest.mark.e2e, pytest.mark.core]

GOOD = "registry.example.com/base/python:3.12"
EVIL = "registry.example.com/evil/miner:1"
POD = "pod/notebook"


@pytest.fixture
def space(gate: Gate) -> str:
    """A governed namespace with a pod in it."""
    space = gate.governed_namespace()
    gate.kubectl("create", f"--filename={MANIFESTS / 'pod.yaml'}", f"--namespace={space}")
    return space


def debugged(gate: Gate, space: str, image: str, profile: str) -> str:
    """What kubectl says against a debugging container; nothing when it is there."""
    asked = ("debug", POD, f"--namespace={space}", f"--image={image}", f"--profile={profile}")
    return gate.kubectl(*asked, "--container=debug", "--attach=false", check=False).stderr


def resized(gate: Gate, space: str, requests: dict[str, str], limits: dict[str, str]) -> str:
    """What kubectl says against other resources of the main container; nothing when it has them."""
    resources = {"requests": requests, "limits": limits}
    patch = {"spec": {"containers": [{"name": "main", "resources": resources}]}}
    asked = ("patch", POD, f"--namespace={space}", "--subresource=resize")
    return gate.kubectl(*asked, f"--patch={json.dumps(patch)}", check=False).stderr


def test_a_debugging_container_of_a_listed_image_is_let_in(gate: Gate, space: str) -> None:
    assert debugged(gate, space, GOOD, "restricted") == ""
    (container,) = gate.stored("Pod", space, "notebook")["spec"]["ephemeralContainers"]
    assert (container["name"], container["image"]) == ("debug", GOOD)


def test_a_debugging_container_keeps_to_the_rules_of_containers(gate: Gate, space: str) -> None:
    before = gate.stored("Pod", space, "notebook")
    place = "spec.ephemeralContainers[0]"
    said = debugged(gate, space, EVIL, "restricted")
    assert f'image at {place}.image: "{EVIL}" is not in the list' in said, said
    said = debugged(gate, space, GOOD, "sysadmin")
    assert f"security.privileged at {place}.securityContext.privileged: true" in said, said
    assert version_of(gate.stored("Pod", space, "notebook")) == version_of(before)


def test_a_pod_is_resized_within_the_rules(gate: Gate, space: str) -> None:
    assert resized(gate, space, {"cpu": "500m"}, {"cpu": "2"}) == ""
    after = gate.stored("Pod", space, "notebook")
    assert after["spec"]["containers"][0]["resources"]["requests"]["cpu"] == "500m"
    said = resized(gate, space, {"memory": "12Gi"}, {"memory": "32Gi"})
    # Memory counts with that of the other container, 64Mi of it.
    assert "resources.requests.memory: 12352Mi is more than the maximum 8Gi" in said, said
    assert "resources.limits.memory: 32832Mi is more than the maximum 16Gi" in said, said
    assert version_of(gate.stored("Pod", space, "notebook")) == version_of(after)
