"""Fields of the readiness probe of the main container."""

from __future__ import annotations

from typing import Any

from webhook.core.policy.combine import Leaf
from webhook.core.policy.fields import Field
from webhook.core.workload.bindings.scalar import rules_of


class ProbeField:
    """To be written."""

    def __init__(self, field: Field, leaf: Leaf, server_default: Any, effective: Any) -> None:
        self.field = field
        self.rules = rules_of(field, leaf)

    def intent(self, view: Any, ev: Any) -> None:
        """To be written."""

    def fill(self, view: Any, ev: Any) -> None:
        """To be written."""

    def final(self, view: Any, ev: Any) -> None:
        """To be written."""

    def current(self, view: Any, ev: Any) -> Any:
        """To be written."""
        return None

    def seen(self, ev: Any, document: Any, views: Any) -> list[Any]:
        """To be written."""
        return []
