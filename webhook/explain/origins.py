"""Values of a completed object with their origin: the request, the server, or a policy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from webhook.documents.problem import Source
from webhook.evaluation.intent import contains
from webhook.evaluation.outcome import Change
from webhook.evaluation.request import Request
from webhook.explain.model import (
    ATTRIBUTE_DEFAULT,
    COMPUTED,
    DEFAULT,
    DEFAULT_ITEM,
    IMPOSED,
    KEPT,
    REQUEST,
    SERVER,
    UNSET,
    Entry,
)
from webhook.fields.secret_paths import shown_native
from webhook.objects.path import ABSENT, Assembled, Path, read, real
from webhook.policy.row import Field

SOURCES: Mapping[str, str] = {
    "default": DEFAULT,
    "default item": DEFAULT_ITEM,
    "attribute default": ATTRIBUTE_DEFAULT,
    "imposed": IMPOSED,
    "imposed asset": IMPOSED,
    "kept": KEPT,
}
"""Why a decision wrote something, in the words of an explanation."""
OPERATORS = "what the operator uses where the object sets nothing"
Origin = tuple[str, Source | None]


class Origins:
    """The completed object beside the request, and what the decision wrote into it."""

    def __init__(self, request: Request, document: Any, changes: Iterable[Change]) -> None:
        self.request, self.document = request, document
        self.written = list(changes)
        self.changes: dict[Path, Change] = {each.path: each for each in self.written}

    def change(self, path: Path) -> Change | None:
        """What the decision wrote at a place, or around it."""
        for size in range(len(path), 0, -1):
            if path[:size] in self.changes:
                return self.changes[path[:size]]
        return None

    def source(self, path: Path) -> Origin:
        """Where the value at a place of the completed object comes from."""
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
        """A value with its place and source; `derived` says that its place may say it otherwise.

        So may the places of a pod that the object states in pieces.
        """
        in_pieces = bool(path) and path[0].__class__ is Assembled
        path = real(path)
        if value is None:
            return Entry(path, ABSENT, UNSET, key=key)
        origin = self.source(path)
        derived = (derived or in_pieces) and read(self.document, path) != value
        if derived and self.is_of_another(row, path):
            origin = COMPUTED, None
        # Words of the policy language are never the text of a place.
        shown = value if value in row.enum else shown_native(row, path, value)
        absent = in_pieces and read(self.document, path) is ABSENT
        note = OPERATORS if absent else ""
        return Entry(path, shown, *origin, key=key, note=note, derived=derived)

    def is_of_another(self, row: Field, path: Path) -> bool:
        """Whether the decision wrote a place for another field, from which this one follows."""
        change = self.change(path)
        return change is not None and not f"{change.field}.".startswith(f"{row.path}.")
