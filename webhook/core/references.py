"""What the decision knows of other objects: namespaces, claim templates, priority classes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class References:
    """Small facts that change often; a request sees one version of them.

    `namespaces` maps names to labels. `claims` maps ("ResourceClaim" or "ResourceClaimTemplate",
    namespace, name) to the DeviceClaim spec (`devices.requests[]`).
    """

    namespaces: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    claims: Mapping[tuple[str, str, str], Any] = field(default_factory=dict)
    priority_classes: frozenset[str] = frozenset()
