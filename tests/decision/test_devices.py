"""Decisions on claims, claim templates, device classes and compute domains."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import orjson
import pytest

from tests.building import (
    catalog,
    edited,
    mutated,
    policy,
    reasons,
    refused,
    result,
    shell,
    validated,
)
from webhook.admission.judge import decide_review
from webhook.admission.review import parse_review
from webhook.catalog.catalog import Catalog
from webhook.decision.decide import decide
from webhook.decision.devices import CLAIM_CONTROLLERS, EXTENDED, POD_CLAIM, SCHEDULER
from webhook.devices.kinds import KINDS
from webhook.evaluation.device_settings import DRIVER_CONTROLLER
from webhook.evaluation.outcome import (
    EXEMPT_SENDER,
    IMMUTABLE,
    NO_PODS,
    UNKNOWN_VERSION,
    Allowed,
    Denied,
)
from webhook.evaluation.references import References
from webhook.evaluation.request import Request, Stage


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
        channel = {"channel": {"resourceClaimTemplate": {"name": "channel"}}}
        document = shell(f"{group}/{version}", kind, channel if kind == "ComputeDomain" else {})
        found = mutated(rules, document, user=DRIVER_CONTROLLER)
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


@pytest.mark.parametrize(
    ("version", "kind", "is_dead"),
    [
        ("resource.k8s.io/v1alpha2", "ResourceClass", True),
        ("gpu.resource.nvidia.com/v1alpha1", "GpuClaimParameters", True),
        ("resource.k8s.io/v1alpha3", "DeviceTaintRule", False),
        ("resource.k8s.io/v1", "ResourceSlice", False),
    ],
)
def test_objects_of_the_first_drivers_are_a_warning(version: str, kind: str, is_dead: bool) -> None:
    found = mutated(catalog(OF_PODS), shell(version, kind, {}))
    assert isinstance(found, Allowed)
    assert found.not_evaluated == (UNKNOWN_VERSION if is_dead else NO_PODS)
    assert [each.reason for each in found.warnings] == [UNKNOWN_VERSION] * is_dead


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


def with_settings(found: Catalog, **settings: Any) -> Catalog:
    """The catalog in an installation with these settings about devices."""
    config = found.config
    devices = replace(config.devices, **settings)
    return replace(found, config=replace(config, devices=devices), plans={}, plans_by_scope={})


def config(
    kind: str, *requests: str, driver: str = "gpu.nvidia.com", **more: Any
) -> dict[str, Any]:
    """One configuration of a claim."""
    parameters = {"apiVersion": "resource.nvidia.com/v1beta1", "kind": kind, **more}
    return {"requests": list(requests), "opaque": {"driver": driver, "parameters": parameters}}


def template(document: dict[str, Any]) -> dict[str, Any]:
    """The template of a claim."""
    return {**document, "kind": "ResourceClaimTemplate", "spec": {"spec": document["spec"]}}


FAULTY = claim(exactly(), config=[config("GpuConfig", sharing={"strategy": "Mps"})])
STRATEGY = ("opaque", "parameters", "sharing", "strategy")
CHANNEL = config("ComputeDomainChannelConfig", driver="compute-domain.nvidia.com", domainID="a1")
CHANNELS = claim(exactly("channel", "compute-domain-default-channel.nvidia.com"), config=[CHANNEL])


@pytest.mark.parametrize("document", [FAULTY, template(FAULTY)])
def test_what_fails_on_the_node_is_refused_warned_of_or_ignored(document: dict[str, Any]) -> None:
    at = ("spec",) * (2 if "Template" in document["kind"] else 1)
    path = (*at, "devices", "config", 0, *STRATEGY)
    assert refused(catalog(), document) == [("devices.config", "invalid-value")]
    for checks, warned in (("warn", [("invalid-value", path)]), ("off", [])):
        found = mutated(with_settings(catalog(), checks=checks), document)
        assert isinstance(found, Allowed)
        assert [(each.reason, each.path) for each in found.warnings] == warned


def test_policies_hold_whatever_the_checks_are() -> None:
    rules = with_settings(catalog("rules: {devices: {count: {max: 1}}}"), checks="off")
    assert refused(rules, claim(exactly(count=2))) == [("devices.count", "max")]


def test_an_exception_excuses_no_check() -> None:
    named = {
        "group": "resource.k8s.io",
        "kind": "ResourceClaim",
        "namespace": "team",
        "name": "web",
    }
    document = {
        "apiVersion": "podgate.dev/v1alpha1",
        "kind": "PolicyException",
        "metadata": {"name": "e", "namespace": "podgate-exceptions"},
        "spec": {
            "reason": "a test",
            "until": "2030-01-01T00:00:00Z",
            "objects": [named],
            "rules": [{"field": "devices.count", "rule": "max", "value": 2}],
        },
    }
    rules = catalog("rules: {devices: {count: {max: 1}}}", document)
    time = "2029-01-01T00:00:00Z"
    decision = mutated(rules, claim(exactly(count=2)), time=time)
    assert isinstance(decision, Allowed)
    assert [each.exception for each in decision.excused] == ["e"]
    faulty = edited(
        FAULTY, lambda body: body["spec"]["devices"]["requests"][0].update(exactly(count=2))
    )
    assert reasons(mutated(rules, faulty, time=time)) == [("devices.config", "invalid-value")]


def test_the_interval_is_completed_unless_a_policy_sets_it() -> None:
    sharing = {"strategy": "TimeSlicing", "timeSlicingConfig": {}}
    document = claim(exactly(), config=[config("GpuConfig", sharing=sharing)])
    at = ("spec", "devices", "config", 0, "opaque", "parameters", "sharing", "timeSlicingConfig")
    for rules, interval in (
        (catalog(), "Default"),
        (catalog("defaults: {devices: {sharing: {interval: Short}}}"), "Short"),
    ):
        found = result(rules, document)
        for step in at:
            found = found[step]
        assert found == {"interval": interval}
    other = {**document, "metadata": {"name": "web", "namespace": "team"}}
    other["spec"] = {"config": document["spec"]["devices"]["config"]}
    other["kind"] = "DeviceClass"
    found = mutated(catalog(), other, namespace="")
    assert isinstance(found, Allowed)
    assert found.patch == ()


def made_claim(annotation: str, value: str, kind: str = "Pod", group: str = "") -> dict[str, Any]:
    """A claim as a controller makes it for a pod."""
    document = claim(exactly(count=8))
    version = f"{group}/v1beta1" if group else "v1"
    owner = {"apiVersion": version, "kind": kind, "name": "p", "uid": "u", "controller": True}
    document["metadata"] |= {"annotations": {annotation: value}, "ownerReferences": [owner]}
    return document


OF_POD = made_claim(POD_CLAIM, "gpu")
OF_SCHEDULER = made_claim(EXTENDED, "true")


@pytest.mark.parametrize(
    ("user", "document", "passes"),
    [
        *((user, OF_POD, True) for user in CLAIM_CONTROLLERS),
        (
            CLAIM_CONTROLLERS[0],
            made_claim(POD_CLAIM, "gpu", "PodGroup", "scheduling.k8s.io"),
            True,
        ),
        (SCHEDULER, OF_SCHEDULER, True),
        ("jane", OF_POD, False),
        ("jane", OF_SCHEDULER, False),
        (SCHEDULER, OF_POD, False),
        (CLAIM_CONTROLLERS[0], OF_SCHEDULER, False),
        (CLAIM_CONTROLLERS[0], made_claim(POD_CLAIM, "gpu", "Job", "batch"), False),
        (SCHEDULER, made_claim(EXTENDED, "false"), False),
        (CLAIM_CONTROLLERS[0], claim(exactly(count=8)), False),
        (CLAIM_CONTROLLERS[0], template(OF_POD), False),
    ],
)
def test_only_kubernetes_makes_claims_that_are_not_evaluated(
    user: str, document: dict[str, Any], passes: bool
) -> None:
    rules = catalog("rules: {devices: {count: {max: 2}}}")
    asked = Request("resource.k8s.io", "v1", document["kind"], "CREATE", document, user=user)
    for stage in (Stage.MUTATE, Stage.VALIDATE):
        found = decide_review(replace(asked, namespace="team", stage=stage), rules, References())
        if passes:
            assert isinstance(found, Allowed)
            assert found.not_evaluated == EXEMPT_SENDER
        else:
            assert reasons(found) == [("devices.count", "max")]


def test_no_policy_applies_to_templates_of_the_drivers_controller() -> None:
    rules = catalog(
        "rules: {devices: {configKinds: {options: [{value: GpuConfig}]}, count: {max: 1}}}"
    )
    wanted = [("devices.configKinds", "options")]
    document = template(CHANNELS)
    assert refused(rules, document) == wanted
    assert refused(rules, CHANNELS, user=DRIVER_CONTROLLER) == wanted
    found = validated(rules, document, user=DRIVER_CONTROLLER)
    assert isinstance(found, Allowed)
    assert found.is_evaluated
    faulty = copy.deepcopy(document)
    del faulty["spec"]["spec"]["devices"]["config"][0]["opaque"]["parameters"]["domainID"]
    checked = [("devices.config", "required")]
    assert refused(rules, faulty, user=DRIVER_CONTROLLER) == checked
    mixed = template(claim(exactly(count=2), config=[CHANNEL, config("GpuConfig")]))
    assert ("devices.count", "max") in refused(rules, mixed, user=DRIVER_CONTROLLER)
    # The controller writes the name that a user gave the template into YAML as it is.
    channel = exactly("channel", "compute-domain-default-channel.nvidia.com")
    beside = template(claim(channel, exactly(count=2), config=[CHANNEL]))
    assert ("devices.count", "max") in refused(rules, beside, user=DRIVER_CONTROLLER)


def test_only_the_driver_writes_cliques() -> None:
    document = {"apiVersion": "resource.nvidia.com/v1beta1", "kind": "ComputeDomainClique"}
    document |= {"metadata": {"name": "d.0", "namespace": "dra"}, "daemons": [{"nodeName": "n"}]}
    changed = edited(document, lambda body: body["daemons"].clear())
    daemon = f"{DRIVER_CONTROLLER.rpartition(':')[0]}:compute-domain-daemon-service-account"
    for user in ("jane", "system:serviceaccount:dra-driver-nvidia-gpu-2:x", f"{daemon}:x"[1:]):
        assert refused(catalog(), document, user=user) == [("", "reserved")]
        assert refused(catalog(), changed, document, user=user) == [("", "reserved")]
        assert isinstance(mutated(catalog(), document, document, user=user), Allowed)
    off = with_settings(catalog(), checks="off")
    assert refused(off, document, user="jane") == [("", "reserved")]
    for user in (DRIVER_CONTROLLER, daemon, ""):
        assert isinstance(mutated(catalog(), document, user=user), Allowed)
        assert isinstance(mutated(catalog(), changed, document, user=user), Allowed)


def device_class(*configs: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A DeviceClass for NVIDIA's GPUs."""
    text = "device.driver == 'gpu.nvidia.com'"
    spec = {"selectors": [{"cel": {"expression": text}}], "config": list(configs), **more}
    for each in configs:
        each.pop("requests", None)
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": "a100.example.com"},
        "spec": spec,
    }


