"""Finds the origin of values in a completed object: the request, the server, or a policy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from webhook.documents.problem import Source
from webhook.evaluation.intent import contains
from webhook.evaluation.outcome import Change
from webhook.evaluation.request import Request
from webhook.explain.model import (
    ATTRIBUTE_DEFAULT,
    DEFAULT,
    DEFAULT_ITEM,
    IMPOSED,
    KEPT,
    REQUEST,
    SERVER,
    UNSET,
    Entry,
)
from webhook.fields.handler import COMPUTED
from webhook.fields.secret_paths import shown_native
from webhook.objects.path import ABSENT, Path, read
from webhook.pods.location import FragmentPods, report_path
from webhook.policy.row import Field

SOURCES: Mapping[str, str] = {
    "default": DEFAULT,
    "default item": DEFAULT_ITEM,
    "attribute default": ATTRIBUTE_DEFAULT,
    "imposed": IMPOSED,
    "imposed asset": IMPOSED,
    "kept": KEPT,
}
"""The reasons of changes, as explanations name them."""
OPERATORS = "what the operator uses where the object sets nothing"
Origin = tuple[str, Source | None]


class Origins:
    """The completed object, its request, and the changes of the decision.

    `pods` are the object's pods in fragments, whose paths are accepted too.
    """

    def __init__(
        self, request: Request, document: Any, changes: Iterable[Change], pods: FragmentPods
    ) -> None:
        self.request, self.document, self.pods = request, document, pods
        self.written = list(changes)
        self.changes: dict[Path, Change] = {each.path: each for each in self.written}

    def change(self, path: Path) -> Change | None:
        """Return the change at a path, or around it."""
        for size in range(len(path), 0, -1):
            if path[:size] in self.changes:
                return self.changes[path[:size]]
        return None

    def report(self, path: Path) -> Path:
        """Return the path in the object, the nearest one for a pod in fragments."""
        return report_path(path, self.pods)

    def source(self, path: Path) -> Origin:
        """Return the origin of the value at a path of the completed object."""
        change = self.change(path)
        if change is not None:
            return SOURCES.get(change.why, change.why), change.source
        if read(self.document, path) is ABSENT:
            return COMPUTED, None
        written = contains(self.request.raw, self.document, path)
        return (REQUEST if written else SERVER), None

    def entry(
        self, row: Field, path: Path, value: Any, key: str = "", *, derived: bool = False
    ) -> Entry:
        """Return the entry of a value. `derived` says that the path may have another notation.

        This is also true for paths of a pod in fragments.
        """
        own = self.report(path)
        in_fragments, path = own is not path, own
        if value is None:
            return Entry(path, ABSENT, UNSET, key=key)
        origin = self.source(path)
        derived = (derived or in_fragments) and read(self.document, path) != value
        if derived and self.is_of_another(row, path):
            origin = COMPUTED, None
        # Keywords of the policy language are never the text of a path.
        shown = value if value in row.enum else shown_native(row, path, value)
        absent = in_fragments and read(self.document, path) is ABSENT
        note = OPERATORS if absent else ""
        return Entry(path, shown, *origin, key=key, note=note, derived=derived)

    def is_of_another(self, row: Field, path: Path) -> bool:
        """Return whether the decision wrote a path for another field, from which this one follows."""
        change = self.change(path)
        return change is not None and not f"{change.field}.".startswith(f"{row.path}.")
