"""Facts about other objects: namespaces, claim templates, priority classes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

ClaimKey = tuple[str, str, str]
"""Kind, namespace and name. The template of a ComputeDomain has DOMAIN_TEMPLATE as its kind."""

CLAIM_KINDS: Final = ("ResourceClaim", "ResourceClaimTemplate")


class Claims(Protocol):
    """Briefs of claims and claim templates by key (devices/briefs.py).

    Also of templates that the driver has not made yet (devices/domain_templates.py).
    """

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
