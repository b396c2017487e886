"""One leaf for the whole workload, of what is said of its components."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from webhook.policy.combine import Constraint, Effective, Leaf
from webhook.policy.row import Field


def united_attributes(row: Field, effectives: Sequence[Effective]) -> dict[str, Leaf]:
    """The leaves of an itemized field's attributes for the whole workload, by attribute name."""
    assert row.items is not None
    found = {
        each.name: united(f"{row.path}.{each.name}", effectives) for each in row.items.attributes
    }
    return {name: leaf for name, leaf in found.items() if leaf is not None}


def united(path: str, effectives: Sequence[Effective]) -> Leaf | None:
    """One leaf for the whole workload: all components' rules, the last (worker's) default."""
    leaves = [each[path] for each in effectives if path in each]
    if not leaves:
        return None
    default = next((leaf.default for leaf in reversed(leaves) if leaf.default is not None), None)
    items = next((leaf.items for leaf in reversed(leaves) if leaf.items), ())
    return Leaf(path, unique(leaves), default, items)


def unique(leaves: Iterable[Leaf]) -> tuple[Constraint, ...]:
    """The constraints of several leaves, those of one policy said alike only once."""
    found: list[Constraint] = []
    for leaf in leaves:
        for each in leaf.constraints:
            known = any(
                each.rule == other.rule
                and each.argument == other.argument
                and each.policy is other.policy
                for other in found
            )
            if not known:
                found.append(each)
    return tuple(found)
