"""jq texts evaluated on documents: native ones here, all others by a compiler that is passed in."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from functools import lru_cache
from itertools import islice
from typing import Any, Final

from webhook.documents.read_model import shown
from webhook.jq.compile import ForeignOperandsError
from webhook.jq.path import Program, QueryError, compile_query
from webhook.objects.path import Path

LIMIT: Final = 1000
LAST_INDEX: Final = 100_000
Run = Callable[[Any], Iterable[Any]]
Compile = Callable[[str], Run]
"""From a text to what evaluates it. Compiling raises JqSyntaxError, running JqError."""


class JqError(Exception):
    """An expression that cannot be evaluated on a document; `reason` is stable.

    Where `passes`, the same call may succeed when it is made again.
    """

    reason = "path-failed"
    passes = False


class JqSyntaxError(JqError):
    """A text that is no jq at all."""

    reason = "not-jq"


class NotNativeError(JqError):
    """A text that needs jq where only native paths are evaluated."""

    reason = "not-native"


class JqLimitError(JqError):
    """An expression with more results than allowed."""

    reason = "too-many-results"


class NotAPlaceError(JqError):
    """A value is to be written where the expression names no place."""

    reason = "not-a-place"


class Evaluator:
    """Evaluates jq texts; `compile_jq` does what is not native, without it that is an error.

    As upstream does, `limit` results are already too many. Objects are iterated by sorted key,
    native or not.
    """

    def __init__(self, compile_jq: Compile | None = None, limit: int = LIMIT) -> None:
        self.compile_jq = compile_jq
        self.limit = limit

    def values(self, text: str, document: Any, *, lenient: bool = False) -> list[Any]:
        """Every output; `lenient`: iterating what is absent gives none. Raises JqError."""
        program = native(text)
        if program is not None:
            try:
                found = program.matches_or_none(document) if lenient else program.matches(document)
                return self.limited(text, [each.value for each in found])
            except ForeignOperandsError as error:
                if self.compile_jq is None:
                    raise JqError(str(error)) from error
            except QueryError as error:
                raise JqError(str(error)) from error
        return self.run(text, document)

    def places(self, text: str, document: Any, *, lenient: bool = False) -> list[Path]:
        """Where every output is, absent places included; raises NotAPlaceError for computed ones."""
        program = native(text)
        if program is None:
            return [path_of(text, each) for each in self.paths(text, document)]
        try:
            found = program.matches_or_none(document) if lenient else program.matches(document)
        except QueryError as error:
            raise JqError(str(error)) from error
        return [path_of(text, each.path) for each in self.limited(text, found)]

    def paths(self, text: str, document: Any) -> list[Any]:
        """The paths that jq gives; raises NotAPlaceError for what it can only read."""
        self.check(text)
        try:
            return self.run(f"path({text})", document)
        except JqError as error:
            self.run(text, document)
            raise NotAPlaceError(f"`{shown(text)}` can only be read") from error

    def check(self, text: str) -> None:
        """Raise JqSyntaxError if the text is no jq, NotNativeError if nobody here can tell."""
        if native(text) is None:
            self.compiled(text)

    def compiled(self, text: str) -> Run:
        """The text as a function of a document."""
        if self.compile_jq is None:
            raise NotNativeError(f"`{shown(text)}` is not native, and no jq is at hand")
        return self.compile_jq(text)

    def run(self, text: str, document: Any) -> list[Any]:
        """The outputs that jq gives."""
        run = self.compiled(text)
        try:
            # libjq iterates in the order of insertion, native paths by sorted key: never mix them.
            ordered = in_key_order(document)
        except RecursionError as error:
            raise JqError(f"`{shown(text)}`: the document is nested too deep") from error
        return self.limited(text, list(islice(run(ordered), self.limit)))

    def limited(self, text: str, found: list[Any]) -> list[Any]:
        """The outputs themselves unless there are too many."""
        if len(found) >= self.limit:
            raise JqLimitError(f"`{shown(text)}` gives {self.limit} results or more")
        return found


@lru_cache(maxsize=1024)
def native(text: str) -> Program | None:
    """The native program of a text, None where it needs jq."""
    program = compile_query(text)
    return program if isinstance(program, Program) else None


def path_of(text: str, found: Any) -> Path:
    """A path as jq gives it, as ours."""
    if isinstance(found, (list, tuple)) and all(isinstance(each, (str, int)) for each in found):
        return tuple(found)
    raise NotAPlaceError(f"`{shown(text)}` computes a value, which cannot be written")


def in_key_order(value: Any) -> Any:
    """A copy whose objects have their keys in order."""
    if isinstance(value, dict):
        return {key: in_key_order(value[key]) for key in sorted(value)}
    if isinstance(value, list):
        return [in_key_order(each) for each in value]
    return value


def put(document: Any, path: Path, value: Any) -> Any:
    """Write a value as jq does, in place: what is missing on the way is made, lists filled with null.

    Returns the document, which is another one where it was null; raises NotAPlaceError.
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
        raise NotAPlaceError(f"there is no path for `{shown(str(step))}`")
    return node


def text_of(value: Any) -> str:
    """The value as jq's `tostring` has it, objects by sorted key."""
    if isinstance(value, str):
        return value
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, sort_keys=True)
