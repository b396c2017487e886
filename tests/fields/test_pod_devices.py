"""The `devices` fields in pods: what claims and extended resources are, wherever a kind has its pods."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import yaml

from tests.building import KINDS, catalog, container, deployment, pod, policy, request, result
from webhook.decision.decide import decide
from webhook.decision.messages import violation_text
from webhook.devices.briefs import claim_brief
from webhook.devices.classes import class_brief
from webhook.evaluation.outcome import Allowed, Decision, Denied
from webhook.evaluation.references import References
from webhook.evaluation.request import Stage

Json = dict[str, Any]
CLAIMS_AND_CLASSES = """
kind: ResourceClaim
metadata: {name: two}
spec: {devices: {requests: [{name: a, exactly: {deviceClassName: gpu.nvidia.com, count: 2}}]}}
---
kind: ResourceClaim
metadata: {name: one}
spec: {devices: {requests: [{name: a, deviceClassName: gpu.nvidia.com}]}}
---
kind: ResourceClaimTemplate
metadata: {name: all}
spec:
  spec: {devices: {requests: [{name: a, exactly: {deviceClassName: nic.example.com, allocationMode: All}}]}}
---
kind: ResourceClaimTemplate
metadata: {name: vfio}
spec: {spec: {devices: {requests: [{name: a, exactly: {deviceClassName: passthrough.example.com}}]}}}
---
kind: ResourceClaimTemplate
metadata: {name: admin}
spec:
  spec: {devices: {requests: [{name: a, exactly: {deviceClassName: gpu.nvidia.com, adminAccess: true}}]}}
---
kind: ResourceClaimTemplate
metadata: {name: choice}
spec:
  spec:
    devices:
      requests:
      - name: a
        firstAvailable:
        - {name: big, deviceClassName: gpu.nvidia.com, count: 3}
        - {name: small, deviceClassName: mig.nvidia.com, tolerations: [{operator: Exists}]}
---
kind: ResourceClaimTemplate
metadata: {name: shared}
spec:
  spec:
    devices:
      requests:
      - name: a
        exactly:
          deviceClassName: gpu.nvidia.com
          capacity: {requests: {memory: 40Gi}}
          selectors: [{cel: {expression: "true"}}]
      config:
      - opaque:
          driver: gpu.nvidia.com
          parameters:
            apiVersion: resource.nvidia.com/v1beta1
            kind: GpuConfig
            sharing: {strategy: MPS, mpsConfig: {defaultActiveThreadPercentage: 80}}
---
kind: ResourceClaimTemplate
metadata: {name: slices}
spec: {spec: {devices: {requests: [{name: a, exactly: {deviceClassName: slices.example.com}}]}}}
---
kind: DeviceClass
metadata: {name: passthrough.example.com}
spec:
  extendedResourceName: example.com/passthrough
  selectors:
  - cel:
      expression: >-
        device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].type == 'vfio'
---
kind: DeviceClass
metadata: {name: slices.example.com}
spec:
  selectors:
  - cel:
      expression: >-
        device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].type == 'gpu'
  config:
  - opaque:
      driver: gpu.nvidia.com
      parameters:
        apiVersion: resource.nvidia.com/v1beta1
        kind: GpuConfig
        sharing: {strategy: TimeSlicing, timeSlicingConfig: {interval: Long}}
"""
OBJECTS = list(yaml.safe_load_all(CLAIMS_AND_CLASSES))
CLAIMS = {
    (each["kind"], "team", each["metadata"]["name"]): claim_brief(each["kind"], each)
    for each in OBJECTS
    if each["kind"] != "DeviceClass"
}
CLASSES = {
    each["metadata"]["name"]: class_brief(each) for each in OBJECTS if each["kind"] == "DeviceClass"
}
REFERENCES = References(claims=CLAIMS, device_classes=CLASSES)
TEMPLATES = {name for kind, _, name in CLAIMS if kind == "ResourceClaimTemplate"}


def named(*names: str) -> list[dict[str, str]]:
    """A pod's references to claims, each by the kind that it has."""
    return [
        {
            "name": f"c{index}",
            f"resourceClaim{'Template' if name in TEMPLATES else ''}Name": name,
        }
        for index, name in enumerate(names)
    ]


