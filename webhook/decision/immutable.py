"""Restores values below immutable paths that an update with a whole list has dropped.

Client-side apply of a custom resource and PUT send lists as the manifest has them, without the
defaults that podgate wrote at creation. podgate writes no default below an immutable path. Without
this module every re-apply would be a change that the kind's own validation refuses.
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
    """The new value has a different value somewhere, so it is not the old one with gaps."""


def find_immutable_paths(
    request: Request, definition: Definition, document: Any
) -> tuple[Immutable, ...]:
    """Return the paths of an object that updates may not change, with the exceptions below them.

    A wrapped object does not exist yet, so only the object around it can make paths immutable.
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


def immutable_paths_below(immutable: Iterable[Immutable], path: Path) -> tuple[Immutable, ...]:
    """Return the immutable paths relative to `path`: the empty path if all below it is immutable."""
    cut = len(path)
    return tuple(
        (fixed_path[cut:], tuple(each[cut:] for each in exceptions if each[:cut] == path))
        for fixed_path, exceptions in immutable
        if fixed_path[:cut] == path[: len(fixed_path)]
    )


def restore_immutable(ev: Evaluation) -> tuple[Path, ...]:
    """Restore the old value of each immutable path where the new value only has gaps.

    Returns the restored paths. A value that a user wrote and removes is not restored.
    """
    found = []
    for fixed_path, _ in ev.immutable if ev.writes else ():
        old, new = read(ev.old, fixed_path), read(ev.request.object, fixed_path)
        if old is ABSENT or new is ABSENT or old == new:
            continue
        try:
            gaps = list(find_gaps(new, old, fixed_path))
        except DifferentError:
            continue
        if gaps and not any(ev.intent.was_written_by_user(path) for path in gaps):
            ev.write("", fixed_path, old, "kept", None, secret=True)
            found.append(fixed_path)
    return tuple(found)


def find_gaps(new: Any, old: Any, path: Path) -> Iterator[Path]:
    """Yield the paths of `old` that `new` lacks. Raises DifferentError if another value differs."""
    if isinstance(new, dict) and isinstance(old, dict):
        # Webhooks of operators write unknown values as null, for example creationTimestamp.
        if any(key not in old and value is not None for key, value in new.items()):
            raise DifferentError
        for key, value in old.items():
            if key in new and (new[key] is not None or value is None):
                yield from find_gaps(new[key], value, (*path, key))
            else:
                yield (*path, key)
    elif isinstance(new, list) and isinstance(old, list):
        yield from find_item_gaps(new, old, path)
    elif new != old:
        raise DifferentError


def find_item_gaps(new: list[Any], old: list[Any], path: Path) -> Iterator[Path]:
    """Yield the gaps of a list. Items are matched by their key, and keep their order."""
    at = 0
    for index, item in enumerate(old):
        if at < len(new) and (new[at] == item or is_same_item(new[at], item, index)):
            at += 1
            yield from find_gaps(new[at - 1], item, (*path, index))
        else:
            yield (*path, index)
    if at < len(new):
        raise DifferentError


def is_same_item(new: Any, item: Any, index: int) -> bool:
    """Return whether an item of the new list is this item of the old list."""
    return isinstance(new, dict) and same_item([new], item, index, ListKeys()) is new
