"""Whether a stored object still has what was written, however servers spell it."""

from __future__ import annotations

import base64
import contextlib
import json
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import jsonpatch
from kubernetes.utils.quantity import parse_quantity

from tests.e2e.objects import Json
from tests.e2e.recorder import Recording


def patched(review: Recording) -> Json:
    """The object of a review with the patch of its answer."""
    body: Json = review.request["object"]
    text = review.response.get("patch")
    if text is None:
        return body
    return dict(jsonpatch.apply_patch(body, json.loads(base64.b64decode(text))))


def lost(wanted: Any, held: Any, place: str = "") -> Iterator[str]:
    """Places of `wanted` that `held` lacks or has otherwise; more than is wanted may be there.

    Items of a list may stand between others, but in their order.
    """
    if isinstance(wanted, dict):
        if not isinstance(held, dict):
            yield f"{place}: {json.dumps(wanted)}"
            return
        for key, value in wanted.items():
            if key not in held:
                yield f"{place}.{key}: {json.dumps(value)} is gone"
            else:
                yield from lost(value, held[key], f"{place}.{key}")
    elif isinstance(wanted, list):
        yield from lost_items(wanted, held if isinstance(held, list) else [], place)
    elif not same(wanted, held):
        yield f"{place}: {wanted!r} is {held!r}"


def lost_items(wanted: list[Any], held: list[Any], place: str) -> Iterator[str]:
    """Items that do not come again, each behind the one before it."""
    rest = iter(held)
    for index, item in enumerate(wanted):
        if not any(not any(lost(item, each)) for each in rest):
            yield f"{place}[{index}]: {json.dumps(item)} is not in {json.dumps(held)}"
            return


def same(one: Any, other: Any) -> bool:
    """Whether two values are equal, as quantities too."""
    if type(one) is type(other) and one == other:
        return True
    amounts = [amount(one), amount(other)]
    return None not in amounts and amounts[0] == amounts[1]


def amount(value: Any) -> Decimal | None:
    """A quantity as a number; None for what is none."""
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        return None
    with contextlib.suppress(ValueError):
        return Decimal(parse_quantity(value))
    return None
