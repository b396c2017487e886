"""Reads the podgate.dev/exclude annotation: default items that a workload excludes."""

from __future__ import annotations

import json
from collections.abc import Mapping

from webhook.evaluation.state import Evaluation
from webhook.objects.path import Path, read
from webhook.pods.pod_view import PodView
from webhook.policy.names import closest
from webhook.policy.policy import ROLES
from webhook.policy.table import TABLE

ANNOTATION: Path = ("metadata", "annotations", "podgate.dev/exclude")
EXAMPLE = '{"environmentVariables": ["NAME"]}'


def excluded_items(ev: Evaluation) -> Mapping[str, frozenset[str]]:
    """Return item keys by field, `role:field` or `component:field`. Unreadable text is a warning."""
    text = read(ev.request.object, ANNOTATION)
    if not isinstance(text, str):
        return {}
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        data = None
    if not isinstance(data, dict):
        ev.warn("bad-exclude", "", ANNOTATION, EXAMPLE)
        return {}
    found: dict[str, frozenset[str]] = {}
    levels = {"", *ROLES, *(each.name for each in ev.definition.interface.components)}
    for name, keys in data.items():
        level, _, path = name.rpartition(":")
        path = TABLE.aliases.get(path, path)
        row = TABLE.fields.get(path)
        if row is None or row.items is None or level not in levels:
            ev.warn("unknown-exclude", path if row else "", ANNOTATION, suggest_field(path))
        elif not isinstance(keys, list) or not all(isinstance(key, str) for key in keys):
            ev.warn("bad-exclude", path, ANNOTATION, EXAMPLE)
        else:
            found[f"{level}:{path}" if level else path] = frozenset(keys)
    return found


def suggest_field(path: str) -> str:
    """Return the fix for a name that is no field with items. The annotation's text is not repeated."""
    near = closest(path, (each.path for each in TABLE.fields.values() if each.items is not None))
    return f"did you mean {near}?" if near else "write fields that have items, such as labels"


def excluded_before(view: PodView, ev: Evaluation) -> bool:
    """Return whether the annotation was the same before the update of an existing pod."""
    if view.old is None:
        return False
    return ev.once(
        ANNOTATION, lambda: read(ev.old, ANNOTATION) == read(ev.request.object, ANNOTATION)
    )