def decided(rules: str | Json, document: Any, old: Any = None, **more: Any) -> Decision:
    return decide(request(document, old, **more), catalog(rules), REFERENCES)


def refused(rules: str | Json, document: Any, old: Any = None) -> list[tuple[Any, ...]]:
    """Field without its section, reason, value as a plain text and path of each violation."""
    decision = decided(rules, document, old)
    if isinstance(decision, Allowed):
        return []
    final = decided(rules, document, old, stage=Stage.VALIDATE)
    assert isinstance(final, Denied)
    assert final.violations == decision.violations
    return [
        (
            each.field.partition(".")[2],
            each.reason,
            each.value and each.value.strip('[]"'),
            each.path,
        )
        for each in decision.violations
    ]


FIRST = ("spec", "resourceClaims", 0)
LIMIT = ("spec", "containers", 0, "resources", "limits")


@pytest.mark.parametrize(
    ("rule", "name", "broken"),
    [
        ("classes: {options: [gpu.nvidia.com]}", "two", []),
        (
            "classes: {options: [gpu.nvidia.com]}",
            "vfio",
            [("options", "passthrough.example.com")],
        ),
        ("classes: {options: [gpu.nvidia.com]}", "choice", [("options", "mig.nvidia.com")]),
        ("classes: {blocked: true}", "two", [("blocked", "gpu.nvidia.com")]),
        ("types: {options: [gpu, mig]}", "choice", []),
        ("types: {options: [gpu, mig]}", "vfio", [("options", "vfio")]),
        ("types: {options: [gpu, mig]}", "all", [("options", "unknown")]),
        ("drivers: {options: [gpu.nvidia.com]}", "shared", []),
        ("drivers: {blocked: true}", "shared", [("blocked", "gpu.nvidia.com")]),
        ("drivers: {blocked: true}", "two", []),
        ("configKinds: {blocked: true}", "shared", []),
        ("forms: {options: [claimTemplate]}", "two", [("options", "claim")]),
        ("forms: {options: [claimTemplate]}", "vfio", []),
        ("allocationMode: {options: [ExactCount]}", "all", [("options", "All")]),
        ("allocationMode: {options: [ExactCount]}", "one", []),
        ("allocationMode: {canEdit: false}", "all", [("canEdit", "All")]),
        ("count: {max: 2}", "two", []),
        ("count: {max: 1}", "two", [("max", "2")]),
        ("count: {max: 2}", "choice", [("max", "3")]),
        ("count: {max: 2}", "all", [("unbounded", "no bound (all that match)")]),
        ("count: {min: 2}", "one", [("min", "1")]),
        ("count: {canEdit: false}", "one", []),
        ("count: {canEdit: false}", "two", [("canEdit", "2")]),
        ("alternatives: {max: 0}", "choice", [("max", "2")]),
        ("alternatives: {max: 0}", "two", []),
        ("perPod: {max: 1}", "two", [("max", "2")]),
        ("perPod: {max: 2}", "choice", [("max", "3")]),
        ("perPod: {max: 2}", "all", [("unbounded", "no bound (ResourceClaimTemplate all)")]),
        ("perPod: {max: 0}", "admin", []),
        ("adminAccess: {canEdit: false}", "admin", [("canEdit", "true")]),
        ("adminAccess: {canEdit: false}", "two", []),
        ("selectors: {blocked: true}", "shared", [("blocked", "true")]),
        ("tolerations: {options: [a.example.com]}", "choice", [("options", "*")]),
        ("capacity: {memory: {max: 20Gi}}", "shared", [("max", "40Gi")]),
        ("capacity: {memory: {required: true}}", "two", [("required", None)]),
        ("migProfile: {options: [1g.5gb]}", "choice", [("options", "any")]),
        ("migProfile: {options: [1g.5gb]}", "two", []),
        ("sharing: {strategy: {options: [TimeSlicing]}}", "shared", [("options", "MPS")]),
        ("sharing: {strategy: {required: true}}", "two", [("required", None)]),
        ("sharing: {strategy: {required: true}}", "slices", []),
        ("sharing: {strategy: {blocked: true}}", "shared", [("blocked", "MPS")]),
        ("sharing: {strategy: {blocked: true}}", "slices", []),
        ("sharing: {interval: {options: [Default, Short]}}", "slices", [("options", "Long")]),
        ("sharing: {threadPercentage: {max: 50}}", "shared", [("max", "80")]),
    ],
)
def test_rules_apply_to_what_a_claim_is(
    rule: str, name: str, broken: list[tuple[str, str | None]]
) -> None:
    rules = f"rules: {{devices: {{{rule}}}}}"
    found = refused(rules, pod(resourceClaims=named(name)))
    assert [(reason, value) for _, reason, value, _ in found] == broken
    assert {path for *_, path in found} <= {FIRST}


