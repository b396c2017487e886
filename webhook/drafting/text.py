"""Writes a drafted document as YAML, with a comment above each place that has one."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from textwrap import wrap
from typing import Any

from webhook.objects.path import Path

WIDTH = 96
SHORT = 88
PLAIN = re.compile(r"[A-Za-z./][A-Za-z0-9_./-]*")
WORDS = frozenset(
    ["y", "n", "yes", "no", "on", "off", "true", "false", "null", "none", "inf", "nan"]
)


def text_of(document: Mapping[str, Any], notes: Mapping[Path, str]) -> str:
    """Return the document as YAML. `notes` has comments by path; () is the head."""
    lines = [*comment(notes.get((), ""), 0), *block(document, (), notes, 0)]
    return "\n".join(lines) + "\n"


def comment(text: str, indent: int) -> list[str]:
    """Return a text as comment lines."""
    pad = " " * indent
    return [f"{pad}# {line}" for line in wrap(clean(text), WIDTH - indent)]


def clean(text: str) -> str:
    """Return a text without characters that would end a comment."""
    return "".join(each if each.isprintable() else " " for each in text)


def block(value: Any, at: Path, notes: Mapping[Path, str], indent: int) -> Iterator[str]:
    """Return the lines of a map or a list."""
    if isinstance(value, Mapping):
        for key, each in value.items():
            yield from comment(notes.get((*at, key), ""), indent)
            yield from entry(f"{' ' * indent}{scalar(key)}:", each, (*at, key), notes, indent)
        return
    for index, each in enumerate(value):
        yield from comment(notes.get((*at, index), ""), indent)
        yield from item(each, (*at, index), notes, indent)


def entry(head: str, value: Any, at: Path, notes: Mapping[Path, str], indent: int) -> Iterator[str]:
    """Return one key with its value, on one line if that is short and has no comment inside."""
    flat = flow(value)
    if is_scalar(value) or (is_flat(value, at, notes) and len(head) + len(flat) <= SHORT):
        yield f"{head} {flat}"
        return
    yield head
    yield from block(value, at, notes, indent + 2)


def item(value: Any, at: Path, notes: Mapping[Path, str], indent: int) -> Iterator[str]:
    """Return one item of a list."""
    pad = " " * indent
    flat = flow(value)
    if is_scalar(value) or (is_flat(value, at, notes) and indent + len(flat) + 2 <= SHORT):
        yield f"{pad}- {flat}"
        return
    lines = list(block(value, at, notes, indent + 2))
    first = next(at for at, line in enumerate(lines) if not line.lstrip().startswith("#"))
    # A comment on the first key goes above the dash.
    yield from (pad + line.lstrip() for line in lines[:first])
    yield f"{pad}- {lines[first].lstrip()}"
    yield from lines[first + 1 :]


def is_scalar(value: Any) -> bool:
    """Whether a value has no members that could be on lines of their own."""
    return not isinstance(value, (Mapping, list)) or not value


def is_flat(value: Any, at: Path, notes: Mapping[Path, str]) -> bool:
    """Whether a value can be on one line."""
    members = value.values() if isinstance(value, Mapping) else value
    if any(not is_scalar(each) for each in members):
        return False
    return not any(place[: len(at)] == at and len(place) > len(at) for place in notes)


def flow(value: Any) -> str:
    """Return a value on one line."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{scalar(key)}: {flow(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(flow(each) for each in value) + "]"
    return scalar(value)


def scalar(value: Any) -> str:
    """Return one scalar, quoted if a YAML parser could read the plain text differently."""
    if not isinstance(value, str):
        return json.dumps(value)
    if PLAIN.fullmatch(value) and value.casefold() not in WORDS:
        return value
    quoted = json.dumps(value, ensure_ascii=False)
    simple = value.isprintable() and "\\" not in quoted.replace('\\"', "") and "'" not in value
    return f"'{value}'" if simple and '"' in value else quoted
