"""Finds the configurations that take effect for a request, as the driver does on the node.

The order is: the driver's default, those of the class, those of the claim. The last one that applies
replaces the others wholly.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from webhook.devices.claim_view import ClaimView, DeviceConfig, Option, part, text_of
from webhook.devices.classes import DeviceClasses
from webhook.devices.config_schemas import (
    CHANNEL_CONFIG,
    DAEMON_CONFIG,
    GPU_CONFIG,
    MIG_CONFIG,
    VFIO_CONFIG,
)
from webhook.devices.kinds import TYPES_OF_DRIVER, UNKNOWN
from webhook.evaluation.device_settings import DeviceSettings

CONFIG_TYPES: Final = {
    GPU_CONFIG: "gpu",
    MIG_CONFIG: "mig",
    VFIO_CONFIG: "vfio",
    CHANNEL_CONFIG: "channel",
    DAEMON_CONFIG: "daemon",
}
"""The device type that each kind of configuration is for."""
CLEARS_REQUESTS: Final = 37
"""From this minor version on the allocator clears `requests` of a configuration that names all."""


@dataclass(frozen=True, slots=True)
class EffectiveConfig:
    """A configuration that takes effect, and whether the claim or its class has it."""

    place: Literal["claim", "class"]
    config: DeviceConfig


def type_of_config(config: DeviceConfig) -> str:
    """Return the device type that a configuration is for, "" if its driver has no such kind."""
    found = CONFIG_TYPES.get(text_of(part(config.parameters).get("kind")), "")
    return found if found in TYPES_OF_DRIVER.get(config.driver, ()) else ""


def effective_configs(
    view: ClaimView, option: Option, classes: DeviceClasses, settings: DeviceSettings
) -> dict[str, EffectiveConfig | None]:
    """Return what takes effect for an option, by the type of device that it may get.

    None stands for the driver's default. Usually there is one type. A class of an unknown type may
    have any, but only those are returned that have a configuration.
    """
    types = classes.types_of_option(option)
    found: dict[str, EffectiveConfig | None] = {}
    if view.is_oversized:
        return found
    for config in classes.configs_of(option.device_class):
        found[type_of_config(config)] = EffectiveConfig("class", config)
    for config in view.configs:
        if applies(config, view, option, settings):
            found[type_of_config(config)] = EffectiveConfig("claim", config)
    if UNKNOWN in types:
        return {each: config for each, config in found.items() if each}
    return {each: found.get(each) for each in sorted(types) if each in CONFIG_TYPES.values()}


def applies(
    config: DeviceConfig, view: ClaimView, option: Option, settings: DeviceSettings
) -> bool:
    """Return whether a configuration of a claim is for an option, if it has the right type.

    The driver compares the exact name, so that the name of a list of alternatives is for none.
    """
    if not config.requests or option.name in config.requests:
        return True
    return settings.kubernetes_minor >= CLEARS_REQUESTS and names_all(config, view)


def names_all(config: DeviceConfig, view: ClaimView) -> bool:
    """Return whether a configuration names every request of a claim."""
    return all(each.name in config.requests for each in view.requests)
