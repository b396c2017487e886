"""Fields that an object does not have: a warning, never written and never a reason to deny."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from webhook.evaluation.state import Evaluation
from webhook.fields.handler import (
    CompiledField,
    FieldSource,
    FieldValue,
    Phases,
    Subject,
    WorkloadField,
    WorkloadHandler,
)
from webhook.fields.notation import PathValue
from webhook.fields.scalar import rules_of
from webhook.pods.pod_view import PodView
from webhook.policy.combine import Constraint, Leaf
from webhook.policy.row import NOTHING, Field


class NothingField(WorkloadField):
    """A field that no native object has. Any setting of a policy for it is one warning."""

    __slots__ = ()

    def __init__(self, row: Field, leaf: Leaf) -> None:
        super().__init__(row, rules_of(row, leaf))

    def warn(self, ev: Evaluation) -> None:
        """Warn that the policy has no effect. Duplicate warnings are removed later."""
        ev.warn("not-enforceable", self.row.path, (), ev.request.kind)

    def check_intent(self, views: Sequence[PodView], ev: Evaluation) -> None:
        """Warn: there is no value to check."""
        self.warn(ev)

    def fill(self, views: Sequence[PodView], ev: Evaluation) -> None:
        """Nothing can be written."""
        self.warn(ev)

    def check_final(self, views: Sequence[PodView], ev: Evaluation) -> None:
        """Warn: there is no value to check, and no object can satisfy `required`."""
        self.warn(ev)

    def read(self, views: Sequence[PodView], ev: Evaluation) -> Iterable[FieldValue]:
        """No object has a value."""
        return ()

    def current(self, views: Any, ev: Evaluation) -> Any:
        """Nothing is computed from it."""
        return None

    def compared_values(
        self, ev: Evaluation, document: Any, views: Sequence[PodView]
    ) -> list[PathValue]:
        """Nothing is read of a document."""
        return []


class NothingHandler(WorkloadHandler):
    """Fields that no native object has."""

    name = NOTHING

    def compile(self, source: FieldSource) -> NothingField:
        """The field, which only warns."""
        return NothingField(source.row, source.leaf)


class ForbiddenDefault(CompiledField[Subject]):
    """Replaces a default that the kind would reject by a warning."""

    __slots__ = ()

    def __init__(self, row: Field) -> None:
        super().__init__(row)
        self.order = 2
        self.phases = Phases(fill=True)

    def check_intent(self, subject: Subject, ev: Evaluation) -> None:
        """Do nothing: another field of the plan checks it."""

    def fill(self, subject: Subject, ev: Evaluation) -> None:
        """Write nothing, and warn."""
        ev.warn("forbidden-default", self.row.path, (), ev.request.kind)

    def check_final(self, subject: Subject, ev: Evaluation) -> None:
        """Do nothing, as before defaults."""


class ForbiddenRule(CompiledField[Subject]):
    """Replaces `required` on a field that the kind rejects by a warning."""

    __slots__ = ("constraints",)

    def __init__(self, row: Field, constraints: tuple[Constraint, ...]) -> None:
        super().__init__(row)
        self.constraints = constraints
        self.phases = Phases(final=True)

    def check_intent(self, subject: Subject, ev: Evaluation) -> None:
        """Do nothing: only the result can lack a value."""

    def fill(self, subject: Subject, ev: Evaluation) -> None:
        """Nothing can be written."""

    def check_final(self, subject: Subject, ev: Evaluation) -> None:
        """Warn of the rule. It cannot deny anything."""
        source = self.constraints[0].source
        ev.warn("forbidden-rule", self.row.path, (), ev.request.kind, source=source)
