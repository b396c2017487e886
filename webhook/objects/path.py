"""Paths in a JSON document: tuples of keys and indices."""

from __future__ import annotations

import enum
import json
import re
from functools import lru_cache
from typing import Any, Final, Literal

Path = tuple[str | int, ...]


class Absent(enum.Enum):
    """The type of ABSENT, an enum so that `is ABSENT` narrows."""

    ABSENT = "absent"

    def __bool__(self) -> Literal[False]:
        return False

    def __repr__(self) -> str:
        return "absent"


ABSENT: Final = Absent.ABSENT


PLAIN_KEY = re.compile(r"[A-Za-z0-9_-]+")
BAD_ESCAPE = re.compile(r"~(?![01])")
INDEX = re.compile(r"0|[1-9][0-9]*")
LONGEST_KEPT: Final = 512
"""Users choose keys, which can have megabytes. Longer keys are not cached, and are cut in messages."""


def read(document: Any, path: Path) -> Any | Absent:
    """Return the value at `path`, or ABSENT if a step finds no such key or index, or a wrong type."""
    node = document
    for step in path:
        if isinstance(node, dict):
            node = node.get(step, ABSENT)
        elif isinstance(node, list) and isinstance(step, int) and 0 <= step < len(node):
            node = node[step]
        else:
            return ABSENT
    return node


def token(key: str) -> str:
    """Return one step of an RFC 6901 pointer with its slash. `~` and `/` in the key are escaped."""
    return _short_token(key) if len(key) <= LONGEST_KEPT else _token(key)


def _token(key: str) -> str:
    return "/" + key.replace("~", "~0").replace("/", "~1")


_short_token = lru_cache(maxsize=4096)(_token)


def encode(path: Path) -> str:
    """Return `path` as an RFC 6901 pointer. The empty path is the empty string."""
    return "".join(f"/{step}" if isinstance(step, int) else token(step) for step in path)


def decode(text: str, *, indices: bool = False) -> Path:
    """Convert an RFC 6901 pointer to a path. Digits stay text; with `indices` they become numbers.

    Raises ValueError for text that does not begin with `/` or has a `~` not followed by 0 or 1.
    """
    if not text:
        return ()
    if not text.startswith("/"):
        raise ValueError(f"a JSON Pointer begins with /, found {json.dumps(text)}")
    if BAD_ESCAPE.search(text):
        raise ValueError(f"in a JSON Pointer ~ is written ~0, found {json.dumps(text)}")
    tokens = [token.replace("~1", "/").replace("~0", "~") for token in text[1:].split("/")]
    if not indices:
        return tuple(tokens)
    return tuple(int(token) if INDEX.fullmatch(token) else token for token in tokens)


def display(path: Path) -> str:
    """Show `path` in a message: `spec.containers[0].image`, other keys as `metadata.labels["a/b"]`.

    Such keys are escaped to ASCII, so that no key can play tricks with a terminal or a log.
    """
    if not path:
        return "(whole object)"
    return "".join(map(_show_step, path)).removeprefix(".")


def _show_step(step: str | int) -> str:
    if isinstance(step, int):
        return f"[{step}]"
    if len(step) > LONGEST_KEPT:
        step = f"{step[: LONGEST_KEPT // 4]}…{step[-LONGEST_KEPT // 2 :]}"
    return _show_key(step)


@lru_cache(maxsize=4096)
def _show_key(key: str) -> str:
    return f".{key}" if PLAIN_KEY.fullmatch(key) else f"[{json.dumps(key)}]"
