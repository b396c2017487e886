"""The syntax nodes of a native jq path, as plain data."""

import json
import re
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

Path: TypeAlias = tuple[str | int, ...]
Scalar: TypeAlias = str | int | float | bool | None
Operator: TypeAlias = Literal["+", "-", "*"]

_PLAIN_FIELD: Final = re.compile(r"[a-zA-Z_][a-zA-Z_0-9]*\Z", re.ASCII)


class NotNativeError(Exception):
    """The text is not a native path, from position `at`."""

    def __init__(self, at: int, reason: str) -> None:
        super().__init__(reason)
        self.at = at
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Key:
    """`.name`, `["name"]` or `[3]`. `entry`: on the output of `to_entries[]`.

    `at` is the position in the text, here and below.
    """

    at: int
    key: str | int
    entry: bool = False


@dataclass(frozen=True, slots=True)
class Each:
    """`[]`. `depth` counts the iterators before it; `entries`: after `to_entries`."""

    at: int
    depth: int = 0
    entries: bool = False


@dataclass(frozen=True, slots=True)
class Entries:
    """`to_entries`."""

    at: int


@dataclass(frozen=True, slots=True)
class Constant:
    """A literal."""

    at: int
    value: Scalar


@dataclass(frozen=True, slots=True)
class Select:
    """`select(operand == literal)`."""

    at: int
    operand: "Node"
    literal: Scalar


@dataclass(frozen=True, slots=True)
class Alternative:
    """`left // right`."""

    at: int
    left: "Node"
    right: "Node"


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """`left + right`, and the same with `-` and `*`."""

    at: int
    operator: Operator
    left: "Node"
    right: "Node"


@dataclass(frozen=True, slots=True)
class Guarded:
    """`body?`."""

    at: int
    body: "Node"


@dataclass(frozen=True, slots=True)
class Chain:
    """A sequence of steps, with or without pipes. Without steps it is `.`."""

    steps: tuple["Step", ...]


Step: TypeAlias = Key | Each | Entries | Constant | Select | Alternative | Arithmetic | Guarded
Node: TypeAlias = Step | Chain


def chain(*nodes: Node) -> Node:
    """Return a flat sequence of the nodes."""
    steps: list[Step] = []
    for node in nodes:
        steps.extend(node.steps if isinstance(node, Chain) else (node,))
    return steps[0] if len(steps) == 1 else Chain(tuple(steps))


def steps_of(node: Node) -> tuple[Step, ...]:
    """Return the node as a sequence of steps."""
    return node.steps if isinstance(node, Chain) else (node,)


def append_key(base: str, key: str | int) -> str:
    """Return the canonical text of the member `key` of `base`."""
    if isinstance(key, str) and _PLAIN_FIELD.match(key):
        return f".{key}" if base == "." else f"{base}.{key}"
    return f"{base}[{json.dumps(key, ensure_ascii=False)}]"


def path_text(path: Path | None) -> str:
    """Show a concrete path in a message, `.spec.tasks[0]`. None is a computed value."""
    if path is None:
        return "a computed value"
    text = "."
    for key in path:
        text = append_key(text, key)
    return text
