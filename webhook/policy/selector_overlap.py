"""Tells whether the reaches of two policies can, or surely do, have something in common."""

from __future__ import annotations

from enum import IntEnum

from webhook.policy.policy import Policy
from webhook.policy.selectors import NAME_LABEL, disjoint, implies


class Overlap(IntEnum):
    """Whether some workload is governed by both."""

    NONE = 0
    POSSIBLE = 1
    CERTAIN = 2


def overlap(one: Policy, other: Policy) -> Overlap:
    """The common reach of two policies, over namespaces and kinds."""
    kinds = of_kinds(one, other)
    return kinds if kinds is Overlap.NONE else min(kinds, of_namespaces(one, other))


def of_kinds(one: Policy, other: Policy) -> Overlap:
    """Common kinds; whether a kind belongs to a workload type is not known here."""
    if one.kinds is not None and other.kinds is not None:
        return Overlap.CERTAIN if one.kinds & other.kinds else Overlap.NONE
    if one.workload_types is not None and other.workload_types is not None:
        return Overlap.CERTAIN if one.workload_types & other.workload_types else Overlap.NONE
    limited = [each for each in (one, other) if each.kinds or each.workload_types]
    return Overlap.POSSIBLE if len(limited) > 1 else Overlap.CERTAIN


def of_namespaces(one: Policy, other: Policy) -> Overlap:
    """Common namespaces, by name where both say one, else by their selectors."""
    if one.namespace and other.namespace:
        return Overlap.CERTAIN if one.namespace == other.namespace else Overlap.NONE
    if one.namespace or other.namespace:
        inner, outer = (one, other) if one.namespace else (other, one)
        return reaches(outer, inner.namespace)
    if disjoint(one.namespace_selector, other.namespace_selector):
        return Overlap.NONE
    nested = implies(one.namespace_selector, other.namespace_selector) or implies(
        other.namespace_selector, one.namespace_selector
    )
    return Overlap.CERTAIN if nested else Overlap.POSSIBLE


def reaches(policy: Policy, namespace: str) -> Overlap:
    """Whether a policy governs the namespace of that name, whose other labels are not known."""
    if (policy.namespace and policy.namespace != namespace) or (
        namespace in policy.exclude_namespaces
    ):
        return Overlap.NONE
    selector = policy.namespace_selector
    if selector is None:
        return Overlap.CERTAIN
    if selects_by_name(policy):
        matches = selector.matches({NAME_LABEL: namespace})
        return Overlap.CERTAIN if matches else Overlap.NONE
    return Overlap.POSSIBLE


def selects_by_name(policy: Policy) -> bool:
    """Whether names alone tell which namespaces a policy governs."""
    selector = policy.namespace_selector
    return selector is None or all(key == NAME_LABEL for key, _, _ in selector.requirements)
