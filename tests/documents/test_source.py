"""How unquoted scalars read, and where values of a document are."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webhook.documents import source
from webhook.documents.source import SourceDocument

DOCUMENT = SourceDocument(
    "p.yaml", 1, {"a": [1, 0.5]}, {(): (1, 1), ("a",): (1, 1), ("a", 1): (2, 5)}, {("a", 1): ".5"}
)

UNTOUCHED = [
    "yes",
    "on",
    "off",
    "y",
    "0644",
    "0o644",
    "0x10",
    "0b1",
    "22:30",
    "1_000",
    "2001-12-14",
]
NOT_FINITE = [".inf", "-.INF", "+.Inf", ".nan", "1e999"]


def test_a_place_unknown_is_that_of_its_nearest_ancestor() -> None:
    assert DOCUMENT.position(("a", 1)) == (2, 5)
    assert DOCUMENT.position(("a", 0, "x")) == (1, 1)
    assert SourceDocument("x", 1, None, {}, {}).position(("a",)) == (0, 0)


def test_source_texts_are_found_by_place() -> None:
    assert DOCUMENT.text(("a", 1)) == ".5"
    assert DOCUMENT.text(("a", 0)) is None


@pytest.mark.parametrize("text", [*UNTOUCHED, *NOT_FINITE, "abc", "1.2.3", "08", "-", ".", "Null"])
def test_our_documents_leave_text_what_json_would_not_read(text: str) -> None:
    assert source.resolve(text) == text


@pytest.mark.parametrize(
    "text, value",
    [
        ("", None),
        ("~", None),
        ("null", None),
        ("true", True),
        ("TRUE", True),
        ("False", False),
        ("0", 0),
        ("-12", -12),
        ("+5", 5),
        ("1e9", 1e9),
        ("1.0e+9", 1e9),
        (".5", 0.5),
        ("-0.5", -0.5),
        ("1.", 1.0),
        ("9223372036854775808", 2**63),
        ("9" * 301, "9" * 301),
    ],
)
def test_our_documents_read_decimal_numbers_and_the_words_of_json(text: str, value: Any) -> None:
    found = source.resolve(text)
    assert found == value
    assert type(found) is type(value)


# What sigs.k8s.io/yaml v1.6.0 (YAMLToJSON, then decoding as unstructured) makes of each text.
BY_KUBECTL: dict[str, Any] = {
    "y": True, "Y": True, "n": False, "yes": True, "On": True, "off": False, "yEs": "yEs",
    "0644": 420, "0o644": 420, "0o9": "0o9", "-0o17": -15, "0x10": 16, "0X1F": 31, "+0x10": 16,
    "1_000": 1000, "1__0": 10, "_1": "_1", "1_": 1, "0_7": 7, "0x_10": 16, "0b11": 3, "-0b11": -3,
    "0B1": 1, "0b2": "0b2", "0x": "0x", "0o": "0o", "1e9": 1000000000, "1.0e+9": 1000000000,
    ".5": 0.5, "+.5": 0.5, "-.5": -0.5, ".": ".", ".5.": ".5.", "._5": "._5", "1.": 1, "+1": 1,
    "1_0.5": 10.5, "1e3_0": 1e30, ".1e3": 100, "22:30": "22:30", "2001-12-14": "2001-12-14",
    "9223372036854775807": 2**63 - 1, "9223372036854775808": 2.0**63, "1e400": "1e400",
    "18446744073709551616": 2.0**64, "1e21": 1e21, "1e-7": 1e-7, "-0": 0, "-0.0": 0, "00": 0,
    "08": 8, "-08": -8, "09.5": 9.5, "~": None, "Null": None, "": None,
    "0x8000000000000000": 2.0**63,
    "0x1p3": "0x1p3", "+": "+", "-.": "-.", "nan": "nan", "=": "=", "1.10": 1.1, "1e18": 10**18,
    "0xfffffffffffffffff": "0xfffffffffffffffff", "0777777777777777777777777": 7.777777777777778e23,
}  # fmt: skip


@pytest.mark.parametrize("text", list(BY_KUBECTL))
def test_manifests_read_as_kubectl_reads_them(text: str) -> None:
    found = source.resolve_as_kubectl(text)
    assert found == BY_KUBECTL[text]
    assert type(found) is type(BY_KUBECTL[text])


@pytest.mark.parametrize("text", [".inf", "-.INF", "+.inf", ".NaN"])
def test_kubectl_refuses_numbers_that_are_not_finite(text: str) -> None:
    with pytest.raises(ValueError, match="no JSON number"):
        source.resolve_as_kubectl(text)


@pytest.mark.parametrize(
    "text", ["0644", "on", "y", "22:30", "1e9", "0x10", ".5", "1.10", "+5", "True", ".inf", "1_000"]
)
def test_scalars_that_may_read_differently_keep_their_text(text: str) -> None:
    assert source.reads_differently(text, source.resolve(text))


@pytest.mark.parametrize("text", ["5", "0.5", "true", "null", "~", "", "abc", "10.0.0.1", "1.2.3"])
def test_scalars_that_say_what_they_mean_need_no_text(text: str) -> None:
    assert not source.reads_differently(text, source.resolve(text))


@given(st.integers(-(10**40), 10**40) | st.floats(allow_nan=False, allow_infinity=False))
def test_numbers_read_as_python_writes_them(number: float) -> None:
    found = source.resolve(json.dumps(number))
    assert found == number
    assert type(found) is type(number)


@given(st.text(alphabet="0123456789+-._eExXoObBaAfF:yYnN~Tt", max_size=12))
def test_every_text_reads_as_a_finite_scalar(text: str) -> None:
    for resolve in (source.resolve, source.resolve_as_kubectl):
        try:
            value = resolve(text)
        except ValueError:
            assert source.NOT_FINITE.fullmatch(text)
            continue
        assert not isinstance(value, float) or math.isfinite(value)
        source.reads_differently(text, value)
