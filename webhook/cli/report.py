"""Prints outcomes: YAML with messages on stderr, JSON lines, or text."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import orjson
import yaml

from webhook.cases.run_offline import Verdict
from webhook.cli import loading
from webhook.cli.loading import Faults
from webhook.cli.outcomes import is_audited
from webhook.decision.messages import change_text, not_evaluated_text, violation_text, warning_text
from webhook.evaluation.outcome import NO_PODS, Change, Denied, Violation
from webhook.objects.path import display


def violation_json(violation: Violation) -> dict[str, Any]:
    """One violation with its facts and its message."""
    source = violation.source
    return {
        "field": violation.field,
        "path": display(violation.path),
        "value": violation.value,
        "allowed": violation.allowed,
        "rule": violation.rule,
        "reason": violation.reason,
        "policy": source.policy if source else None,
        "scope": source.scope if source else None,
        "message": violation_text(violation),
    }


def violations_of(verdict: Verdict) -> tuple[Violation, ...]:
    """The violations of a verdict, none when it is allowed."""
    return verdict.decision.violations if isinstance(verdict.decision, Denied) else ()


def warnings_of(verdict: Verdict) -> list[str]:
    """The warnings as sentences."""
    return [warning_text(each) for each in verdict.decision.warnings]


def label(verdict: Verdict) -> str:
    """Kind, name and source."""
    return f"{verdict.kind}/{verdict.name or '(unnamed)'} ({verdict.source})"


def outcome_json(verdict: Verdict) -> dict[str, Any]:
    """The outcome; `allowed` is null and `reason` is set if the object is not evaluated."""
    return {
        "outcome": verdict.outcome,
        "reason": verdict.reason or None,
        "allowed": None if verdict.reason else verdict.is_allowed,
    }


def audit_violations(verdict: Verdict) -> list[Violation]:
    """The violations that policies in audit mode report."""
    return [each for each in verdict.decision.audit if is_audited(each.source)]


def reason_text(verdict: Verdict) -> str:
    """Why an object is not evaluated."""
    warnings = verdict.decision.warnings
    return not_evaluated_text(verdict.reason, warnings)


def further_warnings(verdict: Verdict) -> list[str]:
    """The warnings, except the one with the reason why the object is not evaluated."""
    found = (each for each in verdict.decision.warnings if each.reason != verdict.reason)
    return [warning_text(each) for each in found]


def as_json(verdict: Verdict, first: bool) -> None:
    """One object on one line."""
    body = {
        "source": verdict.source,
        "kind": verdict.kind,
        "name": verdict.name,
        **outcome_json(verdict),
        "object": verdict.object,
        "patch": list(verdict.patch),
        "violations": [violation_json(each) for each in violations_of(verdict)],
        "audit": [violation_json(each) for each in audit_violations(verdict)],
        "warnings": warnings_of(verdict),
    }
    sys.stdout.write(orjson.dumps(body).decode() + "\n")


def yaml_text(document: Any) -> str:
    """One document as YAML, its keys in order."""
    text: str = yaml.dump(document, Dumper=yaml.CSafeDumper, sort_keys=False, allow_unicode=True)
    return text


def print_verdict(verdict: Verdict) -> None:
    """Print the outcome of one manifest to stderr."""
    if not verdict.is_allowed:
        print(f"{label(verdict)}: refused", file=sys.stderr)
        for each in violations_of(verdict):
            print(f"  - {violation_text(each)}", file=sys.stderr)
    if verdict.reason and verdict.reason != NO_PODS:
        print(f"{label(verdict)}: not evaluated: {reason_text(verdict)}", file=sys.stderr)
    for each in audit_violations(verdict):
        print(f"audit: {label(verdict)}: {violation_text(each)}", file=sys.stderr)
    for line in further_warnings(verdict):
        print(f"warning: {label(verdict)}: {line}", file=sys.stderr)


def as_text(verdict: Verdict, first: bool) -> None:
    """The outcome, its reasons and the changes as text."""
    if not first:
        print()
    changes = verdict.decision.changes if not isinstance(verdict.decision, Denied) else ()
    violations = violations_of(verdict)
    if violations:
        rules = "rule is" if len(violations) == 1 else "rules are"
        print(f"{label(verdict)}: refused, {len(violations)} {rules} broken")
        for violation in violations:
            print(f"  - {violation_text(violation)}")
    elif verdict.reason:
        print(f"{label(verdict)}: not evaluated: {reason_text(verdict)}")
    elif changes:
        values = "value" if len(changes) == 1 else "values"
        print(f"{label(verdict)}: allowed, {len(changes)} {values} filled in")
        for change in changes:
            print(f"  + {change_line(change)}")
    else:
        print(f"{label(verdict)}: allowed as it is")
    for violation in audit_violations(verdict):
        print(f"  ~ audit: {violation_text(violation)}")
    for line in further_warnings(verdict):
        print(f"  ! {line}")


def change_line(change: Change) -> str:
    """One change with its reason."""
    return change_text(change)


FORMATS: dict[str, Callable[[Verdict, bool], None]] = {
    "json": as_json,
    "text": as_text,
}


def show(verdicts: Sequence[Verdict], output: str, faults: Faults) -> None:
    """Print every outcome in one format."""
    for index, verdict in enumerate(verdicts):
        with faults.report_faults(verdict.source):
            FORMATS[output](verdict, index == 0)


def show_manifests(
    verdicts: Sequence[Verdict], faults: Faults, *, partial: bool, failed: bool
) -> None:
    """Print the completed manifests as YAML: all of them or, unless `partial`, none.

    A pipe into kubectl would otherwise apply half of a set of objects. `failed`: some document
    could not be read.
    """
    texts: list[str] = []
    for verdict in verdicts:
        with faults.report_faults(verdict.source):
            print_verdict(verdict)
            if verdict.is_allowed:
                texts.append(yaml_text(verdict.object))
    refused = any(not each.is_allowed for each in verdicts)
    if partial or not (failed or refused or faults.count):
        sys.stdout.write("---\n".join(texts))
    elif texts:
        loading.complain("nothing is printed; --partial prints what is not refused")
