"""jq that is not native. A worker evaluates it before a decision, and passes the results as facts.

`ForeignProgram.with_results` adds the results to the programs of one object.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from webhook.documents.read_model import show_value
from webhook.jq.expressions import Evaluator, JqError, NotAPlaceError
from webhook.jq.path import Match, Program, QueryError
from webhook.objects.path import ABSENT, Path, read

RESULT: Final = "each result of a path that jq evaluates"
Output = tuple[Path | None, Any]


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a text has no results for a document, as a sentence."""

    text: str


Outputs = tuple[Output, ...] | Failure
"""The results of a text for a document: paths, or computed values."""


@dataclass(frozen=True, slots=True)
class Results:
    """The results of jq for an object and its copies, and for one `other` object.

    In an update, these are the new and the old object, in either order.
    """

    own: Mapping[str, Outputs]
    of_other: Mapping[str, Outputs]
    other: Any

    def of(self, document: Any) -> Mapping[str, Outputs]:
        """Return the results for the other object if it is this one, else those of the object."""
        return self.of_other if document is self.other and document is not None else self.own


class Facts:
    """The results of texts that need jq for the documents of one request, by identity."""

    __slots__ = ("known",)

    def __init__(self, known: Iterable[tuple[Any, Mapping[str, Outputs]]] = ()) -> None:
        self.known = tuple(known)

    def of(self, document: Any) -> Mapping[str, Outputs]:
        """Return the results for a document, empty if it was not evaluated."""
        return next((found for each, found in self.known if each is document), {})

    def results(self, document: Any, other: Any = None) -> Results:
        """Return the results for a document and its copies, and for another version of the object."""
        return Results(self.of(document), {} if other is None else self.of(other), other)


class ForeignProgram(Program):
    """A path that only jq can evaluate. Its results are paired by their number.

    `assignable` is whether the definition needs a path here. jq can check that only with a document.
    Without `results` it fails on every document.
    """

    by_number = True

    def __init__(self, text: str, *, assignable: bool, results: Results | None = None) -> None:
        self.text = text
        self.assignable = assignable
        self.results = results
        self.iterators = (RESULT,)
        self.is_plain = False
        self.nested = True
        self.elementwise = True

    def __repr__(self) -> str:
        return f"ForeignProgram({self.text!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return restore_program, (self.text, self.assignable)

    def with_results(self, results: Results) -> ForeignProgram:
        """Return the same path with jq's results for one object."""
        return ForeignProgram(self.text, assignable=self.assignable, results=results)

    def matches(self, document: Any) -> list[Match]:
        """Return the results for the document, with its present values. Raises QueryError without any."""
        found = self.results.of(document).get(self.text) if self.results is not None else None
        if found is None:
            raise QueryError(f"`{show_value(self.text)}` needs jq, which was not run here")
        if isinstance(found, Failure):
            raise QueryError(found.text)
        return [
            Match(path, value if path is None else value_at(document, path), ((index,),))
            for index, (path, value) in enumerate(found)
        ]

    def matches_or_none(self, document: Any) -> list[Match]:
        """Like `matches`. jq itself handles absent values."""
        return self.matches(document)

    def elements(self, document: Any) -> list[tuple[Path, ...]]:
        """Return one element for each result."""
        return [each.bindings for each in self.matches(document)]

    def matches_of(self, document: Any, bindings: tuple[Path, ...]) -> list[Match]:
        """Return the result with this number."""
        return [each for each in self.matches(document) if each.bindings == bindings]


def restore_program(text: str, assignable: bool) -> ForeignProgram:
    """Restore a pickled program."""
    return ForeignProgram(text, assignable=assignable)


def value_at(document: Any, path: Path) -> Any:
    """Return the value at a path, None if absent."""
    value = read(document, path)
    return None if value is ABSENT else value


def evaluate(
    programs: Iterable[ForeignProgram], evaluator: Evaluator, documents: Iterable[Any]
) -> Facts:
    """Return the facts of these programs for each document. Failures are facts; nothing is raised."""
    programs = tuple(programs)
    return Facts(
        (document, {each.text: outputs(each, evaluator, document) for each in programs})
        for document in documents
        if document is not None
    )


def outputs(program: ForeignProgram, evaluator: Evaluator, document: Any) -> Outputs:
    """Return the results of one program for a document: its paths if it has any, else its values."""
    try:
        try:
            found = places(program.text, evaluator, document)
        except JqError as error:
            # A process that another request has crashed must not fail this one.
            if not error.passes:
                raise
            found = places(program.text, evaluator, document)
    except JqError as error:
        return Failure(str(error))
    if program.assignable and any(path is None for path, _ in found):
        return Failure(f"`{show_value(program.text)}` computes a value where it must name a path")
    return found


def places(text: str, evaluator: Evaluator, document: Any) -> tuple[Output, ...]:
    """Return the paths of a text, or the values that it computes. Raises JqError."""
    try:
        named = evaluator.places(text, document)
    except NotAPlaceError:
        return tuple((None, value) for value in evaluator.values(text, document))
    return tuple((counted_from_the_start(path, document), None) for path in named)


def counted_from_the_start(path: Path, document: Any) -> Path:
    """Return the path without negative indices, which jq counts from the end of a list."""
    node, found = document, []
    for step in path:
        if isinstance(step, int) and step < 0:
            step += len(node) if isinstance(node, list) else 0
        node = value_at(node, (step,))
        found.append(step)
    return tuple(found)
