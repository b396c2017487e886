"""Reads the plain members of an envelope: strings, values of an enum, lists of names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from webhook.objects.path import Path
from webhook.policy.names import closest
from webhook.policy.report import Report, show_value


def text_at(report: Report, mapping: Mapping[Any, Any], key: str, path: Path) -> str:
    """Read a string member. Numbers keep their notation; absent and null are empty."""
    raw, here = mapping.get(key), (*path, key)
    text = report.document.text(here)
    if raw is None or isinstance(raw, str):
        return raw or ""
    if isinstance(raw, bool | dict | list):
        report.wrong_type(here, raw, "text")
        return ""
    return text if text is not None else str(raw)


def choice_at(
    report: Report, mapping: Mapping[Any, Any], key: str, path: Path, words: tuple[str, ...]
) -> str:
    """Read a member that is one of `words`. Absent or anything else returns the first of them."""
    raw = mapping.get(key)
    if raw is None:
        return words[0]
    if raw in words:
        return str(raw)
    meant = closest(raw, words) if isinstance(raw, str) else ""
    fix = f"did you mean {meant}?" if meant else f"write one of {', '.join(words)}"
    report.error((*path, key), "value-outside-enum", show_value(raw), fix)
    return words[0]


def texts_at(
    report: Report, mapping: Mapping[Any, Any], key: str, path: Path, words: tuple[str, ...] = ()
) -> frozenset[str] | None:
    """Read a list of strings, each one of `words` if given. Absent returns None."""
    raw, here = mapping.get(key), (*path, key)
    if raw is None:
        return None
    listed = report.sequence(raw, here, "a list of names")
    if isinstance(raw, list) and not raw and words:
        report.error(here, "empty-list", "[]", f"name at least one, or leave {key} out")
    found: set[str] = set()
    for index, each in enumerate(listed):
        if not isinstance(each, str):
            report.wrong_type((*here, index), each, "a name")
        elif words and each not in words:
            meant = closest(each, words)
            fix = f"did you mean {meant}?" if meant else f"write one of {', '.join(words)}"
            report.error((*here, index), "value-outside-enum", show_value(each), fix)
        else:
            found.add(each)
    return frozenset(found)
