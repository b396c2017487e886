"""Evaluates jq texts on documents: native texts here, others by a compiler that the caller passes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from functools import lru_cache
from itertools import islice
from typing import Any, Final

from webhook.documents.read_model import show_value
from webhook.jq.compile import ForeignOperandsError
from webhook.jq.path import Program, QueryError, compile_query
from webhook.objects.path import Path

LIMIT: Final = 1000
LAST_INDEX: Final = 100_000
Run = Callable[[Any], Iterable[Any]]
Compile = Callable[[str], Run]
"""Compiles a text to a function. Compiling raises JqSyntaxError, calling the function JqError."""


class JqError(Exception):
    """An expression that cannot be evaluated on a document; `reason` is stable.

    With `passes`, the error is temporary: the same call can succeed later.
    """

    reason = "path-failed"
    passes = False


class JqSyntaxError(JqError):
    """A text that is not jq."""

    reason = "not-jq"


class NotNativeError(JqError):
    """A text that needs jq, but only native paths are supported."""

    reason = "not-native"


class JqLimitError(JqError):
    """An expression with more results than allowed."""

    reason = "too-many-results"


class NotAPlaceError(JqError):
    """A value cannot be written, because the expression is not a path."""

    reason = "not-a-place"


class Evaluator:
    """Evaluates jq texts. Texts that are not native need `compile_jq`; without it they are errors.

    As upstream does, `limit` results are already too many. Objects are iterated by sorted key,
    native or not.
    """

    def __init__(self, compile_jq: Compile | None = None, limit: int = LIMIT) -> None:
        self.compile_jq = compile_jq
        self.limit = limit

    def values(self, text: str, document: Any, *, lenient: bool = False) -> list[Any]:
        """Return every output. `lenient`: iterating an absent value is no error. Raises JqError."""
        program = native(text)
        if program is not None:
            try:
                found = program.matches_or_none(document) if lenient else program.matches(document)
                return self.check_count(text, [each.value for each in found])
            except ForeignOperandsError as error:
                if self.compile_jq is None:
                    raise JqError(str(error)) from error
            except QueryError as error:
                raise JqError(str(error)) from error
        return self.run(text, document)

    def places(self, text: str, document: Any, *, lenient: bool = False) -> list[Path]:
        """Return the path of every output, also of absent ones. Raises NotAPlaceError if computed."""
        program = native(text)
        if program is None:
            return [path_of(text, each) for each in self.paths(text, document)]
        try:
            found = program.matches_or_none(document) if lenient else program.matches(document)
        except QueryError as error:
            raise JqError(str(error)) from error
        return [path_of(text, each.path) for each in self.check_count(text, found)]

    def paths(self, text: str, document: Any) -> list[Any]:
        """Return the paths of jq's outputs. Raises NotAPlaceError for computed outputs."""
        self.check(text)
        try:
            return self.run(f"path({text})", document)
        except JqError as error:
            self.run(text, document)
            raise NotAPlaceError(f"`{show_value(text)}` can only be read") from error

    def check(self, text: str) -> None:
        """Raise JqSyntaxError if the text is not jq, NotNativeError if that needs jq to decide."""
        if native(text) is None:
            self.compile(text)

    def compile(self, text: str) -> Run:
        """Compile the text to a function of a document."""
        if self.compile_jq is None:
            raise NotNativeError(f"`{show_value(text)}` is not native, and no jq is at hand")
        return self.compile_jq(text)

    def run(self, text: str, document: Any) -> list[Any]:
        """Return jq's outputs."""
        run = self.compile(text)
        try:
            # libjq iterates in insertion order, native paths by sorted key. They must not be mixed.
            ordered = in_key_order(document)
        except RecursionError as error:
            raise JqError(f"`{show_value(text)}`: the document is nested too deep") from error
        return self.check_count(text, list(islice(run(ordered), self.limit)))

    def check_count(self, text: str, found: list[Any]) -> list[Any]:
        """Return the outputs. Raises JqLimitError if there are too many."""
        if len(found) >= self.limit:
            raise JqLimitError(f"`{show_value(text)}` gives {self.limit} results or more")
        return found


@lru_cache(maxsize=1024)
def native(text: str) -> Program | None:
    """Return the native program of a text, None if it needs jq."""
    program = compile_query(text)
    return program if isinstance(program, Program) else None


def path_of(text: str, found: Any) -> Path:
    """Convert a path of jq to a Path."""
    if isinstance(found, (list, tuple)) and all(isinstance(each, (str, int)) for each in found):
        return tuple(found)
    raise NotAPlaceError(f"`{show_value(text)}` computes a value, which cannot be written")


def in_key_order(value: Any) -> Any:
    """Return a copy with sorted keys."""
    if isinstance(value, dict):
        return {key: in_key_order(value[key]) for key in sorted(value)}
    if isinstance(value, list):
        return [in_key_order(each) for each in value]
    return value


def put(document: Any, path: Path, value: Any) -> Any:
    """Write a value in place like jq: missing parents are created, lists are filled with null.

    Returns the document, a new one if it was null. Raises NotAPlaceError.
    """
    if not path:
        return value
    step, rest = path[0], path[1:]
    node = document
    if node is None:
        node = [] if isinstance(step, int) else {}
    if isinstance(step, int) and isinstance(node, list) and 0 <= step < LAST_INDEX:
        node.extend([None] * (step + 1 - len(node)))
        node[step] = put(node[step], rest, value)
    elif isinstance(step, str) and isinstance(node, dict):
        node[step] = put(node.get(step), rest, value)
    else:
        raise NotAPlaceError(f"there is no path for `{show_value(str(step))}`")
    return node


def text_of(value: Any) -> str:
    """Return the value like jq's `tostring`, objects by sorted key."""
    if isinstance(value, str):
        return value
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, sort_keys=True)
