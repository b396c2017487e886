"""Merges the effective policies of components into one for the whole workload."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from webhook.policy.combine import Constraint, Effective, Leaf


def merge_leaf(path: str, effectives: Sequence[Effective]) -> Leaf | None:
    """Merge a leaf: the rules of all components, and the default of the last one (the workers)."""
    leaves = [each[path] for each in effectives if path in each]
    if not leaves:
        return None
    default = next((leaf.default for leaf in reversed(leaves) if leaf.default is not None), None)
    items = next((leaf.items for leaf in reversed(leaves) if leaf.items), ())
    return Leaf(path, unique(leaves), default, items)


def unique(leaves: Iterable[Leaf]) -> tuple[Constraint, ...]:
    """Return the constraints of several leaves, without repetitions of one policy."""
    found: list[Constraint] = []
    for leaf in leaves:
        for each in leaf.constraints:
            known = any(
                each.type is other.type
                and each.argument == other.argument
                and each.policy is other.policy
                for other in found
            )
            if not known:
                found.append(each)
    return tuple(found)
