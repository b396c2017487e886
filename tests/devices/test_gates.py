"""Feature gates of the driver: names, versions, and what it does not start with."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import pytest

from webhook.devices.config_schemas import VERSIONS
from webhook.devices.gates import SINCE, check_gates, check_mode
from webhook.evaluation.device_settings import DeviceSettings

EXCLUDED = {
    frozenset(("DynamicMIG", "PassthroughSupport")),
    frozenset(("DynamicMIG", "NVMLDeviceHealthCheck")),
    frozenset(("DynamicMIG", "MPSSupport")),
    frozenset(("PassthroughSupport", "NVMLDeviceHealthCheck")),
}
NEWER = {
    "25.3": {"ContextualLogging", "LoggingAlphaOptions", "LoggingBetaOptions"},
    "25.8": {"TimeSlicingSettings", "MPSSupport", "IMEXDaemonsWithDNSNames"},
    "25.12": {
        "PassthroughSupport",
        "DynamicMIG",
        "NVMLDeviceHealthCheck",
        "ComputeDomainCliques",
        "CrashOnNVLinkFabricErrors",
    },
    "0.4": {"DeviceMetadata"},
    "0.5": {
        "FabricManagerPartitioning",
        "HostManagedIMEXDaemon",
        "ConsumableShares",
        "DRAListTypeAttributes",
    },
}


@pytest.mark.parametrize("version", VERSIONS)
def test_each_version_has_its_gates(version: Any) -> None:
    known = {name for each in VERSIONS[: VERSIONS.index(version) + 1] for name in NEWER[each]}
    for name in SINCE:
        for on in (True, False):
            faults = check_gates(DeviceSettings(version, {name: on}))
            assert (not faults) == (name in known), name
    assert set(SINCE) == {name for each in NEWER.values() for name in each}


def test_pairs_of_gates() -> None:
    for pair in combinations(SINCE, 2):
        found = check_gates(DeviceSettings(gates=dict.fromkeys(pair, True)))
        refused = frozenset(pair) in EXCLUDED
        warned = frozenset(pair) == {"MPSSupport", "NVMLDeviceHealthCheck"}
        assert [each.warning for each in found] == [False] * refused + [True] * warned, pair


@pytest.mark.parametrize(
    ("gate", "needed"),
    [("ComputeDomainCliques", "IMEXDaemonsWithDNSNames"), ("DeviceMetadata", "PassthroughSupport")],
)
def test_gates_that_need_another(gate: str, needed: str) -> None:
    (fault,) = check_gates(DeviceSettings(gates={gate: True, needed: False}))
    assert f"{needed}=true" in fault.fix
    assert check_gates(DeviceSettings(gates={gate: True})) == []
    assert check_gates(DeviceSettings(gates={gate: False, needed: False})) == []


@pytest.mark.parametrize(
    ("settings", "faults"),
    [
        (DeviceSettings(imex_mode="hostManaged"), 0),
        (DeviceSettings(imex_mode="hostManaged", gates={"HostManagedIMEXDaemon": True}), 0),
        (DeviceSettings(imex_mode="hostManaged", gates={"HostManagedIMEXDaemon": False}), 1),
        (DeviceSettings(imex_mode="driverManaged", gates={"HostManagedIMEXDaemon": False}), 0),
        (DeviceSettings("0.4", imex_mode="hostManaged"), 1),
    ],
)
def test_daemons_that_the_host_runs(settings: DeviceSettings, faults: int) -> None:
    assert len(check_mode(settings)) == faults
