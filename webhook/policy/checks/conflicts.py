"""Finds policies of one scope that say different things about the same leaf for a common reach."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from webhook.documents.problem import Problem
from webhook.policy.body import holding
from webhook.policy.leaves import leaf_type
from webhook.policy.policy import EVERYWHERE, Place, Policy
from webhook.policy.selector_overlap import Overlap, overlap

UNITED = frozenset({"locked"})
"""Rules whose arguments add up, so that different ones are no conflict."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing that two policies say differently, and where each of them says it."""

    what: str
    kind: str
    level: str
    leaf: str
    word: str = ""

    @property
    def place(self) -> Place:
        """The place in the policy that says it."""
        return (self.kind, self.level, self.leaf, self.word)


def conflicts(policies: Sequence[Policy]) -> list[Problem]:
    """An error on the later of two policies for each leaf; a warning where it may not matter."""
    found: list[Problem] = []
    groups: dict[tuple[str, str], list[Policy]] = {}
    for each in sorted(policies, key=lambda one: (one.created, one.name, one.digest)):
        groups.setdefault((each.scope, each.namespace), []).append(each)
    for group in groups.values():
        for older, newer in combinations(group, 2):
            # A trial is there to say something else than what is in force.
            if is_trial(older) != is_trial(newer):
                continue
            common = overlap(older, newer)
            if common is not Overlap.NONE:
                found += [tell(older, newer, each, common) for each in unlike(older, newer)]
    return found


def is_trial(policy: Policy) -> bool:
    """Whether a policy decides nothing yet."""
    return policy.enforcement != "Enforce"


def tell(older: Policy, newer: Policy, difference: Difference, common: Overlap) -> Problem:
    """The problem of one difference, on the later policy, naming both."""
    certain = common is Overlap.CERTAIN
    path, line, column = place_in(newer, difference.place)
    other, other_line, _ = place_in(older, difference.place)
    where = f"{older.origin}:{other_line}" if other_line else older.origin
    found = (
        f"{difference.what}, which {older.source.label()} sets to another value "
        f"({where}, {other}) than {newer.source.label()}"
    )
    fix = "put it in one of them, or make their selectors disjoint"
    severity = "error" if certain else "warning"
    return Problem(newer.origin, path, found, fix, "conflict", line, column, severity)


def place_in(policy: Policy, place: Place) -> tuple[str, int, int]:
    """Where a policy says something, at that level or outside all levels."""
    kind, level, leaf, word = place
    for each in (level, EVERYWHERE):
        if (kind, each, leaf, word) in policy.places:
            return policy.places[kind, each, leaf, word]
    return (leaf, 0, 0)


def unlike(one: Policy, other: Policy) -> Iterator[Difference]:
    """Every leaf about which two policies say different things, once each."""
    told: set[tuple[str, str, str]] = set()
    for level in levels(one, other):
        for each in differences(one, other, level):
            if (each.kind, each.leaf, each.word) not in told:
                told.add((each.kind, each.leaf, each.word))
                yield each


def levels(*policies: Policy) -> list[str]:
    """Everywhere and every level that one of the policies names."""
    named = {EVERYWHERE}
    for each in policies:
        named |= {*each.body.defaults, *each.body.items, *each.body.rules}
    return sorted(named)


def differences(one: Policy, other: Policy, level: str) -> Iterator[Difference]:
    """The differences at one level."""
    mine, theirs = holding(one.body.defaults, level), holding(other.body.defaults, level)
    for leaf in sorted(mine.keys() & theirs.keys()):
        if mine[leaf].value != theirs[leaf].value:
            yield Difference(f"the default of {leaf}", "default", level, leaf)
    yield from rule_differences(
        holding(one.body.rules, level), holding(other.body.rules, level), level
    )
    own, others = holding(one.body.items, level), holding(other.body.items, level)
    for leaf in sorted(own.keys() & others.keys()):
        known = {each.key: each for each in own[leaf]}
        for item in others[leaf]:
            if item.key in known and values_of(known[item.key]) != values_of(item):
                what = f"item {item.key} of {leaf}"
                yield Difference(what, "item", level, leaf, item.key)


def values_of(item: Any) -> dict[str, Any]:
    """The comparable attributes of an item."""
    own = {name: each.value for name, each in item.attributes.items()}
    return own if not item.excluded else {**own, "exclude": True}


def rule_differences(
    mine: Mapping[str, Mapping[str, Any]], theirs: Mapping[str, Mapping[str, Any]], level: str
) -> Iterator[Difference]:
    """Rules of one name with different arguments."""
    for leaf in sorted(mine.keys() & theirs.keys()):
        for name in sorted((mine[leaf].keys() & theirs[leaf].keys()) - UNITED):
            if mine[leaf][name] != theirs[leaf][name]:
                what = f"{name} of {leaf_type(leaf).path}"
                yield Difference(what, "rule", level, leaf, name)
