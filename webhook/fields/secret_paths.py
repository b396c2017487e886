"""Paths whose text is never printed, for any field: env, args, command, annotations."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from typing import Any, Final

from webhook.objects.path import Path
from webhook.policy.row import Field

LISTS: Final = frozenset({"env", "args", "command"})
MAP: Final = "annotations"


def is_secret_path(path: Path) -> bool:
    """Return whether a path is inside env, args, command or annotations, not labels of such names."""
    return any(
        step == MAP or (step in LISTS and isinstance(following, int))
        for step, following in pairwise(path)
    )


def is_hidden(path: Path, value: Any) -> bool:
    """Return whether a comparable value must be hidden, because it is free text at such a path.

    Numbers reveal no more than their field: a maximum of replicas is the same in an annotation.
    """
    return not isinstance(value, int | Fraction) and is_secret_path(path)


def shown_native(field: Field, path: Path, native: Any) -> Any:
    """Return a native value of a field, None if it is never shown."""
    if field.secret:
        return None
    if not is_secret_path(path):
        return native
    try:
        return None if is_hidden(path, field.reading().read(native)) else native
    except (ValueError, TypeError, AttributeError):
        return None
