"""GPUs of device claims: once for a claim that pods share, once in a pod that names it twice."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from tests.building import catalog, container, deployment, pod, raycluster, request
from webhook.decision.decide import decide
from webhook.devices.classes import class_brief
from webhook.evaluation.outcome import Decision, Denied
from webhook.evaluation.references import References

GPUS = "gpu.nvidia.com"
TOTAL = "rules: {total: {gpuDevices: {max: 0}}}"
PER_POD = "rules: {compute: {gpuDevicesRequest: {max: 0}}}"


def spec(*requests: dict[str, Any]) -> dict[str, Any]:
    """A DeviceClaim spec of v1 with these exact requests."""
    named = [{"name": f"r{index}", "exactly": each} for index, each in enumerate(requests)]
    return {"devices": {"requests": named}}


def exact(count: int | None = None, device_class: str = GPUS, **more: Any) -> dict[str, Any]:
    """An exact request."""
    found = {"deviceClassName": device_class, **more}
    return found if count is None else {**found, "count": count}


CLAIMS: dict[tuple[str, str, str], Any] = {
    ("ResourceClaim", "team", "two"): spec(exact(2)),
    ("ResourceClaim", "team", "three"): spec(exact(3)),
    ("ResourceClaim", "team", "all"): spec(exact(allocationMode="All"), exact(2)),
    ("ResourceClaimTemplate", "team", "two"): spec(exact(2)),
    ("ResourceClaimTemplate", "team", "vfio"): spec(exact(8, "vfio.gpu.nvidia.com")),
    ("ResourceClaimTemplate", "team", "own"): spec(exact(8, "a100.example.com")),
    ("ResourceClaimTemplate", "team", "free"): spec(exact(8, "anything.example.com")),
    ("ResourceClaimTemplate", "team", "nic"): spec(exact(8, "nic.example.com")),
    ("ResourceClaimTemplate", "team", "missing"): spec(exact(8, "missing.example.com")),
    ("ResourceClaimTemplate", "team", "monitor"): spec(
        exact(adminAccess=True, allocationMode="All")
    ),
    ("ResourceClaimTemplate", "team", "odd mode"): spec(exact(allocationMode="Some")),
}
CLASSES = {
    each["metadata"]["name"]: class_brief(each)
    for each in yaml.safe_load_all("""
metadata: {name: a100.example.com, creationTimestamp: "2026-01-01T00:00:00Z"}
spec:
  selectors:
  - cel:
      expression: >-
        device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].productName == 'A100'
  extendedResourceName: example.com/a100
---
metadata: {name: anything.example.com}
spec: {}
---
metadata: {name: nic.example.com}
spec:
  selectors: [{cel: {expression: "device.driver == 'nic.example.com'"}}]
  extendedResourceName: example.com/nic
""")
}


def named(*names: str) -> list[dict[str, str]]:
    """A pod's references to claims; a name with a slash is one of a template."""
    return [
        {"name": f"c{index}", "resourceClaimTemplateName": name[1:]}
        if name.startswith("/")
        else {"name": f"c{index}", "resourceClaimName": name}
        for index, name in enumerate(names)
    ]


def decided(rules: str, document: Any, old: Any = None, classes: Any = None) -> Decision:
    references = References(claims=CLAIMS, device_classes=classes)
    return decide(request(document, old), catalog(rules), references)


def counted(rules: str, document: Any, classes: Any = None) -> list[str | None]:
    """What the violations of a rule that allows nothing show."""
    decision = decided(rules, document, None, classes)
    return [each.value for each in decision.violations] if isinstance(decision, Denied) else []


@pytest.mark.parametrize(
    ("names", "per_pod", "total"),
    [
        (["two"], "2", "2"),
        (["two", "two"], "2", "2"),
        (["two", "three"], "5", "5"),
        (["/two"], "2", "8"),
        (["/two", "/two"], "4", "16"),
        (["/two", "two", "two"], "4", "10"),
    ],
)
def test_a_claim_counts_once_and_a_template_for_every_pod(
    names: list[str], per_pod: str, total: str
) -> None:
    document = deployment(replicas=4, resourceClaims=named(*names))
    assert counted(PER_POD, document) == [per_pod]
    assert counted(TOTAL, document) == [total]


def test_a_claim_of_several_components_counts_once() -> None:
    document = raycluster(groups=("a", "b"), resourceClaims=named("two"))
    assert counted(TOTAL, document) == ["2"]
    assert counted(PER_POD, document) == ["2", "2", "2"]
    document["spec"]["headGroupSpec"]["template"]["spec"]["resourceClaims"] = named("three")
    assert counted(TOTAL, document) == ["5"]


def test_devices_of_the_pods_count_beside_a_shared_claim() -> None:
    gpu = container(resources={"limits": {"nvidia.com/gpu": 1}})
    assert counted(TOTAL, deployment(gpu, replicas=4, resourceClaims=named("two"))) == ["6"]


def test_a_claim_of_a_workload_without_pods_counts_nothing() -> None:
    assert counted(TOTAL, deployment(replicas=0, resourceClaims=named("two"))) == []


def test_replicas_without_a_bound_do_not_unbound_a_shared_claim() -> None:
    service = {
        "apiVersion": "serving.knative.dev/v1",
        "kind": "Service",
        "metadata": {"name": "web", "namespace": "team"},
        "spec": {"template": {"spec": pod(resourceClaims=named("two"))["spec"]}},
    }
    assert counted(TOTAL, service) == ["2"]
    service["spec"]["template"]["spec"]["resourceClaims"] = named("/two")
    (shown,) = counted(TOTAL, service)
    assert shown is not None
    assert shown.startswith("no bound (replicas of ")


