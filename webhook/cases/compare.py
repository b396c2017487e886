"""Compares the outcome of a case with the expected result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import unified_diff
from typing import Any

from webhook.cases.case import Outcome
from webhook.cases.case_document import ANY
from webhook.cases.yaml_text import text_of
from webhook.decision.messages import violation_text
from webhook.evaluation.outcome import Allowed, Violation
from webhook.objects.draft import diff
from webhook.objects.path import decode, display


def violation_facts(violation: Violation) -> dict[str, Any]:
    """One violation as a case writes it."""
    source = violation.source
    return {
        "field": violation.field,
        "path": display(violation.path),
        "rule": violation.rule,
        "reason": violation.reason,
        "value": violation.value,
        "allowed": violation.allowed,
        "policy": source.policy if source else None,
        "scope": source.scope if source else None,
        "key": violation.key,
        "message": violation_text(violation),
    }


def changes_of(outcome: Outcome) -> dict[str, Any]:
    """Every path whose value differs from the input, with its new value; null if it was removed."""
    ops = diff(outcome.submitted, outcome.object)
    return {display(decode(op["path"], indices=True)): op.get("value") for op in ops}


def facts(outcome: Outcome) -> dict[str, Any]:
    """All facts of the outcome, in the form of `expect`."""
    decision = outcome.decision
    found: dict[str, Any] = {"allowed": isinstance(decision, Allowed)}
    if isinstance(decision, Allowed):
        found["judged"] = decision.is_evaluated
        found["notEvaluated"] = decision.not_evaluated
        found["object"] = outcome.object
        found["patch"] = list(outcome.patch)
        found["changes"] = changes_of(outcome)
        found["violations"] = []
    else:
        found["violations"] = [violation_facts(each) for each in decision.violations]
    found["warnings"] = sorted({each.reason for each in decision.warnings})
    found["lookups"] = outcome.lookups
    found["audit"] = [violation_facts(each) for each in decision.audit]
    return found


def compare(expect: Mapping[str, Any], outcome: Outcome) -> list[str]:
    """Every difference between the expected result and the outcome, as text; empty if there is none."""
    seen = facts(outcome)
    wanted = dict(expect)
    for key in ("violations", "audit", "warnings"):
        wanted[key] = wanted.get(key) or []
    if wanted["warnings"] == ANY:
        del wanted["warnings"]
    else:
        wanted["warnings"] = sorted(wanted["warnings"])
    differences = []
    for key, value in wanted.items():
        if key in ("violations", "audit"):
            same = same_violations(value, seen[key])
            got: Any = [select_expected_facts(each, value, i) for i, each in enumerate(seen[key])]
        else:
            same, got = key in seen and seen[key] == value, seen.get(key)
        if not same:
            differences.append(difference(key, value, got))
    return differences


def same_violations(wanted: Sequence[Mapping[str, Any]], seen: Sequence[Mapping[str, Any]]) -> bool:
    """Whether the violations have the same number and order, each with the expected facts."""
    return len(wanted) == len(seen) and all(
        all(found.get(key) == value for key, value in each.items())
        for each, found in zip(wanted, seen, strict=True)
    )


def select_expected_facts(
    found: Mapping[str, Any], wanted: Sequence[Mapping[str, Any]], index: int
) -> dict[str, Any]:
    """The facts that the expectation lists at this position, or the main facts if it has no such entry."""
    keys = list(wanted[index]) if index < len(wanted) else WRITTEN
    return {key: found[key] for key in keys}


def difference(key: str, wanted: Any, got: Any) -> str:
    """A unified diff of both as YAML; a sentence for a single value, or if the outcome has none."""
    if isinstance(wanted, bool):
        return f"{key}: expected {str(wanted).lower()}, came {str(got).lower()}"
    if got is None:
        return f"{key}: expected, but the object is refused"
    lines = unified_diff(
        text_of(wanted).splitlines(),
        text_of(got).splitlines(),
        f"expected {key}",
        f"actual {key}",
        lineterm="",
        n=5,
    )
    return "\n".join(lines)


WRITTEN = ("field", "path", "reason", "value", "allowed")
