"""Native jq paths: programs that return concrete paths of a document with their values."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Final, NamedTuple, TypeAlias

from webhook.jq import analyse, nodes
from webhook.jq.compile import Mode, QueryError, compile_node, members, walk
from webhook.jq.nodes import Node, Path
from webhook.jq.parse import found_at, parse

__all__ = [
    "Match",
    "Path",
    "Program",
    "QueryError",
    "Unsupported",
    "compile_query",
    "first_place",
]


class Match(NamedTuple):
    """One output: its path (None for a computed value), its value, and the elements passed.

    A tuple because a frozen dataclass costs six times as much to make, and admission makes many.
    """

    path: Path | None
    value: Any
    bindings: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class Unsupported:
    """A text that is not native, because of `found` at `position`, for `reason`."""

    text: str
    position: int
    found: str
    reason: str


_Run: TypeAlias = Callable[[Any], list[Match]]
_RunOf: TypeAlias = Callable[[Any, tuple[Path, ...]], list[Match]]
_new: Final = tuple.__new__


class Program:
    """A native program. Documents are JSON values of Python's own types.

    With `by_number`, results are paired with ids by number, not by element.
    """

    by_number = False

    def __init__(self, text: str, facts: analyse.Facts, node: Node) -> None:
        self.text = text
        self.assignable = facts.assignable
        self.iterators = facts.iterators
        self.is_plain = analyse.is_plain(node)
        self.nested = facts.nested
        self.elementwise = facts.elementwise
        self._node = node

    def __repr__(self) -> str:
        return f"Program({self.text!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return compile_query, (self.text,)

    def matches(self, document: Any) -> list[Match]:
        """Return every output in jq's order, objects by sorted key. Raises QueryError if jq fails."""
        return self._strict(document)

    def matches_or_none(self, document: Any) -> list[Match]:
        """Like `matches`, for admission: iterating null or an absent value has no output."""
        return self._lenient(document)

    def elements(self, document: Any) -> list[tuple[Path, ...]]:
        """Return the bindings of every element that its iterators visit. Iterating null visits none."""
        return list(dict.fromkeys(match.bindings for match in self._elements(document)))

    def matches_of(self, document: Any, bindings: tuple[Path, ...]) -> list[Match]:
        """Return the outputs if the first iterators visit only the element in `bindings`."""
        return self._run_pinned(document, bindings)

    @cached_property
    def _strict(self) -> _Run:
        return _runner(self._node, Mode(self.text))

    @cached_property
    def _lenient(self) -> _Run:
        return _runner(self._node, Mode(self.text, lenient=True))

    @cached_property
    def _elements(self) -> _Run:
        return _runner(analyse.elements(self._node), Mode(self.text, lenient=True))

    @cached_property
    def _run_pinned(self) -> _RunOf:
        return _pinned_runner(self._node, Mode(self.text, lenient=True, pinned=True))


@lru_cache(maxsize=4096)
def compile_query(text: str) -> Program | Unsupported:
    """Return the program of `text`, or why and where it is not native. Raises nothing.

    Definitions repeat the same paths, and are read again with every change of a file.
    """
    try:
        facts, node = analyse.analyse(parse(text))
    except nodes.NotNativeError as problem:
        return Unsupported(text, problem.at, found_at(text, problem.at), problem.reason)
    return Program(text, facts, node)


def first_place(program: Program) -> Program | None:
    """Return the first field of a computed number: `.n` of `(.n // 1) * .m`. None without one."""
    node = analyse.first_place(parse(program.text))
    if node is None:
        return None
    facts, resolved = analyse.analyse(node)
    return Program(program.text, facts, resolved) if facts.assignable else None


def _runner(node: Node, mode: Mode) -> _Run:
    """Compile the node to a function of a document. Most real paths have one of two fast forms."""
    match _keys_between_iterators(node):
        case (keys,):
            return _plain(keys, mode)
        case (before, after):
            return _one_iterator(before, after, mode)
        case _:
            return _general(node, mode)


def _keys_between_iterators(node: Node) -> tuple[tuple[str, ...], ...]:
    """Return the keys before, between and after the iterators of a path, () for other nodes."""
    groups: list[tuple[str, ...]] = [()]
    for step in nodes.steps_of(node):
        match step:
            case nodes.Key(_, str(key), False):
                groups[-1] = (*groups[-1], key)
            case nodes.Each(_, _, False):
                groups.append(())
            case _:
                return ()
    return tuple(groups)


def _general(node: Node, mode: Mode) -> _Run:
    stage = compile_node(node, mode)

    def run(document: Any) -> list[Match]:
        return [
            _new(Match, (path, value, bindings))
            for value, path, bindings in stage((document, (), ()))
        ]

    return run


def _plain(keys: tuple[str, ...], mode: Mode) -> _Run:
    def run(document: Any) -> list[Match]:
        value = document
        for key in keys:
            if value.__class__ is dict:
                value = value.get(key)
            elif value is None:
                break
            else:
                walk(document, (), keys, mode)  # raises, naming the place
        return [_new(Match, (keys, value, ()))]

    return run


def _one_iterator(before: tuple[str, ...], after: tuple[str, ...], mode: Mode) -> _Run:
    def run(document: Any) -> list[Match]:
        collection = document
        for key in before:
            if collection.__class__ is dict:
                collection = collection.get(key)
            elif collection is None:
                break
            else:
                walk(document, (), before, mode)  # raises, naming the place
        matches = []
        for index, element in members(collection, before, mode):
            place = (*before, index)
            value = element
            for key in after:
                if value.__class__ is dict:
                    value = value.get(key)
                elif value is None:
                    break
                else:
                    walk(element, place, after, mode)
            matches.append(_new(Match, (place + after, value, (place,))))
        return matches

    return run


def _pinned_runner(node: Node, mode: Mode) -> _RunOf:
    """Compile the node to a function of a document and the elements that its iterators visit."""
    match _keys_between_iterators(node):
        case (keys,):
            return _outside_elements(keys, mode)
        case (before, after):
            return _one_element(before, after, mode)
        case _:
            stage = compile_node(node, mode)

    def run(document: Any, bindings: tuple[Path, ...]) -> list[Match]:
        return [_new(Match, (p, v, b)) for v, p, b in stage((document, (), bindings))]

    return run


def _outside_elements(keys: tuple[str, ...], mode: Mode) -> _RunOf:
    plain = _plain(keys, mode)

    def run(document: Any, bindings: tuple[Path, ...]) -> list[Match]:
        return [_new(Match, (path, value, bindings)) for path, value, _ in plain(document)]

    return run


def _one_element(before: tuple[str, ...], after: tuple[str, ...], mode: Mode) -> _RunOf:
    def run(document: Any, bindings: tuple[Path, ...]) -> list[Match]:
        place = bindings[0]
        # Programs that can be paired find a collection at one path.
        assert place[:-1] == before
        element = document
        for step in place:
            element = element[step]
        value = element
        for key in after:
            if value.__class__ is dict:
                value = value.get(key)
            elif value is None:
                break
            else:
                walk(element, place, after, mode)  # raises, naming the place
        return [_new(Match, (place + after, value, bindings))]

    return run
