"""Counts the work of a decision: lines of Python that run, and comparisons of texts below them.

A count is the same on a busy machine, which seconds are not.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any


class Text(str):
    """A text whose comparisons are counted: those that lists and tuples make, too."""

    __slots__ = ()
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        return str.__eq__(self, other)

    def __lt__(self, other: str) -> bool:
        return str.__lt__(self, other)


def counted(node: Any) -> Any:
    """A copy of a JSON value with such texts."""
    if isinstance(node, dict):
        return {key: counted(value) for key, value in node.items()}
    if isinstance(node, list):
        return [counted(each) for each in node]
    return Text(node) if isinstance(node, str) else node


@contextmanager
def traced(trace: Callable[[FrameType, str, Any], Any] | None) -> Iterator[None]:
    """Have every line reported for a while, then whoever was told before."""
    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(before)


def lines(work: Callable[[], object]) -> int:
    """How many lines run; a loop on one line counts each time round."""
    count = 0

    def line(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal count
        count += 1
        return line

    with traced(line):
        work()
    return count
