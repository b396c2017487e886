"""One view of a device claim in all API versions.

v1 and v1beta2 have a request's members below `exactly`; v1beta1 has them in the request itself.
Paths are those of the object as it is. Reading never fails: members of a wrong type, which an API
server refuses, are left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from webhook.objects.path import Path

ALL: Final = "All"
EXACT: Final = "ExactCount"
MOST_MEMBERS: Final = 64
"""Of any list in a claim. The API server allows 32 at most, of alternatives 8."""
MOST_OPTIONS: Final = 8 * MOST_MEMBERS


@dataclass(frozen=True, slots=True)
class Option:
    """One way to satisfy a request: the exact request, or one of its alternatives.

    `name` is the name that a config uses: REQUEST, or REQUEST/ALTERNATIVE. `path` is where `body`
    is, with deviceClassName, allocationMode, count and the others as the user wrote them.
    """

    path: Path
    name: str
    body: Mapping[str, Any]

    @property
    def device_class(self) -> str:
        """The name of the device class, "" if there is none."""
        return text_of(self.body.get("deviceClassName"))

    @property
    def mode(self) -> str:
        """The allocation mode; the API server's default if there is none."""
        return text_of(self.body.get("allocationMode")) or EXACT

    @property
    def count(self) -> int | None:
        """The number of devices; None if it has no bound, or is not known."""
        if self.mode != EXACT:
            return None
        count = self.body.get("count")
        if count is None:
            return 1
        return count if isinstance(count, int) and not isinstance(count, bool) else None

    @property
    def admin_access(self) -> bool:
        """Whether it asks for administrative access, which takes no device away."""
        return self.body.get("adminAccess") is True

    @property
    def selectors(self) -> tuple[str, ...]:
        """The CEL texts of its selectors."""
        listed = (part(part(each).get("cel")) for each in items(self.body.get("selectors")))
        return tuple(text_of(each.get("expression")) for each in listed)


@dataclass(frozen=True, slots=True)
class DeviceRequest:
    """One request of a claim with its options. `listed`: they are alternatives in order."""

    path: Path
    name: str
    options: tuple[Option, ...]
    listed: bool = False


@dataclass(frozen=True, slots=True)
class DeviceConfig:
    """One configuration of a claim or class. `path` is that of its entry.

    `requests` are the names it is for, empty for all. `parameters` is None if it is missing.
    """

    path: Path
    requests: tuple[str, ...]
    driver: str
    parameters: Any

    @property
    def parameters_path(self) -> Path:
        """Where its parameters are."""
        return (*self.path, "opaque", "parameters")


@dataclass(frozen=True, slots=True)
class ClaimView:
    """A device claim: the `spec` of a ResourceClaim, or `spec.spec` of a template.

    `is_oversized`: a list has more than MOST_MEMBERS. The API server refuses such a claim, but only
    after the mutating pass, so nothing may be evaluated whose cost grows faster than the claim.
    """

    path: Path
    requests: tuple[DeviceRequest, ...] = ()
    constraints: tuple[Mapping[str, Any], ...] = ()
    configs: tuple[DeviceConfig, ...] = ()
    is_oversized: bool = False

    @property
    def options(self) -> Iterator[Option]:
        """The options of all requests."""
        for request in self.requests:
            yield from request.options


def read_claim(spec: Any, path: Path = ("spec",)) -> ClaimView:
    """Return the view of a DeviceClaim spec that is at `path` in its object."""
    devices, at = part(part(spec).get("devices")), (*path, "devices")
    requests = tuple(
        read_request(body, (*at, "requests", index))
        for index, body in enumerated(devices.get("requests"))
    )
    constraints = tuple(body for _, body in enumerated(devices.get("constraints")))
    configs = read_configs(devices.get("config"), at)
    members = [
        *(requests, constraints, configs),
        *(each.options for each in requests),
        *(each.requests for each in configs),
    ]
    options = sum(len(each.options) for each in requests)
    is_oversized = options > MOST_OPTIONS or any(len(each) > MOST_MEMBERS for each in members)
    return ClaimView(path, requests, constraints, configs, is_oversized)


def read_configs(listed: Any, path: Path) -> tuple[DeviceConfig, ...]:
    """Return the opaque configurations of a list `config` below `path`."""
    found = []
    for index, body in enumerated(listed):
        opaque = body.get("opaque")
        if isinstance(opaque, dict):
            names = tuple(each for each in items(body.get("requests")) if isinstance(each, str))
            at = (*path, "config", index)
            driver = text_of(opaque.get("driver"))
            found.append(DeviceConfig(at, names, driver, opaque.get("parameters")))
    return tuple(found)


def read_request(body: Mapping[str, Any], path: Path) -> DeviceRequest:
    """Return one request of any version, with its options."""
    name = text_of(body.get("name"))
    if items(body.get("firstAvailable")):
        listed = enumerated(body["firstAvailable"])
        options = tuple(
            Option((*path, "firstAvailable", index), f"{name}/{text_of(each.get('name'))}", each)
            for index, each in listed
        )
        return DeviceRequest(path, name, options, listed=True)
    if isinstance(body.get("exactly"), dict):
        return DeviceRequest(path, name, (Option((*path, "exactly"), name, body["exactly"]),))
    return DeviceRequest(path, name, (Option(path, name, body),))


def part(value: Any) -> Mapping[str, Any]:
    """Return a map, an empty one for another type."""
    return value if isinstance(value, dict) else {}


def items(value: Any) -> Sequence[Any]:
    """Return a list, an empty one for another type."""
    return value if isinstance(value, list) else ()


def enumerated(value: Any) -> list[tuple[int, Mapping[str, Any]]]:
    """Return the maps of a list with their indices."""
    return [(index, each) for index, each in enumerate(items(value)) if isinstance(each, dict)]


def text_of(value: Any) -> str:
    """Return a text, "" for another type."""
    return value if isinstance(value, str) else ""
