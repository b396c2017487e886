"""Tests for reading CEL selectors."""

from __future__ import annotations

import sys
from collections.abc import Callable
from random import Random
from typing import NamedTuple

import pytest

from webhook.devices.selectors import (
    LONGEST,
    MOST_TOKENS,
    Requirement,
    read_selector,
    read_selectors,
)

GPU = "gpu.nvidia.com"
DRIVER = Requirement("", "driver", frozenset({GPU}))
TYPE = Requirement(GPU, "type", frozenset({"gpu"}))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"device.driver == '{GPU}'", {DRIVER}),
        (f'device.driver == "{GPU}"', {DRIVER}),
        (f"'{GPU}' == device.driver", {DRIVER}),
        (f"device . driver=='''{GPU}'''", {DRIVER}),
        (f'r"{GPU}" == device.driver', {DRIVER}),
        (f"(device.driver) == ('{GPU}')", {DRIVER}),
        (f"((((device.driver == '{GPU}'))))", {DRIVER}),
        (f"device.driver in ['{GPU}']", {DRIVER}),
        (f"device.driver in (['{GPU}',])", {DRIVER}),
        (f"device.attributes['{GPU}'].type == 'gpu'", {TYPE}),
        (f'\'gpu\' == device.attributes["{GPU}"]["type"]', {TYPE}),
        (f"device.driver == '{GPU}' && device.attributes['{GPU}'].type == 'gpu'", {DRIVER, TYPE}),
        (f"// all\n(device.driver == '{GPU}') // here\n && true", {DRIVER}),
        (f"(a && (b && (device.driver == '{GPU}')))", {DRIVER}),
        (f"device.driver == '{GPU}' && (a || b) && !c && f(d, '&&')", {DRIVER}),
        (f"device.driver == '{GPU}' && device.attributes['x.y'].?z.orValue(true)", {DRIVER}),
        (f"device.driver == '{GPU}' && a.exists(x, x == 'y' || x == 'z')", {DRIVER}),
        (f"'type' in device.attributes['{GPU}']", {Requirement(GPU, "type")}),
        (f"'{GPU}' in device.attributes", {Requirement(GPU, "")}),
        (f"device.attributes['{GPU}'].index == 0", {Requirement(GPU, "index")}),
        (
            f"device.attributes['{GPU}'].profile in ['1g.5gb', \"2g.10gb\"]",
            {Requirement(GPU, "profile", frozenset({"1g.5gb", "2g.10gb"}))},
        ),
        # Not required of every device, or not this.
        ("", set()),
        ("true", set()),
        (f"device.driver == '{GPU}' || true", set()),
        (f"(device.driver == '{GPU}' || true)", set()),
        (f"a && device.driver == '{GPU}' || b", set()),
        (f"!(device.driver == '{GPU}')", set()),
        (f"!device.driver == '{GPU}'", set()),
        (f"device.driver != '{GPU}'", set()),
        (f"device.driver == '{GPU}' && a || b", set()),
        (f"device.driver in ['{GPU}', device.driver]", set()),
        (f"device.driver in ['{GPU}' + 'x']", set()),
        (f"device.driver in ['{GPU}'][0]", set()),
        (f"device.driver == '{GPU}' ? false : true", set()),
        (f"true ? true : (device.driver == '{GPU}')", set()),
        (f"device.driver == '{GPU}' == false", set()),
        (f"(device.driver == '{GPU}') == false", set()),
        (f"[device.driver == '{GPU}'] == []", set()),
        (f"f(device.driver == '{GPU}')", set()),
        (f"a.exists(device, device.driver == '{GPU}')", set()),
        (f"// device.driver == '{GPU}'", set()),
        (f"// x\r\n // device.driver == '{GPU}'\n true", set()),
        (f"// x\r device.driver == '{GPU}' &&\n true", set()),
        (f"device.driver == '{GPU}' && a.`b//` || true", set()),
        (f"\"device.driver == '{GPU}'\" != ''", set()),
        (f"'\\'' + \" && device.driver == '{GPU}' && \" == 'x'", set()),
        (f"'''' && device.driver == '{GPU}' && ''''", set()),
        (f"r'\\' == \" && device.driver == '{GPU}' && \"", set()),
        (f"device.driver == b'{GPU}'", set()),
        ("device.driver == 'gpu\\u002envidia.com'", set()),
        (f"device.driver == '{GPU}' + ''", set()),
        (f"device.driver.size() == '{GPU}'", set()),
        (f"devices.driver == '{GPU}'", set()),
        (f"a.device.driver == '{GPU}'", set()),
        (f"device.attributes[''].driver == '{GPU}'", set()),
        ("'driver' in device.attributes['']", set()),
        (f"device.driver == '{GPU}", set()),
        (f"(device.driver == '{GPU}'", set()),
        (f"device.driver == '{GPU}')", set()),
        (f"(device.driver == '{GPU}']", set()),
    ],
)
def test_reads_what_every_device_has(text: str, expected: set[Requirement]) -> None:
    assert set(read_selector(text)) == expected


def test_all_selectors_have_to_match() -> None:
    texts = [f"device.driver == '{GPU}'", "true", f"device.attributes['{GPU}'].type == 'gpu'"]
    assert read_selectors(texts) == [DRIVER, TYPE]


