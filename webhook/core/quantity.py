"""Exact amounts: Kubernetes quantities and plain decimals as whole numbers of nano units."""

from __future__ import annotations

import json
import re
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache

NANO = 10**9
"""Nano units in one unit."""

LONGEST_TEXT = 256
LARGEST_EXPONENT = 400
"""Beyond it Kubernetes wraps exponents at 32 bit, so that 5e-4294967296 would be 5 there."""

LARGEST_BINARY = (2**63 - 1) * NANO

DECIMAL_SUFFIXES = {
    "n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18,
}  # fmt: skip
BINARY_SUFFIXES = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
UNITS = {
    **{suffix: 10 ** (power + 9) for suffix, power in DECIMAL_SUFFIXES.items()},
    **{suffix: 2**power * NANO for suffix, power in BINARY_SUFFIXES.items()},
}

WANTED = "a quantity such as 500M or 4Gi"
NUMBER = r"(?P<sign>[+-]?)(?:(?P<whole>[0-9]++)\.?(?P<decimals>[0-9]*+)|\.(?P<point>[0-9]++))"
EXPONENT = r"[eE](?P<exponent>[+-]?[0-9]+)"
QUANTITY = re.compile(rf"{NUMBER}(?:(?P<suffix>[KMGTPE]i|[numkMGTPE])|{EXPONENT})?")
DECIMAL = re.compile(rf"{NUMBER}(?:{EXPONENT})?(?P<suffix>)")

SMALL = ("", "m", "u")
FAMILIES = (("E", "P", "T", "G", "M", "k", *SMALL), ("Ei", "Pi", "Ti", "Gi", "Mi", "Ki", *SMALL))

LOOSE = re.compile(r"\s*+([+-]?[0-9_]*+[.,]?[0-9_]*+)\s*+([A-Za-z]*+)\s*+")
THOUSANDS = re.compile(r",[0-9]{3}(?![0-9])")
"""1,000 may mean one or a thousand, so nothing is suggested."""
LOOSE_SUFFIXES = {
    "kib": "Ki", "mib": "Mi", "gib": "Gi", "tib": "Ti", "pib": "Pi", "eib": "Ei",
    "ki": "Ki", "mi": "Mi", "gi": "Gi", "ti": "Ti", "pi": "Pi", "ei": "Ei",
    "kb": "k", "mb": "M", "gb": "G", "tb": "T", "pb": "P", "eb": "E",
    "g": "G", "t": "T", "p": "P", "b": "", "": "",
}  # fmt: skip


class QuantityError(ValueError):
    """Text that is no quantity: `found` is what stood there, `suggestion` what to write or ""."""

    def __init__(self, found: str, wanted: str, suggestion: str = "") -> None:
        hint = f"; write {suggestion}" if suggestion else ""
        super().__init__(f"{found} is not {wanted}{hint}")
        self.found = found
        self.suggestion = suggestion


