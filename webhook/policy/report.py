"""Collects the problems of one document, each with its path, line and column."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from webhook.documents.problem import Check, Problem
from webhook.documents.source import SourceDocument
from webhook.objects.path import Path, display
from webhook.policy.reasons import REASONS
from webhook.policy.table import TABLE

LONGEST = 80
NOT_SHOWN = "(not shown)"


def cut(text: str) -> str:
    """At most 80 characters."""
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def show_value(raw: Any, text: str | None = None) -> str:
    """Show a raw value in a message: scalars as JSON, mappings and lists by their type."""
    if text is not None:
        return cut(json.dumps(text)[1:-1])
    if isinstance(raw, dict):
        return "a mapping"
    if isinstance(raw, list):
        return "a list"
    if raw is None:
        return "nothing"
    return cut(json.dumps(raw if isinstance(raw, str | bool | int | float) else str(raw)))


def label(key: Any) -> str:
    """Show a key of a mapping in a message. YAML keys need not be strings."""
    return cut(json.dumps(key)[1:-1]) if isinstance(key, str) else show_value(key)


SECRET_NAMES = frozenset(
    name.lower() for row in TABLE.fields.values() if row.secret for name in (row.path, *row.aliases)
)


def is_secret(path: Path) -> bool:
    """Whether a path leads into a field whose values are never shown, under any of its names."""
    return any(isinstance(step, str) and step.lower() in SECRET_NAMES for step in path)


@dataclass(slots=True)
class Report:
    """The problems found so far in `document`."""

    document: SourceDocument
    problems: list[Problem] = field(default_factory=list)

    @property
    def has_errors(self) -> bool:
        """Whether any problem is an error."""
        return any(each.severity == "error" for each in self.problems)

    def error(self, path: Path, reason: str, found: str, fix: str) -> None:
        """Add a problem that makes the document unusable."""
        self.add(path, reason, found, fix, "error")

    def warn(self, path: Path, reason: str, found: str, fix: str) -> None:
        """Add a problem of a document that is accepted anyway."""
        self.add(path, reason, found, fix, "warning")

    def add(self, path: Path, reason: str, found: str, fix: str, severity: str) -> None:
        """Add one problem. `reason` must be in REASONS."""
        assert reason in REASONS, reason
        self.problems.append(self.problem(path, reason, found, fix, severity))

    def found_by(
        self, check: Check[Any], path: Path, found: str, fix: str, reason: str = ""
    ) -> Problem:
        """Return a check's problem at a path. `reason` is one of its ids, by default the first."""
        reason = reason or next(iter(check.ids))
        assert reason in check.ids, reason
        return self.problem(path, reason, found, fix, check.severity)

    def problem(self, path: Path, reason: str, found: str, fix: str, severity: str) -> Problem:
        """Return a problem at a path of the document, without adding it to the report."""
        line, column = self.position(path)
        where = self.display(path)
        return Problem(self.document.origin, where, found, fix, reason, line, column, severity)

    def position(self, path: Path) -> tuple[int, int]:
        """Return line and column of a path, zeros if the source does not have it."""
        return self.document.position(path)

    def display(self, path: Path) -> str:
        """Show a path in a message. YAML keys need not be strings."""
        return display(tuple(step if type(step) in (str, int) else str(step) for step in path))

    def wrong_type(self, path: Path, raw: Any, wanted: str) -> None:
        """Report that the value at this path is not of the `wanted` type."""
        hidden = isinstance(raw, str | int | float) and is_secret(path)
        found = NOT_SHOWN if hidden else show_value(raw, self.document.text(path))
        self.error(path, "wrong-type", found, f"write {wanted}")

    def mapping(self, raw: Any, path: Path) -> dict[Any, Any]:
        """Return the mapping at this path. null is empty; anything else is reported, and empty."""
        if raw is None:
            return {}
        if not isinstance(raw, dict):
            self.wrong_type(path, raw, "a mapping")
            return {}
        return raw

    def sequence(self, raw: Any, path: Path, wanted: str = "a list") -> list[Any]:
        """Return the list at this path. null is empty; anything else is reported, and empty."""
        if raw is None:
            return []
        if not isinstance(raw, list):
            self.wrong_type(path, raw, wanted)
            return []
        return raw
