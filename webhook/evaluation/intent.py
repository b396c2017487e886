"""What the user wrote, as opposed to what the API server, a CRD or another webhook filled in.

Two things can show it: the last-applied annotation, and the managedFields entry that the requesting
manager made with Apply. Users write both, so they may only ever prove "I set this".
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

from webhook.evaluation.request import Request
from webhook.objects.field_sets import FieldSets
from webhook.objects.lookup import ListKeys
from webhook.objects.path import ABSENT, Path, read, real

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
LIST_KEYS = ("name", "groupName", "key", "containerPort", "mountPath")


def same_item(list_value: list[Any], item: Any, index: int, lists: ListKeys) -> Any:
    """The element of another copy of a list that stands for `item`: by its key, else by index."""
    if isinstance(item, dict):
        for key in LIST_KEYS:
            if key in item:
                return lists.find(list_value, key, item[key])
    return list_value[index] if index < len(list_value) else ABSENT


def contains(
    manifest: Any, document: Any, path: Path, lists: ListKeys | None = None, *, zero: bool = True
) -> bool:
    """Whether a manifest states the place `path` of `document`, list items matched by key.

    `lists` are those of the manifest, kept by who asks more than once. Without `zero` a 0 there
    states nothing: an operator replaces it.
    """
    lists = lists or ListKeys()
    for step in path:
        if isinstance(step, int):
            if not isinstance(manifest, list) or not isinstance(document, list):
                return False
            if step >= len(document):
                return False
            document = document[step]
            manifest = same_item(manifest, document, step, lists)
        else:
            if not isinstance(manifest, dict) or step not in manifest:
                return False
            manifest = manifest[step]
            document = document.get(step) if isinstance(document, dict) else None
    # The server takes an empty text or list for an absent one and fills its default in.
    return manifest not in (ABSENT, None, "", []) and (zero or manifest != 0)


def value_before(old: Any, document: Any, path: Path, lists: ListKeys) -> Any:
    """What another copy of the object has at the place `path` of `document`, items by their key."""
    for step in path:
        if isinstance(step, int):
            if not isinstance(old, list) or not isinstance(document, list):
                return ABSENT
            if step >= len(document):
                return ABSENT
            document = document[step]
            old = same_item(old, document, step, lists)
        else:
            old = old.get(step, ABSENT) if isinstance(old, dict) else ABSENT
            document = document.get(step) if isinstance(document, dict) else None
    return old


def last_applied(document: Any) -> Any:
    """The manifest in the last-applied annotation; None when absent or not JSON."""
    text = read(document, ("metadata", "annotations", LAST_APPLIED))
    if not isinstance(text, str):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def applied_sets(document: Any, manager: str | None) -> Iterator[Any]:
    """The field sets of Apply entries of the object's own version; of one manager, or of all."""
    entries = read(document, ("metadata", "managedFields"))
    version = document.get("apiVersion") if isinstance(document, dict) else None
    for entry in entries if isinstance(entries, list) else ():
        if not isinstance(entry, dict) or entry.get("operation") != "Apply":
            continue
        if entry.get("apiVersion") != version or entry.get("subresource"):
            continue
        if manager is None or entry.get("manager") == manager:
            yield entry.get("fieldsV1")


NO_SETS: Final = FieldSets(())


class Intent:
    """Answers, lazily and once per source, whether something shows that a user wrote a place."""

    __slots__ = (
        "applied",
        "around",
        "everyones",
        "filled",
        "lists",
        "manifest",
        "old_manifest",
        "old_sets",
        "request",
    )

    def __init__(self, request: Request) -> None:
        self.request = request
        self.manifest: Any = ABSENT
        self.applied = NO_SETS
        self.everyones: FieldSets | None = None
        self.old_manifest: Any = ABSENT
        self.old_sets = NO_SETS
        self.lists = ListKeys()
        within = request.within
        self.around: Intent | None = Intent(within.around) if within is not None else None
        self.filled = within.filled if within is not None else frozenset()

    def shown(self, path: Path, *, zero: bool = True) -> bool:
        """Whether the requesting user is shown to have written this place of the object.

        What an update leaves as it was may be another manager's, who applied it and still does.
        """
        request, path = self.request, real(path)
        if self.around is not None and request.within is not None:
            return self.around.shown((*request.within.path, *path), zero=zero)
        if request.raw is not None:
            return contains(request.raw, request.object, path, self.lists, zero=zero)
        if self.manifest is ABSENT:
            self.manifest = last_applied(request.object)
            self.applied = FieldSets(applied_sets(request.object, request.field_manager))
        if contains(self.manifest, request.object, path, self.lists, zero=zero):
            return True
        if self.applied.own(request.object, path):
            return True
        return request.operation == "UPDATE" and self.applied_by_another(path)

    def applied_by_another(self, path: Path) -> bool:
        """Whether some manager's Apply entry has a place that is as it was before the update."""
        document, old = self.request.object, self.request.old
        if self.everyones is None:
            self.everyones = FieldSets(applied_sets(document, None))
        if not self.everyones.own(document, path):
            return False
        return bool(read(document, path) == value_before(old, document, path, self.lists))

    def stated(self, path: Path, *, zero: bool = True) -> bool:
        """Whether somebody wrote a value that the server would also fill in at this place.

        Nobody has filled in anything in a wrapped object yet: what stands there was written.
        """
        if self.around is None:
            return self.shown(path, zero=zero)
        path = real(path)
        request = self.request
        return path not in self.filled and contains(
            request.raw, request.object, path, self.lists, zero=zero
        )

    def shown_before(self, path: Path) -> bool:
        """Whether some user is shown to have written this place of the old object."""
        old, path = self.request.old, real(path)
        within = self.request.within
        if self.around is not None and within is not None:
            before = within.old_path
            return before is not None and self.around.shown_before((*before, *path))
        if self.old_manifest is ABSENT:
            self.old_manifest = last_applied(old)
            self.old_sets = FieldSets(applied_sets(old, None))
        return contains(self.old_manifest, old, path, self.lists) or self.old_sets.own(old, path)
