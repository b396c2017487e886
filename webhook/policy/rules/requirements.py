"""Rules on the value that an object has after defaults, and the rule that computes a default."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from webhook.policy.rules.rule_type import (
    DEFAULT,
    FINAL,
    BoundRule,
    Holds,
    RuleType,
    Sentence,
    ValueRule,
)
from webhook.policy.values import NUMBERS, NUMERIC, SCALARS, Codec

MOST_SHOWN = 10


class Required(RuleType):
    """Requires a value."""

    name = "required"
    form = "presence"
    stage = FINAL
    argument = "boolean"
    meaning = "true: a value must exist after defaulting"
    value_types = SCALARS
    requires_value = True
    sentence = Sentence(
        "a value is required",
        "Set it.",
        lone="{value} does not count as a value, and one is required",
        lone_fix="Set another one.",
    )


class Minimum(BoundRule):
    """The smallest allowed value."""

    name = "min"
    meaning = "the smallest allowed value"
    value_types = NUMERIC
    is_minimum = True
    sentence = Sentence("{value} is less than the minimum {allowed}", "Write at least {allowed}.")

    @staticmethod
    def allows(value: Any, argument: Any) -> bool:
        return bool(value >= argument)

    def is_no_further(self, value: Any, old: Any) -> bool:
        return bool(value >= old)


class Maximum(BoundRule):
    """The largest allowed value."""

    name = "max"
    meaning = "the largest allowed value"
    value_types = NUMERIC
    is_maximum = True
    sentence = Sentence("{value} is more than the maximum {allowed}", "Write at most {allowed}.")

    @staticmethod
    def allows(value: Any, argument: Any) -> bool:
        return bool(value <= argument)

    def is_no_further(self, value: Any, old: Any) -> bool:
        return bool(value <= old)


@dataclass(frozen=True, slots=True)
class Step:
    """The grid of a `step` rule: its distance and its anchor (`min`, else 0)."""

    distance: Any
    anchor: Any


class OnGrid(BoundRule):
    """Allows whole numbers of steps from the anchor, in exact arithmetic."""

    name = "step"
    argument = "number"
    meaning = "allowed values are min plus a multiple of it"
    value_types = NUMBERS
    sentence = Sentence(
        "{value} is not {allowed}", "Write {allowed}.", bare="{key} is not {allowed}"
    )

    @staticmethod
    def allows(value: Any, argument: Any) -> bool:
        return bool((value - argument.anchor) % argument.distance == 0)

    def complete(self, argument: Any, beside: Mapping[str, Any]) -> Any:
        return Step(argument, beside.get(Minimum.name, 0))

    def show(self, argument: Any, codec: Codec, *, secret: bool = False) -> str:
        return f"{codec.show(argument.anchor)} plus a multiple of {codec.show(argument.distance)}"


class Options(ValueRule):
    """Allows one of a set of values. Every element of a list must be in the set."""

    name = "options"
    form = "membership"
    argument = "options"
    meaning = "the set of allowed values"
    value_types = frozenset({"string", "array"})
    sentence = Sentence(
        "{value} is not in the list {allowed}",
        "Choose a value from the list.",
        bare="{key} is not in the list",
    )

    @staticmethod
    def allows(value: Any, argument: Any) -> bool:
        return value in argument

    @staticmethod
    def allows_each(value: Any, argument: Any) -> bool:
        """Whether every element of an array is one of the options."""
        return all(element in argument for element in value)

    def check_of(self, *, elements: bool) -> Holds:
        return self.allows_each if elements else self.allows

    def show(self, argument: Any, codec: Codec, *, secret: bool = False) -> str:
        if secret:
            return f"one of {len(argument)} listed values"
        try:
            known = sorted(argument)
        except TypeError:
            known = list(argument)
        shown = [e if isinstance(e, str) else codec.show(e) for e in known[:MOST_SHOWN]]
        more = f", and {len(known) - MOST_SHOWN} more" if len(known) > MOST_SHOWN else ""
        return ", ".join(shown) + more


class ComputedDefault(RuleType):
    """Computes the default from another field of the same pod."""

    name = "defaultFrom"
    form = "default-source"
    stage = DEFAULT
    argument = "source"
    meaning = "the default is another field times a factor"
    value_types = NUMERIC