@pytest.mark.parametrize(
    ("rule", "resource", "broken"),
    [
        (
            "classes: {options: [gpu.nvidia.com]}",
            "example.com/passthrough",
            ["passthrough.example.com"],
        ),
        (
            "classes: {options: [gpu.nvidia.com]}",
            "deviceclass.resource.kubernetes.io/mig.nvidia.com",
            ["mig.nvidia.com"],
        ),
        ("classes: {options: [gpu.nvidia.com]}", "nvidia.com/gpu", []),
        ("types: {options: [gpu]}", "example.com/passthrough", ["vfio"]),
        ("forms: {options: [claim]}", "example.com/passthrough", ["extendedResource"]),
        ("forms: {options: [claim]}", "nvidia.com/gpu", []),
        ("migProfile: {options: [1g.5gb]}", "nvidia.com/mig-2g.10gb", ["2g.10gb"]),
        ("migProfile: {options: [1g.5gb]}", "nvidia.com/mig-1g.5gb", []),
        (
            "migProfile: {options: [1g.5gb]}",
            "deviceclass.resource.kubernetes.io/mig.nvidia.com",
            ["any"],
        ),
        ("perPod: {max: 2}", "example.com/passthrough", ["8"]),
        ("perPod: {max: 2}", "nvidia.com/gpu", []),
    ],
)
def test_rules_apply_to_the_class_of_an_extended_resource(
    rule: str, resource: str, broken: list[str]
) -> None:
    rules = f"rules: {{devices: {{{rule}}}}}"
    found = refused(rules, pod(container(resources={"limits": {resource: 8}})))
    assert [value for *_, value, _ in found] == broken
    assert {path for *_, path in found} <= {(*LIMIT, resource)}
    assert refused(rules, pod(container(resources={"limits": {resource: 0}}))) == []


@pytest.mark.parametrize(
    ("rule", "reasons"),
    [
        ("count: {max: 2}", ["claim-unknown"]),
        ("count: {max: 2, min: 1, required: true}", ["claim-unknown"]),
        ("count: {min: 1, step: 1, required: true}", []),
        ("classes: {options: [gpu.nvidia.com]}", ["claim-unknown"]),
        ("classes: {blocked: true}", ["claim-unknown"]),
        ("adminAccess: {canEdit: false}", ["claim-unknown"]),
        ("sharing: {strategy: {options: [MPS]}}", ["claim-unknown"]),
        ("perPod: {max: 2}", ["claim-unknown"]),
        ("perPod: {min: 0}", []),
        ("forms: {options: [claim]}", []),
    ],
)
def test_a_claim_that_nobody_knows_breaks_what_limits_it(rule: str, reasons: list[str]) -> None:
    rules = f"rules: {{devices: {{{rule}}}}}"
    document = pod(resourceClaims=[{"name": "c", "resourceClaimName": "unknown"}])
    assert [each[1] for each in refused(rules, document)] == reasons
    total = "rules: {total: {devices: {max: 2}}}"
    assert [each[1] for each in refused(total, document)] == ["claim-unknown"]


