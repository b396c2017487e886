"""Finds what the user wrote, as opposed to values of the API server, a CRD or another webhook.

There are two proofs: the last-applied annotation, and the managedFields entry of an Apply by the
requesting manager. Users write both, so they can only prove "I set this".
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

from webhook.evaluation.request import Request
from webhook.objects.field_sets import FieldSets
from webhook.objects.lookup import ListKeys
from webhook.objects.path import ABSENT, Path, read
from webhook.pods.location import FragmentPods, report_path

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
LIST_KEYS = ("name", "groupName", "key", "containerPort", "mountPath")


def same_item(list_value: list[Any], item: Any, index: int, lists: ListKeys) -> Any:
    """Return the element of another copy of a list that matches `item`: by its key, else by index."""
    if isinstance(item, dict):
        for key in LIST_KEYS:
            if key in item:
                return lists.find(list_value, key, item[key])
    return list_value[index] if index < len(list_value) else ABSENT


def contains(
    manifest: Any, document: Any, path: Path, lists: ListKeys | None = None, *, zero: bool = True
) -> bool:
    """Return whether a manifest sets `path` of `document`. List items are matched by key.

    `lists` caches the lists of the manifest, for callers with several paths. Without `zero` a 0
    does not count, because an operator replaces it.
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
    # The server treats an empty text or list as absent, and fills in its default.
    return manifest not in (ABSENT, None, "", []) and (zero or manifest != 0)


def value_before(old: Any, document: Any, path: Path, lists: ListKeys) -> Any:
    """Return what another copy of the object has at `path` of `document`. Items are matched by key."""
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
    """Return the manifest in the last-applied annotation, None if absent or not JSON."""
    text = read(document, ("metadata", "annotations", LAST_APPLIED))
    if not isinstance(text, str):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def applied_sets(document: Any, manager: str | None) -> Iterator[Any]:
    """Yield the field sets of Apply entries of the object's version, of one manager or of all."""
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
    """Finds whether a user wrote a path. Each source is read once, and only if needed.

    `pods` are the review's pods in fragments, whose paths are accepted too.
    """

    __slots__ = (
        "applied",
        "around",
        "everyones",
        "filled",
        "lists",
        "manifest",
        "old_manifest",
        "old_sets",
        "pods",
        "request",
    )

    def __init__(self, request: Request, pods: FragmentPods) -> None:
        self.request = request
        self.pods = pods
        self.manifest: Any = ABSENT
        self.applied = NO_SETS
        self.everyones: FieldSets | None = None
        self.old_manifest: Any = ABSENT
        self.old_sets = NO_SETS
        self.lists = ListKeys()
        within = request.within
        self.around: Intent | None = Intent(within.around, pods) if within is not None else None
        self.filled = within.filled if within is not None else frozenset()

    def is_written_by_user(self, path: Path, *, zero: bool = True) -> bool:
        """Return whether the requesting user wrote this path of the object.

        A value that an update leaves alone may come from another manager that still applies it.
        """
        request, path = self.request, report_path(path, self.pods)
        if self.around is not None and request.within is not None:
            return self.around.is_written_by_user((*request.within.path, *path), zero=zero)
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
        """Return whether some manager's Apply entry has a path whose value the update does not change."""
        document, old = self.request.object, self.request.old
        if self.everyones is None:
            self.everyones = FieldSets(applied_sets(document, None))
        if not self.everyones.own(document, path):
            return False
        return bool(read(document, path) == value_before(old, document, path, self.lists))

    def is_written(self, path: Path, *, zero: bool = True) -> bool:
        """Return whether a user wrote a value that the server would also fill in at this path.

        In a wrapped object nothing has been filled in yet, so every value was written.
        """
        if self.around is None:
            return self.is_written_by_user(path, zero=zero)
        path = report_path(path, self.pods)
        request = self.request
        return path not in self.filled and contains(
            request.raw, request.object, path, self.lists, zero=zero
        )

    def was_written_by_user(self, path: Path) -> bool:
        """Return whether a user wrote this path of the old object."""
        old, path = self.request.old, report_path(path, self.pods)
        within = self.request.within
        if self.around is not None and within is not None:
            before = within.old_path
            return before is not None and self.around.was_written_by_user((*before, *path))
        if self.old_manifest is ABSENT:
            self.old_manifest = last_applied(old)
            self.old_sets = FieldSets(applied_sets(old, None))
        return contains(self.old_manifest, old, path, self.lists) or self.old_sets.own(old, path)
