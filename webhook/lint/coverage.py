"""Tells of kinds that a guarding policy leaves out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from webhook.documents.problem import Problem
from webhook.lint.kinds import Unit, World
from webhook.policy.checks.policy_set import problem
from webhook.policy.policy import EVERYWHERE, Policy, component_level, role_level
from webhook.policy.rules import restricts
from webhook.policy.selector_overlap import Overlap, reaches
from webhook.policy.selectors import implies
from webhook.policy.table import TABLE

GUARDING = frozenset({"compute", "security", "scheduling", "total"})
IMAGE = "image"
MOST_NAMED = 6


def uncovered_kinds(world: World, policy: Policy) -> Iterator[Problem]:
    """Rules that guard a cluster, and the kinds where nobody says them."""
    for leaf, level in guarding_leaves(policy):
        others = [each for each in world.policies if each is policy or includes(each, policy)]
        missed = [
            unit
            for kind in world.kinds
            if kind.carries(TABLE.owner(leaf))
            for unit in kind.units()
            if not any(covers(each, leaf, unit) for each in others)
        ]
        if missed:
            name = next(iter(policy.body.rules[level][leaf]))
            found = f"a rule on {leaf} that leaves out {named_units(world, missed)}"
            fix = "users can choose one of these instead: write the rule for them too"
            yield problem(policy, ("rule", level, leaf, name), "kinds-not-covered", found, fix)


def guarding_leaves(policy: Policy) -> list[tuple[str, str]]:
    """Leaves of amounts, safety and images that a policy has rules for, each with one level."""
    found: dict[str, str] = {}
    for level, leaves in policy.body.rules.items():
        for leaf, arguments in leaves.items():
            row = TABLE.owner(leaf)
            if (row.section in GUARDING or row.path == IMAGE) and restricts(arguments):
                found.setdefault(leaf, level)
    return sorted(found.items())


def includes(wide: Policy, narrow: Policy) -> bool:
    """Whether one policy holds wherever the other does, as firmly."""
    if wide.enforcement != "Enforce" and narrow.enforcement == "Enforce":
        return False
    if wide.namespace:
        return wide.namespace == narrow.namespace
    if narrow.namespace:
        return reaches(wide, narrow.namespace) is Overlap.CERTAIN
    if not wide.exclude_namespaces <= narrow.exclude_namespaces:
        return False
    return implies(narrow.namespace_selector, wide.namespace_selector)


def covers(policy: Policy, leaf: str, unit: Unit) -> bool:
    """Whether a policy has rules for the leaf of this component."""
    kind, component, role = unit
    if not policy.governs_kind(kind.group, kind.name, kind.workload_type):
        return False
    said = (EVERYWHERE, role_level(role), component_level(component))
    return any(restricts(policy.body.rules.get(level, {}).get(leaf, {})) for level in said)


def named_units(world: World, missed: Sequence[Unit]) -> str:
    """What is left out, for people: whole types, then kinds, then roles of kinds."""
    units = set(missed)
    whole = [kind for kind in world.kinds if all(unit in units for unit in kind.units())]
    types = sorted({kind.workload_type for kind in whole if kind.workload_type})
    full = [
        name
        for name in types
        if all(kind in whole for kind in world.kinds if kind.workload_type == name)
    ]
    words = [f"all of {', '.join(full)}"] if full else []
    rest = [kind.label for kind in whole if kind.workload_type not in full]
    words += [listed(rest)] if rest else []
    parts: dict[str, set[str]] = {}
    for kind, _, role in missed:
        if kind not in whole:
            parts.setdefault(role, set()).add(kind.label)
    words += [f"the {role} of {listed(sorted(kinds))}" for role, kinds in sorted(parts.items())]
    return "; ".join(words)


def listed(names: Sequence[str]) -> str:
    """A few names, and how many more."""
    more = len(names) - MOST_NAMED
    shown = ", ".join(names[:MOST_NAMED])
    return f"{shown} and {more} more" if more > 0 else shown