HOSTILE = [
    "(",
    ")",
    "()",
    "[",
    "{[(",
    "'",
    '"',
    "'''",
    '"""',
    "'\\",
    "'''\\",
    "\\",
    "r'",
    "b'\\",
    "br",
    "//",
    "/",
    "!",
    "&&",
    "||",
    "a&&",
    "(a&&",
    "(a||",
    "((a)&&(b))",
    "device.",
    "device.driver==",
    "device.driver==''&&",
    "device.attributes[",
    "['a',",
    "?:",
    "\x00",
    "\u2028",
    "\ud800",
    "é",
    "\n",
    "\r",
]


@pytest.mark.parametrize("part", HOSTILE)
@pytest.mark.parametrize("end", ["", "')", "'", '"""', ")" * 5000, "device.driver == 'x'"])
def test_the_work_is_linear_and_nothing_is_raised(part: str, end: str) -> None:
    steps = [
        count_steps((part * LONGEST)[: LONGEST // 4 * times - len(end)] + end) for times in (1, 4)
    ]
    assert steps[1] <= 6 * steps[0] + 1000


def count_steps(text: str) -> int:
    """Return the lines of Python that reading a text executes."""
    steps = 0

    def trace(*_: object) -> object:
        nonlocal steps
        steps += 1
        return trace

    read_selector.cache_clear()
    sys.settrace(trace)  # type: ignore[arg-type]
    try:
        read_selector(text)
    finally:
        sys.settrace(None)
    return steps


def test_a_text_is_not_read_if_it_is_too_long() -> None:
    text = f"device.driver == '{GPU}'"
    assert set(read_selectors([text + " " * (LONGEST - len(text))])) == {DRIVER}
    assert read_selectors([text + " " * LONGEST]) == []
    assert read_selectors([f"{text}{' && a' * (MOST_TOKENS // 2 - 3)}"]) == [DRIVER]
    assert read_selectors([f"{text}{' && a' * MOST_TOKENS}"]) == []


DRIVERS = [GPU, "x.y"]
TYPES = [None, "gpu", "mig"]
DEVICES = [(driver, kind) for driver in DRIVERS for kind in TYPES]
Device = tuple[str, str | None]
Truth = bool | None
"""None is an error, as the value of an attribute that is not there has it."""


class Expression(NamedTuple):
    """A random expression: its text, its value for a device, and its terms if it is a conjunction."""

    text: str
    value: Callable[[Device], Truth]
    terms: int = 0


def quote(value: str, random: Random) -> str:
    mark = random.choice(["'", '"', "'''", '"""'])
    return f"{random.choice(['', '', 'r'])}{mark}{value}{mark}"


def random_term(random: Random) -> Expression:
    is_driver = random.random() < 0.5
    wanted = random.sample(DRIVERS if is_driver else ["gpu", "mig"], random.randint(1, 2))
    name = "device.driver" if is_driver else f"device.attributes[{quote(GPU, random)}].type"
    if random.random() < 0.3:
        name = f"({name})"
    values = [quote(each, random) for each in wanted]
    if len(values) > 1:
        text = f"{name} in [{', '.join(values)}]"
    else:
        text = " == ".join(random.sample([name, *values], 2))

    def value(device: Device) -> Truth:
        found = device[0] if is_driver else device[1]
        return None if found is None else found in wanted

    return Expression(text, value, 1)


def random_expression(random: Random, depth: int) -> Expression:
    """Return an expression whose operands are in parentheses where their signs bind less."""
    if depth == 0 or random.random() < 0.2:
        return random_term(random)
    sign = random.choice(["&&", "&&", "&&", "||", "!", "?"])
    parts = [random_expression(random, depth - 1) for _ in range(random.randint(2, 3))]
    values = [each.value for each in parts]
    wrapped = [f"({blank(random)}{each.text}{blank(random)})" for each in parts]
    if sign == "!":
        return Expression(f"!{wrapped[0]}", lambda device: negate(values[0](device)))
    if sign == "?":
        text = f"{wrapped[0]} ? {wrapped[1]} : {wrapped[-1]}"
        return Expression(text, lambda device: choose(*(each(device) for each in values)))
    texts = [
        part.text if part.terms == 1 and random.random() < 0.5 else text
        for part, text in zip(parts, wrapped, strict=True)
    ]
    joined = f"{blank(random)}{sign}{blank(random)}".join(texts)
    decides = sign == "||"
    terms = sum(each.terms for each in parts) if all(each.terms for each in parts) else 0
    return Expression(
        joined,
        lambda device: join(decides, [each(device) for each in values]),
        0 if decides else terms,
    )


def blank(random: Random) -> str:
    comment = f"// {random.choice(['||', quote('|| true', random), '&& false'])}\n"
    return random.choice(["", " ", "\n", comment])


def negate(value: Truth) -> Truth:
    return None if value is None else not value


def choose(condition: Truth, first: Truth, *others: Truth) -> Truth:
    return None if condition is None else first if condition else (first, *others)[-1]


def join(decides: bool, values: list[Truth]) -> Truth:
    """Return `||` of values if True decides, else `&&`: an error does not matter if one decides."""
    return decides if decides in values else None if None in values else not decides


def has(requirement: Requirement, device: Device) -> bool:
    found = device[0] if requirement.name == "driver" else device[1]
    return found is not None and (requirement.values is None or found in requirement.values)


def test_what_is_read_is_true_of_every_device_that_matches() -> None:
    random, read = Random(17), 0
    for _ in range(2000):
        expression = random_expression(random, 3)
        found = read_selector(expression.text)
        matching = [each for each in DEVICES if expression.value(each) is True]
        for requirement in found:
            assert all(has(requirement, each) for each in matching), expression.text
        if expression.terms:
            read += 1
            assert len(found) == expression.terms, expression.text
    assert read > 400
