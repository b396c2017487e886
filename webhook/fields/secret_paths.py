"""Places whose text is never printed, whatever field is read from it: env, args, command, annotations."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from typing import Any, Final

from webhook.objects.path import Path
from webhook.policy.row import Field

LISTS: Final = frozenset({"env", "args", "command"})
MAP: Final = "annotations"


def is_secret_place(path: Path) -> bool:
    """Whether a place is within env, args, command or annotations; labels of such names are not."""
    return any(
        step == MAP or (step in LISTS and isinstance(following, int))
        for step, following in pairwise(path)
    )


def is_hidden(path: Path, value: Any) -> bool:
    """Whether a comparable value of a field may not be told, since it is free text of such a place.

    Numbers say no more than their field does: a maximum of replicas is the same in an annotation.
    """
    return not isinstance(value, int | Fraction) and is_secret_place(path)


def shown_native(field: Field, path: Path, native: Any) -> Any:
    """A native value of a field as it stands; None where it is never shown."""
    if field.secret:
        return None
    if not is_secret_place(path):
        return native
    try:
        return None if is_hidden(path, field.reading().read(native)) else native
    except (ValueError, TypeError, AttributeError):
        return None