def parse(value: str | float) -> int:
    """A Kubernetes quantity in nano units; plain numbers are units.

    Finer values are rounded away from zero, binary ones capped at 2^63-1 units, as Kubernetes
    does. Raises QuantityError for everything else, booleans, null and containers included.
    """
    if isinstance(value, str):
        return parse_text(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return value * NANO
    if isinstance(value, float):
        return parse_text(repr(value))
    raise QuantityError(_shown(value), WANTED)


@lru_cache(maxsize=8192)
def parse_text(text: str) -> int:
    """As `parse`, for text."""
    match = _matched(QUANTITY, text)
    if match is None:
        raise QuantityError(_shown(text), WANTED, suggest(text))
    numerator, denominator = _ratio(match)
    nano = -(-numerator // denominator)
    if match["suffix"] in BINARY_SUFFIXES:
        nano = min(nano, LARGEST_BINARY)
    return -nano if match["sign"] == "-" else nano


def parse_decimal(value: str | float | Decimal) -> int | Fraction:
    """A plain decimal number in nano units, exact: a Fraction only when finer than 1 nano.

    A float stands for its shortest decimal text. Raises QuantityError for suffixes, underscores,
    nan, infinity and booleans.
    """
    if isinstance(value, int) and not isinstance(value, bool):
        return value * NANO
    if isinstance(value, bool) or not isinstance(value, str | float | Decimal):
        raise QuantityError(_shown(value), "a decimal number such as 0.5")
    text = (
        value if isinstance(value, str) else repr(value) if isinstance(value, float) else str(value)
    )
    match = _matched(DECIMAL, text)
    if match is None:
        raise QuantityError(_shown(text), "a decimal number such as 0.5", _plain(text))
    numerator, denominator = _ratio(match)
    if match["sign"] == "-":
        numerator = -numerator
    return Fraction(numerator, denominator) if numerator % denominator else numerator // denominator


def render(nano: int, like: str = "") -> str:
    """Nano units as an exact quantity, in the suffix of `like` when at most 3 decimals say it.

    When they do not, whole units stand without suffix. Without `like` the shortest text is taken
    that has no point: 4Gi, 1500M, 500m.
    """
    match = QUANTITY.fullmatch(like)
    suffix = match["suffix"] if match else None
    if suffix and nano and nano * 1000 % UNITS[suffix] == 0 and _fits(nano, suffix):
        return _decimal(nano, UNITS[suffix]) + suffix
    if like and nano % NANO == 0:
        return str(nano // NANO)
    return min((_grouped(nano, family) for family in FAMILIES), key=len)


def render_cores(nano: int) -> str:
    """CPU cores as Kubernetes writes them: whole cores, else millicores (or finer)."""
    return _grouped(nano, SMALL)


def suggest(text: str) -> str:
    """What to write instead of a text that is no quantity, such as "64k or 64Ki", or ""."""
    match = LOOSE.fullmatch(text) if len(text) <= LONGEST_TEXT else None
    if match is None or THOUSANDS.search(text):
        return ""
    number, suffix = match[1].replace("_", "").replace(",", "."), match[2]
    if suffix == "K":
        known = ["k", "Ki"]
    elif suffix in UNITS:
        known = [suffix]
    else:
        known = [LOOSE_SUFFIXES[suffix.lower()]] if suffix.lower() in LOOSE_SUFFIXES else []
    return " or ".join(number + unit for unit in known if QUANTITY.fullmatch(number + unit))


def _matched(pattern: re.Pattern[str], text: str) -> re.Match[str] | None:
    match = pattern.fullmatch(text) if len(text) <= LONGEST_TEXT else None
    if match and match["exponent"] and abs(int(match["exponent"])) > LARGEST_EXPONENT:
        return None
    return match


def _ratio(match: re.Match[str]) -> tuple[int, int]:
    """The size without sign as nano units over a power of ten."""
    decimals = match["decimals"] or match["point"] or ""
    digits = int((match["whole"] or "") + decimals)
    suffix = match["suffix"] or ""
    power = 9 - len(decimals) + int(match["exponent"] or 0) + DECIMAL_SUFFIXES.get(suffix, 0)
    digits <<= BINARY_SUFFIXES.get(suffix, 0)
    return (digits * 10**power, 1) if power >= 0 else (digits, 10**-power)


def _fits(nano: int, suffix: str) -> bool:
    return suffix not in BINARY_SUFFIXES or abs(nano) <= LARGEST_BINARY


def _grouped(nano: int, family: tuple[str, ...]) -> str:
    """Nano units as a whole number of the largest suffix of `family` that divides them."""
    for suffix in family:
        count, rest = divmod(nano, UNITS[suffix])
        if rest == 0 and (count or not suffix) and _fits(nano, suffix):
            return f"{count}{suffix}"
    return f"{nano}n"


def _decimal(numerator: int, denominator: int) -> str:
    whole, rest = divmod(abs(numerator) * 1000 // denominator, 1000)
    text = f"{whole}.{rest:03d}".rstrip("0").rstrip(".")
    return f"-{text}" if numerator < 0 else text


def _plain(text: str) -> str:
    """The decimal number that text with a suffix, a comma or underscores stands for, or ""."""
    try:
        nano = abs(parse_text(suggest(text)))
    except QuantityError:
        return ""
    number = f"{nano // NANO}.{nano % NANO:09d}".rstrip("0").rstrip(".")
    return f"-{number}" if text.startswith("-") else number


def _shown(value: object) -> str:
    try:
        text = json.dumps(value)
    except (TypeError, ValueError):
        text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
