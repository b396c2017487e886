"""No regular expression of the program takes more than linear time: each is given long texts.

Every pattern is found in the source, with the methods that it is called by, and is given 64 KB of
each kind of character. Time is CPU time of one size beside that of an eighth of it.
"""

from __future__ import annotations

import ast
import functools
import importlib
import math
import re
import signal
import time
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, cast

import pytest

from tests.generated import ROOT

METHODS = ("search", "match", "fullmatch", "findall", "finditer", "sub", "split")
LONGEST = 64 * 1024
NOTICED = 0.03  # seconds of CPU from which on sizes are compared; below, 64 KB are no danger
APART = 8  # a size and the smaller one that it is compared with
TOO_FAST = 1.5  # between linear and quadratic
STUCK = 1.0  # seconds of CPU after which a run is ended
UNITS = [*"019aAfgzZ_ .,-+:;/\\|&=~!?%#$@<>(){}[]\"'`*^\t\n\r\0é\u2028", "0.", "a-", "a.", "a,"]
UNITS += ["0,", "0_", "0m", " a", "a:", "[0]", "\\a", '"a', "a1", "aA", "[]", ".a", '["a"]', "\r\n"]
BEFORE = ("", '["')
AFTER = ("", "!\n\0")
PARTS = 16

Use = tuple[str, re.Pattern[Any], str]


def sources() -> Iterator[tuple[str, ast.Module]]:
    """Every module of the program, with its name."""
    for package in ("webhook", "certs"):
        for path in sorted((ROOT / package).rglob("*.py")):
            if "policies" not in path.parts:
                name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
                yield name.removesuffix(".__init__"), ast.parse(path.read_text("utf-8"))


@functools.cache
def uses() -> dict[str, Use]:
    """Each pattern of the program with a method that it is called by, by a name for both."""
    trees = dict(sources())
    named: dict[str, set[str]] = {}
    found: dict[str, Use] = {}
    for module, tree in trees.items():
        for node in ast.walk(tree):
            if not isinstance(node, ast.Attribute) or node.attr not in METHODS:
                continue
            if isinstance(node.value, ast.Name | ast.Attribute):
                last = node.value.id if isinstance(node.value, ast.Name) else node.value.attr
                named.setdefault(last, set()).add(node.attr)
            elif isinstance(node.value, ast.Subscript):  # a pattern of a map, or of one of two
                for part in ast.walk(node.value.value):
                    if isinstance(part, ast.Name):
                        named.setdefault(part.id, set()).add(node.attr)
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and (made := inline(node)):
                pattern, method = made
                where = f"{module}:{node.lineno}"
                found[f"{where} {pattern.pattern!r}"] = where, pattern, method
    for module in trees:
        if module.endswith("__main__"):
            continue
        for name, value in vars(importlib.import_module(module)).items():
            for pattern in value.values() if isinstance(value, dict) else (value,):
                if not isinstance(pattern, re.Pattern):
                    continue
                for method in named.get(name) or METHODS:
                    key = f"{name}.{method} of {pattern.pattern!r}"
                    found[key] = f"{module}.{name}", pattern, method
    return found


def inline(call: ast.Call) -> tuple[re.Pattern[Any], str] | None:
    """The pattern and the method of a call such as `re.sub("a+", …)`."""
    function = call.func
    if not isinstance(function, ast.Attribute) or function.attr not in METHODS:
        return None
    if not isinstance(function.value, ast.Name) or function.value.id != "re":
        return None
    first, *_ = call.args
    if not isinstance(first, ast.Constant):
        return None
    return re.compile(first.value), function.attr


def runner(pattern: re.Pattern[Any], method: str) -> Callable[[Any], object]:
    """What the program does with a text."""
    if method == "sub":
        return partial(pattern.sub, b"" if isinstance(pattern.pattern, bytes) else "")
    if method in ("findall", "finditer"):  # without keeping what is found, whose memory costs more
        return lambda text: deque(pattern.finditer(text), maxlen=0)
    return cast("Callable[[Any], object]", getattr(pattern, method))


def cpu(run: Callable[[Any], object], text: Any) -> float:
    """Seconds of CPU; STUCK where it takes longer."""

    def stop(*_: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, STUCK)
    begun = time.process_time()
    try:
        run(text)
        return time.process_time() - begun
    except TimeoutError:
        return STUCK
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def texts() -> Iterator[Callable[[int], str]]:
    """Makers of long texts."""
    for unit in UNITS:
        for before in BEFORE:
            for after in AFTER:
                yield partial(long_text, before, unit, after)


def long_text(before: str, unit: str, after: str, size: int) -> str:
    """A text of about a size."""
    return before + unit * (size // len(unit)) + after


def growth(run: Callable[[Any], object], made: Callable[[int], Any]) -> float:
    """The exponent by which time grows with a text's size; 0 where 64 KB take no time.

    It is 1 where time is linear and 2 where it is quadratic. The two sizes are far apart, so that
    what else the machine does cannot make one look like the other.
    """
    if cpu(run, made(LONGEST)) < NOTICED:
        return 0.0
    size, spent = 16, 0.0
    while spent < NOTICED and size < LONGEST:
        size *= 2
        first = cpu(run, made(size))
        if first >= STUCK:
            return math.inf
        spent = min(first, cpu(run, made(size)), cpu(run, made(size)))
    smaller = max(1e-6, min(cpu(run, made(size // APART)) for _ in range(3)))
    return math.log(spent / smaller, APART)


def worst(pattern: re.Pattern[Any], method: str) -> tuple[float, str]:
    """The largest exponent, and the text that it was found with."""
    run, binary = runner(pattern, method), isinstance(pattern.pattern, bytes)
    found = (0.0, "")
    for text in texts():
        made = (lambda size, text=text: text(size).encode()) if binary else text
        found = max(found, (growth(run, made), str(text(8))))
    return found


@pytest.mark.parametrize("part", range(PARTS))
def test_every_pattern_is_linear(part: int) -> None:
    for _, (where, pattern, method) in sorted(uses().items())[part::PARTS]:
        exponent, text = worst(pattern, method)
        said = f"{where} {pattern.pattern!r}.{method}: size to the {exponent:.1f} with {text!r}…"
        assert exponent < TOO_FAST, said


@pytest.mark.parametrize(
    "pattern, method",
    [
        (re.compile(r"(\d+(?:\.\d*)?|\.\d+)(h|ms|m|s)"), "findall"),  # once took 29 s of a worker
        (re.compile(r"\s+$"), "search"),
        (re.compile(r"(?:0|0)*b"), "fullmatch"),
    ],
)
def test_a_pattern_that_is_not_linear_is_found(pattern: re.Pattern[str], method: str) -> None:
    made = partial(long_text, "", " " if method == "search" else "0", "!\n\0")
    assert growth(runner(pattern, method), made) > TOO_FAST


def test_no_pattern_of_the_program_is_missed() -> None:
    tested = {pattern.pattern for _, pattern, _ in uses().values()}
    written = {
        node.args[0].value
        for _, tree in sources()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == "re"
        and node.func.attr in ("compile", *METHODS)
        and isinstance(node.args[0], ast.Constant)
    }
    assert written <= tested
    assert len(written) > 60
