"""What a whole-list write drops below a place that updates may not change comes back as it was.

Client-side apply of a custom resource and PUT send lists as the manifest has them, without what
was written here at creation. Below an immutable place no default may land, so leaving the gap would
turn every re-apply into a change that the kind's own validation refuses.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from webhook.evaluation.intent import same_item
from webhook.evaluation.request import Immutable, Request
from webhook.evaluation.state import Evaluation
from webhook.objects.lookup import ListKeys
from webhook.objects.path import ABSENT, Path, read
from webhook.pods.definition import Definition
from webhook.pods.matching import matches


class DifferentError(Exception):
    """The new value says something else than the old one, so it is not the old one with gaps."""


def immutable_places(
    request: Request, definition: Definition, document: Any
) -> tuple[Immutable, ...]:
    """The places of an object that updates may not change, with the exceptions below them.

    Of a wrapped object nothing has been made that could not change; what is around it may say so.
    """
    if request.within is not None:
        return request.within.immutable
    found = []
    for each in definition.profile.immutable:
        exceptions = tuple(
            match.path for match in matches(each.exceptions, document) if match.path is not None
        )
        found += [
            (match.path, exceptions)
            for match in matches((each.place,), document)
            if match.path is not None
        ]
    return tuple(found)


def immutable_below(places: Iterable[Immutable], path: Path) -> tuple[Immutable, ...]:
    """The same seen from a place: whether all there is so, or what below it."""
    cut = len(path)
    return tuple(
        (place[cut:], tuple(each[cut:] for each in exceptions if each[:cut] == path))
        for place, exceptions in places
        if place[:cut] == path[: len(place)]
    )


def restore_immutable(ev: Evaluation) -> tuple[Path, ...]:
    """Write the old value of each immutable place of which the new one only lacks something.

    Gives those places. Whatever a user is shown to have written before stays away when they take it away.
    """
    found = []
    for place, _ in ev.immutable if ev.writes else ():
        old, new = read(ev.old, place), read(ev.request.object, place)
        if old is ABSENT or new is ABSENT or old == new:
            continue
        try:
            gaps = list(missing(new, old, place))
        except DifferentError:
            continue
        if gaps and not any(ev.intent.shown_before(path) for path in gaps):
            ev.write("", place, old, "kept", None, secret=True)
            found.append(place)
    return tuple(found)


def missing(new: Any, old: Any, path: Path) -> Iterator[Path]:
    """The places of `old` that `new` lacks; DifferentError where it has another value."""
    if isinstance(new, dict) and isinstance(old, dict):
        # Operators' own webhooks write what they do not know as null, such as creationTimestamp.
        if any(key not in old and value is not None for key, value in new.items()):
            raise DifferentError
        for key, value in old.items():
            if key in new and (new[key] is not None or value is None):
                yield from missing(new[key], value, (*path, key))
            else:
                yield (*path, key)
    elif isinstance(new, list) and isinstance(old, list):
        yield from missing_items(new, old, path)
    elif new != old:
        raise DifferentError


def missing_items(new: list[Any], old: list[Any], path: Path) -> Iterator[Path]:
    """The same for a list, whose items are told by their key; those that are left keep their order."""
    at = 0
    for index, item in enumerate(old):
        if at < len(new) and (new[at] == item or keyed(new[at], item, index)):
            at += 1
            yield from missing(new[at - 1], item, (*path, index))
        else:
            yield (*path, index)
    if at < len(new):
        raise DifferentError


def keyed(new: Any, item: Any, index: int) -> bool:
    """Whether an item of the new list stands for this one of the old list."""
    return isinstance(new, dict) and same_item([new], item, index, ListKeys()) is new
