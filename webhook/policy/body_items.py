"""Reads the items of an itemized field: their attributes and their keys."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from webhook.objects.path import ABSENT, Path
from webhook.policy.body import Draft
from webhook.policy.leaves import attribute_names, items_of, leaf_type
from webhook.policy.names import join, pick_spellings, walk
from webhook.policy.policy import Default, DefaultItem
from webhook.policy.report import Report, show_value
from webhook.policy.row import Field, Items
from webhook.policy.scalars import read_value

EXCLUDE = "exclude"
METADATA_STORES = ("labels", "annotations")
LABEL_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?")
LABEL_PREFIX = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*")


def read_attributes(
    report: Report, row: Field, mapping: Mapping[Any, Any], path: Path
) -> dict[str, tuple[Default, Path]]:
    """Read the attributes in a mapping, by canonical name, each with its path."""
    result: dict[str, tuple[Default, Path]] = {}
    for found in pick_spellings(walk(attribute_names(row.path), mapping, path, report), report):
        leaf = leaf_type(join(row.path, found.name))
        value = read_value(report, leaf, found.raw, found.path, "default")
        if value is not None:
            result[found.name] = (value, found.path)
    return result


def read_items(
    draft: Draft,
    level: str,
    row: Field,
    raw: list[Any],
    path: Path,
    completed: Mapping[str, Default],
) -> None:
    """Add the default items of a list. `completed` are the attribute defaults of the field."""
    items: dict[str, DefaultItem] = {}
    report = draft.report
    for index, each in enumerate(raw):
        here = (*path, index)
        if row.extra_rules and isinstance(each, str):
            each = {items_of(row).key: each}
        if each is None:
            continue
        if not isinstance(each, dict):
            report.wrong_type(here, each, "an item such as {name: …}")
            continue
        item = read_item(draft, level, row, each, here, completed)
        if item is None:
            continue
        if item.key in items:
            report.error(here, "duplicate-item", f"{item.key} twice", "give each item its own key")
        items.setdefault(item.key, item)
    if items:
        draft.items.setdefault(level, {})[row.path] = tuple(items.values())


def read_item(
    draft: Draft,
    level: str,
    row: Field,
    raw: Mapping[Any, Any],
    path: Path,
    completed: Mapping[str, Default],
) -> DefaultItem | None:
    """Read one default item with its key. An invalid item is reported, and returns None."""
    report, errors = draft.report, len(draft.report.problems)
    found = read_attributes(report, row, raw, path)
    exclude = found.pop(EXCLUDE, None)
    excluded = exclude is not None and exclude[0].value is True
    attributes = {name: value for name, (value, _) in found.items()}
    key = item_key(items_of(row), {**completed, **attributes}, attributes)
    if key is None:
        if not any(each.severity == "error" for each in report.problems[errors:]):
            report.error(path, "item-without-key", "an item without key", key_fix(items_of(row)))
        return None
    check_label(report, row, key, attributes, path)
    draft.paths["item", level, row.path, key] = path
    for name, (_, here) in found.items():
        draft.paths["attribute", level, join(row.path, name), key] = here
    return DefaultItem(key, attributes, excluded=excluded)


def item_key(
    items: Items, attributes: Mapping[str, Default], own: Mapping[str, Default] | None = None
) -> str | None:
    """Return the key of an item: its key attribute, else the first complete fallback joined with +.

    An attribute with a meaning when absent counts as given. If one attribute of a fallback has
    such a meaning, the others can be absent too: the fallback is then the whole identity.
    """
    given = attributes if own is None else own
    if items.key in given and str(given[items.key].value):
        return str(given[items.key].value)
    for fallback in items.fallbacks:
        texts = [attribute_text(items, name, attributes) for name in fallback]
        whole = any(attribute_text(items, name, {}) is not None for name in fallback)
        if any(name in attributes for name in fallback) and (whole or None not in texts):
            return "+".join(text or "" for text in texts)
    return None


def attribute_text(items: Items, name: str, attributes: Mapping[str, Default]) -> str | None:
    """Return the text of one attribute in a key: its value, else its value when absent."""
    if name in attributes:
        return str(attributes[name].value)
    attribute = items.attribute(name)
    return None if attribute is None or attribute.absent is ABSENT else str(attribute.absent)


def key_fix(items: Items) -> str:
    """Return what to write so that an item has a key."""
    ways = [items.key, *(" and ".join(fallback) for fallback in items.fallbacks)]
    return f"give it {', or '.join(dict.fromkeys(ways))}"


def check_label(
    report: Report, row: Field, key: str, attributes: Mapping[str, Default], path: Path
) -> None:
    """Check the syntax of keys of labels and annotations, and of values of labels."""
    if items_of(row).store not in METADATA_STORES:
        return
    prefix, slash, name = key.rpartition("/")
    good_prefix = not slash or (len(prefix) <= 253 and LABEL_PREFIX.fullmatch(prefix))
    if not good_prefix or not LABEL_NAME.fullmatch(name):
        fix = "write 1 to 63 letters, digits, - _ . with a letter or digit at both ends"
        report.error(path, "bad-label", show_value(key), fix)
    value = attributes.get("value")
    if row.secret or value is None or items_of(row).store != "labels":
        return
    if value.value and not LABEL_NAME.fullmatch(value.value):
        fix = "write at most 63 letters, digits, - _ . with a letter or digit at both ends"
        report.error((*path, "value"), "bad-label", show_value(value.value), fix)
