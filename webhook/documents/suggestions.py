"""Suggests a known name for an unknown one."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def closest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that was probably meant."""
    folded = {each.casefold(): each for each in known}
    near = difflib.get_close_matches(name.casefold(), folded, n=1, cutoff=0.7)
    return folded[near[0]] if near else None
