"""Checks of default values: against their rules, their field, and one another."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from webhook.documents.problem import Problem
from webhook.policy import object_names, ranges, rules
from webhook.policy.checks.level import Level
from webhook.policy.leaves import LeafType, leaf_type
from webhook.policy.ordered_defaults import PAIRS, UNBOUNDED_AT_ZERO
from webhook.policy.policy import DefaultFrom
from webhook.policy.reasons import REASONS
from webhook.policy.rules.requirements import Step


class DefaultOutsideRules:
    """A default must not break a rule: every workload without a value of its own would fail."""

    ids: ClassVar = {"default-outside-rules": "The default breaks a rule of the same document."}
    severity = "error"

    def run(self, level: Level) -> Iterator[Problem]:
        for leaf, value, path, found in level.values():
            faults = broken(leaf, value, level.rules.get(leaf.path, {}))
            if faults:
                fix = f"keep to {' and '.join(faults)}, or change the rule"
                yield level.problem(self, path, found, fix)


def broken(leaf: LeafType, value: Any, arguments: Mapping[str, Any]) -> list[str]:
    """Return the rules that a value breaks, each with what it allows, as text."""
    low, high = arguments.get("min"), arguments.get("max")
    impossible = low is not None and high is not None and low > high
    found: list[str] = []
    for name, argument in arguments.items():
        rule = rules.TABLE[name]
        holds = rule.check_of(elements=leaf.is_array)
        if holds is None or (impossible and rule.form == "bound"):
            continue
        unbounded = rule.is_maximum and value == 0 and leaf.path in UNBOUNDED_AT_ZERO
        if unbounded or not holds(value, argument):
            found.append(f"{name} {allowed(leaf, argument)}")
    return found


def allowed(leaf: LeafType, argument: Any) -> str:
    """Show the argument of a rule in a message."""
    if isinstance(argument, Step):
        return f"{leaf.show(argument.distance)} from {leaf.show(argument.anchor)}"
    if not isinstance(argument, frozenset):
        return leaf.show(argument)
    if leaf.is_array and not leaf.secret:
        return ", ".join(sorted(map(str, argument)))
    return ", ".join(sorted(leaf.show(each) for each in argument))


class ValueOutOfRange:
    """A number must be in the range of its field, whatever the rules."""

    ids: ClassVar = {
        "value-out-of-range": "The number is outside the range that the field can have at all."
    }
    severity = "error"

    def run(self, level: Level) -> Iterator[Problem]:
        for leaf, value, path, _ in level.values():
            wanted = ranges.fault(leaf, value)
            if wanted:
                yield level.problem(self, path, leaf.show(value), f"write {wanted}")


class BadName:
    """The name of an object must be a valid Kubernetes name."""

    ids: ClassVar = {"bad-name": REASONS["bad-name"]}
    severity = "error"

    def run(self, level: Level) -> Iterator[Problem]:
        for leaf, value, path, _ in level.values():
            if object_names.fault(leaf.path, value):
                fix = f"write {object_names.WANTED}"
                yield level.problem(self, path, leaf.show(value), fix)


class DefaultsOutOfOrder:
    """A default request must not exceed its limit, nor a default minimum its maximum."""

    ids: ClassVar = {
        "request-above-limit": "The default request is above the default limit.",
        "min-default-above-max-default": "The default minimum is above the default maximum.",
    }
    severity = "error"

    def run(self, level: Level) -> Iterator[Problem]:
        for pair in PAIRS:
            low, high = level.defaults.get(pair.low), level.defaults.get(pair.high)
            if low is None or high is None or low.value <= high.value:
                continue
            if high.value == 0 and pair.high in UNBOUNDED_AT_ZERO:
                continue
            show = leaf_type(pair.low).show
            found = f"{pair.low} {show(low.value)} above {pair.high} {show(high.value)}"
            path, fix = level.at_default(pair.low), f"lower it, or raise {pair.high}"
            yield level.problem(self, path, found, fix, pair.reason)


class DefaultFromCycle:
    """Computed defaults must not depend on one another in a cycle."""

    ids: ClassVar = {"default-from-cycle": "Defaults are computed from one another in a circle."}
    severity = "error"

    def run(self, level: Level) -> Iterator[Problem]:
        sources = {
            leaf: arguments["defaultFrom"].field
            for leaf, arguments in level.rules.items()
            if isinstance(arguments.get("defaultFrom"), DefaultFrom)
        }
        for cycle in find_cycles(sources):
            found = " from ".join((*cycle, cycle[0]))
            path = level.at_rule(cycle[0], "defaultFrom")
            fix = "break the circle at one of its fields"
            yield level.problem(self, path, found, fix)


def find_cycles(sources: Mapping[str, str]) -> list[tuple[str, ...]]:
    """Return each cycle in a mapping of leaf to source leaf once, starting at its first name."""
    found: list[tuple[str, ...]] = []
    done: set[str] = set()
    for start in sorted(sources):
        trail: list[str] = []
        leaf = start
        while leaf in sources and leaf not in done:
            done.add(leaf)
            trail.append(leaf)
            leaf = sources[leaf]
        if leaf in trail:
            cycle = trail[trail.index(leaf) :]
            first = cycle.index(min(cycle))
            found.append((*cycle[first:], *cycle[:first]))
    return found
