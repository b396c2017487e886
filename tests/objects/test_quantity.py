"""Quantities, with Go's own resource.Quantity as judge."""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.e2e.testbed import programs
from tests.e2e.testbed.missing import MissingTestbed
from webhook.objects import quantity
from webhook.objects.quantity import LARGEST, NANO, QuantityError

TESTS = Path(__file__).parents[1]
NANOS = st.integers(-(10**30), 10**30) | st.integers(-(2**40), 2**40).map(lambda n: n * NANO)


@pytest.mark.parametrize(
    "text, units",
    [
        ("0", "0"),
        ("1G", "1000000000"),
        ("1000M", "1000000000"),
        ("1e9", "1000000000"),
        ("1E3", "1000"),
        ("1E", "1000000000000000000"),
        ("2Gi", "2147483648"),
        ("1907Mi", "1999634432"),
        ("977Ki", "1000448"),
        ("500m", "0.5"),
        ("100m", "0.1"),
        (".5", "0.5"),
        ("1.", "1"),
        ("+1.5Gi", "1610612736"),
        ("-1G", "-1000000000"),
        ("1E-3", "0.001"),
        ("7u", "0.000007"),
        ("7n", "0.000000007"),
    ],
)
def test_quantities_have_their_exact_value(text: str, units: str) -> None:
    assert quantity.parse(text) == Fraction(units) * NANO


def test_plain_numbers_are_units() -> None:
    assert quantity.parse(4_000_000_000) == 4_000_000_000 * NANO
    assert quantity.parse(0.1) == NANO // 10
    assert quantity.parse(1e22) == 10**22 * NANO


def test_what_is_finer_than_a_nano_is_rounded_away_from_zero() -> None:
    assert quantity.parse("1e-12") == 1
    assert quantity.parse("-1.1n") == -2
    assert quantity.parse("0.0000000000") == 0


def test_binary_amounts_end_at_63_bit_and_decimal_ones_do_not() -> None:
    assert quantity.parse("16Ei") == quantity.LARGEST_BINARY
    assert quantity.parse("-16Ei") == -quantity.LARGEST_BINARY
    assert quantity.parse("100E") == 10**20 * NANO


@pytest.mark.parametrize(
    "text, suggestion",
    [
        ("64K", "64k or 64Ki"),
        ("4GiB", "4Gi"),
        ("4GB", "4G"),
        ("4gi", "4Gi"),
        ("4 Gi", "4Gi"),
        (" 4Gi\n", "4Gi"),
        ("\t8", "8"),
        ("512mb", "512M"),
        ("1,5", "1.5"),
        ("1,5Gi", "1.5Gi"),
        ("1,000", ""),
        ("1_000", "1000"),
        ("1..2", ""),
        ("4GiM", ""),
        ("3e", ""),
        ("gi", ""),
        ("", ""),
        (" ", ""),
        ("nan", ""),
        ("e-10", ""),
        ("1e9223372036854775808", ""),
        ("0x10", ""),
        ("١", ""),
    ],
)
def test_garbage_is_refused_with_what_was_meant(text: str, suggestion: str) -> None:
    with pytest.raises(QuantityError) as caught:
        quantity.parse(text)
    assert caught.value.suggestion == suggestion
    assert caught.value.found == json.dumps(text)
    assert str(caught.value).endswith(f"; write {suggestion}" if suggestion else "or 4Gi")


@pytest.mark.parametrize("value", [True, None, [], {}, float("nan"), float("inf"), b"1", object()])
def test_what_is_neither_text_nor_number_is_refused(value: Any) -> None:
    with pytest.raises(QuantityError):
        quantity.parse(value)


@pytest.mark.parametrize("text", [".", "+", "-.", "Ki", " 4Gi", "1e401", "1e4294967296", "9" * 300])
def test_spellings_that_nobody_means_are_refused_in_policies(text: str) -> None:
    assert quantity.parse(text) is not None
    with pytest.raises(QuantityError) as caught:
        quantity.parse_written(text)
    assert len(caught.value.found) <= 80


