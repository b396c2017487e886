"""The items of an itemized field in a completed object, with their attributes and origins."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from webhook.evaluation.state import Evaluation
from webhook.explain.model import COMPUTED, REQUEST, UNSET, AttributeEntry, Entry
from webhook.explain.origins import SOURCES, Origin, Origins
from webhook.fields.annotation_list import ListedItem
from webhook.fields.items.attributes import Unreadable
from webhook.fields.items.field import ItemsField
from webhook.fields.secret_paths import is_hidden
from webhook.fields.stores.environment import NativeItem
from webhook.objects.path import ABSENT, real
from webhook.pods.pod_view import PodView
from webhook.policy.row import Field

LEFT_OUT = "left out by the annotation podgate.dev/exclude"


def item_entries(
    origins: Origins, view: PodView, ev: Evaluation, row: Field, binding: ItemsField
) -> Iterator[Entry]:
    """Every item there is, then the policy's items that are not there; raises MalformedPod."""
    store = binding.store
    natives = [each for each in store.read(view) if not store.belongs_elsewhere(each)]
    for native in natives:
        entry = item_entry(origins, row, native)
        entry.item = next((each.key for each in binding.items if binding.same(each, native)), "")
        yield entry
    left_out = binding.excluded(view, ev)
    for item in binding.items:
        if not any(binding.same(item, native) for native in natives):
            note = LEFT_OUT if item.key in left_out else ""
            yield Entry(real(view.location.place), ABSENT, UNSET, key=item.key, note=note)


def item_entry(origins: Origins, row: Field, native: NativeItem) -> Entry:
    """One item with its attributes."""
    entry = origins.entry(row, native.path, native.raw)
    source, by = entry.source, entry.by = origin_of(origins, native, (entry.source, entry.by))
    entry.key, entry.derived = native.told, True
    for name, values in native.values.items():
        places = native.at.get(name, ())
        for position, value in enumerate(values if name not in native.unseen else ()):
            path = real(places[position]) if position < len(places) else entry.path
            origin = (source, by) if path == entry.path else origins.source(path)
            if origin[0] == COMPUTED and source != COMPUTED:
                continue
            hidden = name != "name" and (row.secret or is_hidden(path, value))
            shown = None if hidden else plain(row, name, value)
            entry.attributes.append(AttributeEntry(name, shown, path, *origin))
    entry.value = None if row.secret else item_value(row, entry)
    return entry


def origin_of(origins: Origins, native: NativeItem, origin: Origin) -> Origin:
    """Where an item comes from; those of one annotation are told apart by what was written."""
    if not isinstance(native, ListedItem):
        return origin
    for each in origins.written:
        if each.path == native.path and each.value == native.raw:
            return SOURCES.get(each.why, each.why), each.source
    return REQUEST, None


def plain(row: Field, name: str, value: Any) -> Any:
    """An attribute's value as people write it: amounts with their unit, what is unreadable as is."""
    if isinstance(value, Unreadable):
        return value.raw
    attribute = row.items.attribute(name) if row.items is not None else None
    if attribute is None or isinstance(value, str | bool):
        return value
    if attribute.codec is None and not isinstance(value, tuple | frozenset):
        return value
    return attribute.reading().show(value)


def item_value(row: Field, entry: Entry) -> Any:
    """What an item is to people: a plain value, or its attributes, lists where mounts differ."""
    own = row.items.key if row.items is not None else "name"
    found = {
        name: values[0] if len(values) == 1 else values
        for name, values in collected(entry.attributes).items()
        if name != own or values != [entry.key]
    }
    if set(found) == {"value"}:
        return found["value"]
    hidden = any(each.value is None for each in entry.attributes)
    return found or (None if hidden else entry.key)


def collected(attributes: Iterable[AttributeEntry]) -> dict[str, list[Any]]:
    """The different values of each attribute that may be shown, in order."""
    found: dict[str, list[Any]] = {}
    for each in attributes:
        if each.value is None:
            continue
        known = found.setdefault(each.name, [])
        if each.value not in known:
            known.append(each.value)
    return found