def test_a_fault_that_a_class_had_before_is_no_new_one() -> None:
    faulty = device_class(config("GpuConfig", sharing={"strategy": "Mps"}))
    wanted = [("devices.config", "invalid-value")]
    assert refused(catalog(), faulty, namespace="") == wanted
    other = config("GpuConfig", driver="other.example.com")
    moved = edited(faulty, lambda body: body["spec"]["config"].insert(0, other))
    assert isinstance(mutated(catalog(), moved, faulty, namespace=""), Allowed)
    worse = edited(faulty, lambda body: body["spec"]["config"].append(config("MigConfig")))
    found = refused(catalog(), worse, faulty, namespace="")
    assert found == [("devices.config", "config-unreadable")]


def test_a_refused_class_is_not_said_to_have_been_completed_before() -> None:
    """Only the validating webhook gets classes."""
    for document, completed in (
        (device_class(config("GpuConfig", sharing={"strategy": "Mps"})), False),
        (claim(exactly(), config=[config("GpuConfig", sharing={"strategy": "Mps"})]), True),
    ):
        version, kind = document["apiVersion"].rpartition("/")[2], document["kind"]
        asked = Request("resource.k8s.io", version, kind, "CREATE", document, stage=Stage.VALIDATE)
        found = decide_review(asked, catalog(), References())
        assert isinstance(found, Denied)
        assert found.completed is completed