@pytest.mark.parametrize(
    "text, units",
    [
        ("8e4294967296", 8),
        ("8e-4294967296", 8),
        ("0" * 256 + "8", 8),
        ("8." + "0" * 256, 8),
        ("80e4294967295", 8),
        ("8e18446744073709551616", None),
        ("8e9223372032559808512", 8),
        ("\u00a08 ", 8),
        (" +8\u3000", 8),
        (".", 0),
        ("-.Ki", 0),
    ],
)
def test_odd_spellings_have_the_value_that_kubernetes_reads(text: str, units: int | None) -> None:
    assert ours(text) == (units if units is None else units * NANO)


@pytest.mark.parametrize(
    "text",
    ["1e2147483647", "1e999999999", "9e401", "1" + "0" * 500_000, "0.5e-2147483648", 10**4000],
)
def test_an_amount_beyond_every_rule_is_never_computed(text: Any) -> None:
    assert quantity.parse(text) == LARGEST


@pytest.mark.parametrize(
    "text, nano",
    [
        ("1e-2147483647", 1),
        ("-1e-2147483647", -1),
        ("0." + "0" * 500_000 + "1", 1),
        ("0." + "0" * 500_000 + "1Ki", 1),
        ("1." + "0" * 500_000 + "1Ei", 2**60 * NANO + 1),
        ("0" * 500_000 + "7Ki", 7168 * NANO),
    ],
)
def test_long_texts_are_read_exactly(text: str, nano: int) -> None:
    assert quantity.parse(text) == nano


