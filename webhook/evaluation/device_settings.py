"""Settings of an installation about devices: the NVIDIA driver, its feature gates, and classes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

DriverVersion = Literal["25.3", "25.8", "25.12", "0.4", "0.5"]
DeviceChecks = Literal["deny", "warn", "off"]
DeviceType = Literal["gpu", "mig", "vfio", "channel", "daemon", "other"]
DRIVER_CONTROLLER: Final = (
    "system:serviceaccount:dra-driver-nvidia-gpu:dra-driver-nvidia-gpu-service-account-controller"
)
"""The controller of the driver's chart, installed under its own name."""
MOST_NODES: Final = 18
"""The default of the driver's flag for the nodes of one IMEX domain."""


@dataclass(frozen=True, slots=True)
class DeviceSettings:
    """Settings about devices. A gate that is not in `gates` is unknown: nothing depends on it.

    `checks` says what happens to what would fail on the node. `unknown_version` is for opaque
    parameters of another apiVersion. `class_types` are types of device classes by name.
    `controllers` are the exact user names of the driver's controllers. `kubernetes_minor` is the
    minor version of the cluster, 0 if it is not known.
    """

    driver_version: DriverVersion = "0.5"
    gates: Mapping[str, bool] = field(default_factory=dict)
    checks: DeviceChecks = "deny"
    unknown_version: Literal["deny", "warn"] = "deny"
    imex_mode: Literal["", "driverManaged", "hostManaged"] = ""
    most_nodes: int = MOST_NODES
    class_types: Mapping[str, DeviceType] = field(default_factory=dict)
    controllers: tuple[str, ...] = (DRIVER_CONTROLLER,)
    kubernetes_minor: int = 0

    def is_on(self, gate: str) -> bool:
        """Return whether a feature gate is known to be on."""
        return self.gates.get(gate) is True

    def is_off(self, gate: str) -> bool:
        """Return whether a feature gate is known to be off."""
        return self.gates.get(gate) is False

    def is_host_managed(self) -> bool:
        """Return whether administrators run the IMEX daemons, and the driver starts none.

        The gate only allows the mode. Without a known mode it is the only hint, and nobody turns it
        on for anything else.
        """
        gate = self.is_on("HostManagedIMEXDaemon")
        return gate if self.imex_mode == "" else self.imex_mode == "hostManaged"
