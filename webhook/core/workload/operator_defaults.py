"""What a CRD's schema and an operator's webhook fill in, as the profile of a kind lists it."""

from __future__ import annotations

import copy
from typing import Any

from webhook.core import pointer
from webhook.core.patch import Draft
from webhook.core.pointer import Path
from webhook.core.workload.locating.location import LocationError
from webhook.core.workload.locating.matching import matches
from webhook.core.workload.profile import Profile


def with_operator_defaults(profile: Profile, document: Any) -> Any:
    """Return the document as the API server and the operator complete it, in the profile's order.

    A value is written only into an object that exists, as both do. What cannot be read stays as it
    is: evaluation reports it. A document that lacks nothing is returned itself.
    """
    draft = Draft(document)
    for default in profile.shadow_defaults:
        try:
            found = matches((default.place,), draft.document)
        except LocationError:
            continue
        for match in found:
            if match.value is None and match.path and is_object(draft.document, match.path[:-1]):
                draft.set(match.path, copy.deepcopy(default.value))
    return draft.document


def is_object(document: Any, path: Path) -> bool:
    """Whether the document has an object at the path."""
    return type(pointer.read(document, path)) is dict


def places_filled(profile: Profile, document: Any) -> dict[Path, Any]:
    """Return the places that have the value which the schema or the operator would have filled in."""
    found: dict[Path, Any] = {}
    for default in profile.shadow_defaults:
        try:
            matched = matches((default.place,), document)
        except LocationError:
            continue
        for match in matched:
            if match.path is not None and match.value == default.value:
                found[match.path] = default.value
    return found
