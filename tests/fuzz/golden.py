"""Writes what got through as a golden case, ready for tests/golden."""

from __future__ import annotations

from typing import Any

from tests.fuzz.disguises import Attempt
from webhook.cases.yaml_text import text_of


def case_of(attempt: Attempt, seed: int, index: int, admitted: str) -> str:
    """The text of a case.yaml that fails until the violation is refused."""
    request: dict[str, Any] = {"operation": attempt.operation, "user": attempt.user}
    request |= {"groups": list(attempt.groups), "fieldManager": attempt.manager}
    if attempt.dry_run:
        request["dryRun"] = True
    if attempt.subresource:
        request["subresource"] = attempt.subresource
    if admitted != "both passes":
        request["stage"] = "validate"
    request["object"] = attempt.object
    if attempt.old is not None:
        request["old"] = attempt.old
    body = {
        "namespace": "team",
        "policies": [dict(attempt.breach.policy)],
        "request": request,
        "expect": {
            "allowed": False,
            "violations": [{"field": attempt.breach.field}],
            "warnings": "any",
        },
    }
    told = ", ".join([attempt.way.spelling, *attempt.disguises])
    head = f"# make fuzz-admission SEED={seed} INDEX={index}: {attempt.breach.field} ({told})\n"
    return f"{head}# {attempt.place.kind} at {attempt.place.where}; let in by {admitted}\n{text_of(body)}"
