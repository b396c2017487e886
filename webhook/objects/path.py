"""Places in a JSON document: tuples of keys and indices, read, written and shown."""

from __future__ import annotations

import enum
import json
import re
from functools import lru_cache
from typing import Any, Final, Literal, Protocol

Path = tuple[str | int, ...]


class Absent(enum.Enum):
    """The type of ABSENT, an enum so that `is ABSENT` narrows."""

    ABSENT = "absent"

    def __bool__(self) -> Literal[False]:
        return False

    def __repr__(self) -> str:
        return "absent"


ABSENT: Final = Absent.ABSENT


class Places(Protocol):
    """Knows where in a document the places of something assembled are; paths are relative to it."""

    def real(self, path: Path) -> Path:
        """The place in the document, or the nearest that it has for what it cannot hold."""

    def holds(self, path: Path) -> bool:
        """Whether the document has such a place at all."""

    def writes(self, path: Path, value: Any) -> list[tuple[Path, Any]]:
        """What is set where for a value to stand there; nothing where no place is."""

    def item(self, path: Path, value: Any) -> Any:
        """An item of the list at that path, as the document writes it."""

    def assemble(self, document: Any, path: Path) -> Any:
        """What is needed of the whole to read one place, as another copy of the document has it."""


class Assembled(str):
    """The first step of paths in what a document states piece by piece, such as a pod in parts.

    Everybody may use such paths like others; `real` gives the document's own.
    """

    __slots__ = ("places",)
    places: Places


def real(path: Path) -> Path:
    """The place in the document that a path stands for; the path itself, nearly always."""
    if path and path[0].__class__ is Assembled:
        return path[0].places.real(path[1:])
    return path


PLAIN_KEY = re.compile(r"[A-Za-z0-9_-]+")
BAD_ESCAPE = re.compile(r"~(?![01])")
INDEX = re.compile(r"0|[1-9][0-9]*")
LONGEST_KEPT: Final = 512
"""Users choose keys, which may have megabytes: longer ones are not cached, and are shown in part."""


def read(document: Any, path: Path) -> Any | Absent:
    """The value at `path`, or ABSENT when a step finds no such key or index, or a wrong type."""
    node = document
    for step in path:
        if isinstance(node, dict):
            node = node.get(step, ABSENT)
        elif isinstance(node, list) and isinstance(step, int) and 0 <= step < len(node):
            node = node[step]
        else:
            node = ABSENT
            break
    if node is ABSENT and path and path[0].__class__ is Assembled:
        return read(path[0].places.assemble(document, path[1:]), path[1:])
    return node


def token(key: str) -> str:
    """One step of an RFC 6901 pointer, slash included; `~` and `/` of the key are escaped."""
    return _short_token(key) if len(key) <= LONGEST_KEPT else _token(key)


def _token(key: str) -> str:
    return "/" + key.replace("~", "~0").replace("/", "~1")


_short_token = lru_cache(maxsize=4096)(_token)


def encode(path: Path) -> str:
    """`path` as an RFC 6901 pointer; the empty path is the empty text."""
    return "".join(f"/{step}" if isinstance(step, int) else token(step) for step in path)


def decode(text: str, *, indices: bool = False) -> Path:
    """An RFC 6901 pointer as a path; digits stay text, with `indices` they become numbers.

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
    """`path` for people: `spec.containers[0].image`, other keys as `metadata.labels["a/b"]`.

    Such keys are escaped to ASCII, so that no key can play tricks with a terminal or a log.
    """
    if not path:
        return "(whole object)"
    return "".join(map(_shown, path)).removeprefix(".")


def _shown(step: str | int) -> str:
    if isinstance(step, int):
        return f"[{step}]"
    if len(step) > LONGEST_KEPT:
        step = f"{step[: LONGEST_KEPT // 4]}…{step[-LONGEST_KEPT // 2 :]}"
    return _named(step)


@lru_cache(maxsize=4096)
def _named(key: str) -> str:
    return f".{key}" if PLAIN_KEY.fullmatch(key) else f"[{json.dumps(key)}]"
