"""A policy body under construction: its entries by level, and their paths in the document."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from webhook.objects.path import Path
from webhook.policy.policy import EVERYWHERE, Body, Default, DefaultItem, Entry
from webhook.policy.report import Report

T = TypeVar("T")


@dataclass(slots=True)
class Draft:
    """The tables of a `Body` under construction. `paths` has the path of each entry.

    `types` are the workload types that the policy applies to. Some names depend on them.
    An entry is (kind, level, leaf, word). kind is level, leaf, default, item, attribute, rule or
    imposed; word is an item's key, an asset's id, a rule's name or empty.
    """

    report: Report
    types: frozenset[str] | None = None
    defaults: dict[str, dict[str, Default]] = field(default_factory=dict)
    items: dict[str, dict[str, tuple[DefaultItem, ...]]] = field(default_factory=dict)
    rules: dict[str, dict[str, dict[str, Any]]] = field(default_factory=dict)
    imposed: dict[str, tuple[str, ...]] = field(default_factory=dict)
    paths: dict[Entry, Path] = field(default_factory=dict)

    def levels(self) -> tuple[str, ...]:
        """Return EVERYWHERE, then the other levels of the body in order of appearance."""
        named = (*self.defaults, *self.items, *self.rules, *self.imposed)
        return tuple(dict.fromkeys((EVERYWHERE, *named)))

    def default(self, level: str, leaf: str, value: Default, path: Path) -> None:
        """Note a default value."""
        self.defaults.setdefault(level, {})[leaf] = value
        self.paths["default", level, leaf, ""] = path

    def find_path(self, kind: str, level: str, leaf: str, word: str = "") -> Path:
        """Return the path of the entry that applies at `level`: the level's own, else EVERYWHERE's."""
        for each in (level, EVERYWHERE):
            if (kind, each, leaf, word) in self.paths:
                return self.paths[kind, each, leaf, word]
        return ()

    def body(self) -> Body:
        """The finished body."""
        return Body(self.defaults, self.items, self.rules, self.imposed)


def resolve_level(table: Mapping[str, Mapping[str, T]], level: str) -> dict[str, T]:
    """Return the leaves that apply at a level: its own, and those of EVERYWHERE it does not set."""
    return {**table.get(EVERYWHERE, {}), **table.get(level, {})}
