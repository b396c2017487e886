"""Documents broken in many ways by a fixed seed, for commands that must bear whatever is given."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence

Way = Callable[[random.Random, list[str]], str]
VALUES = (
    "null", "[]", "{}", '""', "0", "-1", "1e400", "9" * 400, ".inf", ".nan", "0644", "on", "1_0",
    "'4GB'", "[[[]]]", "{a: {b: []}}", "*a", "&a [*a]", "&a {b: *a}", "!!binary aGk=", "!!python/x y",
    "2026-01-01", "'\\ud800'", '"\\ud800"', "18446744073709551616", "-9223372036854775809", "{? [a] : b}",
    "<<", "|", "{{ .Values.a }}", "true", "'${{ a }}'", "[null]", "{null: null}", "'" + "x" * 5000 + "'",
)  # fmt: skip
"""What is written in the place of values."""


def pick(random_: random.Random, lines: list[str]) -> int:
    """A line."""
    return random_.randrange(len(lines)) if lines else 0


def other_value(random_: random.Random, lines: list[str]) -> str:
    """A value of another type, or one that is none."""
    at = pick(random_, lines)
    key, sign, _ = lines[at].partition(": ")
    lines[at] = f"{key}{sign or ': '}{random_.choice(VALUES)}"
    return "\n".join(lines)


def truncated(random_: random.Random, lines: list[str]) -> str:
    """The beginning."""
    text = "\n".join(lines)
    return text[: random_.randrange(len(text) + 1)]


def without_line(random_: random.Random, lines: list[str]) -> str:
    """One line less."""
    del lines[pick(random_, lines)]
    return "\n".join(lines)


def line_twice(random_: random.Random, lines: list[str]) -> str:
    """A key that is there twice."""
    at = pick(random_, lines)
    return "\n".join([*lines[: at + 1], lines[at], *lines[at + 1 :]])


def other_nesting(random_: random.Random, lines: list[str]) -> str:
    """A line further in, or further out."""
    at = pick(random_, lines)
    lines[at] = random_.choice(["  ", "    ", "\t", "- "]) + lines[at].lstrip(
        random_.choice(["", " "])
    )
    return "\n".join(lines)


def moved_line(random_: random.Random, lines: list[str]) -> str:
    """A line in another place."""
    line = lines.pop(pick(random_, lines))
    lines.insert(pick(random_, lines), line)
    return "\n".join(lines)


def nested_deep(random_: random.Random, lines: list[str]) -> str:
    """A value below many others."""
    at, depth = pick(random_, lines), random_.choice([50, 150, 250, 3000])
    lines[at] = f"{lines[at].partition(': ')[0]}: {'[' * depth}{']' * depth}"
    return "\n".join(lines)


def split(random_: random.Random, lines: list[str]) -> str:
    """Two documents, neither of them whole."""
    at = pick(random_, lines)
    return "\n".join([*lines[:at], "---", *lines[at:]])


WAYS: tuple[Way, ...] = (
    other_value, other_value, other_value, truncated, without_line, line_twice, other_nesting,
    moved_line, nested_deep, split,
)  # fmt: skip
ENCODINGS = ("utf-16", "utf-32", "latin-1", "utf-8-sig", "cp037")


def mutants(texts: Sequence[str], count: int, seed: int) -> Iterator[tuple[str, bytes]]:
    """So many broken texts, each with a name that says how it came about; the same for one seed."""
    random_ = random.Random(seed)
    for number in range(count):
        lines = random_.choice(texts).splitlines()
        names = []
        for _ in range(random_.choice([1, 1, 1, 2, 4])):
            way = random_.choice(WAYS)
            names.append(way.__name__)
            lines = way(random_, lines or [""]).split("\n")
        text = "\n".join(lines) + "\n"
        encoding = random_.choice(ENCODINGS) if random_.random() < 0.05 else "utf-8"
        data = text.encode(encoding, "replace")
        if random_.random() < 0.02:
            at = random_.randrange(len(data) + 1)
            data = (
                data[:at]
                + random_.choice([b"\x00", b"\xff", b"\x1b[2J", b"\xed\xa0\x80"])
                + data[at:]
            )
        yield f"{number:05}-{'-'.join(names)}-{encoding}", data
