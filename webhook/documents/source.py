"""Documents as their authors wrote them: plain JSON data with positions and source texts."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from webhook.objects.path import Path

Scalar = str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class SourceDocument:
    """One document of a file or object. `index` counts the documents of its origin from 1.

    `positions` holds 1-based (line, column) of items and, in mappings, of keys. `texts` holds
    what was written where an unquoted scalar may read differently: 0644, on, 22:30, 1e9, .5.
    """

    origin: str
    index: int
    data: Any
    positions: Mapping[Path, tuple[int, int]]
    texts: Mapping[Path, str]

    def position(self, path: Path) -> tuple[int, int]:
        """Return line and column of `path` or its nearest known ancestor, else (0, 0)."""
        for length in range(len(path), -1, -1):
            if found := self.positions.get(path[:length]):
                return found
        return (0, 0)

    def text(self, path: Path) -> str | None:
        """Return the source text of the scalar at `path` if it differs from the value."""
        return self.texts.get(path)


@dataclass(frozen=True, slots=True)
class SyntaxProblem:
    """Text that cannot be read as data: where (1-based, 0 if unknown), why, what to do."""

    origin: str
    line: int
    column: int
    message: str
    fix: str


CONSTANTS: dict[str, bool | None] = {
    **dict.fromkeys(("", "~", "null"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
CONSTANTS_OF_YAML_1_1: dict[str, bool | None] = {
    **CONSTANTS,
    **dict.fromkeys(("Null", "NULL"), None),
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "on", "On", "ON"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "off", "Off", "OFF"), False),
}

INTEGER = re.compile(r"[+-]?(?:0|[1-9][0-9]{0,299})")
FLOAT = re.compile(r"[+-]?(?:\.[0-9]+|(?:0|[1-9][0-9]*)(?:\.[0-9]*)?)(?:[eE][+-]?[0-9]+)?")
FLOAT_OF_KUBECTL = re.compile(r"[+-]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][+-]?[0-9]+)?")
INTEGER_OF_KUBECTL = re.compile(
    r"(?P<sign>[+-]?)(?:0[xX](?P<hex>[0-9a-fA-F]+)|0[bB](?P<bin>[01]+)|0[oO]?(?P<oct>[0-7]+)"
    r"|(?P<dec>0|[1-9][0-9]*))"
)
BASES = {"hex": 16, "bin": 2, "oct": 8, "dec": 10}
NOT_FINITE = re.compile(r"[+-]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
ODD_IN_YAML_1_1 = re.compile(
    r"[+-]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?"
    r"|[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:[Tt \t].*)?"
    r"|[+-]?(?:[0-9][0-9_]*(?:\.[0-9_]*)?|\.[0-9][0-9_]*)(?:[eE][+-]?[0-9]+)?|[+-]?0[xXoObB][0-9a-fA-F_]+"
)
LONGEST_NUMBER = 300
SPECIAL_FIRST = frozenset("+-.0123456789~nNtTyYfFoO")


def resolve(text: str) -> Scalar:
    """Return the value of an unquoted scalar in podgate's own documents.

    null and booleans only in JSON's words (and True, TRUE, ~, nothing), numbers only in decimal
    without leading zeros; all else is text: yes, on, 0644, 0x10, 22:30, dates, .inf.
    """
    if text and (text[0] not in SPECIAL_FIRST or len(text) > LONGEST_NUMBER):
        return text
    if text in CONSTANTS:
        return CONSTANTS[text]
    if INTEGER.fullmatch(text):
        return int(text)
    if FLOAT.fullmatch(text) and math.isfinite(number := float(text)):
        return number
    return text


def resolve_as_kubectl(text: str) -> Scalar:
    """Return the value of an unquoted scalar in a manifest, like kubectl (sigs.k8s.io/yaml 1.6).

    yes, on and y are true, 0644 is 420, 1_000 is 1000; whole numbers of 64 bit are integers
    even when written 1e9. Raises ValueError for .inf and .nan, which kubectl refuses.
    """
    if text and (text[0] not in SPECIAL_FIRST or len(text) > LONGEST_NUMBER):
        return text
    if text in CONSTANTS_OF_YAML_1_1:
        return CONSTANTS_OF_YAML_1_1[text]
    if NOT_FINITE.fullmatch(text):
        raise ValueError(f"{text} is no JSON number")
    bare = text if text[0] == "." else text.replace("_", "")
    match = INTEGER_OF_KUBECTL.fullmatch(bare)
    if match and match.lastgroup:
        number = int(match["sign"] + match[match.lastgroup], BASES[match.lastgroup])
        if -(2**63) <= number < 2**63:
            return number
        if number < 2**64:
            return float(number)
    if FLOAT_OF_KUBECTL.fullmatch(bare) and math.isfinite(real := float(bare)):
        return _whole_if_64_bit(real)
    return text


def _whole_if_64_bit(number: float) -> int | float:
    """Convert a float like kubectl. It writes JSON, in which whole numbers below 10^21 have no point."""
    if number.is_integer() and abs(number) < 2**64:
        whole = int(Decimal(repr(number)))
        return whole if -(2**63) <= whole < 2**63 else number
    return number


def reads_differently(text: str, value: Scalar) -> bool:
    """Whether the text of an unquoted scalar can mean something else than `value`.

    This applies to numbers in another notation, and to text that YAML 1.1 converts.
    """
    if value is None:
        return False
    if not isinstance(value, str):
        return json.dumps(value) != text
    if not text or text[0] not in SPECIAL_FIRST or len(text) > LONGEST_NUMBER:
        return False
    return bool(
        text in CONSTANTS_OF_YAML_1_1
        or NOT_FINITE.fullmatch(text)
        or ODD_IN_YAML_1_1.fullmatch(text)
    )