def test_a_message_names_the_claim_and_the_place_in_it() -> None:
    decision = decided("rules: {devices: {count: {max: 2}}}", pod(resourceClaims=named("choice")))
    assert isinstance(decision, Denied)
    text = violation_text(decision.violations[0])
    assert "spec.resourceClaims[0]" in text
    place = "spec.spec.devices.requests[0].firstAvailable[0].count of ResourceClaimTemplate choice"
    assert place in text
    decision = decided(
        "rules: {devices: {forms: {blocked: true}}}", pod(resourceClaims=named("two"))
    )
    assert isinstance(decision, Denied)
    assert violation_text(decision.violations[0]).endswith("Remove it.")
    unknown = pod(resourceClaims=[{"name": "c", "resourceClaimName": "other"}])
    decision = decided("rules: {devices: {count: {max: 2}}}", unknown)
    assert isinstance(decision, Denied)
    assert "ResourceClaim other" in violation_text(decision.violations[0])


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_has_the_fields_in_its_pods(kind: str) -> None:
    document = KINDS[kind](resourceClaims=named("two"))
    for rule in ("count: {max: 1}", "perPod: {max: 1}", "forms: {options: [claimTemplate]}"):
        found = refused(f"rules: {{devices: {{{rule}}}}}", document)
        assert found
        assert {path[-1] for *_, path in found} == {0}
        assert {path[-2] for *_, path in found} == {"resourceClaims"}


def test_a_device_that_an_operator_will_request_is_judged_as_a_claim() -> None:
    device = {"name": "a", "count": 4, "deviceClassName": "passthrough.example.com"}
    service = {
        "apiVersion": "apps.nvidia.com/v1alpha1",
        "kind": "NIMService",
        "metadata": {"name": "web", "namespace": "team"},
        "spec": {
            "image": {"repository": "registry.example.com/nim", "tag": "1"},
            "draResources": [{"claimCreationSpec": {"devices": [device]}}],
        },
    }
    rules = (
        "rules: {devices: {types: {options: [gpu]}, count: {max: 2}, forms: {options: [claim]}}}"
    )
    path = ("spec", "draResources", 0)
    assert refused(rules, service) == [
        ("count", "max", "4", path),
        ("forms", "options", "claimTemplate", path),
        ("types", "options", "vfio", path),
    ]


def test_total_devices_counts_all_classes_but_no_device_plugin() -> None:
    rules = "rules: {total: {devices: {max: 0}}}"
    for names, total in (
        (["two"], "2"),
        (["vfio"], "3"),
        (["two", "vfio"], "5"),
        (["admin"], None),
    ):
        found = refused(rules, deployment(replicas=3, resourceClaims=named(*names)))
        assert [value for *_, value, _ in found] == ([] if total is None else [total])
    limits = {"example.com/passthrough": 2, "nvidia.com/gpu": 5}
    found = refused(rules, deployment(container(resources={"limits": limits}), replicas=3))
    assert [value for *_, value, _ in found] == ["6"]


def test_what_an_update_leaves_as_it_was_passes() -> None:
    rules = "rules: {devices: {count: {max: 1}, forms: {blocked: true}, perPod: {max: 1}}}"
    old = deployment(resourceClaims=named("two"))
    same = copy.deepcopy(old)
    same["spec"]["template"]["spec"]["containers"][0]["env"] = [{"name": "A", "value": "b"}]
    assert refused(rules, same, old) == []
    unknown = [{"name": "c", "resourceClaimName": "unknown"}]
    other = deployment(resourceClaims=unknown)
    assert {each[1] for each in refused(rules, other, old)} == {"claim-unknown", "blocked"}
    again = deployment(container(env=[{"name": "A", "value": "b"}]), resourceClaims=unknown)
    assert refused(rules, again, other) == []
    strict = policy(rules, existing="strict")
    assert {each[1] for each in refused(strict, same, old)} == {"max", "blocked"}


def test_a_default_of_devices_is_not_written_into_pods() -> None:
    rules = catalog("defaults: {devices: {count: 1, sharing: {strategy: MPS}, adminAccess: false}}")
    for document in (pod(), pod(resourceClaims=named("two"))):
        found = result(rules, document)["spec"]
        assert found == result(catalog("rules: {}"), document)["spec"]


