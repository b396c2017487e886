"""Verdicts for people and programs: YAML with messages on stderr, JSON lines, or readable text."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import orjson
import yaml

from webhook.cli.loading import Faults
from webhook.core import pointer, wording
from webhook.core.decision import Change, Denied, Violation
from webhook.offline import Verdict


def violation_json(violation: Violation) -> dict[str, Any]:
    """One violation with its facts and its sentence."""
    source = violation.source
    return {
        "field": violation.field,
        "path": pointer.display(violation.path),
        "value": violation.value,
        "allowed": violation.allowed,
        "rule": violation.rule,
        "reason": violation.reason,
        "policy": source.policy if source else None,
        "scope": source.scope if source else None,
        "message": wording.violation_text(violation),
    }


def violations_of(verdict: Verdict) -> tuple[Violation, ...]:
    """The violations of a verdict, none when it is allowed."""
    return verdict.decision.violations if isinstance(verdict.decision, Denied) else ()


def warnings_of(verdict: Verdict) -> list[str]:
    """The warnings as sentences."""
    return [wording.warning_text(each) for each in verdict.decision.warnings]


def label(verdict: Verdict) -> str:
    """Kind/name and where it came from."""
    return f"{verdict.kind}/{verdict.name or '(unnamed)'} ({verdict.source})"


def as_json(verdict: Verdict, first: bool) -> None:
    """One object on one line."""
    body = {
        "source": verdict.source,
        "kind": verdict.kind,
        "name": verdict.name,
        "allowed": verdict.allowed,
        "object": verdict.object,
        "patch": list(verdict.patch),
        "violations": [violation_json(each) for each in violations_of(verdict)],
        "warnings": warnings_of(verdict),
    }
    sys.stdout.write(orjson.dumps(body).decode() + "\n")


def as_yaml(verdict: Verdict, first: bool) -> None:
    """The completed manifest on stdout, messages on stderr."""
    if verdict.allowed:
        text = yaml.dump(
            verdict.object, Dumper=yaml.CSafeDumper, sort_keys=False, allow_unicode=True
        )
        sys.stdout.write(("" if first else "---\n") + text)
        sys.stdout.flush()
    else:
        print(f"{label(verdict)}: refused", file=sys.stderr)
        for each in violations_of(verdict):
            print(f"  - {wording.violation_text(each)}", file=sys.stderr)
    for line in warnings_of(verdict):
        print(f"warning: {label(verdict)}: {line}", file=sys.stderr)


def as_text(verdict: Verdict, first: bool) -> None:
    """What happened and why, for people."""
    if not first:
        print()
    changes = verdict.decision.changes if not isinstance(verdict.decision, Denied) else ()
    violations = violations_of(verdict)
    if violations:
        rules = "rule is" if len(violations) == 1 else "rules are"
        print(f"{label(verdict)}: refused, {len(violations)} {rules} broken")
        for violation in violations:
            print(f"  - {wording.violation_text(violation)}")
    elif changes:
        places = "place" if len(changes) == 1 else "places"
        print(f"{label(verdict)}: allowed, {len(changes)} {places} filled in")
        for change in changes:
            print(f"  + {change_line(change)}")
    else:
        print(f"{label(verdict)}: allowed as it is")
    for line in warnings_of(verdict):
        print(f"  ! {line}")


def change_line(change: Change) -> str:
    """One change with its reason."""
    return wording.change_text(change)


FORMATS: dict[str, Callable[[Verdict, bool], None]] = {
    "yaml": as_yaml,
    "json": as_json,
    "text": as_text,
}


def show(verdicts: Sequence[Verdict], output: str, faults: Faults) -> None:
    """Every verdict in one format."""
    for index, verdict in enumerate(verdicts):
        with faults.kept(verdict.source):
            FORMATS[output](verdict, index == 0)
