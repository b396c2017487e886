"""Compares what came of a case with what is expected."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import unified_diff
from typing import Any

from webhook.cases.case import ANY, Outcome
from webhook.cases.yaml_text import text_of
from webhook.decision import messages as wording
from webhook.evaluation.outcome import Allowed, Violation
from webhook.objects import path as pointer
from webhook.objects.draft import diff


def violation_facts(violation: Violation) -> dict[str, Any]:
    """One violation as a case writes it."""
    source = violation.source
    return {
        "field": violation.field,
        "path": pointer.display(violation.path),
        "rule": violation.rule,
        "reason": violation.reason,
        "value": violation.value,
        "allowed": violation.allowed,
        "policy": source.policy if source else None,
        "scope": source.scope if source else None,
        "key": violation.key,
        "message": wording.violation_text(violation),
    }


def changes_of(outcome: Outcome) -> dict[str, Any]:
    """Every place that differs from what was submitted with its new value; null: taken out."""
    ops = diff(outcome.submitted, outcome.object)
    return {
        pointer.display(pointer.decode(op["path"], indices=True)): op.get("value") for op in ops
    }


def facts(outcome: Outcome) -> dict[str, Any]:
    """Everything an `expect` may speak of, in its words."""
    decision = outcome.decision
    found: dict[str, Any] = {"allowed": isinstance(decision, Allowed)}
    if isinstance(decision, Allowed):
        found["judged"] = decision.judged
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
    """Every difference between what is expected and what came, readable; empty when none."""
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
            got: Any = [narrowed(each, value, i) for i, each in enumerate(seen[key])]
        else:
            same, got = key in seen and seen[key] == value, seen.get(key)
        if not same:
            differences.append(difference(key, value, got))
    return differences


def same_violations(wanted: Sequence[Mapping[str, Any]], seen: Sequence[Mapping[str, Any]]) -> bool:
    """As many, in order, each with the listed facts."""
    return len(wanted) == len(seen) and all(
        all(found.get(key) == value for key, value in each.items())
        for each, found in zip(wanted, seen, strict=True)
    )


def narrowed(
    found: Mapping[str, Any], wanted: Sequence[Mapping[str, Any]], index: int
) -> dict[str, Any]:
    """The facts that the expectation lists at this position, the telling ones where it has none."""
    keys = list(wanted[index]) if index < len(wanted) else WRITTEN
    return {key: found[key] for key in keys}


def difference(key: str, wanted: Any, got: Any) -> str:
    """A unified diff of the two as YAML; a sentence for a single value, or where nothing came."""
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
