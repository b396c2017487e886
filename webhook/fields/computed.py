"""defaultFrom: a default that is another field's value times a factor."""

from __future__ import annotations

import copy
from fractions import Fraction
from typing import Any, Protocol

from webhook.evaluation.state import Evaluation
from webhook.fields.scalar import INVALID, ScalarRules
from webhook.objects import quantity
from webhook.policy.combine import Constraint, EffectiveDefault
from webhook.policy.row import Attribute, Field

MILLI = quantity.NANO // 1000


class NumericBinding(Protocol):
    """What a binding offers so that a default can be computed from it, or for it."""

    field: Field
    rules: ScalarRules

    def intent(self, view: Any, ev: Evaluation) -> None:
        """Judge prohibitions."""

    def fill(self, view: Any, ev: Evaluation) -> None:
        """Write the default."""

    def final(self, view: Any, ev: Evaluation) -> None:
        """Judge final rules."""

    def current(self, view: Any, ev: Evaluation) -> Any:
        """The native value as it stands in the copy; None when unset."""


def scaled(
    value: Any, source: Field | Attribute, target: Field | Attribute, factor: Fraction
) -> int:
    """Source value times factor in the target's unit, rounded as the target's type asks."""
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


class ComputedField:
    """A field whose default follows another; without a source value its static default stays."""

    __slots__ = ("constraint", "factor", "field", "rules", "source", "target")

    def __init__(self, target: Any, source: Any, constraint: Constraint) -> None:
        self.target = target
        self.source = source
        self.constraint = constraint
        self.factor: Fraction = constraint.argument.factor
        self.field: Field = target.field
        self.rules: ScalarRules = target.rules

    def resolved(self, view: Any, ev: Evaluation) -> Any:
        """The target binding with today's computed default in place of the static one."""
        native = self.source.current(view, ev)
        value = INVALID if native is None else self.source.rules.read(native)
        if value is INVALID:
            source = self.source
            default = (
                source.resolved(view, ev).rules.default
                if isinstance(source, ComputedField)
                else source.rules.default
            )
            if default is None:
                return self.target
            value, native = default.value, default.raw
        result = scaled(value, self.source.field, self.field, self.factor)
        raw = quantity.render(result, str(native)) if self.field.value == "quantity" else None
        policy = self.constraint.policy
        rules = copy.copy(self.rules)
        rules.default = EffectiveDefault(result, raw, self.constraint.source, policy.scope)
        target = copy.copy(self.target)
        target.rules = rules
        return target

    def seen(self, ev: Evaluation, document: Any, views: Any) -> Any:
        """Everything that is read of a document, of fields of the workload as a whole."""
        return self.target.seen(ev, document, views)

    def intent(self, view: Any, ev: Evaluation) -> None:
        """Under canEdit: false the computed value is the default."""
        if self.rules.prohibitions:
            self.resolved(view, ev).intent(view, ev)

    def fill(self, view: Any, ev: Evaluation) -> None:
        """Write the computed default where the field is unset."""
        self.resolved(view, ev).fill(view, ev)

    def final(self, view: Any, ev: Evaluation) -> None:
        """Results are judged like any other value."""
        self.target.final(view, ev)

    def current(self, view: Any, ev: Evaluation) -> Any:
        """The native value as it stands in the copy; None when unset."""
        return self.target.current(view, ev)
