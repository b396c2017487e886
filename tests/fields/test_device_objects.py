"""Fields of claims, device classes and ComputeDomains: what is written, where, and where not."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from tests import building
from tests.building import mutated, reasons, result, shell
from webhook.catalog.build import Choices, assemble
from webhook.catalog.catalog import Catalog
from webhook.decision.decide import decide
from webhook.devices.classes import class_brief
from webhook.devices.definitions import define
from webhook.documents.yaml_source import read_documents
from webhook.evaluation.device_settings import DeviceSettings, DriverVersion
from webhook.evaluation.installation import InstallationConfig
from webhook.evaluation.outcome import Allowed, Denied
from webhook.evaluation.references import References
from webhook.fields.registry import handler_of
from webhook.policy.combine import GUARDED
from webhook.policy.table import TABLE

VFIO = "vfio.gpu.nvidia.com"
CHANNEL = "compute-domain-default-channel.nvidia.com"


def exactly(name: str = "gpu", device_class: str = "gpu.nvidia.com", **more: Any) -> dict[str, Any]:
    """One exact request."""
    return {"name": name, "exactly": {"deviceClassName": device_class, **more}}


def config(kind: str, *requests: str, **values: Any) -> dict[str, Any]:
    """One configuration of the GPU driver."""
    parameters = {"apiVersion": "resource.nvidia.com/v1beta1", "kind": kind, **values}
    return {
        "requests": list(requests),
        "opaque": {"driver": "gpu.nvidia.com", "parameters": parameters},
    }


def claim(*requests: dict[str, Any], **devices: Any) -> dict[str, Any]:
    """A ResourceClaim as a user writes it."""
    body = {"devices": {"requests": list(requests), **devices}}
    return shell("resource.k8s.io/v1", "ResourceClaim", body)


def catalog(body: str, version: DriverVersion = "0.5") -> Catalog:
    """A catalog of one policy for a version of the driver."""
    text = yaml.safe_dump(building.policy(body))
    given, faults = read_documents(text, "given.yaml")
    choices = Choices(GUARDED, InstallationConfig(devices=DeviceSettings(version)))
    built, problems = assemble(building.shipped(), given, choices, building.table())
    assert not faults
    assert built is not None, problems
    return built


def configs(document: Any) -> list[tuple[list[str], str]]:
    """The requests and the kind of each configuration of a claim."""
    listed = document["spec"]["devices"].get("config", [])
    return [(each["requests"], each["opaque"]["parameters"]["kind"]) for each in listed]


STRATEGY = "{defaults: {devices: {sharing: {strategy: TimeSlicing}}}}"
BACKEND = "{defaults: {devices: {vfio: {backendPolicy: PreferIommuFD}}}}"


def test_one_configuration_is_appended_for_each_type_of_device() -> None:
    given = claim(
        exactly("a"),
        exactly("slice", "mig.nvidia.com"),
        exactly("whole", VFIO),
        exactly("nic", "nic.example.com"),
        exactly("channel", CHANNEL),
        exactly("watch", adminAccess=True),
        {"name": "b", "firstAvailable": [{"name": "c", "deviceClassName": "gpu.nvidia.com"}]},
    )
    found = result(catalog(STRATEGY), given)
    assert configs(found) == [(["a", "b/c"], "GpuConfig"), (["slice"], "MigDeviceConfig")]
    assert configs(result(catalog(BACKEND), given)) == [(["whole"], "VfioDeviceConfig")]


def test_a_request_with_a_configuration_gets_no_other() -> None:
    given = claim(exactly("a"), exactly("b"), config=[config("GpuConfig", "a")])
    found = result(catalog(STRATEGY), given)
    assert configs(found) == [(["a"], "GpuConfig"), (["b"], "GpuConfig")]
    sharing = found["spec"]["devices"]["config"][0]["opaque"]["parameters"]["sharing"]
    assert sharing["strategy"] == "TimeSlicing"


def test_a_claim_gets_no_more_configurations_than_the_api_server_takes() -> None:
    others = [
        {"opaque": {"driver": "nic.example.com", "parameters": {"index": n}}} for n in range(32)
    ]
    full = claim(exactly("a"), exactly("slice", "mig.nvidia.com"), config=others)
    assert result(catalog(STRATEGY), full) == full
    del others[0]
    found = result(catalog(STRATEGY), claim(*full["spec"]["devices"]["requests"], config=others))
    assert len(found["spec"]["devices"]["config"]) == 32
    assert found["spec"]["devices"]["config"][:31] == others


def test_other_drivers_and_what_the_user_wrote_stay_as_they_are() -> None:
    other = {"opaque": {"driver": "nic.example.com", "parameters": {"sharing": {"strategy": 7}}}}
    mine = config("GpuConfig", "a", sharing={"strategy": "MPS", "mpsConfig": {"multiUser": False}})
    given = claim(exactly("a"), config=[other, mine])
    defaults = "{sharing: {strategy: TimeSlicing, threadPercentage: 25, multiUser: true}}"
    found = result(catalog(f"{{defaults: {{devices: {defaults}}}}}"), given)
    written = json.loads(json.dumps(given))
    sharing = written["spec"]["devices"]["config"][1]["opaque"]["parameters"]["sharing"]
    sharing["mpsConfig"]["defaultActiveThreadPercentage"] = 25
    assert found == written


@pytest.mark.parametrize(
    ("version", "written"), [("25.8", False), ("25.12", False), ("0.4", True), ("0.5", True)]
)
def test_passthrough_is_configured_for_drivers_that_know_it(
    version: DriverVersion, written: bool
) -> None:
    found = result(catalog(BACKEND, version), claim(exactly("v", VFIO)))
    assert bool(configs(found)) is written


@pytest.mark.parametrize(("version", "written"), [("0.4", False), ("0.5", True)])
def test_several_users_are_written_for_drivers_that_know_them(
    version: DriverVersion, written: bool
) -> None:
    rules = catalog("{defaults: {devices: {sharing: {multiUser: true}}}}", version)
    sharing = {"strategy": "MPS", "mpsConfig": {}}
    found = result(rules, claim(exactly(), config=[config("GpuConfig", sharing=sharing)]))
    parameters = found["spec"]["devices"]["config"][0]["opaque"]["parameters"]
    assert parameters["sharing"]["mpsConfig"] == ({"multiUser": True} if written else {})


@pytest.mark.parametrize(("version", "written"), [("25.3", False), ("25.8", True)])
def test_a_domain_has_a_mode_since_its_channels_have_one(
    version: DriverVersion, written: bool
) -> None:
    body = {"numNodes": 1, "channel": {"resourceClaimTemplate": {"name": "t"}}}
    domain = shell("resource.nvidia.com/v1beta1", "ComputeDomain", body)
    rules = catalog("{defaults: {devices: {computeDomain: {allocationMode: All}}}}", version)
    found = result(rules, domain)
    assert ("allocationMode" in found["spec"]["channel"]) is written


CLOSED = "rules: {devices: {drivers: {%s}, configKinds: {canEdit: false}}}}"


@pytest.mark.parametrize("rule", ["canEdit: false", "blocked: true"])
def test_a_configuration_that_podgate_appended_is_no_users(rule: str) -> None:
    rules = catalog(
        "{defaults: {devices: {sharing: {strategy: MPS, pinnedMemory: 4Gi}}}, " + CLOSED % rule
    )
    found = result(rules, claim(exactly()))
    assert configs(found) == [(["gpu"], "GpuConfig")]
    parameters = found["spec"]["devices"]["config"][0]["opaque"]["parameters"]
    parameters["sharing"]["mpsConfig"]["defaultActiveThreadPercentage"] = 90
    kinds = ("devices.configKinds", "canEdit")
    assert reasons(mutated(rules, found)) == [kinds, ("devices.drivers", rule.partition(":")[0])]


def test_channels_keep_the_mode_that_the_server_filled_in() -> None:
    rules = catalog(
        "{defaults: {devices: {allocationMode: All}}, rules: {devices: {allocationMode: {canEdit: false}}}}"
    )
    served = claim(exactly("channel", CHANNEL, allocationMode="ExactCount", count=1))
    assert result(rules, served) == served


def test_the_mode_of_a_channel_is_never_the_servers() -> None:
    opaque = config("ComputeDomainChannelConfig", domainID="d", allocationMode="Single")["opaque"]
    opaque["driver"] = "compute-domain.nvidia.com"
    given = claim(exactly("channel", CHANNEL), config=[{"opaque": opaque}])
    rules = "{defaults: {devices: {computeDomain: {allocationMode: All}}}}"
    assert result(catalog(rules), given) == given
    closed = "{rules: {devices: {computeDomain: {allocationMode: {blocked: true}}}}}"
    found = reasons(mutated(catalog(closed), given))
    assert found == [("devices.computeDomain.allocationMode", "blocked")]


def test_nothing_is_written_into_a_class() -> None:
    body = {"config": [{"opaque": config("GpuConfig", sharing={"strategy": "MPS"})["opaque"]}]}
    given = shell("resource.k8s.io/v1", "DeviceClass", body)
    rules = "{defaults: {devices: {sharing: {strategy: MPS, threadPercentage: 25}}}}"
    assert result(catalog(rules), given) == given


def test_a_count_that_the_server_filled_in_takes_the_default() -> None:
    rules = catalog("{defaults: {devices: {count: 2}}}")
    served = claim(exactly(count=1, allocationMode="ExactCount"))
    written = building.annotated(served, claim(exactly(count=1)))
    found = result(rules, served)["spec"]["devices"]["requests"][0]["exactly"]
    assert found == {**served["spec"]["devices"]["requests"][0]["exactly"], "count": 2}
    assert result(rules, written) == written


def test_the_mode_all_replaces_a_count_that_the_server_filled_in() -> None:
    rules = catalog("{defaults: {devices: {allocationMode: All}}}")
    served = claim(exactly(count=1, allocationMode="ExactCount"))
    found = result(rules, served)["spec"]["devices"]["requests"][0]["exactly"]
    assert found == {"deviceClassName": "gpu.nvidia.com", "allocationMode": "All"}
    two = claim(exactly(count=2, allocationMode="ExactCount"))
    assert result(rules, two) == two


def test_a_default_follows_another_field_of_devices() -> None:
    rules = catalog(
        "{rules: {devices: {sharing: {pinnedMemory:"
        " {defaultFrom: {field: devices.capacity.memory, factor: 0.5}}}}}}"
    )
    request = exactly(capacity={"requests": {"memory": "8Gi"}})
    given = claim(request, config=[config("GpuConfig", sharing={"strategy": "MPS"})])
    found = result(rules, given)["spec"]["devices"]["config"][0]["opaque"]["parameters"]
    assert found["sharing"]["mpsConfig"] == {"defaultPinnedDeviceMemoryLimit": "4Gi"}


@pytest.mark.parametrize(
    ("entries", "count", "allowed"),
    [({"0": "1Gi"}, 1, True), ({"0": "1Gi"}, 2, False), ({"0": "1Gi", "1": "2Gi"}, 2, True)],
)
def test_a_limit_for_each_device_counts_as_a_limit(
    entries: dict[str, str], count: int, allowed: bool
) -> None:
    rules = catalog("{rules: {devices: {sharing: {pinnedMemory: {required: true, max: 2Gi}}}}}")
    limits = {"defaultPerDevicePinnedMemoryLimit": entries}
    sharing = {"strategy": "MPS", "mpsConfig": limits}
    found = mutated(
        rules, claim(exactly(count=count), config=[config("GpuConfig", sharing=sharing)])
    )
    if allowed:
        assert isinstance(found, Allowed)
    else:
        assert reasons(found) == [("devices.sharing.pinnedMemory", "required")]


def test_a_prohibition_takes_what_absence_means() -> None:
    rules = catalog("{rules: {devices: {adminAccess: {blocked: true}}}}")
    assert isinstance(mutated(rules, claim(exactly(adminAccess=False))), Allowed)
    found = mutated(rules, claim(exactly(adminAccess=True)))
    assert reasons(found) == [("devices.adminAccess", "blocked")]


def test_a_list_is_closed_around_its_default() -> None:
    rules = catalog(
        "{defaults: {devices: {classes: [gpu.nvidia.com, mig.nvidia.com]}},"
        " rules: {devices: {classes: {canEdit: false}}}}"
    )
    inside = claim(exactly("a"), exactly("b", "mig.nvidia.com"))
    assert result(rules, inside) == inside
    found = mutated(rules, claim(exactly("a"), exactly("b", VFIO)))
    assert isinstance(found, Denied)
    (violation,) = found.violations
    assert (violation.field, violation.reason) == ("devices.classes", "canEdit")
    assert violation.path == ("spec", "devices", "requests", 1, "exactly", "deviceClassName")


def test_a_claim_without_requests_breaks_no_bound() -> None:
    rules = catalog(
        "{rules: {devices: {perClaim: {max: 1}, count: {max: 1}, classes: {options: [a]}}}}"
    )
    assert result(rules, claim()) == claim()


def test_values_of_wrong_types_are_reported_not_raised() -> None:
    body = (
        "{rules: {devices: {count: {max: 1}, capacity: {memory: {max: 1Gi}, shares: {max: 2}},"
        " tolerations: {options: [a]}, sharing: {threadPercentage: {max: 50}}}}}"
    )
    odd = exactly(count="x", capacity={"requests": {"memory": [], "shares": "1.5"}})
    odd["exactly"]["tolerations"] = [7, {"key": 7}]
    odd["exactly"]["selectors"] = [{"cel": 7}, None]
    found = mutated(catalog(body), claim(odd, 7, config=[7, {"opaque": 7}]))  # type: ignore[arg-type]
    assert isinstance(found, Denied)
    fields = {each.field for each in found.violations}
    assert {"devices.count", "devices.capacity.memory", "devices.capacity.shares"} <= fields


SHARES = {"sharing": {"strategy": "MPS", "mpsConfig": {"defaultActiveThreadPercentage": 80}}}


def test_values_that_go_with_a_strategy_bring_no_configuration() -> None:
    rules = catalog("{defaults: {devices: {sharing: {threadPercentage: 25, interval: Short}}}}")
    assert result(rules, claim(exactly())) == claim(exactly())


def test_a_default_that_absence_means_is_not_written() -> None:
    rules = catalog("{defaults: {devices: {adminAccess: false, allocationMode: ExactCount}}}")
    assert result(rules, claim(exactly())) == claim(exactly())


def test_nodes_that_the_crd_filled_in_take_the_default() -> None:
    body = {"numNodes": 0, "channel": {"resourceClaimTemplate": {"name": "t"}}}
    domain = shell("resource.nvidia.com/v1beta1", "ComputeDomain", body)
    rules = catalog("{defaults: {devices: {computeDomain: {numNodes: 4}}}}")
    assert result(rules, domain)["spec"]["numNodes"] == 4


def test_a_configuration_of_two_requests_is_reported_once() -> None:
    rules = catalog("{rules: {devices: {sharing: {threadPercentage: {max: 50}}}}}")
    found = mutated(
        rules, claim(exactly("a"), exactly("b"), config=[config("GpuConfig", **SHARES)])
    )
    assert isinstance(found, Denied)
    assert len(found.violations) == 1


def test_an_appended_configuration_is_a_change_of_the_policy() -> None:
    found = mutated(catalog(STRATEGY), claim(exactly()))
    assert isinstance(found, Allowed)
    assert ("spec", "devices", "config", 0) in [each.path for each in found.changes]


def test_blocked_takes_no_repetition_of_an_appended_configuration() -> None:
    rules = catalog(
        "{defaults: {devices: {sharing: {strategy: MPS}}}, rules: {devices: {drivers: {blocked: true}}}}"
    )
    written = result(rules, claim(exactly()))
    found = mutated(rules, building.annotated(written))
    assert reasons(found) == [("devices.drivers", "blocked")]


def test_each_request_has_what_is_required_of_lists() -> None:
    body = "{rules: {devices: {tolerations: {required: true}, drivers: {required: true}}}}"
    bare, borne = exactly("a"), exactly("b", tolerations=[{"key": "k"}])
    found = mutated(catalog(body), claim(bare, borne))
    assert isinstance(found, Denied)
    assert [each.path for each in found.violations] == [
        ("spec", "devices", "config"),
        ("spec", "devices", "requests", 0, "exactly", "tolerations"),
    ]


def test_a_list_of_one_may_repeat_its_default() -> None:
    rules = catalog(
        "{defaults: {devices: {classes: [gpu.nvidia.com]}}, rules: {devices: {classes: {canEdit: false}}}}"
    )
    assert result(rules, claim(exactly())) == claim(exactly())


def test_rules_of_configurations_reach_classes_and_no_others_do() -> None:
    rules = catalog(
        "{rules: {devices: {configKinds: {options: [MigDeviceConfig]}, count: {min: 2},"
        " drivers: {required: true}, sharing: {threadPercentage: {max: 50}}}}}"
    )
    other = {"driver": "nic.example.com", "parameters": {"kind": "GpuConfig", **SHARES}}
    own = config("GpuConfig", **SHARES)["opaque"]
    warned = {}
    for name, listed in (("none", []), ("other", [other]), ("own", [own])):
        spec = {"config": [{"opaque": each} for each in listed]}
        found = mutated(rules, shell("resource.k8s.io/v1", "DeviceClass", spec))
        assert isinstance(found, Allowed)
        warned[name] = [each.field for each in found.warnings]
    assert warned == {"none": [], "other": [], "own": ["devices.sharing.threadPercentage"]}


def test_a_class_that_may_give_any_gpu_takes_a_share() -> None:
    rules = catalog("{defaults: {devices: {capacity: {memory: 1Gi}}}}")
    selectors = [{"cel": {"expression": "device.driver == 'gpu.nvidia.com'"}}]
    known = References(device_classes={"any": class_brief({"spec": {"selectors": selectors}})})
    found = decide(
        building.request(claim(exactly("a", "any"), exactly("b", "other"))), rules, known
    )
    assert isinstance(found, Allowed)
    written, untouched = found.object["spec"]["devices"]["requests"]
    assert written["exactly"]["capacity"] == {"requests": {"memory": "1Gi"}}
    assert untouched == exactly("b", "other")


def test_a_profile_of_the_class_is_no_choice_of_the_user() -> None:
    rules = catalog("{rules: {devices: {migProfile: {blocked: true}}}}")
    profile = "device.attributes['gpu.nvidia.com'].profile == '1g.5gb'"
    text = f"{SLICE} && {profile}"
    known = References(device_classes={"small": class_brief({"spec": selecting(text)})})
    of_class = decide(building.request(claim(exactly("a", "small"))), rules, known)
    assert isinstance(of_class, Allowed)
    own = claim(exactly("a", "mig.nvidia.com", **selecting(profile)))
    assert reasons(mutated(rules, own)) == [("devices.migProfile", "blocked")]


SLICE = "device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].type == 'mig'"


def selecting(expression: str) -> dict[str, Any]:
    """Members of a class or a request with one selector."""
    return {"selectors": [{"cel": {"expression": expression}}]}


@pytest.mark.parametrize(
    ("kind", "field", "support"),
    [
        ("ResourceClaim", "devices.count", "mapped"),
        ("ResourceClaim", "devices.computeDomain.numNodes", "unmapped"),
        ("DeviceClass", "devices.count", "unmapped"),
        ("DeviceClass", "devices.sharing.strategy", "mapped"),
    ],
)
def test_a_kind_has_some_of_the_fields(kind: str, field: str, support: str) -> None:
    definition = define("resource.k8s.io", "v1", kind)
    row = TABLE.fields[field]
    assert handler_of(row, definition).support(row, definition, "")[0] == support
