"""Collects the problems of one document, each with its place in the source."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from webhook.documents.problem import Problem
from webhook.documents.source import SourceDocument
from webhook.objects import path as pointer
from webhook.objects.path import Path
from webhook.policy.reasons import REASONS
from webhook.policy.table import TABLE

LONGEST = 80
NOT_SHOWN = "(not shown)"


def cut(text: str) -> str:
    """At most 80 characters."""
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def shown(raw: Any, text: str | None = None) -> str:
    """A raw value for people: scalars as JSON would write them, the rest by its kind."""
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
    """A key of a mapping for people; YAML keys need not be text."""
    return cut(json.dumps(key)[1:-1]) if isinstance(key, str) else shown(key)


SECRET_NAMES = frozenset(
    name.lower() for row in TABLE.fields.values() if row.secret for name in (row.path, *row.aliases)
)


def is_secret(path: Path) -> bool:
    """Whether a place is within a field whose values are never printed, by whatever name."""
    return any(isinstance(step, str) and step.lower() in SECRET_NAMES for step in path)


@dataclass(slots=True)
class Report:
    """The problems found so far in `document`."""

    document: SourceDocument
    problems: list[Problem] = field(default_factory=list)

    @property
    def failed(self) -> bool:
        """Whether any problem is an error."""
        return any(each.severity == "error" for each in self.problems)

    def error(self, path: Path, reason: str, found: str, fix: str) -> None:
        """Something that makes the document unusable."""
        self.add(path, reason, found, fix, "error")

    def warn(self, path: Path, reason: str, found: str, fix: str) -> None:
        """Something that is accepted, and that the author should know."""
        self.add(path, reason, found, fix, "warning")

    def add(self, path: Path, reason: str, found: str, fix: str, severity: str) -> None:
        """One problem; `reason` must be in the table."""
        assert reason in REASONS, reason
        line, column = self.position(path)
        self.problems.append(
            Problem(
                self.document.origin,
                self.display(path),
                found,
                fix,
                reason,
                line,
                column,
                severity,
            )
        )

    def position(self, path: Path) -> tuple[int, int]:
        """Line and column of a place, zeros when the source has none."""
        return self.document.position(path)

    def display(self, path: Path) -> str:
        """A place for people; keys of YAML need not be text."""
        return pointer.display(
            tuple(step if type(step) in (str, int) else str(step) for step in path)
        )

    def wrong_type(self, path: Path, raw: Any, wanted: str) -> None:
        """The value of this place is of another type than `wanted`."""
        hidden = isinstance(raw, str | int | float) and is_secret(path)
        found = NOT_SHOWN if hidden else shown(raw, self.document.text(path))
        self.error(path, "wrong-type", found, f"write {wanted}")

    def mapping(self, raw: Any, path: Path) -> dict[Any, Any]:
        """The mapping at this place; null is empty, everything else a problem and empty."""
        if raw is None:
            return {}
        if not isinstance(raw, dict):
            self.wrong_type(path, raw, "a mapping")
            return {}
        return raw

    def sequence(self, raw: Any, path: Path, wanted: str = "a list") -> list[Any]:
        """The list at this place; null is empty, everything else a problem and empty."""
        if raw is None:
            return []
        if not isinstance(raw, list):
            self.wrong_type(path, raw, wanted)
            return []
        return raw
