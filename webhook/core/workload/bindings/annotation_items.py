"""Itemized fields that live in an annotation of the workload as a JSON list."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from webhook.core.policy.combine import Leaf
from webhook.core.policy.fields import Field
from webhook.core.workload.bindings.scalar import rules_of


class AnnotationItemsField:
    """To be written."""

    def __init__(self, field: Field, leaf: Leaf, attributes: Mapping[str, Leaf]) -> None:
        self.field = field
        self.rules = rules_of(field, leaf)

    def intent(self, view: Any, ev: Any) -> None:
        """To be written."""

    def fill(self, view: Any, ev: Any) -> None:
        """To be written."""

    def final(self, view: Any, ev: Any) -> None:
        """To be written."""

    def seen(self, ev: Any, document: Any, views: Any) -> list[Any]:
        """To be written."""
        return []
