"""Native paths against libjq: the same values, places and errors, whatever compiles natively."""

import json
import os
import random
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import jq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from webhook.jq import nodes
from webhook.jq.compile import ForeignOperandsError
from webhook.jq.parse import parse
from webhook.jq.path import Match, Program, QueryError, Unsupported, compile_query

Output = TypeVar("Output")
PAIRS = int(os.environ.get("PODGATE_FUZZ_PAIRS", "5000"))
DOCUMENTS = 20
KEYS = ("a", "b", "c", "a-b", "é", "", "0", "key", "value", "name", "x\ny", '"', "日本", "𝄞")
TEXTS = ("", "a", "x", "é", "1", "null", "a b", "\\")
LEXEMES = (
    ".",
    ".a",
    ".b",
    ".c",
    "[",
    "]",
    "[]",
    "(",
    ")",
    "|",
    "//",
    "?",
    "+",
    "-",
    "*",
    "==",
    "0",
    "1",
    "-1",
    "true",
    "null",
    "to_entries",
    "select",
    ",",
    "..",
    ".key",
    ".value",
    '"a"',
    '."a-b"',
    ".[0]",
    ".[]",
    "?//",
    "=",
    "1.5",
    "select(",
    "to_entries[]",
    "and",
    "1.",
    ".5",
    "1e2",
)


class Author:
    """Writes random documents and random programs over their keys."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def document(self) -> Any:
        return self.value(4, 0.9, 0.95)

    def value(self, depth: int, objects: float = 0.4, collections: float = 0.7) -> Any:
        roll = self.random.random()
        if depth and roll < objects:
            keys = self.random.choices(KEYS, (9, 9, 6, *(1 for _ in KEYS[3:])), k=4)
            # libjq keeps the order of insertion, native paths sort.
            return {key: self.value(depth - 1) for key in sorted(set(keys))}
        if depth and roll < collections:
            kinds = self.random.choice(((0.9, 0.9), (0.4, 0.7)))
            return [self.value(depth - 1, *kinds) for _ in range(self.random.randrange(4))]
        return self.scalar()

    def scalar(self) -> Any:
        choices = (None, None, True, False, self.random.choice(TEXTS), 1.5, self.integer())
        return self.random.choice(choices)

    def integer(self) -> int:
        return self.random.choice((0, 1, 2, 3, -1, 7, 2**31, 2**52))

    def program(self, depth: int = 3) -> str:
        parts = [self.alternative(depth) for _ in range(self.random.choice((1, 1, 2, 3)))]
        return self.random.choice((" | ", "|")).join(parts)

    def alternative(self, depth: int) -> str:
        parts = [self.sum(depth) for _ in range(self.random.choice((1, 1, 1, 1, 2, 3)))]
        return self.random.choice((" // ", "  //\n")).join(parts)

    def sum(self, depth: int) -> str:
        text = self.term(depth)
        while self.random.random() < 0.12:
            text += f" {self.random.choice('+-*')} {self.term(depth)}"
        return text

    def term(self, depth: int) -> str:
        roll = self.random.random()
        if depth and roll < 0.15:
            head = f"({self.program(depth - 1)})"
        elif depth and roll < 0.22:
            sides = [self.sum(depth - 1), self.literal()]
            self.random.shuffle(sides)
            head = f"select({sides[0]} == {sides[1]})"
        elif roll < 0.30:
            return f"{self.random.choice(('', '.a|', '.b | '))}{self.entries()}"
        elif roll < 0.38:
            return self.literal()
        else:
            head = self.random.choice((".a", ".b", ".c", '."a-b"', ".[]", ".a[]", ".b?", ". "))
        return head + "".join(self.suffix() for _ in range(self.random.choice((0, 0, 1, 1, 2, 3))))

    def entries(self) -> str:
        guards = self.random.choice(("[]", "[]", "[]?", "[]??", "?[]", " | .[]"))
        condition = self.random.choice(("", "", '|select(.key == "a")', "|select(.value.a==1)"))
        part = self.random.choice((" | .key", ".key", "|.value", ".value.a", ' | ."value"?', ""))
        return f"to_entries{guards}{condition}{part}"

    def literal(self) -> str:
        value = self.random.choice((self.random.choice(TEXTS), 1, 2, -3, 0, 1.5, True, False, None))
        return json.dumps(value, ensure_ascii=self.random.random() < 0.5)

    def suffix(self) -> str:
        key = json.dumps(self.random.choice(KEYS), ensure_ascii=self.random.random() < 0.5)
        forms = (".a", ".b", ".c", ".a", ".b", "[]", ".[]", f"[{key}]", f".{key}", f".[{key}]")
        index = f"[{self.random.choice((0, 1, -1, -2, 5, -9))}]"
        return self.random.choice((*forms, index)) + self.random.choice(("", "", "?", "??"))

    def soup(self) -> str:
        count = self.random.randrange(1, 9)
        return self.random.choice(("", " ")).join(self.random.choices(LEXEMES, k=count))


def lenient(node: nodes.Node) -> str:
    """A jq program for the node in which iterating null gives nothing."""
    match node:
        case nodes.Chain(steps):
            return f"({' | '.join(lenient(step) for step in steps) or '.'})"
        case nodes.Key(_, key):
            return f".[{json.dumps(key)}]"
        case nodes.Each():
            return "(select(. != null) | .[])"
        case nodes.Entries():
            return "(select(. != null) | to_entries)"
        case nodes.Constant(_, value):
            return json.dumps(value)
        case nodes.Select(_, operand, literal):
            return f"select({lenient(operand)} == {json.dumps(literal)})"
        case nodes.Alternative(_, left, right):
            return f"({lenient(left)} // {lenient(right)})"
        case nodes.Arithmetic(_, operator, left, right):
            return f"({lenient(left)} {operator} {lenient(right)})"
        case nodes.Guarded(_, body):
            return f"({lenient(body)})?"
        case _:
            raise AssertionError(node)


def libjq(text: str, documents: list[Any]) -> list[dict[str, Any]]:
    """What libjq gives for each document: `v`alues, `p`laces, values in the `l`enient reading."""
    soft = lenient(parse(text))
    answer = "{v: (try [%s] catch null), p: (try [path(%s)] catch null), l: (try [%s] catch null)}"
    program = jq.compile(f"map({answer % (text, text, soft)})")
    result: list[dict[str, Any]] = program.input_value(documents).first()
    return result


def native(run: Callable[[Any], list[Output]], document: Any) -> list[Output] | None:
    """The outputs, or None for an error that jq must have too."""
    try:
        return run(document)
    except ForeignOperandsError:
        raise
    except QueryError:
        return None


def exact(value: Any) -> Any:
    """The value in a form in which 1 and true differ and 3.0 and 3 do not."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return json.dumps(value)


