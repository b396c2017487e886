"""Bounds on one request: how deep, how large, how long it may have waited."""

from __future__ import annotations

import re
import threading
from functools import lru_cache
from typing import Any

import orjson

MAX_DEPTH = 100
BODY_LIMIT = 7 * 1024 * 1024
DECODED_LIMIT = 48 * 1024 * 1024
SMALL = 16 * 1024
"""A body of this size has few entries, however short they are, so that nobody has to count them."""
LONGEST_TIMEOUT = 30.0

DURATION = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(h|ms|m|s|us|µs|ns)")
SECONDS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}
LONGEST_DURATION = 64


def nest(depth: int, inner: Any) -> list[Any]:
    """`inner` inside `depth` lists."""
    for _ in range(depth):
        inner = [inner]
    return inner  # type: ignore[no-any-return]  # a list as soon as depth is 1


def dumps_at_most(limit: int = 4_096) -> int:
    """How deep orjson goes before it refuses to encode; it is a constant of the library."""
    value: Any = [0]
    for depth in range(1, limit):
        try:
            orjson.dumps(value)
        except TypeError:
            return depth - 1
        value = [value]
    raise RuntimeError("orjson encodes any depth, so it cannot detect what is nested too deep")


SPARE = dumps_at_most() - MAX_DEPTH
"""Levels to wrap a value in, so that orjson's own limit becomes MAX_DEPTH.

Letting the encoder find out takes a third of the time of the quickest walk in Python.
"""


class Wrapping(threading.local):
    """One nest of lists per thread, whose innermost list takes the value to test."""

    def __init__(self) -> None:
        self.inner: list[Any] = [None, None]
        self.outer = nest(SPARE - 1, self.inner)


WRAPPING = Wrapping()


def too_deep(first: Any, second: Any = None) -> bool:
    """Whether one of two decoded JSON values is nested deeper than MAX_DEPTH; never recurses."""
    inner = WRAPPING.inner
    inner[0], inner[1] = first, second
    try:
        orjson.dumps(WRAPPING.outer)
    except TypeError:
        return True
    finally:
        inner[0] = inner[1] = None
    return False


EMPTY, DICT, LIST, ENTRY, QUOTE = 72, 200, 72, 64, 28
"""Bytes of what CPython makes of a JSON value: an entry is a key's place and a number, a text has two
quotes. `tests/server/test_decoded.py` holds them against what is allocated.
"""
OTHER = bytes(set(range(256)) - set(b'{}[,"'))


def decoded_size(body: bytes) -> int:
    """Return about how many bytes a body takes once decoded, rather too many than too few.

    It is not decoded for that. JSON inside a text counts as if it were part of the body.
    """
    marks = body.translate(None, OTHER)
    empty = marks.count(b"{}")
    # A text with one wide character takes four bytes for each, and keeps itself as UTF-8 too once it
    # is written, as it is for the depth.
    texts = len(body) * (2 if body.isascii() and b"\\u" not in body else 6)
    return (
        texts
        + EMPTY * empty
        + DICT * (marks.count(b"{") - empty)
        + LIST * marks.count(b"[")
        + ENTRY * marks.count(b",")
        + QUOTE * marks.count(b'"')
    )


def without_texts(document: Any) -> Any:
    """The object without its annotations where all are texts, which nest nothing.

    What kubectl leaves there is a third of an object, and the dearest one to encode.
    """
    metadata: Any = document.get("metadata") if isinstance(document, dict) else None
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    if not isinstance(annotations, dict):
        return document
    if not all(value.__class__ is str for value in annotations.values()):
        return document
    return {**document, "metadata": {**metadata, "annotations": None}}


@lru_cache(maxsize=64)
def timeout_of(query: bytes) -> float:
    """Seconds that the caller waits, from `timeout=10s` as Kubernetes appends it; at most 30.

    A query without a readable timeout gives 30, the longest a webhook can have.
    """
    for each in query.split(b"&"):
        name, _, value = each.partition(b"=")
        if name == b"timeout":
            return min(duration(value.decode("latin-1")) or LONGEST_TIMEOUT, LONGEST_TIMEOUT)
    return LONGEST_TIMEOUT


def duration(text: str) -> float:
    """Seconds of a duration as Go writes it; 0 when it cannot be read or is too long to be one."""
    seconds, position = 0.0, 0
    if len(text) > LONGEST_DURATION:
        return 0.0
    while found := DURATION.match(text, position):
        seconds += float(found[1]) * SECONDS[found[2]]
        position = found.end()
    return seconds if position == len(text) else 0.0
