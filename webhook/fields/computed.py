"""defaultFrom: a default that is another field's value times a factor."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from webhook.evaluation.state import Evaluation
from webhook.fields.handler import CompiledField, Subject, phases_of
from webhook.fields.notation import PathValue
from webhook.fields.scalar import INVALID
from webhook.objects import quantity
from webhook.pods.pod_view import PodView
from webhook.policy.combine import Constraint, EffectiveDefault
from webhook.policy.row import Attribute, Field

MILLI = quantity.NANO // 1000


def scale(
    value: Any, source: Field | Attribute, target: Field | Attribute, factor: Fraction
) -> int:
    """Return the source value times the factor in the target's unit, rounded as its type requires."""
    exact = Fraction(value) * factor
    if source.value == "integer" and target.value != "integer":
        exact *= quantity.NANO
    elif source.value != "integer" and target.value == "integer":
        exact /= quantity.NANO
    if target.value == "integer":
        return int(exact)
    if target.value == "number":
        return int((exact + Fraction(MILLI, 2)) // MILLI) * MILLI
    return int(exact // quantity.NANO) * quantity.NANO


class ComputedField(CompiledField[Subject]):
    """A field whose default follows another. Without a source value its static default applies."""

    __slots__ = ("factor", "follows", "source", "target")

    follows: Constraint

    def __init__(
        self, target: CompiledField[Subject], source: CompiledField[Subject], follows: Constraint
    ) -> None:
        super().__init__(target.row, target.rules)
        self.phases = phases_of(target.rules, fill=True)
        self.target = target
        self.source = source
        self.follows = follows
        self.factor: Fraction = follows.argument.factor

    def default_for(self, subject: Subject, ev: Evaluation) -> EffectiveDefault | None:
        """Return the current computed default, else the static one."""
        native = self.source.current(subject, ev)
        value = INVALID if native is None else self.source.rules.read(native)
        if value is INVALID:
            default = self.source.default_for(subject, ev)
            if default is None:
                return self.rules.default
            value, native = default.value, default.raw
        result = scale(value, self.source.row, self.row, self.factor)
        raw = quantity.render(result, str(native)) if self.row.value == "quantity" else None
        return EffectiveDefault(result, raw, self.follows.source, self.follows.policy.scope)

    def resolve(self, subject: Subject, ev: Evaluation) -> CompiledField[Subject]:
        """Return the target with the computed default in place of the static one."""
        default = self.default_for(subject, ev)
        if default is self.rules.default:
            return self.target
        rules = copy.copy(self.rules)
        rules.default = default
        target = copy.copy(self.target)
        target.rules = rules
        return target

    def check_intent(self, subject: Subject, ev: Evaluation) -> None:
        """Check intent with the computed value as the default, for canEdit: false."""
        if self.rules.prohibitions:
            self.resolve(subject, ev).check_intent(subject, ev)

    def fill(self, subject: Subject, ev: Evaluation) -> None:
        """Write the computed default where the field is unset."""
        self.resolve(subject, ev).fill(subject, ev)

    def check_final(self, subject: Subject, ev: Evaluation) -> None:
        """Check the result like any other value."""
        self.target.check_final(subject, ev)

    def current(self, subject: Subject, ev: Evaluation) -> Any:
        """The native value in the draft; None when unset."""
        return self.target.current(subject, ev)

    def compared_values(
        self, ev: Evaluation, document: Any, views: Sequence[PodView]
    ) -> Sequence[PathValue]:
        """Everything that is read of a document, of fields of the workload."""
        return self.target.compared_values(ev, document, views)
