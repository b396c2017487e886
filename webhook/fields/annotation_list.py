"""Reads and writes items in a JSON list in an annotation of the workload."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final

from webhook.evaluation.state import Evaluation
from webhook.fields.items.attributes import comparable, to_native
from webhook.fields.store import Addition, NativeItem
from webhook.objects.path import Path
from webhook.pods.pod_view import PodView
from webhook.policy.combine import EffectiveItem
from webhook.policy.row import Field, Items

PREFIX: Final = "podgate.dev/"


class MalformedItems(ValueError):  # noqa: N818 - it names a state of the annotation
    """An annotation is not a JSON list of flat maps."""


def parse(text: Any) -> list[dict[str, Any]]:
    """Return the maps in an annotation, none if absent. Raises MalformedItems."""
    if text is None:
        return []
    try:
        entries = json.loads(text, parse_constant=refuse, parse_float=str)
    except (ValueError, TypeError, RecursionError) as error:
        raise MalformedItems from error
    if not isinstance(entries, list) or not all(is_flat(each) for each in entries):
        raise MalformedItems
    return entries


def refuse(text: str) -> Any:
    """Reject NaN and Infinity, which are not JSON."""
    raise ValueError(text)


def is_flat(entry: Any) -> bool:
    """Return whether an entry is a map of plain values and lists of them."""
    if not isinstance(entry, dict):
        return False
    lists = [each for each in entry.values() if isinstance(each, list)]
    plain = [each for each in entry.values() if not isinstance(each, list)]
    return not any(isinstance(e, dict | list) for held in (plain, *lists) for e in held)


def render(entries: list[dict[str, Any]]) -> str:
    """The text of an annotation, without blanks."""
    return json.dumps(entries, separators=(",", ":"))


@dataclass(slots=True)
class ListedItem(NativeItem):
    """An item with its index in the list."""

    index: int = 0


class AnnotationItemStore:
    """The items of one row in the annotation that is named like its store."""

    def __init__(self, row: Items) -> None:
        self.row = row
        self.path: Path = ("metadata", "annotations", f"{PREFIX}{row.store}")

    def read(self, view: PodView) -> list[NativeItem]:
        """Return every item of the workload. Raises MalformedItems."""
        annotations = view.metadata.get("annotations")
        text = annotations.get(self.path[-1]) if isinstance(annotations, dict) else None
        return [self.item(index, entry) for index, entry in enumerate(parse(text))]

    def item(self, index: int, entry: dict[str, Any]) -> NativeItem:
        """One entry with those attributes that it has."""
        values: dict[str, tuple[Any, ...]] = {}
        for attribute in self.row.attributes:
            held = entry.get(attribute.name)
            if not attribute.native or held is None or held in ("", []):
                continue
            values[attribute.name] = (comparable(attribute, held),)
        names = [self.row.key, *(name for fallback in self.row.fallbacks for name in fallback)]
        key = next((entry[name] for name in names if name in values), index)
        # Other identities are values of the annotation.
        label = "" if self.row.key in values else f"number {index + 1}"
        return ListedItem(str(key), values, self.path, entry, label=label, index=index)

    def add(self, view: PodView, ev: Evaluation, new: Addition) -> None:
        """Append the new item."""
        entry = {
            attribute.name: to_native(attribute, default.value, default.raw)
            for attribute in self.row.attributes
            if attribute.native and (default := new.attributes.get(attribute.name)) is not None
        }
        self.put(ev, new.row, entry, new.why, new.item)

    def restore(self, view: PodView, ev: Evaluation, row: Field, item: NativeItem) -> bool:
        """Append the old item again."""
        self.put(ev, row, item.raw, "kept", None)
        return True

    def put(
        self,
        ev: Evaluation,
        row: Field,
        entry: dict[str, Any],
        why: str,
        item: EffectiveItem | None,
    ) -> None:
        """Write the list with one more entry."""
        if ev.can_write(self.path):
            ev.assign(self.path, render([*parse(ev.now(self.path)), entry]))
            ev.note_item(row, self.path, entry, why, item.source if item else None)

    def belongs_elsewhere(self, item: NativeItem) -> bool:
        """Return False: the annotation contains nothing else."""
        return False
