"""Finds what contradicts itself within one policy, level by level, by properties of the tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from webhook.objects.path import Path
from webhook.policy import companions, rules
from webhook.policy.body import Draft, holding
from webhook.policy.checks import items as item_checks
from webhook.policy.checks import storage as storage_checks
from webhook.policy.default_from_cycles import cycles
from webhook.policy.leaves import LeafType, leaf_type
from webhook.policy.ordered_defaults import PAIRS, UNBOUNDED_AT_ZERO
from webhook.policy.policy import Default, DefaultFrom
from webhook.policy.rules import Step

NEVER_APPLY = ("canEdit", "min", "max", "step", "options")


class Levels:
    """One level of a draft with what holds there, and the problems told so far by place."""

    def __init__(self, draft: Draft) -> None:
        self.draft = draft
        self.told: set[tuple[str, Path]] = set()
        self.level = ""
        self.rules: Mapping[str, Mapping[str, Any]] = {}
        self.defaults: Mapping[str, Default] = {}

    def enter(self, level: str) -> None:
        """Look at another level."""
        self.level = level
        self.rules = holding(self.draft.rules, level)
        self.defaults = holding(self.draft.defaults, level)

    def at_rule(self, leaf: str, name: str) -> Path:
        """Where a rule stands that holds here."""
        return self.draft.place("rule", self.level, leaf, name)

    def error(self, path: Path, reason: str, found: str, fix: str) -> None:
        """Tell an error once per place."""
        if (reason, path) not in self.told:
            self.told.add((reason, path))
            self.draft.report.error(path, reason, found, fix)

    def warn(self, path: Path, reason: str, found: str, fix: str) -> None:
        """Tell a warning once per place."""
        if (reason, path) not in self.told:
            self.told.add((reason, path))
            self.draft.report.warn(path, reason, found, fix)


def check(draft: Draft) -> None:
    """Tell every contradiction of the draft."""
    here = Levels(draft)
    for level in draft.levels():
        here.enter(level)
        for leaf, arguments in here.rules.items():
            for one in RULE_CHECKS:
                one(here, leaf_type(leaf), arguments)
        for leaf, default in here.defaults.items():
            path = draft.place("default", level, leaf)
            check_default(here, leaf_type(leaf), default, path)
        check_pairs(here)
        check_cycles(here)
        companions.check(here)
        item_checks.check(here, broken)
        storage_checks.check(here)


def check_bounds(here: Levels, leaf: LeafType, arguments: Mapping[str, Any]) -> None:
    """No value is at least min and at most max when min is above max."""
    low, high = arguments.get("min"), arguments.get("max")
    if low is not None and high is not None and low > high:
        found = f"min {leaf.show(low)} above max {leaf.show(high)}"
        here.error(here.at_rule(leaf.path, "min"), "min-above-max", found, "lower min or raise max")


def check_required(here: Levels, leaf: LeafType, arguments: Mapping[str, Any]) -> None:
    """A value that must exist and may not be given needs a default."""
    named = [name for name in ("blocked", "canEdit") if rules.prohibits(name, arguments.get(name))]
    if arguments.get("required") is not True or not named:
        return
    if "defaultFrom" in arguments or supplied(here, leaf):
        return
    found = f"required beside {named[0]} without default"
    fix = f"give a default, or remove required or {named[0]}"
    here.error(here.at_rule(leaf.path, "required"), "impossible-required", found, fix)


def supplied(here: Levels, leaf: LeafType) -> bool:
    """Whether a default, or an item for its attribute, gives a value that counts."""
    given = here.defaults.get(leaf.path)
    if given is None and here.draft.place("default", here.level, leaf.path):
        return True  # it is there and faulty, which has been told
    if given is not None and given.value not in ("", (), frozenset()):
        return True
    name = leaf.path.removeprefix(f"{leaf.row.path}.")
    items = holding(here.draft.items, here.level).get(leaf.row.path, ())
    return any(not leaf.is_attribute or name in item.attributes for item in items)


def check_blocked(here: Levels, leaf: LeafType, arguments: Mapping[str, Any]) -> None:
    """Beside blocked, other rules have nothing to judge unless there is a default."""
    beside = [name for name in NEVER_APPLY if name in arguments]
    if arguments.get("blocked") is not True or not beside or leaf.path in here.defaults:
        return
    fix = f"remove blocked, or remove {', '.join(beside)}"
    found = f"blocked beside {', '.join(beside)}"
    here.warn(here.at_rule(leaf.path, "blocked"), "blocked-beside-rules", found, fix)


def check_grid(here: Levels, leaf: LeafType, arguments: Mapping[str, Any]) -> None:
    """A max that no step reaches caps lower than it says."""
    step, high = arguments.get("step"), arguments.get("max")
    if not isinstance(step, Step) or high is None or high < step.anchor:
        return
    beyond = (high - step.anchor) % step.distance
    if beyond:
        found = f"max {leaf.show(high)} between two steps"
        fix = f"write {leaf.show(high - beyond)} or {leaf.show(high - beyond + step.distance)}"
        here.warn(here.at_rule(leaf.path, "max"), "max-off-grid", found, fix)


RULE_CHECKS: tuple[Callable[[Levels, LeafType, Mapping[str, Any]], None], ...] = (
    check_bounds,
    check_required,
    check_blocked,
    check_grid,
)


def broken(leaf: LeafType, value: Any, arguments: Mapping[str, Any]) -> list[str]:
    """The rules that a value breaks, each with what it allows, in words."""
    low, high = arguments.get("min"), arguments.get("max")
    impossible = low is not None and high is not None and low > high
    found: list[str] = []
    for name, argument in arguments.items():
        holds = rules.TABLE[name].holds
        if holds is None or (impossible and name in ("min", "max", "step")):
            continue
        if name == "options" and leaf.is_array:
            holds = rules.each_in_options
        unbounded = name == "max" and value == 0 and leaf.path in UNBOUNDED_AT_ZERO
        if unbounded or not holds(value, argument):
            found.append(f"{name} {allowed(leaf, name, argument)}")
    return found


def allowed(leaf: LeafType, name: str, argument: Any) -> str:
    """The argument of a rule for people."""
    if isinstance(argument, Step):
        return f"{leaf.show(argument.distance)} from {leaf.show(argument.anchor)}"
    if name != "options":
        return leaf.show(argument)
    if leaf.is_array and not leaf.secret:
        return ", ".join(sorted(map(str, argument)))
    return ", ".join(sorted(leaf.show(each) for each in argument))


def check_default(here: Levels, leaf: LeafType, default: Default, path: Path) -> None:
    """A default that breaks a rule makes every workload without own value fail."""
    faults = broken(leaf, default.value, here.rules.get(leaf.path, {}))
    if faults:
        found = f"default {leaf.show(default.value)}"
        fix = f"keep to {' and '.join(faults)}, or change the rule"
        here.error(path, "default-outside-rules", found, fix)
    item_checks.check_nature(here, leaf, default.value, path)


def check_pairs(here: Levels) -> None:
    """A request must not default above its limit, nor a minimum above its maximum."""
    for pair in PAIRS:
        low, high = here.defaults.get(pair.low), here.defaults.get(pair.high)
        if low is None or high is None or low.value <= high.value:
            continue
        if high.value == 0 and pair.high in UNBOUNDED_AT_ZERO:
            continue
        show = leaf_type(pair.low).show
        found = f"{pair.low} {show(low.value)} above {pair.high} {show(high.value)}"
        path = here.draft.place("default", here.level, pair.low)
        here.error(path, pair.reason, found, f"lower it, or raise {pair.high}")


def check_cycles(here: Levels) -> None:
    """Computed defaults must not wait for one another."""
    sources = {
        leaf: arguments["defaultFrom"].field
        for leaf, arguments in here.rules.items()
        if isinstance(arguments.get("defaultFrom"), DefaultFrom)
    }
    for circle in cycles(sources):
        found = " from ".join((*circle, circle[0]))
        path = here.at_rule(circle[0], "defaultFrom")
        here.error(path, "default-from-cycle", found, "break the circle at one of its fields")
