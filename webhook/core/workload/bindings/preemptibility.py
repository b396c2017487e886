"""preemptibility: a label of the workload or its pods, else what the priority says."""

from __future__ import annotations

from typing import Any

from webhook.core.policy.combine import Leaf
from webhook.core.policy.fields import Field
from webhook.core.workload.bindings.scalar import rules_of


class PreemptibilityField:
    """To be written."""

    def __init__(self, field: Field, leaf: Leaf, second_places: Any) -> None:
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