def resolved(path: list[Any], document: Any) -> tuple[Any, ...] | None:
    """The concrete path: negative indices counted from the start, None before the first element."""
    value, concrete = document, []
    for key in path:
        index = key
        if isinstance(key, int) and key < 0:
            index = key + len(value or ())
            if index < 0:
                return None
        concrete.append(index)
        value = at(value, index)
    return tuple(concrete)


def at(value: Any, key: Any) -> Any:
    if isinstance(value, list):
        return value[key] if key < len(value) else None
    return None if value is None else value.get(key)


def check(program: Program, document: Any, expected: dict[str, Any]) -> None:
    matches = native(program.matches, document)
    soft = native(program.matches_or_none, document)
    values = None if matches is None else [exact(match.value) for match in matches]
    assert values == (None if expected["v"] is None else list(map(exact, expected["v"])))
    soft_values = None if soft is None else [exact(match.value) for match in soft]
    assert soft_values == (None if expected["l"] is None else list(map(exact, expected["l"])))
    if matches is None:
        return
    for match in matches:
        check_places(match, document)
    if program.assignable and "to_entries" not in program.text:
        assert expected["p"] is not None
        places = [resolved(path, document) for path in expected["p"]]
        assert [match.path for match in matches] == places
    if program.nested:
        check_elements(program, document, soft)


def check_places(match: Match, document: Any) -> None:
    if match.path is not None:
        value = document
        for key in match.path:
            value = at(value, key)
        assert value is match.value
        if match.bindings:
            assert match.path[: len(match.bindings[-1])] == match.bindings[-1]
    for outer, inner in zip(match.bindings, match.bindings[1:], strict=False):
        assert inner[: len(outer)] == outer


def check_elements(program: Program, document: Any, soft: list[Match] | None) -> None:
    """Element by element the program gives what it gives as a whole, where that is comparable."""
    elements = native(program.elements, document)
    if elements is None:
        return  # the error is in an operand that the other one, empty, has hidden
    visits = [native(partial(program.matches_of, bindings=e), document) for e in elements]
    assert all(len(visit) <= 1 for visit in visits if visit is not None)
    if program.elementwise:
        assert [match for visit in visits for match in visit or ()] == soft


def compare(text: str, documents: list[Any]) -> int:
    """How many of the documents gave the same on both sides; raises at a difference."""
    program = compile_query(text)
    if isinstance(program, Unsupported):
        assert 0 <= program.position <= len(text)
        return 0
    pairs = 0
    for document, expected in zip(documents, libjq(text, documents), strict=True):
        try:
            check(program, document, expected)
        except ForeignOperandsError:
            continue
        except AssertionError as difference:
            message = f"{text!r} on {json.dumps(document)}: jq gives {expected}"
            raise AssertionError(message) from difference
        pairs += 1
    return pairs


def test_native_programs_agree_with_libjq() -> None:
    author = Author(20251121)
    pairs = 0
    while pairs < PAIRS:
        documents = [author.document() for _ in range(DOCUMENTS)]
        pairs += compare(author.program(), documents)


def test_whatever_tokens_are_taken_natively_agree_with_libjq() -> None:
    author = Author(4)
    documents = [author.document() for _ in range(DOCUMENTS)]
    assert sum(compare(author.soup(), documents) for _ in range(PAIRS)) > 0


@settings(max_examples=300, deadline=None)
@given(st.text() | st.lists(st.sampled_from(LEXEMES), max_size=400).map("".join))
def test_no_text_makes_the_compiler_raise(text: str) -> None:
    assert compile_query(text).text == text


@settings(max_examples=50, deadline=None)
@given(st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
))  # fmt: skip
@pytest.mark.parametrize("text", [".[]", ".[].a", ".[] // 1", "to_entries[] | .value", ".[]?[]?"])
def test_any_document_agrees_with_libjq(text: str, document: Any) -> None:
    ordered = json.loads(json.dumps(document, sort_keys=True))
    compare(text, [ordered])
