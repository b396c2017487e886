"""A policy body while it is read: what was said at which level, and where in the document."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from webhook.objects.path import Path
from webhook.policy.policy import EVERYWHERE, Body, Default, DefaultItem, Place
from webhook.policy.report import Report

T = TypeVar("T")


@dataclass(slots=True)
class Draft:
    """The tables of a `Body` under construction; `places` knows the path of each entry.

    `types` are the workload types that the policy is for; some names depend on them.
    A place is (kind, level, leaf, word): kind is level, default, item, attribute, rule or imposed,
    word is an item's key, a rule's name or empty.
    """

    report: Report
    types: frozenset[str] | None = None
    defaults: dict[str, dict[str, Default]] = field(default_factory=dict)
    items: dict[str, dict[str, tuple[DefaultItem, ...]]] = field(default_factory=dict)
    rules: dict[str, dict[str, dict[str, Any]]] = field(default_factory=dict)
    imposed: dict[str, tuple[str, ...]] = field(default_factory=dict)
    places: dict[Place, Path] = field(default_factory=dict)

    def levels(self) -> tuple[str, ...]:
        """Everywhere, then every other level that the body names, in order of appearance."""
        named = (*self.defaults, *self.items, *self.rules, *self.imposed)
        return tuple(dict.fromkeys((EVERYWHERE, *named)))

    def default(self, level: str, leaf: str, value: Default, path: Path) -> None:
        """Note a default value."""
        self.defaults.setdefault(level, {})[leaf] = value
        self.places["default", level, leaf, ""] = path

    def place(self, kind: str, level: str, leaf: str, word: str = "") -> Path:
        """Where something was said that holds at `level`: there, or outside all levels."""
        for each in (level, EVERYWHERE):
            if (kind, each, leaf, word) in self.places:
                return self.places[kind, each, leaf, word]
        return ()

    def body(self) -> Body:
        """The finished body."""
        return Body(self.defaults, self.items, self.rules, self.imposed)


def holding(table: Mapping[str, Mapping[str, T]], level: str) -> dict[str, T]:
    """What holds at a level: its own leaves before those outside all levels."""
    return {**table.get(EVERYWHERE, {}), **table.get(level, {})}
