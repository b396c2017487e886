"""TABLE of rule types: what each means, when it is judged, and whether it is a prohibition."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

INTENT = "intent"
FINAL = "final"
DEFAULT = "default"


@dataclass(frozen=True, slots=True)
class RuleType:
    """One row: `holds(value, argument)` for rules that look at one value, `argument` its form.

    Forms of argument: `boolean`; `value` (one value of the field's type); `number` (exact, of the
    field's unit); `options` (a set); `keys` (item keys); `source` (another field and a factor).
    """

    name: str
    stage: str
    argument: str
    meaning: str
    holds: Callable[[Any, Any], bool] | None = None
    prohibits: Callable[[Any], bool] = lambda argument: False


@dataclass(frozen=True, slots=True)
class Step:
    """The grid of a `step` rule: its distance and where it is anchored (`min`, else 0)."""

    distance: Any
    anchor: Any


def in_options(value: Any, allowed: Any) -> bool:
    """The value is one of the options."""
    return value in allowed


def each_in_options(value: Any, allowed: Any) -> bool:
    """Every element of an array is one of the options."""
    return all(element in allowed for element in value)


def on_grid(value: Any, step: Any) -> bool:
    """The value lies a whole number of steps from the anchor, in exact arithmetic."""
    return bool((value - step.anchor) % step.distance == 0)


TABLE: dict[str, RuleType] = {
    row.name: row
    for row in (
        RuleType(
            "canEdit",
            INTENT,
            "boolean",
            "false: a user's value must equal the default; without a default no value may be given",
            prohibits=lambda argument: argument is False,
        ),
        RuleType(
            "blocked",
            INTENT,
            "boolean",
            "true: no value may be given at all, the default's repetition included",
            prohibits=lambda argument: argument is True,
        ),
        RuleType(
            "canAdd",
            INTENT,
            "boolean",
            "false: only items whose key is among the default or imposed items",
            prohibits=lambda argument: argument is False,
        ),
        RuleType(
            "locked",
            INTENT,
            "keys",
            "the named items must be present and unchanged",
            prohibits=bool,
        ),
        RuleType("required", FINAL, "boolean", "true: a value must exist after defaulting"),
        RuleType("min", FINAL, "value", "the smallest allowed value", lambda v, a: bool(v >= a)),
        RuleType("max", FINAL, "value", "the largest allowed value", lambda v, a: bool(v <= a)),
        RuleType("step", FINAL, "number", "allowed values are min plus a multiple of it", on_grid),
        RuleType("options", FINAL, "options", "the set of allowed values", in_options),
        RuleType("defaultFrom", DEFAULT, "source", "the default is another field times a factor"),
    )
}


def prohibits(rule: str, argument: Any) -> bool:
    """Whether this rule with this argument forbids editing, adding or setting anything."""
    return TABLE[rule].prohibits(argument)


def restricts(arguments: Mapping[str, Any]) -> bool:
    """Whether a rules object can refuse anything."""
    return any(
        prohibits(name, argument) or (TABLE[name].stage == FINAL and argument is not False)
        for name, argument in arguments.items()
    )
