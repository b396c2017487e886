"""Checks that rules of the cluster cover all kinds that users can choose."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

from webhook.documents.problem import Problem
from webhook.lint.kinds import LintContext, PolicyInContext, Unit
from webhook.policy.policy import EVERYWHERE, Policy, component_level, role_level
from webhook.policy.rules import restricts
from webhook.policy.selector_overlap import Overlap, overlap_with_namespace
from webhook.policy.selectors import implies
from webhook.policy.table import TABLE

GUARDING = frozenset({"compute", "devices", "security", "scheduling", "total"})
IMAGE = "image"
MOST_NAMED = 6


class KindsNotCovered:
    """Rules on amounts, safety and images must cover every kind that users can choose instead."""

    ids: ClassVar = {
        "kinds-not-covered": "Users can choose another kind or type, which the rule does not cover.",
    }
    severity = "warning"

    def run(self, subject: PolicyInContext) -> Iterator[Problem]:
        context, policy = subject
        governed = context.kinds_in_scope(policy)
        for leaf, level in guarding_leaves(policy):
            if not any(kind.carries(TABLE.owner(leaf)) for kind in governed):
                continue  # the rule has no effect at all, which another check reports
            others = [each for each in context.policies if each is policy or includes(each, policy)]
            missed = [
                unit
                for kind in context.kinds
                if kind.carries(TABLE.owner(leaf))
                for unit in kind.units()
                if not any(covers(each, leaf, unit) for each in others)
            ]
            if missed:
                name = next(iter(policy.body.rules[level][leaf]))
                found = f"a rule on {leaf} that leaves out {named_units(context, missed)}"
                fix = "users can choose one of these instead: write the rule for them too"
                yield policy.problem(self, ("rule", level, leaf, name), found, fix)


def guarding_leaves(policy: Policy) -> list[tuple[str, str]]:
    """Return leaves of amounts, safety and images that a policy restricts, each with one level."""
    found: dict[str, str] = {}
    for level, leaves in policy.body.rules.items():
        for leaf, arguments in leaves.items():
            row = TABLE.owner(leaf)
            if (row.section in GUARDING or row.path == IMAGE) and restricts(arguments):
                found.setdefault(leaf, level)
    return sorted(found.items())


def includes(wide: Policy, narrow: Policy) -> bool:
    """Whether one policy applies wherever the other does, with at least the same enforcement."""
    if wide.enforcement != "Enforce" and narrow.enforcement == "Enforce":
        return False
    if wide.namespace:
        return wide.namespace == narrow.namespace
    if narrow.namespace:
        return overlap_with_namespace(wide, narrow.namespace) is Overlap.CERTAIN
    if not wide.exclude_namespaces <= narrow.exclude_namespaces:
        return False
    return implies(narrow.namespace_selector, wide.namespace_selector)


def covers(policy: Policy, leaf: str, unit: Unit) -> bool:
    """Whether a policy has rules for the leaf of this component."""
    kind, component, role = unit
    if not policy.governs_kind(kind.group, kind.name, kind.workload_type):
        return False
    levels = (EVERYWHERE, role_level(role), component_level(component))
    return any(restricts(policy.body.rules.get(level, {}).get(leaf, {})) for level in levels)


def named_units(context: LintContext, missed: Sequence[Unit]) -> str:
    """Show what is not covered: whole types, then kinds, then roles of kinds."""
    units = set(missed)
    whole = [kind for kind in context.kinds if all(unit in units for unit in kind.units())]
    types = sorted({kind.workload_type for kind in whole if kind.workload_type})
    full = [
        name
        for name in types
        if all(kind in whole for kind in context.kinds if kind.workload_type == name)
    ]
    words = [f"all of {', '.join(full)}"] if full else []
    rest = [kind.label for kind in whole if kind.workload_type not in full]
    words += [list_names(rest)] if rest else []
    parts: dict[str, set[str]] = {}
    for kind, _, role in missed:
        if kind not in whole:
            parts.setdefault(role, set()).add(kind.label)
    words += [f"the {role} of {list_names(sorted(kinds))}" for role, kinds in sorted(parts.items())]
    return "; ".join(words)


def list_names(names: Sequence[str]) -> str:
    """Show a few names, and how many more there are."""
    more = len(names) - MOST_NAMED
    shown = ", ".join(names[:MOST_NAMED])
    return f"{shown} and {more} more" if more > 0 else shown
