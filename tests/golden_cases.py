"""The golden cases by name: a file is read when a test of it runs, not when tests are collected."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from webhook.cases.case import Case
from webhook.cases.read import cases_of

GOLDEN = Path(__file__).parent / "golden"
KEY = re.compile(r"^(\w+):", re.MULTILINE)
QUOTES = "'\""
FIRST_ITEM = re.compile(r"^( *)- ", re.MULTILINE)


class CaseName(NamedTuple):
    """Where a case or a variant is: its file, and its position among the cases of the file."""

    file: Path
    position: int
    name: str
    offline: bool

    def __str__(self) -> str:
        return f"{self.file.parent.parent.name}/{self.name}"

    def load(self) -> Case:
        """The case itself; BadCase for a file that is none."""
        return cases_in(self.file)[self.position]


cases_in = lru_cache(maxsize=4)(cases_of)  # tests of one file run one after the other


def names_in(file: Path) -> list[CaseName]:
    """The cases of a file, by the keys and lists that its lines begin."""
    text = file.read_text("utf-8")
    ends = {match[1]: match.end() for match in KEY.finditer(text)}
    folder, found = file.parent.name, []
    if "expect" in ends or "variants" not in ends:
        found.append(folder)
    if "variants" in ends:
        block = KEY.split(text[ends["variants"] :], maxsplit=1)[0]
        first = FIRST_ITEM.search(block)
        indent = first[1] if first else ""
        for index, body in enumerate(re.split(rf"^{indent}- ", block, flags=re.MULTILINE)[1:]):
            name = re.search(rf"^(?:{indent}  )?name: *(.*?) *$", body, re.MULTILINE)
            found.append(f"{folder}: {name[1].strip(QUOTES) if name else index}")
    offline = "object" in ends
    return [CaseName(file, position, name, offline) for position, name in enumerate(found)]


def all_names() -> list[CaseName]:
    """Every case and variant, in order of path."""
    return [name for file in sorted(GOLDEN.rglob("case.yaml")) for name in names_in(file)]
