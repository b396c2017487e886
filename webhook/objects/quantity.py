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
"""For decimals and for amounts in policies. Amounts in objects can have any length."""

LARGEST_EXPONENT = 400
LARGEST: int = 10**LARGEST_EXPONENT * NANO
"""Larger amounts are read as this one, so that podgate never has to compute 1e2147483647."""

LARGEST_BINARY = (2**63 - 1) * NANO
DECIMALS_KEPT = 80
"""A binary amount ends on a nano after at most 69 decimals; of later ones only their sum counts."""

LONGEST_CACHED = 64

DECIMAL_SUFFIXES = {
    "n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18,
}  # fmt: skip
BINARY_SUFFIXES = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
UNITS = {
    **{suffix: 10 ** (power + 9) for suffix, power in DECIMAL_SUFFIXES.items()},
    **{suffix: 2**power * NANO for suffix, power in BINARY_SUFFIXES.items()},
}

WANTED = "a quantity such as 500M or 4Gi"
BLANKS = " \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"
"""What Go trims, but for the blanks that JSON escapes: Kubernetes trims the escaped text."""

# Kubernetes reads a number without any digit as 0, and takes any number of zeros.
NATIVE = re.compile(
    r"(?P<sign>[+-]?)(?P<whole>[0-9]*+)(?:\.(?P<decimals>[0-9]*+))?"
    r"(?:(?P<suffix>[KMGTPE]i|[numkMGTPE])|[eE](?P<exponent>[+-]?[0-9]++))?"
)
NUMBER = r"(?P<sign>[+-]?)(?:(?P<whole>[0-9]++)\.?(?P<decimals>[0-9]*+)|\.(?P<point>[0-9]++))"
EXPONENT = r"[eE](?P<exponent>[+-]?[0-9]+)"
QUANTITY = re.compile(rf"{NUMBER}(?:(?P<suffix>[KMGTPE]i|[numkMGTPE])|{EXPONENT})?")
DECIMAL = re.compile(rf"{NUMBER}(?:{EXPONENT})?")

SMALL = ("", "m", "u")
FAMILIES = (("E", "P", "T", "G", "M", "k", *SMALL), ("Ei", "Pi", "Ti", "Gi", "Mi", "Ki", *SMALL))

LOOSE = re.compile(r"\s*+([+-]?[0-9_]*+[.,]?[0-9_]*+)\s*+([A-Za-z]*+)\s*+")
CORES = re.compile(r" ?(?:v?cpu|core)s?\Z", re.IGNORECASE)
THOUSANDS = re.compile(r",[0-9]{3}(?![0-9])")
"""1,000 can mean one or a thousand, so there is no suggestion."""
LOOSE_SUFFIXES = {
    "kib": "Ki", "mib": "Mi", "gib": "Gi", "tib": "Ti", "pib": "Pi", "eib": "Ei",
    "ki": "Ki", "mi": "Mi", "gi": "Gi", "ti": "Ti", "pi": "Pi", "ei": "Ei",
    "kb": "k", "mb": "M", "gb": "G", "tb": "T", "pb": "P", "eb": "E",
    "g": "G", "t": "T", "p": "P", "b": "", "": "",
}  # fmt: skip


class QuantityError(ValueError):
    """Text that is not a quantity: `found` is the text, `suggestion` what to write, or ""."""

    def __init__(self, found: str, wanted: str, suggestion: str = "") -> None:
        hint = f"; write {suggestion}" if suggestion else ""
        super().__init__(f"{found} is not {wanted}{hint}")
        self.found = found
        self.wanted = wanted
        self.suggestion = suggestion


