"""The evaluation of native paths: nodes compiled to closures over one item."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import add, itemgetter, mul, sub
from typing import Any, Final, TypeAlias

from webhook.jq import nodes
from webhook.jq.nodes import Node, Operator, Path, Step, path_text

# Value, its path, and the paths of the elements that were passed.
Item: TypeAlias = tuple[Any, Path | None, tuple[Path, ...]]
Stage: TypeAlias = Callable[[Item], Iterable[Item]]

_KINDS: Final = {dict: "object", list: "array", str: "string", bool: "boolean", type(None): "null"}
_FIRST: Final = itemgetter(0)
_APPLY: Final[dict[Operator, Callable[[Any, Any], Any]]] = {"+": add, "-": sub, "*": mul}
_FOREIGN: Final[dict[Operator, tuple[set[str], ...]]] = {
    "+": ({"array"}, {"object"}, {"array", "null"}, {"object", "null"}),
    "-": ({"array"},),
    "*": ({"object"}, {"string", "number"}),
}
_ORDINARY: Final = 2**53  # integers below it are finite beyond doubt
_VERBS: Final[dict[Operator, str]] = {"+": "added", "-": "subtracted", "*": "multiplied"}


class QueryError(Exception):
    """A path that cannot be evaluated on a document."""


class ForeignOperandsError(QueryError):
    """Operands that jq supports and native paths do not. `?` must not hide this error."""


@dataclass(frozen=True, slots=True)
class Mode:
    """The evaluation options of the program `text`.

    `lenient`: iterating null gives nothing. `pinned`: the item's bindings name, for each
    iterator, the one element to visit; iterators beyond those visit all.
    """

    text: str
    lenient: bool = False
    pinned: bool = False

    def error(self, reason: str, path: Path | None) -> QueryError:
        return QueryError(f"{self.text}: {reason} at {path_text(path)}")


def kind(value: Any) -> str:
    """Return jq's name of the value's type."""
    return _KINDS.get(type(value), "number")


def compile_node(node: Node, mode: Mode) -> Stage:
    """Return a function from an item to the node's outputs, in jq's order."""
    stages: list[Stage] = []
    for is_walk, steps in groupby(nodes.steps_of(node), _is_walked):
        if is_walk:
            keys = tuple(step.key for step in steps if isinstance(step, nodes.Key))
            stages.append(_walk(keys, mode))
        else:
            stages.extend(_compile_step(step, mode) for step in steps)
    if not stages:
        return lambda item: (item,)
    run = stages.pop()
    while stages:
        run = _join(stages.pop(), run)
    return run


def _is_walked(step: Step) -> bool:
    return isinstance(step, nodes.Key) and not step.entry


def _join(first: Stage, rest: Stage) -> Stage:
    # Depth first like jq: outputs before an error still count inside `?`.
    def run(item: Item) -> Iterator[Item]:
        for middle in first(item):
            yield from rest(middle)

    return run


def _compile_step(step: Step, mode: Mode) -> Stage:
    match step:
        case nodes.Key(_, key):
            return _entry_key if key == "key" else _entry_value
        case nodes.Each(_, depth, entries):
            return _pin(depth, entries, mode) if mode.pinned else _each(entries, mode)
        case nodes.Entries():
            return _entries(mode)
        case nodes.Constant(_, value):
            return lambda item: ((value, None, item[2]),)
        case nodes.Select(_, operand, literal):
            return _select(compile_node(operand, mode), literal)
        case nodes.Alternative(_, left, right):
            return _alternative(compile_node(left, mode), compile_node(right, mode))
        case nodes.Arithmetic(_, operator, left, right):
            if (value_of := _scalar(nodes.steps_of(step), mode)) is not None:
                return lambda item: ((value_of(item[0], item[1]), None, item[2]),)
            return _arithmetic(operator, compile_node(left, mode), compile_node(right, mode), mode)
        case _:
            return _guard(compile_node(step.body, mode))


ValueOf: TypeAlias = Callable[[Any, Path | None], Any]


def _scalar(steps: Sequence[Step], mode: Mode) -> ValueOf | None:
    """Compute the one value of a program without iterators, without its path. None for others.

    Scale paths are such arithmetic on every element, for which generators would be slow.
    """
    if all(_is_walked(step) for step in steps):
        return _scalar_walk(tuple(step.key for step in steps if isinstance(step, nodes.Key)), mode)
    if len(steps) != 1:
        return None
    match steps[0]:
        case nodes.Constant(_, constant):
            return lambda value, path: constant
        case nodes.Alternative(_, left, right):
            one, two = (_scalar(nodes.steps_of(each), mode) for each in (left, right))
            return None if one is None or two is None else _scalar_alternative(one, two)
        case nodes.Arithmetic(_, operator, left, right):
            one, two = (_scalar(nodes.steps_of(each), mode) for each in (left, right))
            if one is None or two is None:
                return None
            return _scalar_arithmetic(operator, one, two, mode)
        case _:
            return None


def _scalar_walk(keys: Path, mode: Mode) -> ValueOf:
    def run(value: Any, path: Path | None) -> Any:
        found = value
        for key in keys:
            if found.__class__ is dict and key.__class__ is str:
                found = found.get(key)
            elif found is None:
                return None
            else:
                return walk(value, path, keys, mode)[0]
        return found

    return run


def _scalar_alternative(left: ValueOf, right: ValueOf) -> ValueOf:
    def run(value: Any, path: Path | None) -> Any:
        found = left(value, path)
        return right(value, path) if found is None or found is False else found

    return run


def _scalar_arithmetic(operator: Operator, left: ValueOf, right: ValueOf, mode: Mode) -> ValueOf:
    def run(value: Any, path: Path | None) -> Any:
        # jq evaluates the right operand first, so its error is reported.
        second = right(value, path)
        return _compute(operator, left(value, path), second, mode)

    return run


def _walk(keys: Path, mode: Mode) -> Stage:
    if any(isinstance(key, int) for key in keys):

        def run(item: Item) -> tuple[Item]:
            value, path = walk(item[0], item[1], keys, mode)
            return ((value, path, item[2]),)

        return run

    def run_fields(item: Item) -> tuple[Item]:
        start, path, bindings = item
        value = start
        for key in keys:
            if value.__class__ is dict:
                value = value.get(key)
            elif value is None:
                break
            else:
                walk(start, path, keys, mode)  # raises, naming the place
        return ((value, None if path is None else path + keys, bindings),)

    return run_fields


def walk(value: Any, path: Path | None, keys: Path, mode: Mode) -> tuple[Any, Path | None]:
    """Return the member `keys` of `value` at `path`, with its path."""
    for key in keys:
        value, path = _member(value, path, key, mode)
    return value, path


def _member(value: Any, path: Path | None, key: str | int, mode: Mode) -> tuple[Any, Path | None]:
    index = key
    found = None
    if isinstance(key, str) and isinstance(value, dict):
        found = value.get(key)
    elif isinstance(key, int) and isinstance(value, list):
        index = key + len(value) if key < 0 else key
        found = value[index] if 0 <= index < len(value) else None
    elif value is not None:
        shown = f'"{key}"' if isinstance(key, str) else key
        raise mode.error(f"cannot index {kind(value)} with {shown}", path)
    # Before the first element there is no path.
    if path is None or (isinstance(index, int) and index < 0):
        return found, None
    return found, (*path, index)


def _each(entries: bool, mode: Mode) -> Stage:
    def run(item: Item) -> Iterator[Item]:
        value, path, bindings = item
        for key, element in members(value, path, mode):
            assert path is not None  # what has no place is a scalar
            place = (*path, key)
            yield (key, element) if entries else element, place, (*bindings, place)

    return run


def members(value: Any, path: Path | None, mode: Mode) -> Iterable[tuple[str | int, Any]]:
    """Return the keys and elements of a collection, in order. Raises if it is not a collection."""
    if isinstance(value, list):
        return enumerate(value)
    if isinstance(value, dict):
        return sorted(value.items(), key=_FIRST)
    if value is None and mode.lenient:
        return ()
    raise mode.error(f"cannot iterate over {kind(value)}", path)


def _pin(depth: int, entries: bool, mode: Mode) -> Stage:
    further = _each(entries, mode)

    def run(item: Item) -> Iterable[Item]:
        value, path, pins = item
        if depth >= len(pins):
            return further(item)
        place = pins[depth]
        key = place[-1]
        # Programs that can be paired find a collection at one path, in every branch.
        assert place[:-1] == path
        return (((key, value[key]) if entries else value[key], place, pins),)

    return run


def _entries(mode: Mode) -> Stage:
    def run(item: Item) -> Iterator[Item]:
        value, path, _ = item
        if isinstance(value, (dict, list)):
            yield item
        elif value is not None or not mode.lenient:
            raise mode.error(f"{kind(value)} has no keys", path)

    return run


def _entry_key(item: Item) -> tuple[Item]:
    return ((item[0][0], None, item[2]),)


def _entry_value(item: Item) -> tuple[Item]:
    return ((item[0][1], item[1], item[2]),)


def _select(operand: Stage, literal: nodes.Scalar) -> Stage:
    wanted = _is(literal)

    def run(item: Item) -> Iterator[Item]:
        for value, _, _ in operand(item):
            if wanted(value):
                yield item

    return run


def _is(literal: nodes.Scalar) -> Callable[[Any], bool]:
    if literal is None or isinstance(literal, bool):
        return lambda value: value is literal
    # In Python 1 equals true, in JSON it does not.
    return lambda value: value == literal and value.__class__ is not bool


def _alternative(left: Stage, right: Stage) -> Stage:
    def run(item: Item) -> Iterator[Item]:
        found = False
        for output in left(item):
            if output[0] is not None and output[0] is not False:
                found = True
                yield output
        if not found:
            yield from right(item)

    return run


def _guard(body: Stage) -> Stage:
    def run(item: Item) -> Iterator[Item]:
        try:
            yield from body(item)
        except ForeignOperandsError:
            raise
        except QueryError:
            return

    return run


def _arithmetic(operator: Operator, left: Stage, right: Stage, mode: Mode) -> Stage:
    def run(item: Item) -> Iterator[Item]:
        # jq evaluates the right operand in the outer loop.
        for second, _, second_bindings in right(item):
            for first, _, first_bindings in left(item):
                value = _compute(operator, first, second, mode)
                yield value, None, max(first_bindings, second_bindings, key=len)

    return run


def _compute(operator: Operator, first: Any, second: Any, mode: Mode) -> Any:
    if first.__class__ is int and second.__class__ is int:
        result = _APPLY[operator](first, second)
        if -_ORDINARY < result < _ORDINARY:
            return result
    if operator == "+" and _is_scalar(first) and _is_scalar(second):
        if first is None or second is None:
            return second if first is None else first
        if isinstance(first, str) and isinstance(second, str):
            return first + second
    if not (_is_number(first) and _is_number(second)):
        raise _operand_error(operator, kind(first), kind(second), mode)
    try:
        result = _APPLY[operator](first, second)
        if math.isfinite(result):
            return result
    except OverflowError:
        pass
    raise ForeignOperandsError(f"{mode.text}: the number is too large")


def _operand_error(operator: Operator, first: str, second: str, mode: Mode) -> QueryError:
    if {first, second} in _FOREIGN[operator]:
        return ForeignOperandsError(
            f"{mode.text}: {first} {operator} {second} is not native, only numbers are"
        )
    return QueryError(f"{mode.text}: {first} and {second} cannot be {_VERBS[operator]}")


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _is_scalar(value: Any) -> bool:
    return not isinstance(value, (dict, list))
