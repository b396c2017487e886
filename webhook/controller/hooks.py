"""Decides what to do about one webhook configuration, given the one in the cluster."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from webhook.controller.match_conditions import FROM_DEFINITIONS
from webhook.controller.platforms import additions, injected_ca

Json = dict[str, Any]
SWITCHED_OFF = "podgate.dev/switched-off"
"""The annotation that makes everything fail open until it is removed."""
SELECTOR = "namespaceSelector"
FILLED_IN: Mapping[str, Any] = {
    "namespaceSelector": {},
    "objectSelector": {},
    "matchPolicy": "Equivalent",
    "reinvocationPolicy": "Never",
}
"""The defaults that the API server sets in an entry."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """The configuration that should be applied. It fails closed only after it was `proven` to work,
    and skips more requests only after every process is `current`.
    """

    body: Json
    proven: bool = True
    current: bool = True

    @property
    def path(self) -> str:
        """Its path in the API."""
        return f"{self.collection}/{self.body['metadata']['name']}"

    @property
    def collection(self) -> str:
        """The path of its kind."""
        plural = f"{self.body['kind'].lower()}s"
        return f"/apis/{self.body['apiVersion']}/{plural}"


def desired_configuration(wanted: Wanted, found: Json | None) -> Json:
    """The configuration to apply. It fails open if it is not proven, or if somebody switched it off.

    A configuration that already fails closed stays so: a new leader has proven nothing yet.
    """
    body = copy.deepcopy(wanted.body)
    if not wanted.current:
        widen(body, found)
    closed = {entry.get("name") for entry in entries_of(found) if is_closed(entry)}
    off = is_switched_off(found)
    for entry in body["webhooks"]:
        if off or not (wanted.proven or entry["name"] in closed):
            entry["failurePolicy"] = "Ignore"
    return body


def widen(body: Json, found: Json | None) -> None:
    """Remove the match conditions that the cluster does not have yet.

    The API server compares conditions as text: a changed one is removed first, and added later.
    """
    known = {entry.get("name"): entry.get("matchConditions") or () for entry in entries_of(found)}
    for entry in body["webhooks"]:
        kept = [
            each
            for each in entry.pop("matchConditions", ())
            if each["name"] not in FROM_DEFINITIONS or each in known.get(entry["name"], ())
        ]
        if kept:
            entry["matchConditions"] = kept


def is_switched_off(found: Json | None) -> bool:
    """Whether an administrator made a configuration fail open."""
    annotations = ((found or {}).get("metadata") or {}).get("annotations") or {}
    return bool(annotations.get(SWITCHED_OFF))


def differs(wanted: Json, found: Json | None) -> bool:
    """Whether the cluster's configuration differs from the wanted one.

    Values that the API server sets, and additions of a platform that podgate knows, do not count.
    """
    if found is None:
        return True
    metadata = found.get("metadata") or {}
    for part in ("labels", "annotations"):
        has = metadata.get(part) or {}
        if any(has.get(key) != each for key, each in (wanted["metadata"].get(part) or {}).items()):
            return True
    entries = entries_of(found)
    if len(entries) != len(wanted["webhooks"]):
        return True
    pairs = zip(wanted["webhooks"], entries, strict=True)
    return any(entry_differs(one, other) for one, other in pairs)


def entry_differs(wanted: Json, found: Json) -> bool:
    """Whether one entry differs; members that only the server sets do not count."""
    for key in {*wanted, *found}:
        if key == SELECTOR and additions(wanted.get(key) or {}, found.get(key) or {}) is not None:
            continue
        if key in wanted:
            if key == "clientConfig" and injected_ca(wanted[key], found.get(key) or {}):
                continue
            if wanted[key] != found.get(key):
                return True
        elif found[key] and found[key] != FILLED_IN.get(key):
            return True
    return False


def platform_selectors(wanted: Json, found: Json | None) -> tuple[str, ...]:
    """Return what a platform added to the namespace selectors of a configuration, sorted."""
    of_entry = {each.get("name"): each.get(SELECTOR) or {} for each in entries_of(found)}
    added = (
        additions(each.get(SELECTOR) or {}, of_entry.get(each["name"], {})) or ()
        for each in wanted["webhooks"]
    )
    return tuple(sorted({text for several in added for text in several}))


def fails_closed(found: Json | None) -> bool:
    """Whether some entry of a configuration rejects requests if podgate does not answer."""
    return any(map(is_closed, entries_of(found)))


def entries_of(found: Json | None) -> list[Json]:
    """The webhooks of a configuration."""
    return (found or {}).get("webhooks") or []


def is_closed(entry: Json) -> bool:
    """Whether one webhook rejects requests if podgate does not answer."""
    return bool(entry.get("failurePolicy") == "Fail")


def switch_change(found: Json, *, off: bool) -> Json:
    """The change that switches a configuration off, or on again."""
    change: Json = {"metadata": {"annotations": {SWITCHED_OFF: "true" if off else None}}}
    if off:
        entries = copy.deepcopy(found.get("webhooks") or [])
        for entry in entries:
            entry["failurePolicy"] = "Ignore"
        change["webhooks"] = entries
    return change
