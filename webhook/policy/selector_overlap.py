"""Compares the selectors of two policies: whether they can, or certainly do, overlap."""

from __future__ import annotations

from enum import IntEnum

from webhook.policy.policy import Policy
from webhook.policy.selectors import NAME_LABEL, disjoint, implies


class Overlap(IntEnum):
    """Whether both policies apply to some workload."""

    NONE = 0
    POSSIBLE = 1
    CERTAIN = 2


def overlap(one: Policy, other: Policy) -> Overlap:
    """Compare two policies by namespaces and kinds."""
    kinds = overlap_of_kinds(one, other)
    return kinds if kinds is Overlap.NONE else min(kinds, overlap_of_namespaces(one, other))


def overlap_of_kinds(one: Policy, other: Policy) -> Overlap:
    """Compare the kinds of two policies. The workload type of a kind is not known here."""
    if one.kinds is not None and other.kinds is not None:
        return Overlap.CERTAIN if one.kinds & other.kinds else Overlap.NONE
    if one.workload_types is not None and other.workload_types is not None:
        return Overlap.CERTAIN if one.workload_types & other.workload_types else Overlap.NONE
    limited = [each for each in (one, other) if each.kinds or each.workload_types]
    return Overlap.POSSIBLE if len(limited) > 1 else Overlap.CERTAIN


def overlap_of_namespaces(one: Policy, other: Policy) -> Overlap:
    """Compare the namespaces of two policies, by name if both have one, else by selector."""
    if one.namespace and other.namespace:
        return Overlap.CERTAIN if one.namespace == other.namespace else Overlap.NONE
    if one.namespace or other.namespace:
        inner, outer = (one, other) if one.namespace else (other, one)
        return overlap_with_namespace(outer, inner.namespace)
    if disjoint(one.namespace_selector, other.namespace_selector):
        return Overlap.NONE
    nested = implies(one.namespace_selector, other.namespace_selector) or implies(
        other.namespace_selector, one.namespace_selector
    )
    return Overlap.CERTAIN if nested else Overlap.POSSIBLE


def overlap_with_namespace(policy: Policy, namespace: str) -> Overlap:
    """Whether a policy governs the namespace with this name. Its other labels are not known."""
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
    """Whether a policy selects its namespaces by name only."""
    selector = policy.namespace_selector
    return selector is None or all(key == NAME_LABEL for key, _, _ in selector.requirements)
