"""Checks of the rules of one field against one another."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from webhook.documents.problem import Problem
from webhook.policy import ranges, rules
from webhook.policy.body import resolve_level
from webhook.policy.checks.level import Level
from webhook.policy.leaves import LeafType, leaf_type
from webhook.policy.rules.requirements import Step

NEVER_APPLY = ("canEdit", "min", "max", "step", "options")


class MinimumAboveMaximum:
    """A min above the max allows no value."""

    ids: ClassVar = {"min-above-max": "No value is at once as large as min and as small as max."}
    severity = "error"

    def run(self, level: Level) -> Iterator[Problem]:
        for path, arguments in level.rules.items():
            low, high = arguments.get("min"), arguments.get("max")
            if low is None or high is None or low <= high:
                continue
            show = leaf_type(path).show
            found = f"min {show(low)} above max {show(high)}"
            yield level.problem(self, level.at_rule(path, "min"), found, "lower min or raise max")


class BoundBeyondRange:
    """A bound lies among the values that the field can have."""

    ids: ClassVar = {
        "bound-beyond-range": "The field has no value as low or as high as the bound: the rule"
        " rejects every value, or none."
    }
    # Not an error: a policy in force with such a bound must not stop being in force.
    severity = "warning"

    def run(self, level: Level) -> Iterator[Problem]:
        for path, arguments in level.rules.items():
            leaf = leaf_type(path)
            for name in ("min", "max"):
                bound = arguments.get(name)
                if bound is None or not (wanted := ranges.bound_beyond(leaf, bound)):
                    continue
                rejects_all = (bound < 0) == (name == "max")
                effect = "rejects every value" if rejects_all else "has no effect"
                found = f"{name} {leaf.show(bound)}, which {effect}"
                fix = f"write {wanted}, or remove {name}"
                yield level.problem(self, level.at_rule(path, name), found, fix)


class ImpossibleRequired:
    """A value that is required but cannot be set needs a default."""

    ids: ClassVar = {
        "impossible-required": "A value is required, none may be given, and there is no default."
    }
    severity = "error"

    def run(self, level: Level) -> Iterator[Problem]:
        for path, arguments in level.rules.items():
            named = [
                name
                for name in ("blocked", "canEdit")
                if rules.TABLE[name].prohibits(arguments.get(name))
            ]
            if arguments.get("required") is not True or not named or "defaultFrom" in arguments:
                continue
            if not is_supplied(level, leaf_type(path)):
                found = f"required beside {named[0]} without default"
                fix = f"give a default, or remove required or {named[0]}"
                yield level.problem(self, level.at_rule(path, "required"), found, fix)


def is_supplied(level: Level, leaf: LeafType) -> bool:
    """Whether a default, or an item's attribute, supplies a value that is not empty."""
    given = level.defaults.get(leaf.path)
    if given is None and level.at_default(leaf.path):
        return True  # the default is invalid, which has been reported
    if given is not None and given.value not in ("", (), frozenset()):
        return True
    name = leaf.path.removeprefix(f"{leaf.row.path}.")
    items = resolve_level(level.draft.items, level.level).get(leaf.row.path, ())
    return any(not leaf.is_attribute or name in item.attributes for item in items)


class BlockedBesideRules:
    """With `blocked`, other rules have nothing to evaluate unless there is a default."""

    ids: ClassVar = {"blocked-beside-rules": "Other rules beside blocked never apply."}
    severity = "warning"

    def run(self, level: Level) -> Iterator[Problem]:
        for path, arguments in level.rules.items():
            beside = ", ".join(name for name in NEVER_APPLY if name in arguments)
            if arguments.get("blocked") is True and beside and path not in level.defaults:
                at, fix = level.at_rule(path, "blocked"), f"remove blocked, or remove {beside}"
                yield level.problem(self, at, f"blocked beside {beside}", fix)


class MaximumOffGrid:
    """A max between two steps has the effect of the lower step."""

    ids: ClassVar = {
        "max-off-grid": "The largest value is no step, so the last step below it is the cap."
    }
    severity = "warning"

    def run(self, level: Level) -> Iterator[Problem]:
        for path, arguments in level.rules.items():
            step, high = arguments.get("step"), arguments.get("max")
            if not isinstance(step, Step) or high is None or high < step.anchor:
                continue
            beyond, show = (high - step.anchor) % step.distance, leaf_type(path).show
            if beyond:
                found = f"max {show(high)} between two steps"
                fix = f"write {show(high - beyond)} or {show(high - beyond + step.distance)}"
                yield level.problem(self, level.at_rule(path, "max"), found, fix)