def test_policies_only_warn_of_classes() -> None:
    document = device_class(config("GpuConfig", sharing={"strategy": "MPS"}))
    body = "rules: {devices: {sharing: {strategy: {options: [{value: TimeSlicing}]}}}}"
    for enforcement, warned in (("Enforce", True), ("Warn", True), ("Audit", False)):
        rules = catalog(policy(body, enforcement=enforcement))
        for decide_in in (mutated, validated):
            found = decide_in(rules, document, namespace="")
            assert isinstance(found, Allowed)
            assert [each.reason for each in found.warnings] == ["class-rule"] * warned
            assert found.audit == ()


@pytest.mark.parametrize("odd", [b"\xff", rb"\ud800"])
def test_a_claim_with_text_that_is_none_can_go_and_cannot_come(odd: bytes) -> None:
    """The API server keeps it, and sends it as it is: a finalizer of such a claim must go too."""
    document = claim(exactly(), config=[config("GpuConfig", sharing={"strategy": "odd"})])
    request = {
        "uid": "1",
        "kind": {"group": "resource.k8s.io", "version": "v1", "kind": "ResourceClaim"},
        "resource": {"group": "resource.k8s.io", "version": "v1", "resource": "resourceclaims"},
        "namespace": "team",
        "userInfo": {"username": "jane"},
    }
    held = copy.deepcopy(document)
    held["metadata"]["finalizers"] = ["example.com/hold"]
    for operation, objects, decision in (
        ("CREATE", {"object": document}, Denied),
        ("UPDATE", {"object": document, "oldObject": held}, Allowed),
    ):
        body = {
            "apiVersion": "admission.k8s.io/v1",
            "kind": "AdmissionReview",
            "request": {**request, "operation": operation, **objects},
        }
        asked = parse_review(orjson.dumps(body).replace(b"odd", odd), Stage.VALIDATE)
        assert isinstance(asked, Request)
        assert isinstance(decide_review(asked, catalog(), References()), decision)


