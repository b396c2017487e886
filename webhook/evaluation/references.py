"""What the decision knows of other objects: namespaces, claim templates, priority classes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

ClaimKey = tuple[str, str, str]
"""Kind (of CLAIM_KINDS), namespace and name."""

TEMPLATE: Final = "ResourceClaimTemplate"
CLAIM_KINDS: Final = ("ResourceClaim", TEMPLATE)
# What an amount of devices is read from; selectors and tolerations may be long and count nothing.
COUNTED: Final = ("deviceClassName", "allocationMode", "count")


class Claims(Protocol):
    """Claims and templates, of which each may be there or not."""

    def get(self, key: ClaimKey, /) -> Any:
        """The DeviceClaim spec (`devices.requests[]`), None where it is not known."""


@dataclass(frozen=True, slots=True)
class References:
    """Small facts that change often; a request sees one version of them.

    `namespaces` maps names to labels.
    """

    namespaces: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    claims: Claims = field(default_factory=dict[ClaimKey, Any])
    priority_classes: frozenset[str] = frozenset()


def claim_spec(kind: str, body: Mapping[str, Any]) -> Any:
    """The DeviceClaim spec of a claim or of a template, which has it one step deeper."""
    spec = body.get("spec")
    if kind == TEMPLATE:
        return spec.get("spec") if isinstance(spec, dict) else None
    return spec


def claim_brief(kind: str, body: Mapping[str, Any]) -> dict[str, Any]:
    """The same with nothing but what devices are counted by."""
    spec = claim_spec(kind, body)
    devices = spec.get("devices") if isinstance(spec, dict) else None
    requests = devices.get("requests") if isinstance(devices, dict) else None
    return {"devices": {"requests": briefs_of(requests)}}


def briefs_of(requests: Any) -> list[dict[str, Any]]:
    """Device requests in brief, whichever version of the API has written them."""
    listed = requests if isinstance(requests, list) else ()
    return [request_brief(each) for each in listed if isinstance(each, dict)]


def request_brief(request: Mapping[str, Any]) -> dict[str, Any]:
    """One device request in brief."""
    found = {key: request[key] for key in COUNTED if key in request}
    if isinstance(request.get("exactly"), dict):
        found["exactly"] = request_brief(request["exactly"])
    if request.get("firstAvailable"):
        found["firstAvailable"] = briefs_of(request["firstAvailable"])
    return found