def test_the_default_is_no_breach_of_a_prohibition() -> None:
    rules = "defaults: {devices: {count: 2}}\nrules: {devices: {count: {canEdit: false}}}"
    assert refused(rules, pod(resourceClaims=named("two"))) == []
    assert [each[1] for each in refused(rules, pod(resourceClaims=named("choice")))] == ["canEdit"]


def test_a_pod_without_devices_breaks_no_rule_but_that_it_must_have_a_form() -> None:
    rules = "rules: {devices: {count: {min: 4, required: true}, perPod: {min: 1}, classes: {required: true}}}"
    assert refused(rules, pod()) == []
    found = refused("rules: {devices: {forms: {required: true}}}", pod())
    assert [each[:2] for each in found] == [("forms", "required")]


@pytest.mark.parametrize("hostile", [7, "x", [], {}, None, True])
def test_nothing_among_claims_raises(hostile: Any) -> None:
    rules = catalog(
        "rules: {devices: {count: {max: 1}, classes: {options: [a]}, perPod: {max: 1},"
        " forms: {options: [claim]}, migProfile: {options: [a]}}, total: {devices: {max: 1}}}"
    )
    for claims in (hostile, [hostile], [{"resourceClaimName": hostile}]):
        document = pod(resourceClaims=claims)
        assert isinstance(decide(request(document), rules, REFERENCES), Allowed | Denied)
    for creation in (
        {"devices": hostile},
        {"devices": [hostile]},
        {"devices": [{"name": hostile}]},
    ):
        document = pod(resourceClaims=[{"name": "c", "claimCreationSpec": creation}])
        assert isinstance(decide(request(document), rules, REFERENCES), Allowed | Denied)
    limits = {"deviceclass.resource.kubernetes.io/a": hostile}
    document = pod(container(resources={"limits": limits}))
    assert isinstance(decide(request(document), rules, REFERENCES), Allowed | Denied)


def test_of_equal_values_the_first_is_reported_once_for_a_claim_and_a_pod() -> None:
    rules = "rules: {devices: {count: {max: 1}, classes: {options: [a]}}}"
    once = refused(rules, pod(resourceClaims=named("choice")))
    assert [(name, value) for name, _, value, _ in once] == [
        ("classes", "gpu.nvidia.com"),
        ("classes", "mig.nvidia.com"),
        ("count", "3"),
    ]
    thrice = refused(rules, pod(resourceClaims=named("choice", "choice", "choice")))
    assert thrice[: len(once)] == once
    assert [(name, path[-1]) for name, *_, path in thrice[len(once) :]] == [
        ("classes", 1),
        ("count", 1),
        ("classes", 2),
        ("count", 2),
    ]
    # A second claim is new even if the first was there before.
    old = deployment(resourceClaims=named("choice"))
    more = deployment(resourceClaims=named("choice", "choice"))
    found = refused(rules, more, old)
    assert {path[-1] for *_, path in found} == {1}
    assert len(found) == len(once)


def test_an_object_with_very_many_claims_is_refused_at_once() -> None:
    claims = [{"name": f"c{index}", "resourceClaimName": f"c{index}"} for index in range(5000)]
    decision = decided("rules: {devices: {count: {max: 1}}}", deployment(resourceClaims=claims))
    assert isinstance(decision, Denied)
    assert [each.reason for each in decision.violations] == ["too-many-entries"]


class Unread(dict[tuple[str, str, str], Any]):
    """Claims that nobody knows, with the keys that were looked up."""

    def __init__(self) -> None:
        super().__init__()
        self.keys_read: list[tuple[str, str, str]] = []

    def get(self, key: Any, default: Any = None) -> Any:
        self.keys_read.append(key)
        return default


def test_only_rules_that_depend_on_claims_read_them() -> None:
    document = deployment(resourceClaims=named("two", "vfio"))
    for rule, number in (("forms: {options: [claim, claimTemplate]}", 0), ("count: {max: 8}", 2)):
        claims = Unread()
        references = References(claims=claims)
        decide(request(document), catalog(f"rules: {{devices: {{{rule}}}}}"), references)
        assert len(set(claims.keys_read)) == number
    claims = Unread()
    decide(request(document), catalog("rules: {}"), References(claims=claims))
    assert claims.keys_read == []
