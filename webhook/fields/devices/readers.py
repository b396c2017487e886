"""Reads the values of each `devices` field in a claim: of objects, and of what pods refer to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from webhook.devices.claim_view import ALL, EXACT, Option, items, part, text_of
from webhook.devices.classes import ANY_PROFILE, required_profiles
from webhook.devices.kinds import CHANNEL_TYPES, DRIVERS, GPU_DRIVER, GPU_TYPES
from webhook.devices.selectors import read_selectors
from webhook.fields.devices.settings import (
    read_channel_modes,
    read_pinned_memory,
    read_settings,
)
from webhook.fields.devices.values import ALL_MATCHING, Claim, DeviceValue, native_of
from webhook.objects.path import Path
from webhook.policy.row import Binding, Field

EVERY_TAINT: Final = "*"
"""The value for a toleration without a key, which tolerates every taint."""


Reader = Callable[[Claim], Iterator[DeviceValue]]


def read_values(row: Field, claim: Claim) -> list[DeviceValue]:
    """Return the values of a field in a claim, in the order of the claim."""
    reader = READERS.get(row.path)
    if reader is not None:
        return list(reader(claim))
    if row.binding is Binding.CONFIG:
        return list(read_settings(claim, row.at))
    return [read_leaf(claim, option, row.at) for option in claim.view.options]


def read_leaf(claim: Claim, option: Option, at: Path) -> DeviceValue:
    """Return the value at a path below a request, or below one of its alternatives.

    Requests for channels take no default: one channel is all that the driver can prepare.
    """
    writable = not claim.classes.types_of_option(option) <= CHANNEL_TYPES
    value = native_of(option.body, at)
    return DeviceValue((*option.path, *at), value, option.name, writable=writable)


def read_classes(claim: Claim) -> Iterator[DeviceValue]:
    """The device classes of requests."""
    for option in claim.view.options:
        name = option.device_class
        value = [name] if name else None
        yield DeviceValue((*option.path, "deviceClassName"), value, option.name)


def read_types(claim: Claim) -> Iterator[DeviceValue]:
    """The types of devices that requests may get."""
    for option in claim.view.options:
        types = sorted(claim.classes.types_of_option(option))
        yield DeviceValue((*option.path, "deviceClassName"), types, option.name)


def read_profiles(claim: Claim) -> Iterator[DeviceValue]:
    """The MIG profiles that requests may get, nothing for a request that may get any."""
    for option in claim.view.options:
        own = required_profiles(read_selectors(option.selectors))
        path = (*option.path, "selectors" if option.selectors else "deviceClassName")
        for each in sorted(claim.classes.mig_profiles(option)):
            value = None if each == ANY_PROFILE else each
            of_class = "" if own or value is None else option.device_class
            yield DeviceValue(path, value, option.name, of_class)


def read_counts(claim: Claim) -> Iterator[DeviceValue]:
    """The numbers of devices. Without the mode ExactCount a request has no bound."""
    for option in claim.view.options:
        if option.mode == EXACT:
            yield read_leaf(claim, option, ("count",))
        else:
            path = (*option.path, "allocationMode")
            why = ALL_MATCHING if option.mode == ALL else f"mode {option.mode}"
            yield DeviceValue(path, None, option.name, unbounded=why, writable=False)


def read_alternatives(claim: Claim) -> Iterator[DeviceValue]:
    """The numbers of alternatives of requests that have some."""
    for request in claim.view.requests:
        number = len(request.options) if request.listed else None
        yield DeviceValue((*request.path, "firstAvailable"), number, request.name)


def read_expressions(claim: Claim) -> Iterator[DeviceValue]:
    """The CEL expressions of requests."""
    for option in claim.view.options:
        path = (*option.path, "selectors")
        texts = [(index, each) for index, each in enumerate(option.selectors) if each]
        for index, text in texts:
            yield DeviceValue((*path, index, "cel", "expression"), [text], option.name)
        if not texts:
            yield DeviceValue(path, None, option.name)


def read_tolerations(claim: Claim) -> Iterator[DeviceValue]:
    """The keys of the taints that requests tolerate."""
    for option in claim.view.options:
        path = (*option.path, "tolerations")
        listed = items(option.body.get("tolerations"))
        for index, each in enumerate(listed):
            key = text_of(part(each).get("key")) or EVERY_TAINT
            yield DeviceValue((*path, index, "key"), [key], option.name)
        if not listed:
            yield DeviceValue(path, None, option.name)


def read_capacity(name: str) -> Reader:
    """Return the reader of what requests need of a capacity, which may name its driver.

    Only requests for GPUs take a default: a device without the capacity does not match.
    """

    def read_amounts(claim: Claim) -> Iterator[DeviceValue]:
        for option in claim.view.options:
            types = claim.classes.types_of_option(option)
            requested = part(part(option.body.get("capacity")).get("requests"))
            written = [each for each in (name, f"{GPU_DRIVER}/{name}") if each in requested]
            for each in written or [name]:
                yield read_leaf(claim, option, ("capacity", "requests", each))._replace(
                    writable=types <= GPU_TYPES and not option.admin_access,
                    needed=not types.isdisjoint(GPU_TYPES) and not option.admin_access,
                )

    return read_amounts


def read_drivers(claim: Claim) -> Iterator[DeviceValue]:
    """The drivers that the claim's own configurations are for."""
    path = (*claim.view.path, "devices", "config")
    for each in claim.view.configs:
        value = [each.driver] if each.driver else None
        yield DeviceValue((*each.path, "opaque", "driver"), value, str(each.path[-1]))
    if not claim.view.configs and not claim.of_class:
        yield DeviceValue(path)


def read_config_kinds(claim: Claim) -> Iterator[DeviceValue]:
    """The kinds of the claim's own NVIDIA configurations."""
    configs = [each for each in claim.view.configs if each.driver in DRIVERS]
    for each in configs:
        kind = text_of(part(each.parameters).get("kind"))
        value = [kind] if kind else None
        yield DeviceValue((*each.parameters_path, "kind"), value, str(each.path[-1]))
    if not configs:
        yield DeviceValue((*claim.view.path, "devices", "config"))


READERS: Final[dict[str, Reader]] = {
    "devices.classes": read_classes,
    "devices.types": read_types,
    "devices.drivers": read_drivers,
    "devices.configKinds": read_config_kinds,
    "devices.count": read_counts,
    "devices.alternatives": read_alternatives,
    "devices.selectors": read_expressions,
    "devices.tolerations": read_tolerations,
    "devices.capacity.memory": read_capacity("memory"),
    "devices.capacity.shares": read_capacity("shares"),
    "devices.migProfile": read_profiles,
    "devices.sharing.pinnedMemory": read_pinned_memory,
    "devices.computeDomain.allocationMode": read_channel_modes,
}
"""The readers of fields that are not at one path of a request."""
