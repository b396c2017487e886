"""What we refuse in a configuration beyond the driver's webhook: the first table of docs/device-checks.md."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Beyond:
    """A row: its first cell, and the findings that it is for.

    `path` is a pattern of paths below `parameters`. `key` is that of the findings, any if it is "".
    """

    what: str
    reason: str
    path: str
    key: str = ""

    def is_of(self, reason: str, path: str, key: str) -> bool:
        """Whether a finding is one of these."""
        if self.key and key != self.key:
            return False
        return reason == self.reason and re.fullmatch(self.path, path) is not None


SHARING, MPS = "sharing", "sharing/mpsConfig"
BEYOND = (
    Beyond("a kind of the other driver", "config-mismatch", "kind"),
    Beyond("MPS beside `timeSlicingConfig`", "config-conflict", f"{SHARING}/timeSlicingConfig"),
    Beyond("time slicing beside `mpsConfig`", "config-conflict", MPS),
    Beyond(
        "MPS with the gate ConsumableShares",
        "config-conflict",
        f"{SHARING}/strategy",
        "ConsumableShares",
    ),
    Beyond("MPS with the gate DynamicMIG", "config-conflict", f"{SHARING}/strategy", "DynamicMIG"),
    Beyond(
        "a memory limit below 1Mi, or beyond 64 bit",
        "invalid-value",
        f"{MPS}/defaultPinnedDeviceMemoryLimit",
    ),
    Beyond(
        "a device that is neither a UUID nor an index",
        "invalid-value",
        f"{MPS}/defaultPerDevicePinnedMemoryLimit/.*",
        "device",
    ),
    Beyond(
        "a memory limit of one device below 1Mi, or beyond 64 bit",
        "invalid-value",
        f"{MPS}/defaultPerDevicePinnedMemoryLimit/.*",
    ),
    Beyond("another `allocationMode` than Single and All", "invalid-value", "allocationMode"),
    Beyond(
        "VfioDeviceConfig without the gate PassthroughSupport",
        "config-gate",
        "kind",
        "PassthroughSupport",
    ),
    Beyond(
        "ComputeDomainDaemonConfig where administrators run the IMEX daemons",
        "config-conflict",
        "kind",
        "HostManagedIMEXDaemon",
    ),
)
