"""Checks policies of one scope for different values of the same leaf, if both can apply."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any, ClassVar

from webhook.documents.problem import Problem
from webhook.policy.body import resolve_level
from webhook.policy.checks.meeting import PolicySet
from webhook.policy.leaves import leaf_type
from webhook.policy.policy import EVERYWHERE, Entry, Policy
from webhook.policy.rules import TABLE as RULES
from webhook.policy.selector_overlap import Overlap, overlap


@dataclass(frozen=True, slots=True)
class Difference:
    """A value or rule that two policies set differently, and its entry in both."""

    what: str
    kind: str
    level: str
    leaf: str
    word: str = ""

    @property
    def entry(self) -> Entry:
        """The entry in the policies."""
        return (self.kind, self.level, self.leaf, self.word)


class Conflict:
    """Two policies of one scope that can both apply must agree on every leaf.

    The problem is reported for the newer policy: an error if both certainly apply, else a warning.
    """

    ids: ClassVar = {"conflict": "Two policies of one scope give one leaf different values."}
    severity = "error"

    def run(self, subject: PolicySet) -> Iterator[Problem]:
        groups: dict[tuple[str, str], list[Policy]] = {}
        for each in sorted(subject.policies, key=lambda one: (one.created, one.name, one.digest)):
            groups.setdefault((each.scope, each.namespace), []).append(each)
        for group in groups.values():
            for older, newer in combinations(group, 2):
                # A policy in warn mode may differ from the enforced ones.
                if is_not_enforced(older) != is_not_enforced(newer):
                    continue
                common = overlap(older, newer)
                if common is not Overlap.NONE:
                    for each_difference in find_differences(older, newer):
                        yield self.of(older, newer, each_difference, common)

    def of(self, older: Policy, newer: Policy, difference: Difference, common: Overlap) -> Problem:
        """Return the problem of one difference. It names both policies."""
        other, line, _ = older.position_of(difference.entry)
        where = f"{older.origin}:{line}" if line else older.origin
        found = (
            f"{difference.what}, which {older.source.label()} sets to another value "
            f"({where}, {other}) than {newer.source.label()}"
        )
        fix = "put it in one of them, or make their selectors disjoint"
        severity = "error" if common is Overlap.CERTAIN else "warning"
        return newer.problem(self, difference.entry, found, fix, severity=severity)


def is_not_enforced(policy: Policy) -> bool:
    """Whether a policy is in warn or audit mode."""
    return policy.enforcement != "Enforce"


def find_differences(one: Policy, other: Policy) -> Iterator[Difference]:
    """Return every leaf that two policies set differently, once each."""
    reported: set[tuple[str, str, str]] = set()
    for level in levels(one, other):
        for each in differences(one, other, level):
            if (each.kind, each.leaf, each.word) not in reported:
                reported.add((each.kind, each.leaf, each.word))
                yield each


def levels(*policies: Policy) -> list[str]:
    """Return EVERYWHERE and every level that one of the policies names."""
    named = {EVERYWHERE}
    for each in policies:
        named |= {*each.body.defaults, *each.body.items, *each.body.rules}
    return sorted(named)


def differences(one: Policy, other: Policy, level: str) -> Iterator[Difference]:
    """Return the differences at one level."""
    mine, theirs = (
        resolve_level(one.body.defaults, level),
        resolve_level(other.body.defaults, level),
    )
    for leaf in sorted(mine.keys() & theirs.keys()):
        if mine[leaf].value != theirs[leaf].value:
            yield Difference(f"the default of {leaf}", "default", level, leaf)
    yield from rule_differences(
        resolve_level(one.body.rules, level), resolve_level(other.body.rules, level), level
    )
    own, others = resolve_level(one.body.items, level), resolve_level(other.body.items, level)
    for leaf in sorted(own.keys() & others.keys()):
        known = {each.key: each for each in own[leaf]}
        for item in others[leaf]:
            if item.key in known and values_of(known[item.key]) != values_of(item):
                what = f"item {item.key} of {leaf}"
                yield Difference(what, "item", level, leaf, item.key)


def values_of(item: Any) -> dict[str, Any]:
    """Return the attributes of an item in comparable form."""
    own = {name: each.value for name, each in item.attributes.items()}
    return own if not item.excluded else {**own, "exclude": True}


def rule_differences(
    mine: Mapping[str, Mapping[str, Any]], theirs: Mapping[str, Mapping[str, Any]], level: str
) -> Iterator[Difference]:
    """Return the rules of one name that have different arguments."""
    for leaf in sorted(mine.keys() & theirs.keys()):
        for name in sorted(mine[leaf].keys() & theirs[leaf].keys()):
            if not RULES[name].adds_up and mine[leaf][name] != theirs[leaf][name]:
                what = f"{name} of {leaf_type(leaf).path}"
                yield Difference(what, "rule", level, leaf, name)
