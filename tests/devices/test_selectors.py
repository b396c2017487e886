"""Tests for reading CEL selectors."""

from __future__ import annotations

import sys

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
