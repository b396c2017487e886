"""Feature gates of NVIDIA's driver, and which of them it does not start with."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from webhook.devices.config_schemas import FIRST, has_it
from webhook.documents.suggestions import closest
from webhook.evaluation.device_settings import DeviceSettings, DriverVersion

SINCE: Final[dict[str, DriverVersion]] = {
    "TimeSlicingSettings": "25.8",
    "MPSSupport": "25.8",
    "IMEXDaemonsWithDNSNames": "25.8",
    "PassthroughSupport": "25.12",
    "DynamicMIG": "25.12",
    "NVMLDeviceHealthCheck": "25.12",
    "ComputeDomainCliques": "25.12",
    "CrashOnNVLinkFabricErrors": "25.12",
    "DeviceMetadata": "0.4",
    "FabricManagerPartitioning": "0.5",
    "HostManagedIMEXDaemon": "0.5",
    "ConsumableShares": "0.5",
    # Its sources say 0.4, whose last release does not know it.
    "DRAListTypeAttributes": "0.5",
    "ContextualLogging": FIRST,
    "LoggingAlphaOptions": FIRST,
    "LoggingBetaOptions": FIRST,
}
"""The feature gates with the first driver version that has them. The last three are of logging."""
GROUPS: Final = ("AllAlpha", "AllBeta")
"""Names that the driver accepts for many gates at once. Each version has others of them."""
EXCLUSIONS: Final = (
    ("DynamicMIG", "PassthroughSupport"),
    ("DynamicMIG", "NVMLDeviceHealthCheck"),
    ("DynamicMIG", "MPSSupport"),
    ("PassthroughSupport", "NVMLDeviceHealthCheck"),
)
"""Gates that are not on together: the driver refuses to start."""
UNDOCUMENTED: Final = (("MPSSupport", "NVMLDeviceHealthCheck"),)
"""Gates that only the driver's manual excludes."""
NEEDS: Final = (
    ("ComputeDomainCliques", "IMEXDaemonsWithDNSNames"),
    ("DeviceMetadata", "PassthroughSupport"),
)
"""A gate, and the one without which the driver refuses to start."""


class GateFault(NamedTuple):
    """A fault of the settings: what was found, and what to write. `warning`: the driver starts."""

    found: str
    fix: str
    warning: bool = False


def check_gates(settings: DeviceSettings) -> list[GateFault]:
    """Return the feature gates that the driver does not have, or does not start with."""
    return [*check_names(settings), *check_combinations(settings)]


def check_names(settings: DeviceSettings) -> Iterator[GateFault]:
    """Return the faults of single gates."""
    version = settings.driver_version
    for name in settings.gates:
        since = SINCE.get(name)
        if since is None:
            meant = closest(name, SINCE)
            fix = (
                f"write {meant}, if that is meant" if meant else f"write one of {', '.join(SINCE)}"
            )
            if name in GROUPS:
                fix = "name each feature gate"
            yield GateFault(f"{name}, which is not a feature gate of the driver", fix)
        elif not has_it(since, version):
            found = f"{name}, which the driver has since {since}, and the driver version {version}"
            yield GateFault(found, "leave it out, or correct the version")


def check_combinations(settings: DeviceSettings) -> Iterator[GateFault]:
    """Return the faults of gates with each other. A gate that is not set is unknown."""
    for first, second in EXCLUSIONS:
        if settings.is_on(first) and settings.is_on(second):
            fix = "write the gates as the driver has them: it does not start with both"
            yield GateFault(f"{first} and {second} both on", fix)
    for gate, needed in NEEDS:
        if settings.is_on(gate) and settings.is_off(needed):
            fix = f"write {needed}=true, or {gate}=false: the driver does not start like this"
            yield GateFault(f"{gate} on and {needed} off", fix)
    for first, second in UNDOCUMENTED:
        if settings.is_on(first) and settings.is_on(second):
            fix = "turn one of them off in the driver: its manual excludes both together"
            yield GateFault(f"{first} and {second} both on", fix, warning=True)


def check_mode(settings: DeviceSettings) -> list[GateFault]:
    """Return why a driver cannot leave the IMEX daemons to the host, if the settings say that it does."""
    gate, version = "HostManagedIMEXDaemon", settings.driver_version
    if settings.imex_mode == "hostManaged":
        if not has_it(SINCE[gate], version):
            found = f"hostManaged, which the driver has since {SINCE[gate]}, and the driver version {version}"
            return [GateFault(found, "leave it out, or correct the version")]
        if settings.is_off(gate):
            fix = f"write driverManaged, or the feature gate {gate}=true"
            return [GateFault(f"hostManaged, and the feature gate {gate} off", fix)]
    return []
