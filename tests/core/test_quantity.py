"""Quantities, with Go's own resource.Quantity as judge."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import subprocess
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webhook.core import quantity
from webhook.core.quantity import NANO, QuantityError

ORACLE = Path(__file__).with_name("quantity_oracle")
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
        ("512mb", "512M"),
        ("1,5", "1.5"),
        ("1,5Gi", "1.5Gi"),
        ("1,000", ""),
        ("1_000", "1000"),
        ("1..2", ""),
        ("4GiM", ""),
        ("3e", ""),
        ("gi", ""),
        (".", ""),
        ("-", ""),
        ("Ki", ""),
        ("", ""),
        ("nan", ""),
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


@pytest.mark.parametrize("text", ["5e-4294967296", "1e401", "1e99999999999999999999", "9" * 300])
def test_sizes_that_kubernetes_would_wrap_or_choke_on_are_refused(text: str) -> None:
    with pytest.raises(QuantityError) as caught:
        quantity.parse(text)
    assert len(caught.value.found) <= 80


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


def corpus() -> list[str]:
    """Some 5,000 texts, the same every time: grammar with odd corners, then garbage."""
    chance = random.Random(20261121)
    suffixes = [*quantity.UNITS, "K", "ki", "e3", "E-3", "e+2", "e", "E1", "e-12", "e18", "iK"]
    texts = {"", ".", "+", "-", "1..2", "Ki", "1e", "9223372036854775807", "9223372036854775808"}
    while len(texts) < 3500:
        whole = "".join(
            chance.choices("0123456789", k=chance.choice([0, 1, 1, 2, 3, 5, 12, 19, 25]))
        )
        digits = "".join(chance.choices("0123456789", k=chance.choice([0, 0, 1, 2, 3, 9, 10, 14])))
        point = "." if digits or chance.random() < 0.1 else ""
        zeros = "0" * chance.choice([0, 0, 0, 0, 2])
        sign = chance.choice(["", "", "", "-", "+"])
        texts.add(sign + zeros + whole + point + digits + chance.choice(suffixes))
    while len(texts) < 5000:
        texts.add("".join(chance.choices("0123456789.+-eEinumkKMGTP _x", k=chance.randint(1, 6))))
    return sorted(texts)


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[str, int | None]]:
    """The corpus, each text with Go's value in nano units, or None when Go refuses it."""
    go = shutil.which("go")
    if go is None:
        pytest.skip("no `go` on PATH: it is needed to build tests/core/quantity_oracle")
    program = tmp_path_factory.mktemp("oracle") / "quantity-oracle"
    environment = {**os.environ, "CGO_ENABLED": "0", "GOWORK": "off", "GOFLAGS": "-mod=readonly"}
    build = [go, "build", "-o", str(program), "."]
    done = subprocess.run(
        build, cwd=ORACLE, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        pytest.skip(f"go cannot build the oracle (modules need a proxy): {done.stderr[-300:]}")
    texts = corpus()
    lines = "".join(json.dumps(text) + "\n" for text in texts)
    told = subprocess.run([program], input=lines, capture_output=True, text=True, check=True)
    answers = [line.split(" ")[0] for line in told.stdout.splitlines()]
    assert len(answers) == len(texts)
    return [
        (text, None if answer == "err" else int(Fraction(answer) * NANO))
        for text, answer in zip(texts, answers, strict=True)
    ]


def ours(text: str) -> int | None:
    try:
        return quantity.parse(text)
    except QuantityError:
        return None


def test_values_are_those_of_kubernetes(judged: list[tuple[str, int | None]]) -> None:
    # Kubernetes takes a number without any digit for 0; the API's own pattern does not.
    no_number = re.compile(r"[+-]?\.?([^0-9.+-].*)?", re.DOTALL)
    differing = [
        (text, value, ours(text))
        for text, value in judged
        if ours(text) != (None if no_number.fullmatch(text) else value)
    ]
    assert differing == []
    assert sum(value is not None for _, value in judged) > 2000
    assert sum(value is None for _, value in judged) > 1000


def test_rendered_values_read_alike_in_kubernetes_order(
    judged: list[tuple[str, int | None]],
) -> None:
    accepted = [
        (text, value) for text, value in judged if value is not None and ours(text) == value
    ]
    by_go = [text for text, _ in sorted(accepted, key=lambda pair: (pair[1], pair[0]))]
    by_us = sorted((text for text, _ in accepted), key=lambda text: (quantity.parse(text), text))
    assert by_us == by_go
    for text, value in accepted:
        assert quantity.parse(quantity.render(value, text)) == value