def parse(value: str | float) -> int:
    """Return the nano units of an amount in an object, like Kubernetes. Plain numbers are units.

    Accepts what apimachinery's Quantity.UnmarshalJSON accepts, with the same value: finer values
    are rounded away from zero, binary ones end at 2^63-1 units, exponents wrap at 32 bit. No value
    is beyond LARGEST. Raises QuantityError for everything else, booleans, null and containers
    included.
    """
    if isinstance(value, str):
        return parse_short(value) if len(value) <= LONGEST_CACHED else parse_text(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return max(-LARGEST, min(value * NANO, LARGEST))
    if isinstance(value, float):
        return parse_text(repr(value))
    raise QuantityError(_show(value), WANTED)


def parse_written(value: str | float) -> int:
    """Like `parse`, for an amount in a policy. Spellings that are probably mistakes are rejected.

    Raises QuantityError for blanks, numbers without digits, and exponents beyond 400, too.
    """
    if isinstance(value, str) and _match(QUANTITY, value) is None:
        raise QuantityError(_show(value), WANTED, suggest(value))
    return parse(value)


def parse_text(text: str) -> int:
    """Like `parse`, for text."""
    match = NATIVE.fullmatch(text.strip(BLANKS)) if text else None
    nano = _size(match) if match and match[0] else None
    if match is None or nano is None:
        raise QuantityError(_show(text), WANTED, suggest(text))
    return -nano if match["sign"] == "-" else nano


# Long texts are not cached: users choose them, and there can be thousands.
parse_short = lru_cache(maxsize=8192)(parse_text)


def parse_decimal(value: str | float | Decimal) -> int | Fraction:
    """Return a plain decimal number in nano units, exactly: a Fraction only if finer than 1 nano.

    A float is read as its shortest decimal text. Raises QuantityError for suffixes, underscores,
    nan, infinity and booleans.
    """
    if isinstance(value, int) and not isinstance(value, bool):
        return value * NANO
    if isinstance(value, bool) or not isinstance(value, str | float | Decimal):
        raise QuantityError(_show(value), "a decimal number such as 0.5")
    text = (
        value if isinstance(value, str) else repr(value) if isinstance(value, float) else str(value)
    )
    match = _match(DECIMAL, text)
    if match is None:
        raise QuantityError(_show(text), "a decimal number such as 0.5", _plain(text))
    numerator, denominator = _ratio(match)
    if match["sign"] == "-":
        numerator = -numerator
    return Fraction(numerator, denominator) if numerator % denominator else numerator // denominator


def render(nano: int, like: str = "") -> str:
    """Return nano units as an exact quantity, with the suffix of `like` if 3 decimals are enough.

    If they are not, whole units have no suffix. Without `like` the shortest text is used
    that has no point: 4Gi, 1500M, 500m.
    """
    match = QUANTITY.fullmatch(like)
    suffix = match["suffix"] if match else None
    if suffix and nano and nano * 1000 % UNITS[suffix] == 0 and _fits(nano, suffix):
        return _decimal(nano, UNITS[suffix]) + suffix
    if like and nano % NANO == 0:
        return str(nano // NANO)
    return min((_format_nano(nano, family) for family in FAMILIES), key=len)


def render_cores(nano: int) -> str:
    """Return CPU cores as Kubernetes writes them: whole cores, else millicores (or finer)."""
    return _format_nano(nano, SMALL)


def suggest(text: str) -> str:
    """Return what to write instead of a text that is not a quantity, such as "64k or 64Ki", or ""."""
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


def _match(pattern: re.Pattern[str], text: str) -> re.Match[str] | None:
    match = pattern.fullmatch(text) if len(text) <= LONGEST_TEXT else None
    if match and match["exponent"] and abs(int(match["exponent"])) > LARGEST_EXPONENT:
        return None
    return match


def _size(match: re.Match[str]) -> int | None:
    """Return the nano units of an amount without sign, rounded up. None if Kubernetes rejects it."""
    whole, decimals, suffix = match["whole"], match["decimals"] or "", match["suffix"] or ""
    exponent = _exponent(match["exponent"] or "0")
    if exponent is None:
        return None
    exponent += DECIMAL_SUFFIXES.get(suffix, 0)
    if not whole and not decimals:
        return 0 if exponent >= -9 and suffix not in ("Pi", "Ei") else None
    # Kubernetes keeps the number of decimals minus the exponent in an int32.
    power = -_wrap(len(decimals) - exponent)
    digits = (whole + decimals).lstrip("0")
    power += len(digits)
    digits = digits.rstrip("0")
    if not digits:
        return 0
    if power > LARGEST_EXPONENT:
        return LARGEST_BINARY if suffix in BINARY_SUFFIXES else LARGEST
    power -= len(digits)
    if power < -DECIMALS_KEPT:
        digits = digits[: max(len(digits) + power + DECIMALS_KEPT, 0)] + "1"
        power = -DECIMALS_KEPT - 1
    nano = int(digits) << BINARY_SUFFIXES.get(suffix, 0)
    nano = nano * int(10 ** (power + 9)) if power >= -9 else -(-nano // int(10 ** (-9 - power)))
    return min(nano, LARGEST_BINARY) if suffix in BINARY_SUFFIXES else min(nano, LARGEST)


def _exponent(text: str) -> int | None:
    """Return an exponent as Kubernetes reads it: 64 bit, cut to the lower 32."""
    digits = text.lstrip("+-").lstrip("0")
    if len(digits) > 19:
        return None
    number = -int(digits or "0") if text[0] == "-" else int(digits or "0")
    return _wrap(number) if -(2**63) <= number < 2**63 else None


def _wrap(number: int) -> int:
    return (number + 2**31) % 2**32 - 2**31


def _ratio(match: re.Match[str]) -> tuple[int, int]:
    """Return a decimal number without sign, as nano units over a power of ten."""
    decimals = match["decimals"] or match["point"] or ""
    digits = int((match["whole"] or "") + decimals)
    power = 9 - len(decimals) + int(match["exponent"] or 0)
    return (digits * 10**power, 1) if power >= 0 else (digits, 10**-power)


def _fits(nano: int, suffix: str) -> bool:
    return suffix not in BINARY_SUFFIXES or abs(nano) <= LARGEST_BINARY


def _format_nano(nano: int, family: tuple[str, ...]) -> str:
    """Return nano units as a whole number of the largest suffix of `family` that divides them."""
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
    """Return the decimal number of a text with a suffix, a comma or underscores, or ""."""
    try:
        nano = abs(parse_text(suggest(CORES.sub("", text[:LONGEST_CACHED]))))
    except QuantityError:
        return ""
    number = f"{nano // NANO}.{nano % NANO:09d}".rstrip("0").rstrip(".")
    return f"-{number}" if text.startswith("-") else number


def _show(value: object) -> str:
    try:
        text = json.dumps(value)
    except (TypeError, ValueError):
        text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
