"""Checks of default items: contradictory, incomplete, or clashing ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

from webhook.documents.problem import Problem
from webhook.policy.checks.level import Level, LevelItem
from webhook.policy.checks.storage import PVC, is_true, needed_of_claim
from webhook.policy.leaves import items_of
from webhook.policy.reasons import REASONS

EXCLUSIVE = (
    ("value", "secret", "configMap", "podFieldRef", "userCredential"),
    ("authorizedUsers", "authorizedGroups"),
)
"""Groups of attributes. An item has at most one attribute of each."""


@dataclass(frozen=True, slots=True)
class Condition:
    """`attribute` is allowed only if `other`, or its value when absent, is one of `values`."""

    attribute: str
    other: str
    values: frozenset[str]


CONDITIONS = (
    Condition("value", "operator", frozenset({"Equal"})),
    Condition("seconds", "effect", frozenset({"NoExecute"})),
)


def given_items(level: Level) -> Iterator[LevelItem]:
    """Return the items, without those that only remove one of a broader scope."""
    return (each for each in level.items if not each.item.excluded)


class ExcludedAndLocked:
    """An item cannot be both excluded and locked."""

    ids: ClassVar = {"excluded-default-item": REASONS["excluded-default-item"]}
    severity = "error"

    def run(self, level: Level) -> Iterator[Problem]:
        for each in level.items:
            if each.item.excluded and each.locked:
                found = f"item {each.item.key}, locked and excluded"
                yield level.problem(self, level.at_item(each), found, "remove one of the two")


class ExclusiveAttributes:
    """Some attributes exclude each other. A claim is either existing or ephemeral."""

    ids: ClassVar = {"exclusive-attributes": "An item has attributes that exclude each other."}
    severity = "error"

    def run(self, level: Level) -> Iterator[Problem]:
        for each in given_items(level):
            for names in EXCLUSIVE:
                given = [name for name in names if name in each.attributes]
                if len(given) > 1:
                    path = level.at_attribute(each, given[1])
                    found = f"item {each.item.key} with {' and '.join(given)}"
                    yield level.problem(self, path, found, "keep one of them")
            both = is_true(each.attributes, "existingPvc") and is_true(each.attributes, "ephemeral")
            if each.row.path == PVC and both:
                found = f"item {each.item.key} with existingPvc and ephemeral"
                yield level.problem(self, level.at_item(each), found, "keep one of them")


class AttributeOutOfPlace:
    """Some attributes depend on the value of another one."""

    ids: ClassVar = {
        "attribute-out-of-place": "An item has an attribute that its other attributes rule out."
    }
    severity = "error"

    def run(self, level: Level) -> Iterator[Problem]:
        for each in given_items(level):
            for condition in CONDITIONS:
                attribute = items_of(each.row).attribute(condition.other)
                if condition.attribute not in each.attributes or attribute is None:
                    continue
                other = each.attributes.get(condition.other)
                value = other.value if other else attribute.absent
                if value not in condition.values:
                    path = level.at_attribute(each, condition.attribute)
                    named = f"{condition.attribute} and {condition.other} {value}"
                    words = " or ".join(sorted(condition.values))
                    fix = f"remove it, or write {condition.other}: {words}"
                    yield level.problem(self, path, f"item {each.item.key} with {named}", fix)


class IncompleteLockedItem:
    """A locked item needs all required attributes."""

    ids: ClassVar = {"locked-item-incomplete": "A locked default item lacks a required attribute."}
    severity = "error"

    def run(self, level: Level) -> Iterator[Problem]:
        for each in given_items(level):
            missing = missing_attributes(level, each) if each.locked else []
            if missing:
                found = f"item {each.item.key} without {' and '.join(missing)}"
                fix = f"give {', '.join(missing)}, in the item or in attributes"
                yield level.problem(self, level.at_item(each), found, fix)


class IncompleteItem:
    """Warns of an incomplete item that is not locked. Requests can complete it."""

    ids: ClassVar = {
        "incomplete-item": "A default item lacks an attribute without which it cannot be used."
    }
    severity = "warning"

    def run(self, level: Level) -> Iterator[Problem]:
        for each in given_items(level):
            missing = [] if each.locked else missing_attributes(level, each)
            if missing:
                found = f"item {each.item.key} without {' and '.join(missing)}"
                fix = f"give {', '.join(missing)}, unless every request does"
                yield level.problem(self, level.at_item(each), found, fix)


def missing_attributes(level: Level, each: LevelItem) -> list[str]:
    """Return the missing attributes: required by the table and, if locked, by the rules."""
    needed = {
        one.name
        for one in items_of(each.row).attributes
        if one.required
        or (each.locked and is_required(level.rules.get(f"{each.row.path}.{one.name}", {})))
    }
    if each.row.path == PVC:
        needed |= needed_of_claim(each.attributes)
    return sorted(needed - set(each.attributes))


def is_required(arguments: Mapping[str, object]) -> bool:
    """Whether rules require a value."""
    return arguments.get("required") is True
