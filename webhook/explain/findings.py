"""Puts what a decision found beside the values that it is about."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from webhook.evaluation.outcome import Violation, Warning
from webhook.explain.model import Entry, FieldReport, ObjectReport
from webhook.objects.path import ABSENT, Path
from webhook.policy import rules as rule_table


def attach_violation(violation: Violation, before: Any, after: Any, result: ObjectReport) -> bool:
    """Put a violation beside its value; False where there is none.

    Its place is one of the request where it was found there, before defaults moved list items.
    """
    path = violation.path
    row = rule_table.TABLE.get(violation.rule)
    if row is not None and row.stage == rule_table.INTENT:
        path = moved(path, before, after)
    entry = nearest(violation.field, path, violation.key, result)
    if entry is not None:
        entry.violations.append(violation)
    return entry is not None


def moved(path: Path, before: Any, after: Any) -> Path:
    """The place in the completed object that a place of the request has become."""
    result: list[str | int] = []
    for index, step in enumerate(path):
        if isinstance(step, int) and isinstance(before, list) and isinstance(after, list):
            if not step < len(before):
                return (*result, *path[index:])
            before = before[step]
            step = position_of(before, after, step)
            after = after[step] if step < len(after) else ABSENT
        elif isinstance(before, dict) and isinstance(after, dict):
            before, after = before.get(str(step)), after.get(str(step))
        else:
            return (*result, *path[index:])
        result.append(step)
    return tuple(result)


def position_of(element: Any, elements: list[Any], position: int) -> int:
    """Where an element, or its changed copy, stands now."""
    for index, each in enumerate(elements):
        if each is element:
            return index
    name = element.get("name") if isinstance(element, dict) else None
    for index, each in enumerate(elements):
        if name is not None and isinstance(each, dict) and each.get("name") == name:
            return index
    return position


def fields_of(result: ObjectReport) -> Iterator[tuple[Path, FieldReport]]:
    """Every field with the place of its pod, () for the workload's."""
    for pod in result.pods:
        for each in pod.fields:
            yield pod.path, each
    for each in result.workload:
        yield (), each


def nearest(name: str, path: Path, key: str, result: ObjectReport) -> Entry | None:
    """The value that a finding is about: of its field, at its place or else the nearest one."""
    best: tuple[tuple[int, ...], Entry] | None = None
    for place, each in fields_of(result):
        if name != each.field and not name.startswith(f"{each.field}."):
            continue
        for entry in each.entries:
            common = shared(path, entry.path)
            if common < min(len(place), len(path)):
                continue
            exact = path == entry.path or any(a.path == path for a in entry.attributes)
            score = (int(exact), int(bool(key) and key == entry.key), common)
            if best is None or score > best[0]:
                best = (score, entry)
    return best[1] if best is not None else None


def shared(one: Path, other: Path) -> int:
    """How many steps two places have in common."""
    count = 0
    for mine, theirs in zip(one, other, strict=False):
        if mine != theirs:
            break
        count += 1
    return count


def attach_warning(warning: Warning, result: ObjectReport) -> bool:
    """Put a warning beside the value that it is about; False where there is none."""
    if not warning.field:
        return False
    entry = nearest(warning.field, warning.path, "", result)
    if entry is not None:
        entry.warnings.append(warning)
    return entry is not None
