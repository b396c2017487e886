"""What is registered of what is served: nothing is left out on doubt, and what nobody defined is told."""

from __future__ import annotations

from typing import Any

import pytest

from webhook.catalog.catalog import Catalog
from webhook.controller.registration import Target, configurations
from webhook.controller.served import Served, served_of
from webhook.controller.undefined import Undefined, find_undefined
from webhook.interface.crd_summary import Brief
from webhook.sources.load import Sources, load

Json = dict[str, Any]
TRAINING = Brief(
    "pytorchjobs.kubeflow.org", "kubeflow.org", "PyTorchJob", "pytorchjobs", {"v1": True}, True
)


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    found, _ = load(Sources())
    assert found is not None
    return found


def version(name: str, *resources: str, freshness: str = "Current") -> Json:
    listed: dict[str, list[str]] = {}
    for each in resources:
        plural, _, below = each.partition("/")
        listed.setdefault(plural, []).extend([below] if below else [])
    rows = [
        {"resource": plural, "subresources": [{"subresource": each} for each in below]}
        for plural, below in listed.items()
    ]
    return {"version": name, "freshness": freshness, "resources": rows}


def discovery(**groups: list[Json]) -> list[Json]:
    items = [
        {"metadata": {"name": name.replace("_", ".")} if name != "core" else {}, "versions": each}
        for name, each in groups.items()
    ]
    return [{"kind": "APIGroupDiscoveryList", "items": items}]


CLUSTER = discovery(
    core=[version("v1", "pods/resize", "pods/status", "services")],
    apps=[version("v1", "deployments/scale", "daemonsets/status")],
    batch=[version("v1", "jobs")],
)


def registered(catalog: Catalog, served: Served | None) -> set[str]:
    """What the validating configuration names, as group/version/resource."""
    rules = configurations(catalog.definitions, Target(url="https://p"), None, served)[1][
        "webhooks"
    ][0]["rules"]
    return {
        f"{rule['apiGroups'][0]}/{each}/{resource}"
        for rule in rules
        for each in rule["apiVersions"]
        for resource in rule["resources"]
    }


def test_kinds_versions_and_subresources_that_are_not_served_are_not_registered(
    catalog: Catalog,
) -> None:
    found = registered(catalog, served_of(CLUSTER))
    assert found == {
        "/v1/pods",
        "/v1/pods/resize",
        "apps/v1/daemonsets",
        "apps/v1/deployments",
        "apps/v1/deployments/scale",
        "batch/v1/jobs",
    }
    assert found < registered(catalog, None)


def test_a_crd_is_registered_before_discovery_has_it_and_scale_where_it_declares_that(
    catalog: Catalog,
) -> None:
    served = served_of(CLUSTER)
    assert served is not None
    more = registered(catalog, served.with_crds([TRAINING])) - registered(catalog, served)
    assert more == {"kubeflow.org/v1/pytorchjobs", "kubeflow.org/v1/pytorchjobs/scale"}
    plain = Brief(
        *("pytorchjobs.kubeflow.org", "kubeflow.org", "PyTorchJob", "pytorchjobs"),
        {"v1": False},
        True,
    )
    more = registered(catalog, served.with_crds([plain])) - registered(catalog, served)
    assert more == {"kubeflow.org/v1/pytorchjobs"}


def test_of_a_group_that_is_stale_nothing_is_left_out(catalog: Catalog) -> None:
    stale = discovery(apps=[version("v1", freshness="Stale")], batch=[version("v1", "jobs")])
    found = registered(catalog, served_of(stale))
    everything = registered(catalog, None)
    assert {each for each in everything if each.startswith("apps/")} < found
    assert not any(each.startswith("ray.io/") for each in found)


@pytest.mark.parametrize("answer", [{"kind": "APIGroupList", "groups": []}, {}, {"items": []}])
def test_an_answer_of_another_kind_is_no_knowledge(answer: Json) -> None:
    assert served_of([*CLUSTER, answer]) is None


def test_served_versions_and_kinds_with_pods_without_a_definition_are_told(
    catalog: Catalog,
) -> None:
    newer = {"v1": True, "v2": True}
    crds = [
        Brief(TRAINING.name, TRAINING.group, TRAINING.kind, TRAINING.plural, newer, True),
        Brief("rayclusters.ray.io", "ray.io", "RayCluster", "rayclusters", {"v9": False}, True),
        Brief("runs.x.io", "x.io", "Run", "runs", {"v1": False}, holds_pods=True),
        Brief("plains.x.io", "x.io", "Plain", "plains", {"v1": False}, holds_pods=False),
        Brief("wides.x.io", "x.io", "Wide", "wides", {"v1": False}, True, namespaced=False),
    ]
    found = find_undefined(catalog.definitions, served_of(CLUSTER), crds)
    assert found == (
        Undefined("kubeflow.org", "PyTorchJob", "v2", converted=True),
        Undefined("ray.io", "RayCluster", "v9"),
        Undefined("x.io", "Run", "v1"),
    )
    assert found[0].text == "PyTorchJob.kubeflow.org/v2"
    assert find_undefined(catalog.definitions, None, crds) == found
