"""Reads what CEL selectors of devices require, without evaluating them.

Of a conjunction these terms are read, either side first: `device.driver == 'D'`,
`device.attributes['D'].NAME == V`, the same with `in [...]`, and `'NAME' in device.attributes['D']`.
Other terms only narrow a conjunction, so they are skipped.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import islice, pairwise
from typing import Final, NamedTuple

DRIVER: Final = "driver"
TYPE: Final = "type"
PROFILE: Final = "profile"
LONGEST: Final = 10_240
"""Characters of a selector. The API server refuses longer ones."""
MOST_TOKENS: Final = 512
OPENING: Final = {"(": ")", "[": "]", "{": "}"}
CLOSING: Final = frozenset(OPENING.values())
BLANK = re.compile(r"(?:[ \t\n\f\r]|//[^\n\r]*(?:\r?\n|\Z))+")
# What readers of CEL may understand differently: a return in a comment, a quoted name.
UNCLEAR = re.compile(r"//|`")
PREFIX = re.compile(r"(?:[bB][rR]?|[rR][bB]?)(?=['\"])")
WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|&&|\|\||[=!<>]=|\.\?|.", re.DOTALL)
ENDS = {
    "'": re.compile(r"(?:[^'\\\n\r]|\\.)*'"),
    '"': re.compile(r'(?:[^"\\\n\r]|\\.)*"'),
    "'''": re.compile(r"(?:[^\\]|\\.)*?'''", re.DOTALL),
    '"""': re.compile(r'(?:[^\\]|\\.)*?"""', re.DOTALL),
}
RAW_ENDS = {
    "'": re.compile(r"[^'\n\r]*'"),
    '"': re.compile(r'[^"\n\r]*"'),
    "'''": re.compile(r".*?'''", re.DOTALL),
    '"""': re.compile(r'.*?"""', re.DOTALL),
}
# A literal whose value is not read: bytes, or a text with escapes.
UNREAD: Final = "''"
# Stands for the rest of a text that is not read.
UNPAIRED: Final = "("


class Text(NamedTuple):
    """A literal text."""

    value: str


Token = str | Text


class Requirement(NamedTuple):
    """A property of every device that a selector matches.

    The driver if `domain` is empty, else an attribute of that domain; an empty `name` is any
    attribute. It has one of `values`; None if only its existence is required.
    """

    domain: str
    name: str
    values: frozenset[str] | None = None


class Listed(NamedTuple):
    """A list of texts, the right side of `in`."""

    values: frozenset[str]


Operand = Text | Requirement | Listed | None


def read_selectors(texts: Iterable[str]) -> list[Requirement]:
    """Return what selectors require of a device that matches all of them."""
    return [found for text in texts if len(text) <= LONGEST for found in read_selector(text)]


@lru_cache(maxsize=512)
def read_selector(text: str) -> tuple[Requirement, ...]:
    """Return what a CEL text requires, nothing if it is no conjunction or has too many tokens.

    Linear in the length of the text. Never raises.
    """
    tokens = list(islice(tokens_of(text), MOST_TOKENS + 1))
    closing = pair_brackets(tokens)
    if closing is None or len(tokens) > MOST_TOKENS:
        return ()
    found: list[Requirement] = []
    waiting = [(0, len(tokens))]
    while waiting:
        start, end = strip_parentheses(tokens, closing, *waiting.pop())
        outer = [at for at in outside_brackets(closing, start, end) if isinstance(tokens[at], str)]
        if any(tokens[at] in ("||", "?") for at in outer):
            continue
        joins = [at for at in outer if tokens[at] == "&&"]
        if joins:
            edges = pairwise([start - 1, *joins, end])
            waiting += [(left + 1, right) for left, right in edges]
            continue
        compared = [at for at in outer if tokens[at] in ("==", "in")]
        if len(compared) == 1:
            (at,) = compared
            left = read_operand(tokens, closing, start, at)
            right = read_operand(tokens, closing, at + 1, end)
            term = read_member(left, right) if tokens[at] == "in" else read_equal(left, right)
            found += [term] if term is not None else []
    return tuple(found)


def tokens_of(text: str) -> Iterator[Token]:
    """Yield the tokens of a CEL text, ending in UNPAIRED where it cannot be read."""
    at, length = 0, len(text)
    while at < length:
        if (blank := BLANK.match(text, at)) is not None:
            at = blank.end()
            continue
        if UNCLEAR.match(text, at) is not None:
            yield UNPAIRED
            return
        prefix = PREFIX.match(text, at)
        before = prefix.group().lower() if prefix is not None else ""
        at += len(before)
        if text[at] in "'\"":
            quote = text[at] * 3 if text.startswith(text[at] * 3, at) else text[at]
            at += len(quote)
            closed = (RAW_ENDS if "r" in before else ENDS)[quote].match(text, at)
            if closed is None:
                yield UNPAIRED
                return
            value = text[at : closed.end() - len(quote)]
            is_read = "b" not in before and ("r" in before or "\\" not in value)
            yield Text(value) if is_read else UNREAD
            at = closed.end()
            continue
        word = WORD.match(text, at)
        assert word is not None  # the last alternative is any character
        yield word.group()
        at = word.end()


def pair_brackets(tokens: list[Token]) -> dict[int, int] | None:
    """Return where each opening bracket is closed, None if one is not."""
    closing: dict[int, int] = {}
    opened: list[int] = []
    for at, token in enumerate(tokens):
        if not isinstance(token, str):
            continue
        if token in OPENING:
            opened.append(at)
        elif token in CLOSING:
            if not opened or OPENING[str(tokens[opened[-1]])] != token:
                return None
            closing[opened.pop()] = at
    return None if opened else closing


def strip_parentheses(
    tokens: list[Token], closing: dict[int, int], start: int, end: int
) -> tuple[int, int]:
    """Return a part of the text without the parentheses around it."""
    while end - start > 1 and tokens[start] == "(" and closing[start] == end - 1:
        start, end = start + 1, end - 1
    return start, end


def outside_brackets(closing: dict[int, int], start: int, end: int) -> Iterator[int]:
    """Yield the positions in a part of the text that are in no brackets of it."""
    at = start
    while at < end:
        yield at
        at = closing.get(at, at) + 1


def read_operand(tokens: list[Token], closing: dict[int, int], start: int, end: int) -> Operand:
    """Return what one side of a comparison is, None if it is something else."""
    start, end = strip_parentheses(tokens, closing, start, end)
    part = tokens[start:end]
    if len(part) == 1 and isinstance(part[0], Text):
        return part[0]
    if part[:1] == ["["] and closing[start] == end - 1:
        inner = part[1:-1]
        values = [each for each in inner[::2] if isinstance(each, Text)]
        is_list = len(values) == len(inner[::2]) and all(each == "," for each in inner[1::2])
        return Listed(frozenset(each.value for each in values)) if is_list else None
    if part == ["device", ".", "driver"]:
        return Requirement("", DRIVER)
    if part[:3] != ["device", ".", "attributes"]:
        return None
    match part[3:]:
        case []:
            return Requirement("", "")
        case ["[", Text(domain), "]"] if domain:
            return Requirement(domain, "")
        case ["[", Text(domain), "]", ".", str(name)] if domain and name.isidentifier():
            return Requirement(domain, name)
        case ["[", Text(domain), "]", "[", Text(name), "]"] if domain:
            return Requirement(domain, name)
    return None


def read_equal(left: Operand, right: Operand) -> Requirement | None:
    """Return what `left == right` requires. An attribute that is compared must exist."""
    for one, other in ((left, right), (right, left)):
        if isinstance(one, Requirement) and one.name:
            if isinstance(other, Text):
                return one._replace(values=frozenset({other.value}))
            return one if one.domain else None
    return None


def read_member(left: Operand, right: Operand) -> Requirement | None:
    """Return what `left in right` requires."""
    if isinstance(left, Requirement) and left.name:
        if isinstance(right, Listed):
            return left._replace(values=right.values)
        return left if left.domain else None
    if isinstance(left, Text) and isinstance(right, Requirement) and not right.name:
        return (
            Requirement(right.domain, left.value) if right.domain else Requirement(left.value, "")
        )
    return None
