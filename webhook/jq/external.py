"""jq that is not native: paths that a worker evaluates before a decision, which gets them as facts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Final

from webhook.documents.read_model import shown
from webhook.jq.expressions import Evaluator, JqError, NotAPlaceError
from webhook.jq.path import Match, Program, QueryError
from webhook.objects.path import ABSENT, Path, read

RESULT: Final = "each result of a path that jq evaluates"
Output = tuple[Path | None, Any]


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a text has no results for a document: a sentence for people."""

    text: str


Outputs = tuple[Output, ...] | Failure
"""What a text gives for a document: places, or values where it computes them."""


class Facts:
    """The results of foreign texts for the documents of one request, by identity."""

    __slots__ = ("known",)

    def __init__(self, known: Iterable[tuple[Any, Mapping[str, Outputs]]] = ()) -> None:
        self.known = tuple(known)

    def of(self, document: Any) -> Mapping[str, Outputs]:
        """The results for a document, none for one that nobody evaluated."""
        return next((found for each, found in self.known if each is document), {})


@dataclass(frozen=True, slots=True)
class Current:
    """The facts of a decision: those of its object, which hold for copies of it, and the old one's."""

    new: Mapping[str, Outputs]
    old: Mapping[str, Outputs]
    old_object: Any

    def of(self, document: Any) -> Mapping[str, Outputs]:
        """The results for the old object, or for the object and every copy of it."""
        return self.old if document is self.old_object and document is not None else self.new


CURRENT: ContextVar[Current | None] = ContextVar("podgate-facts", default=None)


@contextmanager
def given(facts: Facts, new: Any, old: Any = None) -> Iterator[None]:
    """Let foreign programs give these results while one object, and what it was, is looked at."""
    token = CURRENT.set(Current(facts.of(new), facts.of(old) if old is not None else {}, old))
    try:
        yield
    finally:
        CURRENT.reset(token)


@contextmanager
def before_update() -> Iterator[None]:
    """Let copies of the old object be read by the old object's results."""
    known = CURRENT.get()
    if known is None:
        yield
        return
    token = CURRENT.set(Current(known.old, known.old, None))
    try:
        yield
    finally:
        CURRENT.reset(token)


class ForeignProgram(Program):
    """A path that only jq can evaluate. Its results are numbered, and paired by their number.

    `assignable` is what its place in the definition needs: jq tells only with a document at hand.
    """

    by_number = True

    def __init__(self, text: str, *, assignable: bool) -> None:
        self.text = text
        self.assignable = assignable
        self.iterators = (RESULT,)
        self.is_plain = False
        self.nested = True
        self.elementwise = True

    def __repr__(self) -> str:
        return f"ForeignProgram({self.text!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return restored, (self.text, self.assignable)

    def matches(self, document: Any) -> list[Match]:
        """The results for the document, values as it has them now; QueryError without any."""
        current = CURRENT.get()
        found = current.of(document).get(self.text) if current is not None else None
        if found is None:
            raise QueryError(f"`{shown(self.text)}` needs jq, which was not run here")
        if isinstance(found, Failure):
            raise QueryError(found.text)
        return [
            Match(path, value if path is None else value_at(document, path), ((index,),))
            for index, (path, value) in enumerate(found)
        ]

    def matches_or_none(self, document: Any) -> list[Match]:
        """The same: what is absent is jq's own matter."""
        return self.matches(document)

    def elements(self, document: Any) -> list[tuple[Path, ...]]:
        """One element for each result."""
        return [each.bindings for each in self.matches(document)]

    def matches_of(self, document: Any, bindings: tuple[Path, ...]) -> list[Match]:
        """The result of that number."""
        return [each for each in self.matches(document) if each.bindings == bindings]


def restored(text: str, assignable: bool) -> ForeignProgram:
    """A program from its pickled form."""
    return ForeignProgram(text, assignable=assignable)


def value_at(document: Any, path: Path) -> Any:
    """The value at a path, None when absent."""
    value = read(document, path)
    return None if value is ABSENT else value


def evaluate(
    programs: Iterable[ForeignProgram], evaluator: Evaluator, documents: Iterable[Any]
) -> Facts:
    """The facts of these programs for each document; a failure is one of them, nothing is raised."""
    programs = tuple(programs)
    return Facts(
        (document, {each.text: outputs(each, evaluator, document) for each in programs})
        for document in documents
        if document is not None
    )


def outputs(program: ForeignProgram, evaluator: Evaluator, document: Any) -> Outputs:
    """What one program gives for a document: its places where it names any, else its values."""
    try:
        try:
            found = places(program.text, evaluator, document)
        except JqError as error:
            # A process that another request has brought down must not answer this one.
            if not error.passes:
                raise
            found = places(program.text, evaluator, document)
    except JqError as error:
        return Failure(str(error))
    if program.assignable and any(path is None for path, _ in found):
        return Failure(f"`{shown(program.text)}` computes a value where it must name a path")
    return found


def places(text: str, evaluator: Evaluator, document: Any) -> tuple[Output, ...]:
    """The places that a text names, or the values that it computes; raises JqError."""
    try:
        named = evaluator.places(text, document)
    except NotAPlaceError:
        return tuple((None, value) for value in evaluator.values(text, document))
    return tuple((counted_from_the_start(path, document), None) for path in named)


def counted_from_the_start(path: Path, document: Any) -> Path:
    """The path without negative indices, which jq counts from the end of a list."""
    node, found = document, []
    for step in path:
        if isinstance(step, int) and step < 0:
            step += len(node) if isinstance(node, list) else 0
        node = value_at(node, (step,))
        found.append(step)
    return tuple(found)
