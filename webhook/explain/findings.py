"""Attaches the findings of a decision to the values that they are about."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from webhook.evaluation.outcome import Violation, Warning
from webhook.explain.model import Entry, FieldReport, ObjectReport
from webhook.objects.path import ABSENT, Path
from webhook.policy.rules.rule_type import INTENT


def attach_violation(violation: Violation, before: Any, after: Any, result: ObjectReport) -> bool:
    """Attach a violation to its value. Return False if there is none.

    Its path is relative to the request if it was found there, before defaults moved list items.
    """
    path = violation.path
    rule = violation.rule_type
    if rule is not None and rule.stage == INTENT:
        path = move_path(path, before, after)
    entry = nearest(violation.field, path, violation.key, result)
    if entry is not None:
        entry.violations.append(violation)
    return entry is not None


def move_path(path: Path, before: Any, after: Any) -> Path:
    """Return the path in the completed object for a path in the request."""
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
    """Return the index of an element, or of its changed copy, in a list."""
    for index, each in enumerate(elements):
        if each is element:
            return index
    name = element.get("name") if isinstance(element, dict) else None
    for index, each in enumerate(elements):
        if name is not None and isinstance(each, dict) and each.get("name") == name:
            return index
    return position


def fields_of(result: ObjectReport) -> Iterator[tuple[Path, FieldReport]]:
    """Yield every field with the path of its pod, () for the workload's."""
    for pod in result.pods:
        for each in pod.fields:
            yield pod.path, each
    for each in result.workload:
        yield (), each


def nearest(name: str, path: Path, key: str, result: ObjectReport) -> Entry | None:
    """Return the value that a finding is about: of its field, at its path or else the nearest one."""
    best: tuple[tuple[int, ...], Entry] | None = None
    for start, each in fields_of(result):
        if name != each.field and not name.startswith(f"{each.field}."):
            continue
        for entry in each.entries:
            common = count_shared_steps(path, entry.path)
            if common < min(len(start), len(path)):
                continue
            exact = path == entry.path or any(a.path == path for a in entry.attributes)
            score = (int(exact), int(bool(key) and key == entry.key), common)
            if best is None or score > best[0]:
                best = (score, entry)
    return best[1] if best is not None else None


def count_shared_steps(one: Path, other: Path) -> int:
    """Return the number of steps that two paths share."""
    count = 0
    for mine, theirs in zip(one, other, strict=False):
        if mine != theirs:
            break
        count += 1
    return count


def attach_warning(warning: Warning, result: ObjectReport) -> bool:
    """Attach a warning to its value. Return False if there is none."""
    if not warning.field:
        return False
    entry = nearest(warning.field, warning.path, "", result)
    if entry is not None:
        entry.warnings.append(warning)
    return entry is not None
