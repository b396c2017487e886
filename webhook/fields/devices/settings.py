"""Reads the NVIDIA configurations that take effect for the requests of a claim."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from webhook.devices.claim_view import DeviceConfig, Option, part, text_of
from webhook.devices.config_schemas import (
    CHANNEL_CONFIG,
    GPU_CONFIG,
    MIG_CONFIG,
    MPS,
    TIME_SLICING,
    VERSIONS,
    VFIO_CONFIG,
    leaves_of,
)
from webhook.devices.effective import (
    CONFIG_TYPES,
    EffectiveConfig,
    effective_configs,
    type_of_config,
)
from webhook.fields.devices.values import Claim, DeviceValue, native_of
from webhook.objects.path import Path

STRATEGY: Final[Path] = ("sharing", "strategy")
PER_DEVICE: Final[Path] = ("sharing", "mpsConfig", "defaultPerDevicePinnedMemoryLimit")
STRATEGIES: Final = {"timeSlicingConfig": TIME_SLICING, "mpsConfig": MPS}
"""The strategy that uses a part of the sharing configuration."""
KINDS_WITH: Final = {"sharing": (GPU_CONFIG, MIG_CONFIG), "iommu": (VFIO_CONFIG,)}
"""The kinds of configurations with a member."""
APPENDED: Final = frozenset({STRATEGY, ("iommu", "backendPolicy"), ("iommu", "enableAPIDevice")})
"""The values for which a default appends a configuration to a request without one."""


class UsedConfig(NamedTuple):
    """A configuration that takes effect, with the requests that it does so for.

    `device_class` is the class that has it, "" for the claim's own.
    """

    config: DeviceConfig
    options: tuple[Option, ...] = ()
    device_class: str = ""

    @property
    def kind(self) -> str:
        """The kind of its parameters."""
        return text_of(part(self.config.parameters).get("kind"))

    @property
    def strategy(self) -> str:
        """The sharing strategy."""
        return text_of(native_of(self.config.parameters, STRATEGY))


def find_used_configs(claim: Claim) -> list[UsedConfig]:
    """Return the configurations that take effect, those of the claim once for all requests."""
    if claim.of_class:
        return [UsedConfig(each) for each in claim.view.configs if type_of_config(each)]
    found: dict[tuple[Path, str], UsedConfig] = {}
    for option in claim.view.options:
        for used in find_effective(claim, option).values():
            if used is not None:
                name = option.device_class if used.place == "class" else ""
                at = option.path if name else used.config.path
                options = found[at, name].options if (at, name) in found else ()
                found[at, name] = UsedConfig(used.config, (*options, option), name)
    return list(found.values())


def find_effective(claim: Claim, option: Option) -> dict[str, EffectiveConfig | None]:
    """Return what takes effect for a request, by the type of device that it may get."""
    found = claim.kept.get(option.path)
    if found is None:
        found = effective_configs(claim.view, option, claim.classes, claim.classes.settings)
        claim.kept[option.path] = found
    return found


def find_unconfigured(claim: Claim, at: Path) -> list[tuple[str, Option]]:
    """Return the requests without a configuration that could have a value, each with its kind.

    The kind is "" if the request may get several types of devices. Requests for administrative
    access are left out: they can have no configuration.
    """
    found = []
    for option in claim.view.options:
        effective = {} if option.admin_access else find_effective(claim, option)
        lacking = [
            kind for kind in KINDS_WITH[str(at[0])] if effective.get(CONFIG_TYPES[kind], 0) is None
        ]
        if lacking:
            found.append((lacking[0] if len(effective) == 1 else "", option))
    return found


def read_settings(claim: Claim, at: Path) -> Iterator[DeviceValue]:
    """The values at a path below the parameters of the configurations that take effect."""
    for used in find_used_configs(claim):
        if used.kind in KINDS_WITH[str(at[0])]:
            yield from read_setting(claim, used, at)
    if at in APPENDED:
        for _, option in find_unconfigured(claim, at):
            yield DeviceValue((*option.path, "deviceClassName"), None, option.name, writable=False)


def read_setting(claim: Claim, used: UsedConfig, at: Path) -> Iterator[DeviceValue]:
    """The value in one configuration. Without its strategy it counts only where it is set."""
    value = native_of(used.config.parameters, at)
    has_use = STRATEGIES.get(str(at[1]), used.strategy) == used.strategy
    if value is not None or (has_use and at in leaves_of(used.kind, VERSIONS[-1])):
        known = has_use and at in leaves_of(used.kind, claim.classes.settings.driver_version)
        yield place(used, at, value, writable=known, needed=known)


def place(
    used: UsedConfig, at: Path, value: Any, *, writable: bool = False, needed: bool = True
) -> DeviceValue:
    """Return a value at its path, that of the class name of the request for one of a class."""
    if used.device_class:
        option = used.options[0]
        path = (*option.path, "deviceClassName")
        return DeviceValue(path, value, option.name, used.device_class, "", False, needed)
    path = (*used.config.parameters_path, *at)
    return DeviceValue(path, value, str(used.config.path[-1]), "", "", writable, needed)


def read_pinned_memory(claim: Claim) -> Iterator[DeviceValue]:
    """The limits of pinned memory, by default and for each device."""
    at = (*PER_DEVICE[:-1], "defaultPinnedDeviceMemoryLimit")
    for used in find_used_configs(claim):
        entries = part(native_of(used.config.parameters, PER_DEVICE))
        devices = sum(math.inf if each.count is None else each.count for each in used.options)
        covered = bool(entries) and len(entries) >= devices
        for each in read_setting(claim, used, at):
            yield each._replace(needed=each.needed and not covered)
        for key, value in entries.items():
            yield place(used, (*PER_DEVICE, key), value)


def read_channel_modes(claim: Claim) -> Iterator[DeviceValue]:
    """The allocation modes of channel configurations."""
    at = ("allocationMode",)
    for used in find_used_configs(claim):
        if used.kind == CHANNEL_CONFIG:
            known = at in leaves_of(used.kind, claim.classes.settings.driver_version)
            value = native_of(used.config.parameters, at)
            yield place(used, at, value, writable=known)
