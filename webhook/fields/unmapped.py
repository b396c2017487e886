"""Fields that an object does not carry: told, never written and never a reason to refuse."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from webhook.evaluation.state import Evaluation
from webhook.fields.notation import Place
from webhook.fields.scalar import ScalarRules, rules_of
from webhook.pods.pod_view import PodView
from webhook.policy.combine import Leaf
from webhook.policy.row import Field


class NothingField:
    """A field that no native object carries; whatever a policy says of it is one warning."""

    __slots__ = ("field", "rules")

    def __init__(self, field: Field, leaf: Leaf) -> None:
        self.field = field
        self.rules: ScalarRules = rules_of(field, leaf)

    def tell(self, ev: Evaluation) -> None:
        """Say that nothing comes of the policy; the same warning twice is told once."""
        ev.warn("not-enforceable", self.field.path, (), ev.request.kind)

    def intent(self, views: Sequence[PodView], ev: Evaluation) -> None:
        """No value can be seen."""
        self.tell(ev)

    def fill(self, views: Sequence[PodView], ev: Evaluation) -> None:
        """Nothing can be written."""
        self.tell(ev)

    def final(self, views: Sequence[PodView], ev: Evaluation) -> None:
        """No value can be judged; `required` cannot be met by any object."""
        self.tell(ev)

    def current(self, views: Any, ev: Evaluation) -> Any:
        """Nothing is computed from it."""
        return None

    def seen(self, ev: Evaluation, document: Any, views: Sequence[PodView]) -> list[Place]:
        """Nothing is read of a document."""
        return []


class RefusedDefault:
    """Stands in place of a default that the kind would refuse, and says so."""

    __slots__ = ("field",)

    def __init__(self, field: Field) -> None:
        self.field = field

    def fill(self, views: Sequence[PodView], ev: Evaluation) -> None:
        """Write nothing and tell."""
        ev.warn("forbidden-default", self.field.path, (), ev.request.kind)

    def seen(self, ev: Evaluation, document: Any, views: Sequence[PodView]) -> list[Place]:
        """Nothing is read of a document."""
        return []
