"""Forms of pieces that go over a pod as a patch, and containers that are text."""

from __future__ import annotations

import json
from typing import Any, Final

from webhook.interface.pod_keys import CONTAINER_KEYS, FOLDED_CONTAINER_KEYS
from webhook.objects.path import ABSENT, Path, display, read
from webhook.pods.fragments import Piece, Pieces, put

WHOLE: Final = ("metadata", "spec")
NOTHING: Final = type(None)
MEMBERS: Final = CONTAINER_KEYS | {"image"}
FOLDED_MEMBERS: Final = FOLDED_CONTAINER_KEYS | {"image"}


def put_overrides(parts: Pieces, pod: Any, at: Path, place: Path, value: Any) -> None:
    """A patch over the pod or one of its containers; text can be read only."""
    form = "told" if isinstance(value, str) else "same"
    parts.add(at, place, form, given=value is not None)
    patch = decoded(value)
    whole = isinstance(patch, dict) and all(isinstance(patch.get(k, {}), dict) for k in WHOLE)
    if whole or (at and isinstance(patch, dict)):
        put_patch(parts, pod, at, place, patch, form)
    elif patch is not None:
        parts.refuse(place, "a map of what goes over the pod", value)


def put_patch(
    parts: Pieces, pod: Any, at: Path, place: Path, patch: dict[str, Any], form: str
) -> None:
    """Every value of a patch; lists go behind what is there, so that nothing is hidden."""
    for key, value in patch.items():
        here = (*at, key)
        real = place if form == "told" else (*place, key)
        held = read(pod, here)
        if isinstance(held, (dict, list)) and not isinstance(value, (held.__class__, NOTHING)):
            parts.refuse(real, "a list" if isinstance(held, list) else "a map", value)
        elif isinstance(value, dict):
            put_patch(parts, pod, here, real, value, form)
        elif isinstance(value, list):
            before = held if isinstance(held, list) else []
            parts.pieces.append(Piece(here, real, form, True, len(before)))
            put(pod, here, [*before, *value])
        elif value is not None:
            if held not in (ABSENT, None, value) and here in parts.latest:
                parts.overridden.append((here, parts.latest[here], held))
            parts.add(here, real, form, given=True)
            put(pod, here, value)


def put_text(parts: Pieces, pod: Any, at: Path, place: Path, value: Any) -> None:
    """Containers in JSON text, named after their places where they have no name."""
    found = decoded(value)
    if value is not None and not (isinstance(found, list) and all(map(plainly_spelled, found))):
        parts.refuse(place, "a list of containers as JSON text, keys spelled as in a pod", value)
        return
    for index, each in enumerate(found or ()):
        held = read(pod, at)
        before = held if isinstance(held, list) else []
        parts.add((*at, len(before)), place, "told", given=True)
        put(pod, at, [*before, {"name": f"{display(place)}[{index}]", **each}])


def decoded(value: Any) -> Any:
    """The JSON that a text holds; the text itself where it is none, and other values as they are."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


def plainly_spelled(container: Any) -> bool:
    """Whether a container in text is a map whose keys a reader that ignores case takes alike."""
    return isinstance(container, dict) and not any(
        key not in MEMBERS and key.casefold() in FOLDED_MEMBERS for key in container
    )
