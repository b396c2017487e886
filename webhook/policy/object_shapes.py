"""TABLE of objects that a policy sets as one value: their members, and the values these accept."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from webhook.objects.path import Path
from webhook.policy.names import closest, unknown
from webhook.policy.report import Report

MEMBERS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "environmentVariables.secret": ("name", "key"),
        "environmentVariables.configMap": ("name", "key"),
        "environmentVariables.podFieldRef": ("path",),
        "environmentVariables.userCredential": ("name", "key"),
    }
)
"""Objects whose members are strings. All members are required."""
AFFINITY = "nodeAffinityRequired"
COUNTS: Mapping[str, Callable[[int], bool]] = MappingProxyType(
    {
        "In": lambda count: count > 0,
        "NotIn": lambda count: count > 0,
        "Exists": lambda count: count == 0,
        "DoesNotExist": lambda count: count == 0,
        "Gt": lambda count: count == 1,
        "Lt": lambda count: count == 1,
    }
)
"""How many values each operator of a node selector takes."""


def check(report: Report, leaf: str, raw: Any, path: Path) -> None:
    """Report missing and unknown members of an object."""
    if leaf in MEMBERS and isinstance(raw, dict):
        check_texts(report, raw, path, MEMBERS[leaf])
    elif leaf == AFFINITY and isinstance(raw, dict):
        check_terms(report, raw.get("nodeSelectorTerms"), (*path, "nodeSelectorTerms"))


def check_texts(report: Report, raw: Mapping[Any, Any], path: Path, names: tuple[str, ...]) -> None:
    """Check an object of strings. Values are not shown, they can name a credential."""
    for key in raw:
        if key not in names:
            unknown(report, path, key, closest(str(key), names), f"write {' and '.join(names)}")
    missing = [name for name in names if raw.get(name) is None]
    if missing:
        fix = f"write {', '.join(missing)}"
        report.error(path, "missing-value", f"no {' and no '.join(missing)}", fix)
    for name in names:
        if isinstance(raw.get(name), dict | list):
            report.error((*path, name), "wrong-type", "not a text", "write text")


def check_terms(report: Report, terms: Any, path: Path) -> None:
    """Check the terms of a node affinity. At least one is required."""
    if isinstance(terms, list) and not terms:
        report.error(path, "empty-list", "[]", "name at least one term")
    for index, term in enumerate(terms if isinstance(terms, list) else ()):
        for key in ("matchExpressions", "matchFields"):
            expressions = term.get(key) if isinstance(term, dict) else None
            for position, each in enumerate(expressions if isinstance(expressions, list) else ()):
                check_expression(report, each, (*path, index, key, position))


def check_expression(report: Report, raw: Any, path: Path) -> None:
    """Check one expression: its key, its operator, and the number of values for that operator."""
    if not isinstance(raw, dict):
        return
    for key in raw:
        if key not in ("key", "operator", "values"):
            unknown(report, path, key, closest(str(key), ("key", "operator", "values")))
    if not isinstance(raw.get("key"), str) or not raw["key"]:
        report.error(path, "missing-value", "an expression without key", "write key: …")
    operator, values = raw.get("operator"), raw.get("values")
    if not isinstance(operator, str) or operator not in COUNTS:
        meant = closest(operator, COUNTS) if isinstance(operator, str) else ""
        fix = f"did you mean {meant}?" if meant else f"write one of {', '.join(COUNTS)}"
        report.error((*path, "operator"), "value-outside-enum", str(operator), fix)
        return
    count = len(values) if isinstance(values, list) else 0 if values is None else -1
    if count < 0 or not COUNTS[operator](count):
        wanted = {"In": "at least one value", "NotIn": "at least one value"}
        none = "no values" if COUNTS[operator](0) else "one number"
        fix = f"write {wanted.get(operator, none)} with {operator}"
        report.error((*path, "values"), "bad-selector", f"{max(count, 0)} values", fix)
