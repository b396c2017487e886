"""Checks of NVIDIA's opaque configurations: what a driver of each version would refuse."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from webhook.devices import configs
from webhook.devices.claim_view import DeviceConfig
from webhook.devices.config_schemas import VERSIONS
from webhook.devices.finding import Finding
from webhook.evaluation.device_settings import DeviceSettings
from webhook.objects.path import Path

AT: Path = ("spec", "devices", "config", 0)
PARAMETERS: Path = (*AT, "opaque", "parameters")
GPU, DOMAIN = "gpu.nvidia.com", "compute-domain.nvidia.com"
DRIVERS = {
    "GpuConfig": GPU,
    "MigDeviceConfig": GPU,
    "VfioDeviceConfig": GPU,
    "ComputeDomainChannelConfig": DOMAIN,
    "ComputeDomainDaemonConfig": DOMAIN,
}
UID = "a1b2c3d4-0000-4000-8000-000000000001"


def config(kind: str, body: dict[str, Any] | str = "{}") -> DeviceConfig:
    """A configuration of a kind; `body` is JSON text where the form of a number matters."""
    inner = orjson.loads(body) if isinstance(body, str) else body
    parameters = {"apiVersion": "resource.nvidia.com/v1beta1", "kind": kind, **inner}
    return DeviceConfig(AT, (), DRIVERS.get(kind, GPU), parameters)


def check(
    kind: str,
    body: dict[str, Any] | str = "{}",
    devices: int | None = None,
    **settings: Any,
) -> list[Finding]:
    return configs.check_config(config(kind, body), DeviceSettings(**settings), devices)


def brief(found: list[Finding]) -> list[tuple[str, str]]:
    """Path below the parameters and reason, a warning with an exclamation mark."""
    return [
        ("/".join(map(str, each.path[len(PARAMETERS) :])), each.reason + "!" * each.warning)
        for each in found
    ]


def mps(body: str) -> str:
    return f'{{"sharing": {{"strategy": "MPS", "mpsConfig": {body}}}}}'


def test_other_drivers_are_not_read() -> None:
    other = DeviceConfig(AT, (), "nic.example.com", {"anything": [1, {"kind": 7}]})
    assert configs.check_config(other, DeviceSettings()) == []


@pytest.mark.parametrize(
    ("parameters", "found"),
    [
        (None, [("", "config-unreadable")]),
        ([], [("", "config-unreadable")]),
        ("text", [("", "config-unreadable")]),
        ({}, [("", "config-unreadable")] * 2),
        ({"kind": "GpuConfig"}, [("", "config-unreadable")]),
        ({"apiVersion": "resource.nvidia.com/v1beta1"}, [("", "config-unreadable")]),
        ({"apiVersion": "resource.nvidia.com/v1beta1", "kind": 7}, [("", "config-unreadable")]),
        ({"apiVersion": "resource.nvidia.com/v1beta1", "kind": ""}, [("", "config-unreadable")]),
        (
            {"apiVersion": "resource.nvidia.com/v1", "kind": "GpuConfig"},
            [("apiVersion", "config-unreadable")],
        ),
        (
            {"apiVersion": "resource.nvidia.com/v1beta1", "kind": "ComputeDomain", "spec": {}},
            [("kind", "config-unreadable")],
        ),
        (
            {"apiVersion": "resource.nvidia.com/v1beta1", "kind": "gpuConfig"},
            [("kind", "config-unreadable")],
        ),
    ],
)
def test_what_cannot_be_read(parameters: Any, found: list[tuple[str, str]]) -> None:
    unread = DeviceConfig(AT, (), GPU, parameters)
    assert brief(configs.check_config(unread, DeviceSettings())) == found
    assert configs.kind_of(unread) == ""


def test_an_unknown_version_may_only_be_a_warning() -> None:
    body = {"apiVersion": "resource.nvidia.com/v2", "kind": "GpuConfig", "new": 1}
    found = configs.check_config(
        DeviceConfig(AT, (), GPU, body), DeviceSettings(unknown_version="warn")
    )
    assert brief(found) == [("apiVersion", "config-unreadable!")]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("kind", "body", "reason", "path", "since"),
    [
        ("GpuConfig", "{}", "", "", "25.3"),
        ("MigDeviceConfig", '{"sharing": {"strategy": "MPS"}}', "", "", "25.3"),
        ("VfioDeviceConfig", "{}", "config-unreadable", "kind", "25.12"),
        ("ComputeDomainDaemonConfig", f'{{"domainID": "{UID}"}}', "", "", "25.3"),
        (
            "ComputeDomainChannelConfig",
            f'{{"domainID": "{UID}", "allocationMode": "All"}}',
            "config-unknown-field",
            "allocationMode",
            "25.8",
        ),
        (
            "GpuConfig",
            mps('{"multiUser": true}'),
            "config-unknown-field",
            "sharing/mpsConfig/multiUser",
            "0.5",
        ),
        (
            "MigDeviceConfig",
            mps('{"multiUser": false}'),
            "config-unknown-field",
            "sharing/mpsConfig/multiUser",
            "0.5",
        ),
    ],
)
def test_driver_versions(
    version: Any, kind: str, body: str, reason: str, path: str, since: Any
) -> None:
    older = VERSIONS.index(version) < VERSIONS.index(since)
    assert brief(check(kind, body, driver_version=version)) == [(path, reason)] * older


@pytest.mark.parametrize(
    ("version", "found"),
    [
        ("25.3", [("kind", "config-unreadable")]),
        ("25.8", [("kind", "config-unreadable")]),
        ("25.12", [("iommu", "config-unknown-field")]),
        ("0.4", []),
        ("0.5", []),
    ],
)
def test_passthrough_got_fields_later_than_its_kind(version: Any, found: Any) -> None:
    body = '{"iommu": {"backendPolicy": "LegacyOnly"}}'
    assert brief(check("VfioDeviceConfig", body, driver_version=version)) == found


def test_an_unknown_field_names_the_one_meant_or_the_version_that_has_it() -> None:
    (meant,) = check("GpuConfig", '{"Sharing": null}')
    assert meant == Finding((*PARAMETERS, "Sharing"), "config-unknown-field", "Sharing", "sharing")
    (newer,) = check("GpuConfig", mps('{"multiUser": null}'), driver_version="0.4")
    assert (newer.value, newer.allowed, newer.key) == ("multiUser", None, "0.5")


S = "sharing/"


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("kind", "body", "found"),
    [
        ("GpuConfig", '{"sharing": null}', []),
        ("GpuConfig", '{"metadata": {"name": "x"}}', [("metadata", "config-unknown-field")]),
        ("GpuConfig", '{"sharing": "MPS"}', [("sharing", "invalid-value")]),
        ("GpuConfig", '{"sharing": []}', [("sharing", "invalid-value")]),
        ("GpuConfig", '{"sharing": {}}', [(S + "strategy", "required")]),
        ("GpuConfig", '{"sharing": {"strategy": null}}', [(S + "strategy", "required")]),
        ("GpuConfig", '{"sharing": {"strategy": ""}}', [(S + "strategy", "invalid-value")]),
        ("GpuConfig", '{"sharing": {"strategy": "mps"}}', [(S + "strategy", "invalid-value")]),
        ("GpuConfig", '{"sharing": {"strategy": 1}}', [(S + "strategy", "invalid-value")]),
        (
            "GpuConfig",
            '{"sharing": {"strategy": "TimeSlicing", "mpsConfig": null, "timeSlicingConfig": null}}',
            [],
        ),
        (
            "GpuConfig",
            '{"sharing": {"strategy": "TimeSlicing", "timeSlicingConfig": {"interval": null}}}',
            [],
        ),
        (
            "GpuConfig",
            '{"sharing": {"strategy": "TimeSlicing", "timeSlicingConfig": {"interval": ""}}}',
            [(S + "timeSlicingConfig/interval", "invalid-value")],
        ),
        (
            "GpuConfig",
            '{"sharing": {"strategy": "TimeSlicing", "timeSlicingConfig": {"interval": "long"}}}',
            [(S + "timeSlicingConfig/interval", "invalid-value")],
        ),
        (
            "GpuConfig",
            '{"sharing": {"strategy": "TimeSlicing", "mpsConfig": {}}}',
            [(S + "mpsConfig", "config-conflict")],
        ),
        (
            "GpuConfig",
            '{"sharing": {"strategy": "MPS", "timeSlicingConfig": {"interval": "Short"}}}',
            [(S + "timeSlicingConfig", "config-conflict")],
        ),
        (
            "MigDeviceConfig",
            '{"sharing": {"strategy": "TimeSlicing", "timeSlicingConfig": {"interval": "Short"}}}',
            [(S + "timeSlicingConfig", "config-unknown-field")],
        ),
        # The driver decodes what it does not use, so types and keys are checked there too.
        (
            "MigDeviceConfig",
            (
                '{"sharing": {"strategy": "TimeSlicing", "mpsConfig":'
                ' {"defaultActiveThreadPercentage": 500, "defaultPinnedDeviceMemoryLimit": "x",'
                ' "defaultPerDevicePinnedMemoryLimit": {"x": "1"}, "more": 1}}}'
            ),
            [
                (S + "mpsConfig", "config-unused!"),
                (S + "mpsConfig/defaultPinnedDeviceMemoryLimit", "invalid-value"),
                (S + "mpsConfig/more", "config-unknown-field"),
            ],
        ),
        ("ComputeDomainChannelConfig", "{}", [("domainID", "required")]),
        ("ComputeDomainDaemonConfig", '{"domainID": ""}', [("domainID", "required")]),
        ("ComputeDomainDaemonConfig", '{"domainID": 7}', [("domainID", "invalid-value")]),
        (
            "ComputeDomainDaemonConfig",
            f'{{"domainID": "{UID}", "allocationMode": "All"}}',
            [("allocationMode", "config-unknown-field")],
        ),
    ],
)
def test_values(version: Any, kind: str, body: str, found: list[tuple[str, str]]) -> None:
    assert brief(check(kind, body, driver_version=version)) == found


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("domain", ["a", "A9", "a_b.c-d", UID, "a" * 63])
def test_domain_ids(version: Any, domain: str) -> None:
    for kind in ("ComputeDomainDaemonConfig", "ComputeDomainChannelConfig"):
        assert check(kind, {"domainID": domain}, driver_version=version) == []


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("domain", ["a" * 64, "../../etc", "a/b", "-a", "a.", "a\n", "é", ".", "٣"])
def test_domain_ids_that_are_no_label(version: Any, domain: str) -> None:
    for kind in ("ComputeDomainDaemonConfig", "ComputeDomainChannelConfig"):
        found = brief(check(kind, {"domainID": domain}, driver_version=version))
        assert found == [("domainID", "invalid-value")]


@pytest.mark.parametrize(
    ("mode", "good"),
    [
        ("null", True),
        ('""', True),
        ('"Single"', True),
        ('"All"', True),
        ('"all"', False),
        ("1", False),
    ],
)
@pytest.mark.parametrize("version", VERSIONS[1:])
def test_channel_modes(version: Any, mode: str, good: bool) -> None:
    body = f'{{"domainID": "{UID}", "allocationMode": {mode}}}'
    found = brief(check("ComputeDomainChannelConfig", body, driver_version=version))
    assert found == ([] if good else [("allocationMode", "invalid-value")])


@pytest.mark.parametrize("version", ["0.4", "0.5"])
@pytest.mark.parametrize(
    ("field", "value", "good"),
    [
        ("backendPolicy", '"LegacyOnly"', True),
        ("backendPolicy", '"PreferIommuFD"', True),
        ("backendPolicy", '""', True),
        ("backendPolicy", "null", True),
        ("backendPolicy", '"IommuFD"', False),
        ("backendPolicy", '"legacyOnly"', False),
        ("backendPolicy", "1", False),
        ("enableAPIDevice", "true", True),
        ("enableAPIDevice", "false", True),
        ("enableAPIDevice", "null", True),
        ("enableAPIDevice", "1", False),
        ("enableAPIDevice", '"true"', False),
        ("enableAPIDevice", "{}", False),
    ],
)
def test_passthrough(version: Any, field: str, value: str, good: bool) -> None:
    found = brief(
        check("VfioDeviceConfig", f'{{"iommu": {{"{field}": {value}}}}}', driver_version=version)
    )
    assert found == ([] if good else [(f"iommu/{field}", "invalid-value")])


@pytest.mark.parametrize("version", ["0.4", "0.5"])
@pytest.mark.parametrize("value", ["[]", '"LegacyOnly"', "true"])
def test_an_iommu_that_is_no_object(version: Any, value: str) -> None:
    found = brief(check("VfioDeviceConfig", f'{{"iommu": {value}}}', driver_version=version))
    assert found == [("iommu", "invalid-value")]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("kind", ["GpuConfig", "MigDeviceConfig"])
@pytest.mark.parametrize(
    ("text", "good"),
    [
        ("null", True),
        ("0", True),
        ("-0", True),
        ("100", True),
        ("-1", False),
        ("101", False),
        ("50.0", False),
        ("5e1", False),
        ('"50"', False),
        ("true", False),
        ("50.5", False),
        ("9223372036854775808", False),
        ("18446744073709551616", False),
        ("-9223372036854775809", False),
        ("[]", False),
    ],
)
def test_thread_percentages(version: Any, kind: str, text: str, good: bool) -> None:
    name = "defaultActiveThreadPercentage"
    found = brief(check(kind, mps(f'{{"{name}": {text}}}'), driver_version=version))
    assert found == ([] if good else [(f"sharing/mpsConfig/{name}", "invalid-value")])


LIMITS = [
    ("null", True),
    ('"10Gi"', True),
    ('"1Mi"', True),
    ('" 1Mi "', True),
    ("1048576", True),
    ("1048576.0", True),
    ("1e7", True),
    ('"1048575.1"', True),
    ('"1M"', False),
    ("1048575", False),
    ("0", False),
    ('"-1Gi"', False),
    ('"100Ei"', True),
    ('"10E"', False),
    ("1e300", False),
    ('"1 Gi"', False),
    ('""', False),
    ('"x"', False),
    ("true", False),
    ("{}", False),
    ("[]", False),
]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(("text", "good"), LIMITS)
def test_pinned_memory(version: Any, text: str, good: bool) -> None:
    name = "defaultPinnedDeviceMemoryLimit"
    found = brief(check("GpuConfig", mps(f'{{"{name}": {text}}}'), driver_version=version))
    assert found == ([] if good else [(f"sharing/mpsConfig/{name}", "invalid-value")])


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(("text", "good"), LIMITS)
def test_pinned_memory_by_device(version: Any, text: str, good: bool) -> None:
    name = "defaultPerDevicePinnedMemoryLimit"
    found = brief(check("GpuConfig", mps(f'{{"{name}": {{"0": {text}}}}}'), driver_version=version))
    # null is absence at optional fields only. As a quantity it is 0.
    good = good and text != "null"
    assert found == ([] if good else [(f"sharing/mpsConfig/{name}/0", "invalid-value")])


@pytest.mark.parametrize(
    ("key", "good"),
    [
        ("0", True),
        ("1", True),
        ("+1", True),
        ("-0", True),
        ("0001", True),
        ("0" * 5000 + "1", True),
        ("2", False),
        ("-1", False),
        ("1" * 5000, False),
        ("9223372036854775808", False),
        ("", False),
        ("0x1", False),
        ("1_0", False),
        ("1 ", False),
        ("1\n", False),
        ("1.0", False),
        ("٠", False),
        ("０", False),
        (f"GPU-{UID}", True),
        (f"MIG-{UID}", True),
        (UID, False),
        (f"GPU-{UID}0", False),
        (f"GPU-{UID.upper()}", False),
        ("GPU-0", False),
    ],
)
def test_devices_of_limits(key: str, good: bool) -> None:
    name = "defaultPerDevicePinnedMemoryLimit"
    body = {"sharing": {"strategy": "MPS", "mpsConfig": {name: {key: "2Gi"}}}}
    wrong = [(f"sharing/mpsConfig/{name}/{key}", "invalid-value")]
    assert brief(check("GpuConfig", body, 2)) == ([] if good else wrong)


def test_limits_are_not_read_without_end() -> None:
    name = "defaultPerDevicePinnedMemoryLimit"
    limits = {str(index): "2Gi" for index in range(configs.MOST_LIMITS)}
    body = {"sharing": {"strategy": "MPS", "mpsConfig": {name: limits}}}
    assert check("GpuConfig", body) == []
    limits["more"] = "less"
    (found,) = check("GpuConfig", body)
    assert (found.path[-1], found.value) == (name, "2001 entries")


def test_indices_have_no_bound_where_the_number_of_devices_is_unknown() -> None:
    assert check("GpuConfig", mps('{"defaultPerDevicePinnedMemoryLimit": {"7": "2Gi"}}')) == []


SLICED = '{"sharing": {"strategy": "TimeSlicing"}}'


@pytest.mark.parametrize(
    ("kind", "body", "gate", "on", "found"),
    [
        ("GpuConfig", SLICED, "TimeSlicingSettings", False, (S + "strategy", "config-gate")),
        ("MigDeviceConfig", SLICED, "TimeSlicingSettings", False, (S + "strategy", "config-gate")),
        ("GpuConfig", mps("{}"), "MPSSupport", False, (S + "strategy", "config-gate")),
        ("MigDeviceConfig", mps("{}"), "MPSSupport", False, (S + "strategy", "config-gate")),
        ("GpuConfig", mps("{}"), "DynamicMIG", True, (S + "strategy", "config-conflict")),
        ("GpuConfig", mps("{}"), "ConsumableShares", True, (S + "strategy", "config-conflict")),
        ("MigDeviceConfig", mps("{}"), "DynamicMIG", True, (S + "strategy", "config-conflict")),
        ("VfioDeviceConfig", "{}", "PassthroughSupport", False, ("kind", "config-gate")),
        (
            "VfioDeviceConfig",
            '{"iommu": {"enableAPIDevice": true}}',
            "DeviceMetadata",
            False,
            ("iommu/enableAPIDevice", "config-gate!"),
        ),
        (
            "ComputeDomainDaemonConfig",
            f'{{"domainID": "{UID}"}}',
            "HostManagedIMEXDaemon",
            True,
            ("kind", "config-conflict"),
        ),
    ],
)
def test_gates(kind: str, body: str, gate: str, on: bool, found: tuple[str, str]) -> None:
    assert check(kind, body) == []
    assert check(kind, body, gates={gate: not on}) == []
    told = check(kind, body, gates={gate: on})
    assert (brief(told), [each.key for each in told]) == ([found], [gate])


@pytest.mark.parametrize(
    ("mode", "gates", "refused"),
    [
        ("", {}, False),
        ("", {"HostManagedIMEXDaemon": True}, True),
        ("driverManaged", {"HostManagedIMEXDaemon": True}, False),
        ("hostManaged", {}, True),
    ],
)
def test_daemons_that_the_host_runs(mode: Any, gates: Any, refused: bool) -> None:
    body = {"domainID": UID}
    found = check("ComputeDomainDaemonConfig", body, imex_mode=mode, gates=gates)
    assert brief(found) == [("kind", "config-conflict")] * refused


def test_every_fault_is_found_at_once() -> None:
    body = (
        '{"sharing": {"strategy": "MPS", "mpsConfig": {"defaultActiveThreadPercentage": 101,'
        ' "defaultPinnedDeviceMemoryLimit": "1M", "multiUser": "yes"}}, "sharin": 1}'
    )
    assert brief(check("GpuConfig", body, gates={"MPSSupport": False})) == [
        (S + "mpsConfig/defaultActiveThreadPercentage", "invalid-value"),
        (S + "mpsConfig/defaultPinnedDeviceMemoryLimit", "invalid-value"),
        (S + "mpsConfig/multiUser", "invalid-value"),
        (S + "strategy", "config-gate"),
        ("sharin", "config-unknown-field"),
    ]


def test_a_configuration_with_endless_faults_ends() -> None:
    body = {f"key{number}": number for number in range(100_000)}
    assert len(check("GpuConfig", body)) == configs.MOST_FINDINGS


@pytest.mark.parametrize(
    "value",
    [10**5000, -(10**5000), float("inf"), float("nan"), 1e308],
    ids=["long", "negative", "infinity", "nan", "large"],
)
def test_numbers_that_only_files_can_have(value: Any) -> None:
    for name in ("defaultActiveThreadPercentage", "defaultPinnedDeviceMemoryLimit"):
        body = {"sharing": {"strategy": "MPS", "mpsConfig": {name: value}}}
        (found,) = check("GpuConfig", body)
        assert found.reason == "invalid-value"
        assert len(found.value or "") < 100


INTERVAL = (*PARAMETERS, "sharing", "timeSlicingConfig", "interval")


@pytest.mark.parametrize(
    ("kind", "body", "written"),
    [
        ("GpuConfig", '{"sharing": {"strategy": "TimeSlicing", "timeSlicingConfig": {}}}', True),
        (
            "GpuConfig",
            '{"sharing": {"strategy": "TimeSlicing", "timeSlicingConfig": {"interval": null}}}',
            True,
        ),
        (
            "GpuConfig",
            '{"sharing": {"strategy": "TimeSlicing", "timeSlicingConfig": {"interval": "Long"}}}',
            False,
        ),
        ("GpuConfig", SLICED, False),
        ("GpuConfig", '{"sharing": {"strategy": "MPS", "timeSlicingConfig": {}}}', False),
        ("GpuConfig", "{}", False),
        ("GpuConfig", '{"sharing": 7}', False),
        ("GpuConfig", '{"sharing": {"strategy": "TimeSlicing", "timeSlicingConfig": 7}}', False),
        (
            "MigDeviceConfig",
            '{"sharing": {"strategy": "TimeSlicing", "timeSlicingConfig": {}}}',
            False,
        ),
        ("VfioDeviceConfig", '{"iommu": {}}', False),
        ("ComputeDomainChannelConfig", "{}", False),
    ],
)
@pytest.mark.parametrize("version", VERSIONS)
def test_only_an_interval_is_written(version: Any, kind: str, body: str, written: bool) -> None:
    settings = DeviceSettings(driver_version=version)
    found = configs.complete_config(config(kind, body), settings)
    assert found == [(INTERVAL, "Default")] * written
    off = DeviceSettings(driver_version=version, checks="off")
    assert configs.complete_config(config(kind, body), off) == []
