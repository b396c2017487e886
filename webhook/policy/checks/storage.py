"""Finds default items of storage that cannot be mounted, or that clash with one another."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from webhook.policy.body import holding
from webhook.policy.companions import Here
from webhook.policy.item_sources import attribute_defaults, place_of
from webhook.policy.leaves import items_of
from webhook.policy.policy import Default, DefaultItem
from webhook.policy.row import Attribute, Field
from webhook.policy.table import TABLE

PVC, HOST_PATH = "storage.pvc", "storage.hostPath"
PROPAGATION = "mountPropagation"
STORAGE = "storage."
CHECKOUT = "storage.git"
"""Its `path` is a mount point too; the volume behind it is made for the purpose."""


def check(here: Here) -> None:
    """Tell the faults of the storage items that hold at this level."""
    seen: dict[tuple[str, str], str] = {}
    for row, item, complete in items(here):
        if row.path == PVC:
            check_claim(here, row, item, complete)
        check_clash(here, row, item, complete, seen)
    check_propagation(here)


def items(here: Here) -> Iterator[tuple[Field, DefaultItem, Mapping[str, Default]]]:
    """Every default item of storage with its attributes, those by default included."""
    for field, found in holding(here.draft.items, here.level).items():
        if not field.startswith(STORAGE):
            continue
        row = TABLE.fields[field]
        given = attribute_defaults(here, row)
        for item in (each for each in found if not each.excluded):
            yield row, item, {**given, **item.attributes}


def is_true(attributes: Mapping[str, Default], name: str) -> bool:
    """Whether a boolean attribute is given and true."""
    return name in attributes and attributes[name].value is True


def check_claim(here: Here, row: Field, item: DefaultItem, complete: Mapping[str, Default]) -> None:
    """A claim is there already, or comes with the pod; not both."""
    if is_true(complete, "existingPvc") and is_true(complete, "ephemeral"):
        place = here.draft.place("item", here.level, row.path, item.key)
        found = f"item {item.key} with existingPvc and ephemeral"
        here.error(place, "exclusive-attributes", found, "keep one of them")


def is_to_be_created(complete: Mapping[str, Default]) -> bool:
    """Whether a claim neither exists nor comes with the pod."""
    return not is_true(complete, "existingPvc") and not is_true(complete, "ephemeral")


def needed_of_claim(complete: Mapping[str, Default]) -> set[str]:
    """What a claim needs beside its mount point: its name, or its size when the pod brings it."""
    if is_true(complete, "existingPvc"):
        return {"claimName"}
    return {"claimInfo.size"} if is_true(complete, "ephemeral") else {"claimName", "claimInfo.size"}


def check_clash(
    here: Here,
    row: Field,
    item: DefaultItem,
    complete: Mapping[str, Default],
    seen: dict[tuple[str, str], str],
) -> None:
    """Of the volumes of one pod each has its own name, and each mount its own directory."""
    for what, name in (("name", "name"), ("directory", mount_of(row))):
        given = complete.get(name)
        if given is None or not isinstance(given.value, str) or not given.value:
            continue
        if what == "name" and row.path == CHECKOUT:
            continue
        value = given.value.rstrip("/") or "/"
        first = seen.setdefault((what, value), f"{item.key} of {row.path}")
        if first != f"{item.key} of {row.path}":
            found = f"item {item.key} with the {what} of item {first}"
            fix = f"give each item its own {what}"
            here.error(place_of(here, row, item, name), "items-clash", found, fix)


def mount_of(row: Field) -> str:
    """The attribute that says where an item is mounted."""
    return next((each.name for each in items_of(row).attributes if is_mount(row, each)), "")


def is_mount(row: Field, attribute: Attribute) -> bool:
    """Whether an attribute is a directory in the container."""
    return attribute.at[-1:] == ("mountPath",) or (row.path, attribute.name) == (CHECKOUT, "path")


def check_propagation(here: Here) -> None:
    """The vendor takes one propagation for all host paths; here each may have its own."""
    spoken: dict[str, str] = {}
    for row, item, complete in items(here):
        if row.path != HOST_PATH:
            continue
        given = complete.get(PROPAGATION)
        value = str(given.value) if given is not None else "None"
        spoken.setdefault(value, item.key)
        if len(spoken) > 1 and value != next(iter(spoken)):
            other, key = next(iter(spoken.items()))
            found = f"item {item.key} with {PROPAGATION} {value}, item {key} with {other}"
            fix = "give all items the same one, best below attributes: other products refuse two"
            here.warn(place_of(here, row, item, PROPAGATION), "mixed-propagation", found, fix)