def test_a_claim_without_a_bound_that_a_second_component_names_makes_no_total_worse() -> None:
    rules = "rules: {total: {gpuDevices: {max: 4}}}"
    old = raycluster(groups=("a", "b"), resourceClaims=named("all"))
    del old["spec"]["workerGroupSpecs"][1]["template"]["spec"]["resourceClaims"]
    new = raycluster(groups=("a", "b"), resourceClaims=named("all"))
    decision = decided(rules, new)
    assert isinstance(decision, Denied)
    assert [each.reason for each in decision.violations] == ["unbounded"]
    assert not isinstance(decided(rules, new, old), Denied)
    assert isinstance(decided(rules, new, raycluster(groups=("a", "b"))), Denied)


IMPLICIT = "deviceclass.resource.kubernetes.io/"


@pytest.mark.parametrize(
    ("name", "without_classes", "with_classes"),
    [
        ("two", ["2"], ["2"]),
        ("vfio", ["8"], ["8"]),
        ("own", [], ["8"]),
        ("free", [], ["8"]),
        ("nic", [], []),
        ("missing", [], []),
        ("monitor", [], []),
    ],
)
def test_a_class_counts_as_gpus_by_its_object(
    name: str, without_classes: list[str], with_classes: list[str]
) -> None:
    document = pod(resourceClaims=named(f"/{name}"))
    assert counted(PER_POD, document) == without_classes
    assert counted(PER_POD, document, CLASSES) == with_classes
    assert counted(TOTAL, document, CLASSES) == with_classes


@pytest.mark.parametrize(
    ("resource", "without_classes", "with_classes"),
    [
        (f"{IMPLICIT}vfio.gpu.nvidia.com", ["8"], ["8"]),
        (f"{IMPLICIT}a100.example.com", [], ["8"]),
        (f"{IMPLICIT}nic.example.com", [], []),
        ("example.com/a100", [], ["8"]),
        ("example.com/nic", [], []),
        ("nvidia.com/gpu", ["8"], ["8"]),
    ],
)
def test_an_extended_resource_counts_by_the_class_behind_it(
    resource: str, without_classes: list[str], with_classes: list[str]
) -> None:
    document = pod(container(resources={"limits": {resource: 8}}))
    assert counted(PER_POD, document) == without_classes
    assert counted(PER_POD, document, CLASSES) == with_classes
    # The names are those of the classes of this review, whatever other reviews had.
    assert counted(PER_POD, document) == without_classes
    assert counted(TOTAL, document, CLASSES) == with_classes


def test_a_mode_that_nobody_knows_has_no_bound() -> None:
    document = pod(resourceClaims=named("/odd mode"))
    assert counted(PER_POD, document) == ["no bound (ResourceClaimTemplate odd mode)"]


def nim_service(*devices: Any, replicas: int = 3) -> dict[str, Any]:
    return {
        "apiVersion": "apps.nvidia.com/v1alpha1",
        "kind": "NIMService",
        "metadata": {"name": "web", "namespace": "team"},
        "spec": {
            "image": {"repository": "registry.example.com/nim", "tag": "1"},
            "replicas": replicas,
            "draResources": [{"claimCreationSpec": {"devices": list(devices)}}],
        },
    }


@pytest.mark.parametrize(
    ("first", "then", "count"),
    [
        ({"nvidia.com/gpu": 2}, {"nvidia.com/gpu": 3}, "3"),
        ({"nvidia.com/gpu": 2}, {"nvidia.com/mig-1g.5gb": 3}, "5"),
        ({"nvidia.com/gpu": 2, "nvidia.com/mig-1g.5gb": 1}, {"nvidia.com/mig-1g.5gb": 3}, "5"),
    ],
)
def test_a_pod_keeps_the_devices_of_an_init_container_for_the_same_resource_only(
    first: Any, then: Any, count: str
) -> None:
    """Schedulers reserve the largest amount of each resource for the life of the pod."""
    early = container("early", resources={"limits": first})
    document = pod(container(resources={"limits": then}), initContainers=[early])
    assert counted(PER_POD, document) == [count]


CREATION = {"devices": [{"name": "a"}]}


@pytest.mark.parametrize(
    "entry",
    [
        {"resourceClaimName": "two", "resourceClaimTemplateName": "two"},
        {"resourceClaimName": "two", "claimCreationSpec": CREATION},
        {"resourceClaimTemplateName": "two", "claimCreationSpec": CREATION},
        {"resourceClaimName": "two", "claimCreationSpec": {}},
    ],
)
def test_a_claim_from_several_sources_has_no_bound(entry: dict[str, Any]) -> None:
    """A kind whose schema keeps any key can have them; its controller passes on one of them."""
    document = pod(resourceClaims=[{"name": "c", **entry}])
    (value,) = counted(PER_POD, document)
    assert "no bound" in str(value)


@pytest.mark.parametrize(
    ("device", "per_pod", "total"),
    [
        ({"name": "a"}, "1", "3"),
        ({"name": "a", "count": 4}, "4", "12"),
        ({"name": "a", "count": 2, "deviceClassName": "a100.example.com"}, "2", "6"),
    ],
)
def test_a_claim_that_an_operator_creates_counts_for_every_pod(
    device: Any, per_pod: str, total: str
) -> None:
    assert counted(PER_POD, nim_service(device), CLASSES) == [per_pod]
    assert counted(TOTAL, nim_service(device), CLASSES) == [total]
    other = {"name": "b", "deviceClassName": "nic.example.com"}
    assert counted(PER_POD, nim_service(other), CLASSES) == []
