"""Reads the values of the `devices` fields in a claim: of objects, and of what pods refer to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

from webhook.devices.claim_view import ALL, EXACT, ClaimView, Option, items, part, text_of
from webhook.devices.kinds import DRIVERS, GPU_DRIVER
from webhook.objects.path import ABSENT, Path, read
from webhook.policy.row import Field

EVERY_TAINT: Final = "*"
"""The value for a toleration without a key, which tolerates every taint."""


class DeviceValue(NamedTuple):
    """One value of a field, at its path in the object that has the claim.

    `value` is native, a list of texts for fields of lists, and None where nothing is set and a
    default would go. `key` is what it is of: the name of a request, or the index of a
    configuration. `device_class` is the class whose configuration it is from, "" for the claim's
    own, `unbounded` why a number has no bound. Only `writable` paths take a default, only `needed`
    ones are those that `required` asks for.
    """

    path: Path
    value: Any = None
    key: str = ""
    device_class: str = ""
    unbounded: str = ""
    writable: bool = True
    needed: bool = True


class Claim(NamedTuple):
    """A claim, with what its values depend on."""

    view: ClaimView


Reader = Callable[[Claim], Iterator[DeviceValue]]


def read_values(row: Field, claim: Claim) -> list[DeviceValue]:
    """Return the values of a field in a claim, in the order of the claim."""
    reader = READERS.get(row.path)
    if reader is not None:
        return list(reader(claim))
    return [read_leaf(option, row.at) for option in claim.view.options]


def read_leaf(option: Option, at: Path) -> DeviceValue:
    """Return the value at a path below a request, or below one of its alternatives."""
    return DeviceValue((*option.path, *at), native_of(option.body, at), option.name)


def native_of(body: Any, at: Path) -> Any:
    """Return what is at a path, None for nothing."""
    value = read(body, at)
    return None if value is ABSENT or value == "" else value


def read_classes(claim: Claim) -> Iterator[DeviceValue]:
    """The device classes of requests."""
    for option in claim.view.options:
        name = option.device_class
        value = [name] if name else None
        yield DeviceValue((*option.path, "deviceClassName"), value, option.name)


def read_counts(claim: Claim) -> Iterator[DeviceValue]:
    """The numbers of devices. Without the mode ExactCount a request has no bound."""
    for option in claim.view.options:
        if option.mode == EXACT:
            yield read_leaf(option, ("count",))
        else:
            path = (*option.path, "allocationMode")
            why = "all that match" if option.mode == ALL else f"mode {option.mode}"
            yield DeviceValue(path, None, option.name, unbounded=why, writable=False)


def read_alternatives(claim: Claim) -> Iterator[DeviceValue]:
    """The numbers of alternatives of requests."""
    for request in claim.view.requests:
        number = len(request.options) if request.listed else 0
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
    """Return the reader of what requests need of a capacity, which may name its driver."""

    def read_amounts(claim: Claim) -> Iterator[DeviceValue]:
        for option in claim.view.options:
            requested = part(part(option.body.get("capacity")).get("requests"))
            written = [each for each in (name, f"{GPU_DRIVER}/{name}") if each in requested]
            for each in written or [name]:
                yield read_leaf(option, ("capacity", "requests", each))

    return read_amounts


def read_drivers(claim: Claim) -> Iterator[DeviceValue]:
    """The drivers that the claim's own configurations are for."""
    path = (*claim.view.path, "devices", "config")
    for each in claim.view.configs:
        value = [each.driver] if each.driver else None
        yield DeviceValue((*each.path, "opaque", "driver"), value, str(each.path[-1]))
    if not claim.view.configs:
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
    "devices.drivers": read_drivers,
    "devices.configKinds": read_config_kinds,
    "devices.count": read_counts,
    "devices.alternatives": read_alternatives,
    "devices.selectors": read_expressions,
    "devices.tolerations": read_tolerations,
    "devices.capacity.memory": read_capacity("memory"),
    "devices.capacity.shares": read_capacity("shares"),
}
"""The readers of fields that are not at one path of a request."""
