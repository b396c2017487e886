"""Decisions on claims, claim templates, device classes and compute domains."""

from __future__ import annotations

from typing import Any

import pytest

from tests.building import catalog, mutated, policy, result, shell
from webhook.decision.decide import decide
from webhook.devices.kinds import KINDS
from webhook.evaluation.outcome import IMMUTABLE, UNKNOWN_VERSION, Allowed
from webhook.evaluation.references import References
from webhook.evaluation.request import Request


def claim(*requests: dict[str, Any], version: str = "v1", **devices: Any) -> dict[str, Any]:
    """A ResourceClaim as a user writes it."""
    spec = {"devices": {"requests": list(requests), **devices}}
    return shell(f"resource.k8s.io/{version}", "ResourceClaim", spec)


def exactly(name: str = "gpu", device_class: str = "gpu.nvidia.com", **more: Any) -> dict[str, Any]:
    """One exact request."""
    return {"name": name, "exactly": {"deviceClassName": device_class, **more}}


OF_PODS = """
defaults: {labels: {instances: [{name: a, value: b}]}, compute: {cpuCoreRequest: 1}, image: a/b:1}
rules: {image: {required: true}, total: {gpuDevices: {max: 1}}, category: {required: true}}
"""


@pytest.mark.parametrize(("group", "kind"), sorted(KINDS))
def test_fields_of_pods_neither_bind_nor_warn(group: str, kind: str) -> None:
    rules = catalog(OF_PODS)
    for version in KINDS[group, kind]:
        document = shell(f"{group}/{version}", kind, {})
        found = mutated(rules, document)
        assert (found.object if isinstance(found, Allowed) else found) == document
        assert not found.warnings


@pytest.mark.parametrize("version", KINDS["resource.k8s.io", "ResourceClaim"])
def test_a_claim_is_evaluated_in_every_version(version: str) -> None:
    document = claim(exactly(), version=version)
    found = mutated(catalog(OF_PODS), document)
    assert isinstance(found, Allowed)
    assert found.is_evaluated
    assert result(catalog(OF_PODS), document) == document


def test_a_version_that_is_no_longer_served_is_a_warning() -> None:
    found = mutated(catalog(OF_PODS), claim(exactly(), version="v1alpha3"))
    assert isinstance(found, Allowed)
    assert found.not_evaluated == UNKNOWN_VERSION
    assert [each.reason for each in found.warnings] == [UNKNOWN_VERSION]


def test_a_policy_for_workload_types_does_not_reach_claims() -> None:
    for spec, reached in (({}, 1), ({"workloadTypes": ["training"]}, 0)):
        rules = catalog(policy(OF_PODS, **spec))
        found = rules.policies_of("resource.k8s.io", "ResourceClaim")
        assert len(found) == len(catalog().policies) + reached


def test_updates_are_left_to_the_api_server() -> None:
    found = mutated(catalog(OF_PODS), claim(exactly()), claim(exactly(count=2)))
    assert isinstance(found, Allowed)
    assert found.not_evaluated == IMMUTABLE


def test_policies_that_select_namespaces_do_not_reach_device_classes() -> None:
    document = {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "spec": {}}
    document["metadata"] = {"name": "a100.example.com"}
    request = Request("resource.k8s.io", "v1", "DeviceClass", "CREATE", document)
    expression = {"key": "team", "operator": "DoesNotExist"}
    selecting = policy(OF_PODS, namespaceSelector={"matchExpressions": [expression]})
    for rules, policies in ((catalog(policy(OF_PODS)), 1), (catalog(selecting), 0)):
        (definition, *_) = rules.definitions["resource.k8s.io", "DeviceClass"]
        shipped = len(catalog().policies)
        found = rules.plans_for(definition, "", References()).enforced.policies
        assert len(found) == shipped + policies
        assert isinstance(decide(request, rules, References()), Allowed)
