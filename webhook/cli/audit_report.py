"""The findings of `podgate audit` for people and programs."""

from __future__ import annotations

import sys
from collections import Counter
from typing import Any

import orjson

from webhook.cli import loading, outcomes
from webhook.cli.report import violation_json
from webhook.controller.audit import Finding
from webhook.decision import messages as wording
from webhook.documents import texts


def show(
    found: list[Finding], total: int, output: str, faults: loading.Faults, *, proposed: bool
) -> None:
    """Print what was found, for people or programs."""
    for each in found:
        source = name_of(each)
        if each.fault:
            faults.take(source, each.fault)
        with faults.kept(source):
            if output == "json":
                sys.stdout.write(orjson.dumps(as_json(each)).decode() + "\n")
            else:
                show_text(each)
    if output == "json":
        return
    kinds = Counter("refused" if each.violations else "changed" for each in found if not each.fault)
    word = "would be" if proposed else "would today be"
    print(
        f"{total} objects evaluated: {kinds['refused']} {word} refused, {kinds['changed']} completed"
        " or noted"
    )


def name_of(finding: Finding) -> str:
    """Kind, namespace and name of an object, for people."""
    return texts.clean(f"{finding.kind} {finding.namespace}/{finding.name}")


def show_text(finding: Finding) -> None:
    """Print what was found on one object."""
    print(name_of(finding))
    if finding.fault:
        print("  not evaluated: podgate has a fault, see stderr")
    for violation in finding.violations:
        print(f"  refused: {wording.violation_text(violation)}")
    for violation in finding.trial:
        mode = "audit" if outcomes.is_audited(violation.source) else "warn mode"
        print(f"  {mode}: {wording.violation_text(violation)}")
    for change in finding.changes:
        print(f"  written: {wording.change_text(change)}")


def as_json(finding: Finding) -> dict[str, Any]:
    """One finding for programs."""
    return {
        "apiVersion": finding.api_version,
        "kind": finding.kind,
        "namespace": finding.namespace,
        "name": finding.name,
        "uid": finding.uid,
        "violations": [violation_json(each) for each in finding.violations],
        "outcome": finding.outcome,
        "reason": finding.reason or None,
        "trial": [violation_json(each) for each in finding.trial],
        "audit": [violation_json(e) for e in finding.trial if outcomes.is_audited(e.source)],
        "changes": [wording.change_text(each) for each in finding.changes],
    }
