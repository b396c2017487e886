"""The rules, defaults and items of a policy at one level, for checks of one policy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from webhook.documents.problem import Check, Problem
from webhook.objects.path import Path
from webhook.policy.body import Draft, resolve_level
from webhook.policy.leaves import LeafType, items_of, leaf_type
from webhook.policy.policy import Default, DefaultItem
from webhook.policy.row import Field
from webhook.policy.table import TABLE


@dataclass(frozen=True, slots=True)
class LevelItem:
    """A default item. `attributes` are its own and the attribute defaults."""

    row: Field
    item: DefaultItem
    attributes: Mapping[str, Default]
    locked: bool


class Level:
    """The rules, defaults and items that apply at one level of a draft, and their paths."""

    def __init__(self, draft: Draft, level: str) -> None:
        self.draft = draft
        self.level = level
        self.rules: Mapping[str, Mapping[str, Any]] = resolve_level(draft.rules, level)
        self.defaults: Mapping[str, Default] = resolve_level(draft.defaults, level)
        self.items = tuple(self.find_items())

    def find_items(self) -> Iterator[LevelItem]:
        """Return every default item, including those that only remove one of a broader scope."""
        for path, items in resolve_level(self.draft.items, self.level).items():
            row = TABLE.fields[path]
            given = {
                each.name: default
                for each in items_of(row).attributes
                if (default := self.defaults.get(f"{path}.{each.name}")) is not None
            }
            locked = self.rules.get(path, {}).get("locked", ())
            for item in items:
                yield LevelItem(row, item, {**given, **item.attributes}, item.key in locked)

    def values(self) -> Iterator[tuple[LeafType, Any, Path, str]]:
        """Return every default value: its leaf, the value, its path, and its text in messages."""
        for name, default in self.defaults.items():
            leaf = leaf_type(name)
            yield leaf, default.value, self.at_default(name), f"default {leaf.show(default.value)}"
        for each in self.items:
            for name, given in each.item.attributes.items() if not each.item.excluded else ():
                leaf = leaf_type(f"{each.row.path}.{name}")
                found = f"item {each.item.key} with {name} {leaf.show(given.value)}"
                yield leaf, given.value, self.at_attribute(each, name), found

    def at_rule(self, leaf: str, name: str) -> Path:
        """Return the path of a rule."""
        return self.draft.find_path("rule", self.level, leaf, name)

    def at_default(self, leaf: str) -> Path:
        """Return the path of a field's default."""
        return self.draft.find_path("default", self.level, leaf)

    def at_item(self, each: LevelItem) -> Path:
        """Return the path of an item."""
        return self.draft.find_path("item", self.level, each.row.path, each.item.key)

    def at_attribute(self, each: LevelItem, name: str) -> Path:
        """Return the path of an item's attribute, or of the item if it does not set it."""
        leaf = f"{each.row.path}.{name}"
        return self.draft.find_path("attribute", self.level, leaf, each.item.key) or self.at_item(
            each
        )

    def problem(
        self, check: Check[Any], path: Path, found: str, fix: str, reason: str = ""
    ) -> Problem:
        """Return a check's problem. `reason` is one of its ids, by default the first."""
        return self.draft.report.found_by(check, path, found, fix, reason)
