"""Reads one value of a policy: its comparable form, its notation, and its problems."""

from __future__ import annotations

import re
from typing import Any

from webhook.objects import quantity
from webhook.objects.path import Path
from webhook.policy import object_shapes, values
from webhook.policy.leaves import LeafType
from webhook.policy.names import closest
from webhook.policy.policy import Default
from webhook.policy.report import NOT_SHOWN, Report, show_value

DEEPEST_OBJECT = 32
FEW_BYTES = 1024
COUNTED = "compute.extendedResources"
"""Amounts of devices, not of bytes."""
OCTAL = re.compile(r"[+-]?0[0-9_]+")
"""YAML parsers disagree on these: 0644 is 644 for some, 420 for others."""


def read_value(report: Report, leaf: LeafType, raw: Any, path: Path, use: str) -> Default | None:
    """Read the value at `path` for `leaf`. An invalid value is reported, and returns None.

    `use` is "default", "option" or "bound". It decides the reason of a value outside the enum.
    """
    text = report.document.text(path)
    if isinstance(raw, list):
        raw = with_source_text(report, raw, path)
    raw = respelled_value(report, leaf, raw, path)
    try:
        refuse_misread(leaf, raw, text)
        value = leaf.codec.parse(raw, text)
    except ValueError as error:
        suggestion = error.suggestion if isinstance(error, quantity.QuantityError) else ""
        found = NOT_SHOWN if leaf.secret else show_value(raw, text)
        wanted = str(error) if leaf.value == "string" else leaf.expected_form
        report.error(path, "wrong-type", found, f"write {suggestion or wanted}")
        return None
    if not inside_enum(report, leaf, value, path, use):
        return None
    if leaf.value == "object":
        object_shapes.check(report, leaf.path, raw, path)
    notation = text if text is not None and isinstance(raw, str | int | float) else raw
    warn_of_milli(report, leaf, value, notation, path)
    if leaf.value in ("boolean", "integer") or isinstance(value, str):
        notation = value
    return Default(value, notation)


def with_source_text(report: Report, raw: list[Any], path: Path) -> list[Any]:
    """Return a list with the source text of scalars that YAML converted (0644, on)."""
    texts = (report.document.text((*path, index)) for index in range(len(raw)))
    return [each if text is None else text for each, text in zip(raw, texts, strict=True)]


def respelled_value(report: Report, leaf: LeafType, raw: Any, path: Path) -> Any:
    """Return a value in its canonical spelling. Another known spelling is a warning."""
    canonical = dict(leaf.spellings).get(raw) if isinstance(raw, str) else None
    if canonical is None:
        return raw
    report.warn(path, "value-spelling", show_value(raw), f"write {canonical}")
    return canonical


def refuse_misread(leaf: LeafType, raw: Any, text: str | None) -> None:
    """Raise ValueError if YAML converted the text to a value that the author cannot mean."""
    if leaf.value == "boolean" and text is not None and text.lower() not in ("true", "false"):
        raise ValueError("true or false")
    if (
        leaf.value in ("integer", "number", "quantity")
        and text is not None
        and OCTAL.fullmatch(text)
    ):
        raise ValueError("a number without leading zeros")
    if leaf.value == "object" and too_deep(raw):
        raise ValueError("an object")


def too_deep(raw: Any, deepest: int = DEEPEST_OBJECT) -> bool:
    """Whether an object is nested deeper, by default than any object of Kubernetes."""
    level, depth = [raw], 0
    while level and depth <= deepest:
        below = [each for each in level if isinstance(each, dict | list)]
        level = [
            child for each in below for child in (each.values() if isinstance(each, dict) else each)
        ]
        depth += 1
    return bool(level)


def inside_enum(report: Report, leaf: LeafType, value: Any, path: Path, use: str) -> bool:
    """Whether a value is in the enum of its leaf, if there is one."""
    if not leaf.enum or use == "bound":
        return True
    words = list(value) if leaf.is_array else [value]
    outside = [each for each in words if each not in leaf.enum]
    for each in outside:
        meant = closest(each, leaf.enum) if isinstance(each, str) else ""
        allowed = f"write one of {', '.join(leaf.enum)}"
        fix = f"did you mean {meant}?" if meant else allowed
        found = NOT_SHOWN if leaf.secret else show_value(each)
        report.error(path, f"{use}-outside-enum", found, fix)
    return not outside


def warn_of_milli(report: Report, leaf: LeafType, value: Any, notation: Any, path: Path) -> None:
    """Warn of thousandths of a byte and of a few bytes: both are legal, but never meant."""
    few = isinstance(value, int) and 0 < value < FEW_BYTES * quantity.NANO
    if leaf.value == "quantity" and few and str(notation).isdigit():
        fix = f"write {notation}Gi or {notation}Mi if that is meant"
        report.warn(path, "few-bytes", f"{notation} bytes", fix)
    in_bytes = leaf.value == "quantity" or (
        leaf.codec is values.AMOUNT_TEXT and not leaf.path.startswith(COUNTED)
    )
    if not in_bytes or not isinstance(notation, str) or not notation.endswith("m"):
        return
    meant = f"{notation[:-1]}M"
    report.warn(path, "milli-memory", notation, f"write {meant} if millions of bytes are meant")
