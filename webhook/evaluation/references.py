"""Facts about other objects: namespaces, claim templates, priority classes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

ClaimKey = tuple[str, str, str]
"""Kind (of CLAIM_KINDS), namespace and name."""

TEMPLATE: Final = "ResourceClaimTemplate"
CLAIM_KINDS: Final = ("ResourceClaim", TEMPLATE)
# The members that a number of devices depends on. Selectors and tolerations may be long.
COUNTED: Final = ("deviceClassName", "allocationMode", "count")


class Claims(Protocol):
    """Claims and claim templates by key."""

    def get(self, key: ClaimKey, /) -> Any:
        """Return the DeviceClaim spec (`devices.requests[]`), None if it is not known."""


@dataclass(frozen=True, slots=True)
class References:
    """Small facts that change often. A request sees one version of them.

    `namespaces` maps names to labels. `device_classes` are briefs of all DeviceClasses by name
    (devices/classes.py), None if they cannot be read.
    """

    namespaces: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    claims: Claims = field(default_factory=dict[ClaimKey, Any])
    device_classes: Mapping[str, Any] | None = None
    priority_classes: frozenset[str] = frozenset()


def claim_spec(kind: str, body: Mapping[str, Any]) -> Any:
    """Return the DeviceClaim spec of a claim, or of a template, which has it one level deeper."""
    spec = body.get("spec")
    if kind == TEMPLATE:
        return spec.get("spec") if isinstance(spec, dict) else None
    return spec


def claim_brief(kind: str, body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the DeviceClaim spec with only the members that the number of devices depends on."""
    spec = claim_spec(kind, body)
    devices = spec.get("devices") if isinstance(spec, dict) else None
    requests = devices.get("requests") if isinstance(devices, dict) else None
    return {"devices": {"requests": briefs_of(requests)}}


def briefs_of(requests: Any) -> list[dict[str, Any]]:
    """Shorten device requests of any version of the API."""
    listed = requests if isinstance(requests, list) else ()
    return [request_brief(each) for each in listed if isinstance(each, dict)]


def request_brief(request: Mapping[str, Any]) -> dict[str, Any]:
    """Shorten one device request."""
    found = {key: request[key] for key in COUNTED if key in request}
    if isinstance(request.get("exactly"), dict):
        found["exactly"] = request_brief(request["exactly"])
    if request.get("firstAvailable"):
        found["firstAvailable"] = briefs_of(request["firstAvailable"])
    return found
