"""Objects among the given files are what a cluster would know of them."""

from __future__ import annotations

from typing import Any

from tests.building import shipped, table
from webhook.cases.run_offline import Place, applied_references, references_of
from webhook.catalog.build import Choices, assemble
from webhook.devices.briefs import read_known_claim
from webhook.documents.yaml_source import read_documents

TEAM = Place("team")


def references(*objects: dict[str, Any]) -> Any:
    return references_of([("a.yaml", each) for each in objects], TEAM)


def claim(version: str, body: dict[str, Any]) -> dict[str, Any]:
    spec = {"devices": {"requests": [body]}}
    return {
        "apiVersion": f"resource.k8s.io/{version}",
        "kind": "ResourceClaim",
        "metadata": {"name": version},
        "spec": spec,
    }


def test_claims_of_all_served_versions_are_known() -> None:
    option = {"deviceClassName": "gpu.nvidia.com", "count": 3}
    known = references(
        claim("v1", {"name": "g", "exactly": option}),
        claim("v1beta2", {"name": "g", "exactly": option}),
        claim("v1beta1", {"name": "g", **option}),
        claim("v1alpha3", {"name": "g", **option}),
    )
    views = {
        key[2]: read_known_claim(known.claims.get(key))
        for key in known.claims
        if key[:2] == ("ResourceClaim", "team")
    }
    counts = {name: [each.count for each in view.options] for name, view in views.items() if view}
    assert counts == {"v1": [3], "v1beta2": [3], "v1beta1": [3]}


def test_a_claim_that_the_webhook_could_not_keep_is_not_known_here_either() -> None:
    many = [{"name": f"r{index}", "exactly": {"deviceClassName": "x" * 200}} for index in range(64)]
    large = claim("v1", {"name": "g"})
    large["spec"]["devices"]["requests"] = many
    known = references(large)
    assert read_known_claim(known.claims.get(("ResourceClaim", "team", "v1"))) is None


def test_device_classes_are_known_by_name() -> None:
    given = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": "a100.example.com"},
        "spec": {"selectors": [{"cel": {"expression": "device.driver == 'gpu.nvidia.com'"}}]},
    }
    assert list(references(given).device_classes) == ["a100.example.com"]
    # Without any, nothing is known of the classes of the cluster.
    assert references(claim("v1", {"name": "g"})).device_classes is None


def test_the_template_that_a_domain_will_get_is_known() -> None:
    domain = {
        "apiVersion": "resource.nvidia.com/v1beta1",
        "kind": "ComputeDomain",
        "metadata": {"name": "rack"},
        "spec": {"channel": {"resourceClaimTemplate": {"name": "rack-channel"}}},
    }
    known = references(domain).claims.get(("ResourceClaimTemplate", "team", "rack-channel"))
    view = read_known_claim(known)
    assert view is not None
    classes = [each.device_class for each in view.options]
    assert classes == ["compute-domain-default-channel.nvidia.com"]


def test_claims_applied_with_their_pods_count_as_podgate_completes_them() -> None:
    (document,) = read_documents("defaults: {devices: {count: 3}}", "a.yaml")[0]
    catalog, problems = assemble(shipped(), [document], Choices(), table())
    assert catalog is not None, problems
    given = claim("v1", {"name": "g", "exactly": {"deviceClassName": "gpu.nvidia.com"}})
    known = applied_references([("a.yaml", given)], catalog, TEAM)
    view = read_known_claim(known.claims.get(("ResourceClaim", "team", "v1")))
    assert view is not None
    assert [each.count for each in view.options] == [3]
    assert "count" not in given["spec"]["devices"]["requests"][0]["exactly"]
