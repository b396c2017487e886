"""Prepares texts and values of users for one line of a message."""

from __future__ import annotations

import json
from typing import Any

LONGEST_VALUE = 80


def clean(text: str) -> str:
    """Return `text` on one line. Control, format and other invisible characters are escaped."""
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape", "backslashreplace").decode()
        for char in text
    )


def cut(text: str, longest: int = LONGEST_VALUE) -> str:
    """Return `text`, cleaned, with at most `longest` characters. A cut is marked with `…`."""
    shown = clean(text[: longest + 1])
    return shown if len(shown) <= longest else f"{shown[: longest - 1]}…"


def quote(text: str) -> str:
    """Return text of a user in double quotes, cleaned and cut."""
    return json.dumps(cut(text), ensure_ascii=False)


def show_value(value: Any) -> str:
    """Return a JSON value as short text."""
    return cut(
        value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    )
