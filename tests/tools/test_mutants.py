"""The mutants of `make mutants`: what is changed, what is left alone, and that the list is of today."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
import yaml

from tools import mutations
from tools.selecting import recorded_lines

ROOT = Path(__file__).parents[2]
EQUIVALENT = ROOT / "tools" / "equivalent_mutants.yaml"

CHANGED = {
    "a and b": ["a or b"],
    "a or b": ["a and b"],
    "a == b": ["a != b"],
    "a < b <= c": ["a <= b <= c", "a < b < c"],
    "a is None": ["a is not None"],
    "a in b": ["a not in b"],
    "not a": ["a"],
    "True": ["False"],
    "7": ["8", "6"],
    "a + b": ["a - b"],
    "f(a, b)": ["f(b, a)"],
    "f(a, a)": [],
    "any(a)": ["all(a)"],
    "max(a)": ["min(a)"],
    "a if b else c": ["a if not b else c"],
    "[a for a in b if a]": ["[a for a in b if not a]"],
    "f'{a + b}'": [],
    "'text'": [],
}
STATEMENTS = {
    "for a in b:\n    continue": ["for a in b:\n    break", "for a in b:\n    pass"],
    "for a in b:\n    break": ["for a in b:\n    continue"],
    "while a:\n    raise b": ["while not a:\n    raise b", "while a:\n    pass"],
    "a += b": ["a -= b", "pass"],
    "f()": ["pass"],
    "def f(a: int | None) -> bool:\n    'not a'\n    assert a == 1": [],
    "@lru_cache(maxsize=2)\ndef f():\n    return a": [],
}


def mutants(source: str) -> list[str]:
    """The text of every mutant of a source."""
    count = len(mutations.sites_of(source))
    return [ast.unparse(mutations.mutate(source, number)) for number in range(count)]


@pytest.mark.parametrize("source", CHANGED)
def test_an_expression_is_changed_at_one_operator(source: str) -> None:
    assert mutants(f"x = {source}") == [f"x = {each}" for each in CHANGED[source]]


@pytest.mark.parametrize("source", STATEMENTS)
def test_a_statement_is_changed_or_dropped(source: str) -> None:
    assert sorted(mutants(source)) == sorted(STATEMENTS[source])


def test_a_return_is_dropped_only_where_others_follow() -> None:
    source = "def f(a):\n    if a:\n        return a\n    return b"
    assert "def f(a):\n    if a:\n        pass\n    return b" in mutants(source)
    assert len(mutants(source)) == 2


def test_a_mutant_knows_its_line() -> None:
    source = "x = 1\ny = [\n    a\n    for a in b\n    if a\n    if not a\n]\nwith a: c(a > b)"
    found = {(site.line, site.change) for site in mutations.sites_of(source)}
    assert found == {
        (1, "1 → 2"),
        (1, "1 → 0"),
        (5, "if x → if not x"),
        (6, "not x → x"),
        (8, "Gt → GtE"),
        (8, "statement dropped"),
    }


def test_lines_are_found_again_after_others_were_added() -> None:
    old, new = "a\nb\nc\n", "a\nnew\nb\nchanged\n"
    assert recorded_lines(old, new, 3, 3) == {2}
    assert recorded_lines(old, new, 2, 2) == {1, 2}  # a new line: those around it


def test_equivalent_mutants_can_still_be_made() -> None:
    for each in yaml.safe_load(EQUIVALENT.read_text()):
        source = (ROOT / each["file"]).read_text()
        lines = source.splitlines()
        made = [site for site in mutations.sites_of(source) if site.change == each["change"]]
        assert any(lines[site.line - 1].strip() == each["text"] for site in made), each
        assert each["why"]
