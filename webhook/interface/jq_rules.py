"""Finds forbidden tokens in the jq texts of a definition."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from pydantic import BaseModel
from pydantic.alias_generators import to_camel

from webhook.documents.read_model import Report, show_value
from webhook.interface.document import Mode
from webhook.jq.expressions import Compile, JqError, JqSyntaxError, native
from webhook.jq.path import Unsupported, compile_query
from webhook.objects.path import Path

MODIFYING: Final = frozenset(("=", "|=", "+=", "-=", "*=", "/=", "%=", "//="))
UPSTREAM: Final = frozenset(("del", "range", "paths", "recurse", "walk", "repeat"))
WORDS: Final = frozenset(
    ("and", "or", "if", "then", "elif", "else", "end", "as", "reduce", "foreach", "try", "catch")
)
PURE: Final = frozenset(
    """
    add all any arrays ascii_downcase ascii_upcase booleans ceil contains empty endswith error
    fabs false first flatten floor from_entries fromjson getpath group_by has in index indices
    inside isvalid iterables join keys keys_unsorted last length ltrimstr map map_values max
    max_by min min_by not nth null nulls numbers objects reverse rindex round rtrimstr scalars
    select sort sort_by split startswith strings to_entries tojson tonumber tostring transpose
    true type unique unique_by values with_entries
    """.split()  # noqa: SIM905 - a list of names is read more easily as text
)
"""Functions that change nothing, read nothing outside the object, and always end."""
EXPRESSIONS: Final = frozenset(("expression", "filters"))
TOKEN: Final = re.compile(
    r"""(?P<space>\s+) | (?P<comment>\#[^\n]*) | (?P<quote>")
      | (?P<number>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)
      | (?P<field>\.[a-zA-Z_][a-zA-Z_0-9]*) | (?P<format>@[a-zA-Z0-9_]+)
      | (?P<name>\$?(?:[a-zA-Z_][a-zA-Z_0-9]*::)*[a-zA-Z_][a-zA-Z_0-9]*)
      | (?P<mark>\?//=?|//=?|\.\.|[|+*/%=!<>-]=|.)""",
    re.VERBOSE | re.DOTALL,
)
OPENING: Final = {"(": ")", "[": "]", "{": "}"}


@dataclass(frozen=True, slots=True)
class Fault:
    """A forbidden token of a text: a stable reason and what was found."""

    reason: str
    found: str


@dataclass(slots=True)
class Token:
    """One token. `before` and `bracket` are the mark before it and the bracket around it."""

    kind: str
    text: str
    before: str
    bracket: str
    after: str = ""


def tokens(text: str) -> list[Token]:
    """Return all tokens, including those inside interpolated text."""
    found: list[Token] = []
    open_brackets: list[str] = []
    at = 0
    while at < len(text):
        match = TOKEN.match(text, at)
        assert match is not None  # the last alternative takes any character
        kind, part, at = match.lastgroup or "", match.group(), match.end()
        if kind == "quote" or (part == ")" and open_brackets[-1:] == ['"']):
            # The text continues to its end, or to the first expression inside it.
            if kind != "quote":
                open_brackets.pop()
            at, interpolates = end_of_text(text, at)
            kind, part = "string", '"'
            add(found, kind, part, open_brackets)
            if interpolates:
                open_brackets.append('"')
                add(found, "mark", "(", open_brackets)
            continue
        if kind == "space":
            continue
        if part in OPENING:
            add(found, kind, part, open_brackets)
            open_brackets.append(part)
            continue
        if part in OPENING.values() and open_brackets:
            open_brackets.pop()
        add(found, kind, part, open_brackets)
    return found


def add(found: list[Token], kind: str, part: str, brackets: list[str]) -> None:
    """Append a token."""
    if found:
        found[-1].after = part
    found.append(
        Token(kind, part, found[-1].text if found else "", brackets[-1] if brackets else "")
    )


def end_of_text(text: str, at: int) -> tuple[int, bool]:
    """Return where the text from `at` ends, and whether an expression follows."""
    while at < len(text) and text[at] != '"':
        if text[at] == "\\":
            if text[at + 1 : at + 2] == "(":
                return at + 2, True
            at += 1
        at += 1
    return at + 1, False


def fault_in(text: str, mode: Mode = "admission") -> Fault | None:
    """Return the first forbidden token of a text, None if there is none.

    In parity mode these are upstream's. In admission, every function that is not in PURE is forbidden.
    """
    for token in tokens(text):
        fault = check_token(token, mode)
        if fault is not None:
            return fault
    return None


def check_token(token: Token, mode: Mode) -> Fault | None:
    """Return what is wrong with one token."""
    if token.text == ".." and token.kind == "mark":
        return Fault("recursive-descent", "..")
    if token.kind == "mark" and token.text in MODIFYING:
        return Fault("modifying-operator", token.text)
    if token.kind == "comment" and mode == "admission":
        return Fault("comment", "#")
    if token.kind != "name" or is_key(token):
        return None
    if token.text in UPSTREAM:
        return Fault("forbidden-function", token.text)
    if mode == "parity":
        return None
    if token.text.startswith("$"):
        outside = token.text in ("$ENV", "$__loc__", "$__prog_args")
        return Fault("forbidden-function", token.text) if outside else None
    if token.text not in WORDS and token.text not in PURE:
        return Fault("forbidden-function", token.text)
    return None


def is_key(token: Token) -> bool:
    """Whether a name is the key of an object construction."""
    return token.bracket == "{" and token.after == ":" and token.before in ("{", ",")


@cache
def document_name(name: str) -> str:
    """Return the name of a field in documents. The result is cached."""
    return to_camel(name)


def expressions(model: BaseModel, at: Path = ()) -> Iterator[tuple[Path, str]]:
    """Return every jq text of a document with its path: fields whose name is or ends with path."""
    for name in type(model).model_fields:
        value, place = getattr(model, name), (*at, document_name(name))
        last = name.rsplit("_", 1)[-1]
        yield from texts_in(value, place, last in ("path", "paths") or name in EXPRESSIONS)


def texts_in(value: Any, at: Path, is_jq: bool) -> Iterator[tuple[Path, str]]:
    """Return the jq texts of one value. Absent and empty texts are skipped."""
    if isinstance(value, BaseModel):
        yield from expressions(value, at)
    elif isinstance(value, str):
        if is_jq and value:
            yield at, value
    elif isinstance(value, (list, dict)):
        members = enumerate(value) if isinstance(value, list) else value.items()
        for key, each in members:
            yield from texts_in(each, (*at, key), is_jq)


def check_expressions(
    model: BaseModel,
    report: Report,
    at: Path = (),
    compile_jq: Compile | None = None,
    mode: Mode = "admission",
) -> None:
    """Report every text that is not jq (only with `compile_jq`) or has a forbidden token."""
    for place, text in expressions(model, at):
        fault = fault_in(text, mode) or broken(text, compile_jq)
        if fault is not None:
            found = f"`{show_value(text)}`: `{show_value(fault.found)}` is not allowed"
            if fault.reason == "not-jq":
                found = f"`{show_value(text)}` cannot be read as jq{stop(text)}"
            report.add(place, found, fix_of(text, fault), fault.reason)


def fix_of(text: str, fault: Fault) -> str:
    """Return what to write instead."""
    first = text.split(".", 1)[0]
    if first.isidentifier() and fault.found == first and first not in UPSTREAM:
        return f"begin a path with a dot, `.{show_value(text)}`"
    return "write a path that only reads"


def stop(text: str) -> str:
    """Return where our own parser stopped, which is mostly where the error is."""
    result = compile_query(text)
    if not isinstance(result, Unsupported):
        return ""
    return f": see position {result.position} (`{show_value(result.found)}`)"


def broken(text: str, compile_jq: Compile | None) -> Fault | None:
    """Whether a text is not jq."""
    if compile_jq is None or native(text) is not None:
        return None
    try:
        compile_jq(text)
    except JqSyntaxError:
        return Fault("not-jq", text)
    except JqError:
        return None
    return None
