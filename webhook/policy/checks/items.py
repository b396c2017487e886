"""Finds default items that cannot work: contradictory, incomplete, or outside their rules."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from webhook.objects.path import Path
from webhook.policy import object_names, ranges
from webhook.policy.body import holding
from webhook.policy.checks import storage as storage_checks
from webhook.policy.companions import Here
from webhook.policy.item_sources import attribute_defaults, place_of
from webhook.policy.leaves import LeafType, items_of, leaf_type
from webhook.policy.policy import Default, DefaultItem
from webhook.policy.row import Field, Items
from webhook.policy.table import TABLE

Broken = Callable[[LeafType, Any, Mapping[str, Any]], list[str]]
EXCLUSIVE = (
    ("value", "secret", "configMap", "podFieldRef", "userCredential"),
    ("authorizedUsers", "authorizedGroups"),
)
"""Attributes of which one item has at most one."""


@dataclass(frozen=True, slots=True)
class Condition:
    """`attribute` may stand only while `other` is one of `values` (absent has its meaning)."""

    attribute: str
    other: str
    values: frozenset[str]


CONDITIONS = (
    Condition("value", "operator", frozenset({"Equal"})),
    Condition("seconds", "effect", frozenset({"NoExecute"})),
)


def check(here: Here, broken: Broken) -> None:
    """Tell every fault of the default items that hold at this level."""
    for field, items in holding(here.draft.items, here.level).items():
        row = TABLE.fields[field]
        given = attribute_defaults(here, row)
        for item in items:
            if item.excluded:
                check_unlocked(here, row, item)
                continue
            check_attributes(here, row, item, broken)
            complete = {**given, **item.attributes}
            check_exclusive(here, row, item, complete)
            check_conditions(here, row, item, complete)
            check_complete(here, row, item, complete)


def check_unlocked(here: Here, row: Field, item: DefaultItem) -> None:
    """An item that is excluded cannot be locked beside it."""
    if item.key in here.rules.get(row.path, {}).get("locked", ()):
        path = here.draft.place("item", here.level, row.path, item.key)
        fix = "remove one of the two"
        here.error(path, "excluded-default-item", f"item {item.key}, locked and excluded", fix)


def check_attributes(here: Here, row: Field, item: DefaultItem, broken: Broken) -> None:
    """An attribute of an item keeps to its rules and to its natural range."""
    for name, given in item.attributes.items():
        leaf = leaf_type(f"{row.path}.{name}")
        path = place_of(here, row, item, name)
        faults = broken(leaf, given.value, here.rules.get(leaf.path, {}))
        if faults:
            fix = f"keep to {' and '.join(faults)}, or change the rule"
            found = f"item {item.key} with {name} {leaf.show(given.value)}"
            here.error(path, "default-outside-rules", found, fix)
        check_nature(here, leaf, given.value, path)


def check_nature(here: Here, leaf: LeafType, value: Any, path: Path) -> None:
    """A value is one that the field can hold at all: numbers in range, names of objects."""
    wanted = ranges.fault(leaf, value)
    if wanted:
        here.error(path, "value-out-of-range", leaf.show(value), f"write {wanted}")
    if object_names.fault(leaf.path, value):
        here.error(path, "bad-name", leaf.show(value), f"write {object_names.WANTED}")


def check_exclusive(
    here: Here, row: Field, item: DefaultItem, complete: Mapping[str, Default]
) -> None:
    """Of some attributes an item can have one only."""
    for names in EXCLUSIVE:
        given = [name for name in names if name in complete]
        if len(given) > 1:
            path = place_of(here, row, item, given[1])
            found = f"item {item.key} with {' and '.join(given)}"
            here.error(path, "exclusive-attributes", found, "keep one of them")


def check_conditions(
    here: Here, row: Field, item: DefaultItem, complete: Mapping[str, Default]
) -> None:
    """Some attributes depend on the value of another one."""
    for condition in CONDITIONS:
        if condition.attribute not in complete or not has(items_of(row), condition.other):
            continue
        other = complete.get(condition.other)
        attribute = items_of(row).attribute(condition.other)
        value = other.value if other else attribute.absent if attribute else None
        if value not in condition.values:
            path = place_of(here, row, item, condition.attribute)
            words = " or ".join(sorted(condition.values))
            found = f"item {item.key} with {condition.attribute} and {condition.other} {value}"
            fix = f"remove it, or write {condition.other}: {words}"
            here.error(path, "attribute-out-of-place", found, fix)


def has(items: Items, name: str) -> bool:
    """Whether items of a field have that attribute."""
    return items.attribute(name) is not None


def check_complete(here: Here, row: Field, item: DefaultItem, given: Mapping[str, Default]) -> None:
    """A locked item needs all required attributes; others may be completed by a request."""
    locked = item.key in here.rules.get(row.path, {}).get("locked", ())
    needed = {
        each.name
        for each in items_of(row).attributes
        if each.required
        or (locked and here.rules.get(f"{row.path}.{each.name}", {}).get("required") is True)
    }
    if row.path == storage_checks.PVC:
        needed |= storage_checks.needed_of_claim(given)
    missing = sorted(needed - set(given))
    if not missing:
        return
    path = here.draft.place("item", here.level, row.path, item.key)
    found, fix = f"item {item.key} without {' and '.join(missing)}", f"give {', '.join(missing)}"
    if locked:
        here.error(path, "locked-item-incomplete", found, f"{fix}, in the item or in attributes")
    else:
        here.warn(path, "incomplete-item", found, f"{fix}, unless every request does")
