"""What the user wrote, as opposed to what the API server, a CRD or another webhook filled in.

Two things can show it: the last-applied annotation, and the managedFields entry that the requesting
manager made with Apply. Users write both, so they may only ever prove "I set this".
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from webhook.core.pointer import ABSENT, Path, read, real
from webhook.core.request import Request

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
LIST_KEYS = ("name", "groupName", "key", "containerPort", "mountPath")


def same_item(list_value: list[Any], item: Any, index: int) -> Any:
    """The element of another copy of a list that stands for `item`: by its key, else by index."""
    if isinstance(item, dict):
        for key in LIST_KEYS:
            if key in item:
                wanted = item[key]
                return next(
                    (e for e in list_value if isinstance(e, dict) and e.get(key) == wanted), ABSENT
                )
    return list_value[index] if index < len(list_value) else ABSENT


def contains(manifest: Any, document: Any, path: Path) -> bool:
    """Whether a manifest states the place `path` of `document`, list items matched by key."""
    for step in path:
        if isinstance(step, int):
            if not isinstance(manifest, list) or not isinstance(document, list):
                return False
            if step >= len(document):
                return False
            document, manifest = document[step], same_item(manifest, document[step], step)
        else:
            if not isinstance(manifest, dict) or step not in manifest:
                return False
            manifest = manifest[step]
            document = document.get(step) if isinstance(document, dict) else None
        if manifest is ABSENT:
            return False
    # The server takes an empty text or list for an absent one and fills its default in.
    return manifest is not None and manifest != "" and manifest != []


def value_before(old: Any, document: Any, path: Path) -> Any:
    """What another copy of the object has at the place `path` of `document`, items by their key."""
    for step in path:
        if isinstance(step, int):
            if not isinstance(old, list) or not isinstance(document, list):
                return ABSENT
            if step >= len(document):
                return ABSENT
            document, old = document[step], same_item(old, document[step], step)
        else:
            old = old.get(step, ABSENT) if isinstance(old, dict) else ABSENT
            document = document.get(step) if isinstance(document, dict) else None
    return old


def owns_item(node: dict[str, Any], item: Any, index: int) -> Any:
    """The managedFields node of one list element: by `k:` key, by `v:` value, by `i:` index."""
    for name, child in node.items():
        sort, _, text = name.partition(":")
        if sort in ("k", "v"):
            try:
                stated = json.loads(text)
            except (ValueError, RecursionError):
                continue
            if is_meant(sort, stated, item):
                return child
        elif name == f"i:{index}":
            return child
    return None


def is_meant(sort: str, stated: Any, item: Any) -> bool:
    """Whether a list element has the key, or is the value, that a node of managedFields states."""
    if sort == "v":
        return bool(stated == item)
    if not isinstance(stated, dict) or not isinstance(item, dict):
        return False
    return all(item.get(key) == value for key, value in stated.items())


def owns(fields: Any, document: Any, path: Path) -> bool:
    """Whether a fieldsV1 set names the place `path` of `document` itself."""
    node = fields
    for step in path:
        if not isinstance(node, dict):
            return False
        if isinstance(step, int):
            if not isinstance(document, list) or step >= len(document):
                return False
            document = document[step]
            node = owns_item(node, document, step)
        else:
            node = node.get(f"f:{step}")
            document = document.get(step) if isinstance(document, dict) else None
    return node is not None


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


class Intent:
    """Answers, lazily and once per source, whether something shows that a user wrote a place."""

    __slots__ = (
        "applied",
        "around",
        "everyones",
        "filled",
        "manifest",
        "old_manifest",
        "old_sets",
        "request",
    )

    def __init__(self, request: Request) -> None:
        self.request = request
        self.manifest: Any = ABSENT
        self.applied: list[Any] | None = None
        self.everyones: list[Any] | None = None
        self.old_manifest: Any = ABSENT
        self.old_sets: list[Any] | None = None
        within = request.within
        self.around: Intent | None = Intent(within.around) if within is not None else None
        self.filled = within.filled if within is not None else frozenset()

    def shown(self, path: Path) -> bool:
        """Whether the requesting user is shown to have written this place of the object.

        What an update leaves as it was may be another manager's, who applied it and still does.
        """
        request, path = self.request, real(path)
        if self.around is not None and request.within is not None:
            return self.around.shown((*request.within.path, *path))
        if request.raw is not None:
            return contains(request.raw, request.object, path)
        if self.manifest is ABSENT:
            self.manifest = last_applied(request.object)
            self.applied = list(applied_sets(request.object, request.field_manager))
        if contains(self.manifest, request.object, path):
            return True
        if any(owns(fields, request.object, path) for fields in self.applied or ()):
            return True
        return request.operation == "UPDATE" and self.applied_by_another(path)

    def applied_by_another(self, path: Path) -> bool:
        """Whether some manager's Apply entry has a place that is as it was before the update."""
        document, old = self.request.object, self.request.old
        if self.everyones is None:
            self.everyones = list(applied_sets(document, None))
        if not any(owns(fields, document, path) for fields in self.everyones):
            return False
        return bool(read(document, path) == value_before(old, document, path))

    def stated(self, path: Path) -> bool:
        """Whether somebody wrote a value that the server would also fill in at this place.

        Nobody has filled in anything in a wrapped object yet: what stands there was written.
        """
        if self.around is None:
            return self.shown(path)
        path = real(path)
        return path not in self.filled and contains(self.request.raw, self.request.object, path)

    def shown_before(self, path: Path) -> bool:
        """Whether some user is shown to have written this place of the old object."""
        old, path = self.request.old, real(path)
        within = self.request.within
        if self.around is not None and within is not None:
            before = within.old_path
            return before is not None and self.around.shown_before((*before, *path))
        if self.old_manifest is ABSENT:
            self.old_manifest = last_applied(old)
            self.old_sets = list(applied_sets(old, None))
        if contains(self.old_manifest, old, path):
            return True
        return any(owns(fields, old, path) for fields in self.old_sets or ())
