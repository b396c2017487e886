"""Checks of default items of storage: volumes that cannot be mounted together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar

from webhook.documents.problem import Problem
from webhook.policy.checks.level import Level, LevelItem
from webhook.policy.leaves import items_of
from webhook.policy.policy import Default
from webhook.policy.row import Attribute, Field

PVC, HOST_PATH = "storage.pvc", "storage.hostPath"
PROPAGATION = "mountPropagation"
STORAGE = "storage."
CHECKOUT = "storage.git"
"""Its `path` is a mount point too. podgate creates the volume for it."""


def is_true(attributes: Mapping[str, Default], name: str) -> bool:
    """Whether a boolean attribute is set to true."""
    return name in attributes and attributes[name].value is True


def is_to_be_created(complete: Mapping[str, Default]) -> bool:
    """Whether a claim neither exists nor is ephemeral."""
    return not is_true(complete, "existingPvc") and not is_true(complete, "ephemeral")


def needed_of_claim(complete: Mapping[str, Default]) -> set[str]:
    """Return attributes that a claim needs besides its mount point: name, size, or both."""
    if is_true(complete, "existingPvc"):
        return {"claimName"}
    return {"claimInfo.size"} if is_true(complete, "ephemeral") else {"claimName", "claimInfo.size"}


def volumes(level: Level) -> Iterator[LevelItem]:
    """Return every item of storage that is not excluded."""
    for each in level.items:
        if each.row.path.startswith(STORAGE) and not each.item.excluded:
            yield each


class VolumesClash:
    """Volumes of one pod need different names, and their mounts different directories."""

    ids: ClassVar = {"items-clash": "Two default items have one volume name or one directory."}
    severity = "error"

    def run(self, level: Level) -> Iterator[Problem]:
        seen: dict[tuple[str, str], str] = {}
        for each in volumes(level):
            own = f"{each.item.key} of {each.row.path}"
            for what, name in (("name", "name"), ("directory", mount_of(each.row))):
                given = each.attributes.get(name)
                if given is None or not isinstance(given.value, str) or not given.value:
                    continue
                if what == "name" and each.row.path == CHECKOUT:
                    continue
                first = seen.setdefault((what, given.value.rstrip("/") or "/"), own)
                if first != own:
                    found = f"item {each.item.key} with the {what} of item {first}"
                    fix = f"give each item its own {what}"
                    yield level.problem(self, level.at_attribute(each, name), found, fix)


def mount_of(row: Field) -> str:
    """Return the attribute that has the mount path of an item."""
    return next((each.name for each in items_of(row).attributes if is_mount(row, each)), "")


def is_mount(row: Field, attribute: Attribute) -> bool:
    """Whether an attribute is a mount path."""
    return attribute.at[-1:] == ("mountPath",) or (row.path, attribute.name) == (CHECKOUT, "path")


class MixedPropagation:
    """The vendor's platform accepts one propagation for all host paths, podgate one for each."""

    ids: ClassVar = {
        "mixed-propagation": "Host paths of one policy with different mount propagation."
    }
    severity = "warning"

    def run(self, level: Level) -> Iterator[Problem]:
        seen: dict[str, str] = {}
        for each in volumes(level):
            if each.row.path != HOST_PATH:
                continue
            given = each.attributes.get(PROPAGATION)
            value = str(given.value) if given is not None else "None"
            seen.setdefault(value, each.item.key)
            other, key = next(iter(seen.items()))
            if value != other:
                found = f"item {each.item.key} with {PROPAGATION} {value}, item {key} with {other}"
                fix = (
                    "give all items the same one, best below attributes: other products refuse two"
                )
                yield level.problem(self, level.at_attribute(each, PROPAGATION), found, fix)