def test_a_key_given_twice_is_found_in_the_raw_review() -> None:
    document = claim(exactly(), config=[config("GpuConfig", sharing={"strategy": "MPS"})])
    request = {
        "uid": "1",
        "kind": {"group": "resource.k8s.io", "version": "v1", "kind": "ResourceClaim"},
        "resource": {"group": "resource.k8s.io", "version": "v1", "resource": "resourceclaims"},
        "operation": "CREATE",
        "namespace": "team",
        "object": document,
        "userInfo": {"username": "jane"},
    }
    review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    once = orjson.dumps(review)
    twice = once.replace(b'{"strategy":"MPS"}', b'{"strategy":"TimeSlicing","strategy":"MPS"}')
    assert once != twice
    for body, wanted in ((once, ()), (twice, ("parameters",))):
        for stage in Stage.MUTATE, Stage.VALIDATE:
            asked = parse_review(body, stage)
            assert isinstance(asked, Request)
            assert asked.object == document
            found = decide_review(asked, catalog(), References())
            paths = found.violations if isinstance(found, Denied) else ()
            assert tuple(each.path[-1] for each in paths) == wanted


def test_a_wrapped_claim_is_evaluated_and_completed_like_one_alone() -> None:
    sharing = {"strategy": "TimeSlicing", "timeSlicingConfig": {}}
    inner = claim(exactly(count=2), config=[config("GpuConfig", sharing=sharing)])
    wrapper = shell("workload.codeflare.dev/v1beta2", "AppWrapper", {})
    wrapper["spec"] = {"components": [{"template": inner}]}
    found = result(catalog(), wrapper)["spec"]["components"][0]["template"]["spec"]["devices"]
    assert found == result(catalog(), inner)["spec"]["devices"]
    rules = catalog("rules: {devices: {count: {max: 1}}}")
    decision = mutated(rules, wrapper)
    assert reasons(decision) == [("devices.count", "max")]
    assert isinstance(decision, Denied)
    assert decision.violations[0].path[:4] == ("spec", "components", 0, "template")
    # The claim does not exist yet, so its spec can change.
    before = edited(
        wrapper, lambda body: body["spec"]["components"][0]["template"].update(claim(exactly()))
    )
    assert reasons(mutated(rules, wrapper, before)) == [("devices.count", "max")]
