"""Fills in the defaults of a CRD's schema and of an operator's webhook, as the profile lists them."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from webhook.interface.profile import Profile, ShadowDefault
from webhook.jq.path import Match
from webhook.objects.draft import Draft
from webhook.objects.path import Path, read
from webhook.pods.location import LocationError
from webhook.pods.matching import matches


def with_operator_defaults(profile: Profile, document: Any) -> Any:
    """Return the document as the API server and the operator complete it, in the profile's order.

    A value is written only into an object that exists, as both do. Unreadable paths are skipped,
    because evaluation reports them. A document that lacks nothing is returned itself.
    """
    draft = Draft(document)
    for default in profile.shadow_defaults:
        for match, value in places_of(default, draft.document):
            empty = match.value is None or is_empty(default, match.value)
            if empty and match.path and is_object(draft.document, match.path[:-1]):
                draft.set(match.path, copy.deepcopy(value))
    return draft.document


def places_of(default: ShadowDefault, document: Any) -> Iterator[tuple[Match, Any]]:
    """Yield the matches of a default, each with the value that is filled in there."""
    try:
        found = matches((default.place,), document)
        same = matches((default.same_as,), document) if default.same_as is not None else ()
    except LocationError:
        return
    values = {each.bindings: each.value for each in same}
    for match in found:
        value = default.value if default.same_as is None else values.get(match.bindings)
        if value is not None:
            yield match, value


def is_empty(default: ShadowDefault, value: Any) -> bool:
    """Return whether the operator treats a value as absent: an empty text, or 0 if it cannot tell."""
    return default.by == "operator" and (value == "" or (default.zero_too and is_zero(value)))


def is_zero(value: Any) -> bool:
    """Whether a value is the number 0."""
    return type(value) in (int, float) and value == 0


def is_object(document: Any, path: Path) -> bool:
    """Whether the document has an object at the path."""
    return type(read(document, path)) is dict


@dataclass(frozen=True, slots=True)
class Filled:
    """The value that the schema or the operator fills in at a path. 0 may count as absent."""

    value: Any
    zero_too: bool


def find_filled_paths(profile: Profile, document: Any) -> dict[Path, Filled]:
    """Return the paths that have the value that the schema or the operator fills in."""
    return {
        match.path: Filled(value, default.zero_too)
        for default in profile.shadow_defaults
        for match, value in places_of(default, document)
        if match.path is not None and match.value == value
    }
