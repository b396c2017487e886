"""Builds entries for values of fields in a completed object, and for items with their attributes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from webhook.explain.model import REQUEST, AttributeEntry, Entry
from webhook.explain.origins import SOURCES, Origin, Origins
from webhook.fields.annotation_list import ListedItem
from webhook.fields.handler import COMPUTED, FieldValue
from webhook.fields.items.attributes import Unreadable
from webhook.fields.secret_paths import is_hidden
from webhook.fields.store import NativeItem
from webhook.objects.path import ABSENT
from webhook.policy.row import Field


def entry_of(origins: Origins, row: Field, value: FieldValue) -> Entry:
    """Return the entry of a value, with the policy or the request that it comes from."""
    if value.native is not None:
        entry = item_entry(origins, row, value.native)
        entry.item = value.item
        return entry
    entry = origins.entry(row, value.path, value.value, value.key, derived=value.derived)
    if value.origin and entry.value is not ABSENT:
        entry.source, entry.by, entry.derived = value.origin, None, True
    if value.note is not None:
        entry.note = value.note
    if value.hidden:
        entry.value = None
    return entry


def item_entry(origins: Origins, row: Field, native: NativeItem) -> Entry:
    """Return the entry of one item with its attributes."""
    entry = origins.entry(row, native.path, native.raw)
    source, by = entry.source, entry.by = origin_of(origins, native, (entry.source, entry.by))
    entry.key, entry.derived = native.shown_key, True
    for name, values in native.values.items():
        paths = native.at.get(name, ())
        for position, value in enumerate(values if name not in native.unresolved else ()):
            path = origins.report(paths[position]) if position < len(paths) else entry.path
            origin = (source, by) if path == entry.path else origins.source(path)
            if origin[0] == COMPUTED and source != COMPUTED:
                continue
            hidden = name != "name" and (row.secret or is_hidden(path, value))
            shown = None if hidden else plain(row, name, value)
            entry.attributes.append(AttributeEntry(name, shown, path, *origin))
    entry.value = None if row.secret else item_value(row, entry)
    return entry


def origin_of(origins: Origins, native: NativeItem, origin: Origin) -> Origin:
    """Return the origin of an item. Items in one annotation differ by what was written."""
    if not isinstance(native, ListedItem):
        return origin
    for each in origins.written:
        if each.path == native.path and each.value == native.raw:
            return SOURCES.get(each.why, each.why), each.source
    return REQUEST, None


def plain(row: Field, name: str, value: Any) -> Any:
    """Return an attribute's value as users write it: amounts with units, unreadable values unchanged."""
    if isinstance(value, Unreadable):
        return value.raw
    attribute = row.items.attribute(name) if row.items is not None else None
    if attribute is None or isinstance(value, str | bool):
        return value
    if attribute.codec is None and not isinstance(value, tuple | frozenset):
        return value
    return attribute.reading().show(value)


def item_value(row: Field, entry: Entry) -> Any:
    """Return an item's value to show: a plain value, or its attributes, lists if mounts differ."""
    own = row.items.key if row.items is not None else "name"
    found = {
        name: values[0] if len(values) == 1 else values
        for name, values in collect_values(entry.attributes).items()
        if name != own or values != [entry.key]
    }
    if set(found) == {"value"}:
        return found["value"]
    hidden = any(each.value is None for each in entry.attributes)
    return found or (None if hidden else entry.key)


def collect_values(attributes: Iterable[AttributeEntry]) -> dict[str, list[Any]]:
    """Return the different values of each attribute that may be shown, in order."""
    found: dict[str, list[Any]] = {}
    for each in attributes:
        if each.value is None:
            continue
        known = found.setdefault(each.name, [])
        if each.value not in known:
            known.append(each.value)
    return found
