"""Reads label selectors, and compares pairs of them: disjoint, or one contained in the other."""

from __future__ import annotations

from typing import Any

from webhook.objects.path import Path
from webhook.policy.names import closest, unknown
from webhook.policy.policy_spec import Selector
from webhook.policy.report import Report, show_value

NAME_LABEL = "kubernetes.io/metadata.name"
OPERATORS = {"In": True, "NotIn": True, "Exists": False, "DoesNotExist": False}
Requirement = tuple[str, str, tuple[str, ...]]


def read_selector(report: Report, raw: Any, path: Path) -> Selector | None:
    """Read the selector at `path`. Absent and empty return None."""
    if raw is None:
        return None
    mapping = report.mapping(raw, path)
    requirements: list[Requirement] = []
    for key, value in mapping.items():
        here = (*path, key)
        if key == "matchLabels":
            requirements += match_labels(report, value, here)
        elif key == "matchExpressions":
            expressions = report.sequence(value, here, "a list of {key, operator, values}")
            found = [expression(report, each, (*here, i)) for i, each in enumerate(expressions)]
            requirements += [each for each in found if each is not None]
        else:
            meant = closest(str(key), ("matchLabels", "matchExpressions"))
            unknown(report, path, key, meant, "write matchLabels or matchExpressions")
    return Selector(tuple(sorted(set(requirements)))) if requirements else None


def match_labels(report: Report, raw: Any, path: Path) -> list[Requirement]:
    """Read `matchLabels`: each label must have that value."""
    found: list[Requirement] = []
    for key, value in report.mapping(raw, path).items():
        text = report.document.text((*path, key))
        if not isinstance(value, str) and text is None:
            report.error((*path, key), "bad-selector", show_value(value), "write text, in quotes")
        else:
            found.append((str(key), "In", (str(value if text is None else text),)))
    return found


def expression(report: Report, raw: Any, path: Path) -> Requirement | None:
    """Read one requirement of `matchExpressions`."""
    mapping = report.mapping(raw, path)
    for key in mapping:
        if key not in ("key", "operator", "values"):
            unknown(report, path, key, closest(str(key), ("key", "operator", "values")))
    key, operator, values = mapping.get("key"), mapping.get("operator"), mapping.get("values")
    if not isinstance(key, str) or not key:
        report.error(path, "bad-selector", "an expression without key", "write key: …")
        return None
    if not isinstance(operator, str) or operator not in OPERATORS:
        fix = f"write one of {', '.join(OPERATORS)}"
        report.error((*path, "operator"), "bad-selector", show_value(operator), fix)
        return None
    listed = report.sequence(values, (*path, "values"))
    if bool(listed) != OPERATORS[operator] or not all(isinstance(each, str) for each in listed):
        fix = "give at least one text" if OPERATORS[operator] else "leave values out"
        report.error((*path, "values"), "bad-selector", f"{operator} with these values", fix)
        return None
    return (key, operator, tuple(sorted(set(listed))))


def requirements_of(selector: Selector | None) -> frozenset[Requirement]:
    """Return the requirements as a set, empty for no selector."""
    return frozenset(selector.requirements) if selector else frozenset()


def disjoint(one: Selector | None, other: Selector | None) -> bool:
    """Whether no set of labels can match both."""
    together = (*requirements_of(one), *requirements_of(other))
    return any(
        contradict(first, second)
        for at, first in enumerate(together)
        for second in together[at + 1 :]
        if first[0] == second[0]
    )


def contradict(first: Requirement, second: Requirement) -> bool:
    """Whether two requirements on one key exclude each other."""
    operators = {first[1], second[1]}
    if operators == {"In"}:
        return not set(first[2]) & set(second[2])
    if operators == {"In", "NotIn"}:
        allowed, denied = (first, second) if first[1] == "In" else (second, first)
        return set(allowed[2]) <= set(denied[2])
    return "DoesNotExist" in operators and bool(operators & {"In", "Exists"})


def implies(one: Selector | None, other: Selector | None) -> bool:
    """Whether `other` certainly selects everything that `one` selects."""
    return requirements_of(other) <= requirements_of(one)