@pytest.mark.parametrize(
    "nano, like, text",
    [
        (2**30 * NANO, "2Gi", "1Gi"),
        (1_500_000_000 * NANO, "3G", "1.5G"),
        (2**29 * NANO, "1Gi", "0.5Gi"),
        (-3 * 2**29 * NANO, "1Gi", "-1.5Gi"),
        (644_245_094 * NANO, "2Gi", "644245094"),
        (NANO // 4, "500m", "250m"),
        (NANO // 2, "1", "500m"),
        (0, "2Gi", "0"),
        (10**9 * NANO, "2000000000", "1000000000"),
        (10**9 * NANO, "2e9", "1000000000"),
        (2**64 * NANO, "1Ei", "18446744073709551616"),
        (4 * 2**30 * NANO, "", "4Gi"),
        (1_500 * NANO, "", "1500"),
        (1_500_000_000 * NANO, "", "1500M"),
        (1, "", "1n"),
        (-1_000, "", "-1u"),
    ],
)
def test_amounts_are_written_in_the_suffix_of_their_source(nano: int, like: str, text: str) -> None:
    assert quantity.render(nano, like) == text


@given(NANOS, st.sampled_from(["", "1", "2Gi", "3G", "500m", "1e3", "7n", "1Ei", "1E", "?"]))
def test_rendering_loses_nothing(nano: int, like: str) -> None:
    assert quantity.parse(quantity.render(nano, like)) == nano
    assert quantity.parse(quantity.render_cores(nano)) == nano


@pytest.mark.parametrize("text, shown", [("0.5", "500m"), ("2", "2"), ("1.5", "1500m"), ("0", "0")])
def test_cores_are_whole_or_in_thousandths(text: str, shown: str) -> None:
    assert quantity.render_cores(quantity.parse(text)) == shown


@pytest.mark.parametrize(
    "value, units",
    [
        (3, "3"),
        ("0.5", "0.5"),
        (0.1, "0.1"),
        (1e-5, "0.00001"),
        ("1e3", "1000"),
        ("-.25", "-0.25"),
        (Decimal("0.30"), "0.3"),
        ("1e-10", "0.0000000001"),
        ("-3.0000000001", "-3.0000000001"),
    ],
)
def test_policy_numbers_are_exact(value: Any, units: str) -> None:
    found = quantity.parse_decimal(value)
    assert found == Fraction(units) * NANO
    assert isinstance(found, int) == ((Fraction(units) * NANO).denominator == 1)


@pytest.mark.parametrize(
    "value, suggestion",
    [
        ("500m", "0.5"),
        ("-2k", "-2000"),
        ("1,5", "1.5"),
        ("1_000", "1000"),
        ("nan", ""),
        ("Infinity", ""),
        (float("nan"), ""),
        (Decimal("sNaN"), ""),
        (True, ""),
        (None, ""),
        ([1], ""),
        ("", ""),
    ],
)
def test_what_is_no_plain_number_is_refused(value: Any, suggestion: str) -> None:
    with pytest.raises(QuantityError, match="not a decimal number") as caught:
        quantity.parse_decimal(value)
    assert caught.value.suggestion == suggestion


SUFFIXES = [
    *quantity.UNITS,
    "K",
    "ki",
    "e3",
    "E-3",
    "e+2",
    "e",
    "E1",
    "e-12",
    "e18",
    "iK",
    "e+",
    "mi",
]
SIGNS = ["", "", "", "-", "+"]
BLANKS = [
    " ",
    "  ",
    "\t",
    "\n",
    "\r",
    "\v",
    "\u00a0",
    "\u0085",
    "\u2003",
    "\u2028",
    "\u3000",
    "\ufeff",
]
ODD = [
    "",
    ".",
    "+",
    "-",
    "1..2",
    "Ki",
    "1e",
    "+.",
    "-.e3",
    ".e-10",
    "e3",
    "e-9",
    "e-10",
    "n",
    ".n",
    "0e-20",
]
GARBAGE = "0123456789.+-eEinumkKMGTP _x,\u0661\uff18"
NUMBER_PLACE = re.compile(r"""(?<![\w.])[+-]?\.?[0-9][0-9A-Za-z.+-]{0,40}""")


def digits(chance: random.Random, lengths: Sequence[int]) -> str:
    return "".join(chance.choices("0123456789", k=chance.choice(lengths)))


def exponent(chance: random.Random) -> str:
    """Of all sizes, but of those beyond int32 only what wraps to one that Go can compute with."""
    small = chance.choice([-1, 1]) * chance.choice([0, 1, 3, 9, 10, 18, 30, 390, 405, 3000])
    times = chance.choice([0, 0, 1, -1, 2, 2**20, 2**31 - 1, 2**31, -(2**31), 2**32])
    number = small + times * 2**32
    zeros = "0" * chance.choice([0, 0, 1, 25])
    sign = "-" if number < 0 else chance.choice(["", "+"])
    return f"{chance.choice('eE')}{sign}{zeros}{abs(number)}"


def generated(count: int, seed: int) -> list[str]:
    """So many texts, the same every time: the grammar with its odd corners, then garbage."""
    chance = random.Random(seed)
    texts = {*ODD, "9223372036854775807", "9223372036854775808", "1e2147483647", "0.5e-2147483648"}
    while len(texts) < count:
        kind = chance.random()
        if kind < 0.1:
            texts.add("".join(chance.choices(GARBAGE, k=chance.randint(1, 7))))
            continue
        whole = digits(chance, [0, 1, 1, 2, 3, 5, 12, 17, 18, 19, 25])
        decimals = digits(chance, [0, 0, 1, 2, 3, 9, 10, 14, 70])
        point = "." if decimals or chance.random() < 0.1 else ""
        zeros = "0" * chance.choice([0, 0, 0, 0, 2, 256])
        trailing = "0" * chance.choice([0, 0, 0, 2, 256]) if point else ""
        suffix = exponent(chance) if kind < 0.4 else chance.choice(SUFFIXES)
        text = chance.choice(SIGNS) + zeros + whole + point + decimals + trailing + suffix
        if chance.random() < 0.1:
            text = chance.choice([*BLANKS, ""]) + text + chance.choice([*BLANKS, ""])
        texts.add(text)
    return sorted(texts)


def recorded() -> list[str]:
    """Every text in the tests' own data and code that might be an amount."""
    files = [each for end in ("yaml", "json", "py") for each in TESTS.rglob(f"*.{end}")]
    found = {text for each in files for text in NUMBER_PLACE.findall(each.read_text("utf-8"))}
    return sorted(filter(go_can_compute, found))


def go_can_compute(text: str) -> bool:
    """Whether the exponent is not so far from 0 that apimachinery works for hours."""
    found = re.search(r"[eE]([+-]?[0-9]+)$", text)
    return found is None or abs((int(found[1]) + 2**31) % 2**32 - 2**31) < 10**5


def numbers(count: int, seed: int) -> list[int | float]:
    """JSON numbers, which Kubernetes reads as the text that they are written as."""
    chance = random.Random(seed)
    found: list[int | float] = [0, -0.0, 1e22, 1e-7, 2**63, -(2**63), 1.5e300, 5e-324]
    while len(found) < count:
        found.append(chance.choice([-1, 1]) * chance.randrange(10 ** chance.randint(1, 25)))
        found.append(chance.uniform(-1, 1) * 10 ** chance.randint(-20, 30))
    return found


def judge(program: Path, values: Sequence[Any]) -> list[int | None]:
    """Go's value of each in nano units, None where Go refuses it, LARGEST for what is beyond it."""
    lines = "".join(json.dumps(value) + "\n" for value in values)
    told = subprocess.run(
        [program], input=lines, capture_output=True, text=True, check=True, timeout=300
    )
    answers = told.stdout.splitlines()
    assert len(answers) == len(values)
    return [in_nano(*map(int, answer.split())) if answer != "err" else None for answer in answers]


def in_nano(unscaled: int, scale: int) -> int:
    if not unscaled or len(str(abs(unscaled))) - scale > quantity.LARGEST_EXPONENT:
        return (unscaled > 0) * LARGEST - (unscaled < 0) * LARGEST
    value = Fraction(unscaled) / Fraction(10) ** scale * NANO
    assert value.denominator == 1
    return int(value)


@pytest.fixture(scope="module")
def oracle() -> Path:
    """Go's own resource.Quantity as a program, pinned by its go.mod; built once."""
    try:
        return programs.find("quantity-oracle")["quantity-oracle"]
    except MissingTestbed as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(f"no quantity oracle: {error.reason} {error.how_to_get_it}")


@pytest.fixture(scope="module")
def judged(oracle: Path) -> list[tuple[Any, int | None]]:
    """All texts and numbers, each with Go's verdict."""
    values = [*generated(100_000, 20261122), *recorded(), *numbers(5_000, 20261122)]
    return list(zip(values, judge(oracle, values), strict=True))


def ours(value: Any) -> int | None:
    try:
        return quantity.parse(value)
    except QuantityError:
        return None


def test_verdicts_and_values_are_those_of_kubernetes(judged: list[tuple[Any, int | None]]) -> None:
    differing = [(value, go, ours(value)) for value, go in judged if ours(value) != go]
    assert differing[:20] == []
    assert len(judged) > 105_500
    accepted = [go for _, go in judged if go is not None]
    assert len(accepted) > 50_000
    assert len(judged) - len(accepted) > 20_000
    assert sum(abs(go) == LARGEST for go in accepted) > 500


def test_what_a_policy_may_write_has_the_value_that_kubernetes_reads(
    judged: list[tuple[Any, int | None]],
) -> None:
    accepted = 0
    for value, go in judged:
        try:
            written = quantity.parse_written(value)
        except QuantityError:
            continue
        assert written == go
        accepted += 1
    assert accepted > 20_000


def test_rendered_values_read_alike(oracle: Path, judged: list[tuple[Any, int | None]]) -> None:
    known = [(text, go) for text, go in judged[::20] if go is not None and abs(go) < LARGEST]
    rendered = [quantity.render(go, text if isinstance(text, str) else "") for text, go in known]
    assert judge(oracle, rendered) == [go for _, go in known]
