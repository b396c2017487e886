"""What is told of a review: its outcome, the facts of a log line, a span. Names and places, no value."""

from __future__ import annotations

from typing import Any

from webhook.decision import messages as wording
from webhook.evaluation.outcome import NOT_EVALUATED, Allowed, Denied, Violation, why_not_evaluated
from webhook.server.app import Observation
from webhook.service.traces import Span


def outcome_of(seen: Observation) -> str:
    """allowed, patched, denied, not-evaluated, error, or the reason of a fault."""
    if seen.error is not None:
        return "error"
    match seen.decision:
        case Allowed():
            if not seen.decision.judged:
                return NOT_EVALUATED
            return "patched" if seen.decision.patch else "allowed"
        case Denied():
            return "denied"
        case None:
            return seen.fault


def refused(seen: Observation) -> tuple[Violation, ...]:
    """The violations of a refusal."""
    return seen.decision.violations if isinstance(seen.decision, Denied) else ()


def not_evaluated(seen: Observation) -> str:
    """The reason why the object was not evaluated, "" where it was."""
    return why_not_evaluated(seen.decision) if seen.decision else ""


def facts_of(seen: Observation) -> dict[str, Any]:
    """What a log line says of a review: who asked for what, which rules broke where, no value."""
    facts: dict[str, Any] = {"uid": seen.uid, "stage": seen.stage.value}
    if reason := seen.fault or not_evaluated(seen):
        facts["reason"] = reason
    request = seen.request
    if request is not None:
        facts |= {
            "kind": f"{request.kind}.{request.version}.{request.group}".rstrip("."),
            "operation": request.operation,
            "namespace": request.namespace,
            "name": request.name,
            "user": request.user,
            "dry_run": request.dry_run,
        }
    rules = [rule_of(each) for each in refused(seen)[: wording.MOST_VIOLATIONS]]
    audit = seen.decision.audit if seen.decision else ()
    noted = [rule_of(each) for each in audit[: wording.MOST_VIOLATIONS]]
    return facts | ({"rules": rules} if rules else {}) | ({"audit": noted} if noted else {})


def span_of(seen: Observation, outcome: str) -> Span:
    """A review as a span: what a log line says of it, without the user and the places."""
    facts: dict[str, str | float | bool | tuple[str, ...]] = {
        "podgate.uid": seen.uid,
        "podgate.outcome": outcome,
    }
    request, decision = seen.request, seen.decision
    if request is not None:
        facts["podgate.kind"] = f"{request.kind}.{request.version}.{request.group}".rstrip(".")
        facts["podgate.operation"] = request.operation
        facts["podgate.namespace"] = request.namespace
        facts["podgate.dry_run"] = request.dry_run
    if reason := not_evaluated(seen):
        facts["podgate.not_evaluated"] = reason
    broken = (*refused(seen), *(decision.audit if decision else ()))
    policies = dict.fromkeys(each.source.policy for each in broken if each.source)
    if policies:
        facts["podgate.policies"] = tuple(policies)[: wording.MOST_VIOLATIONS]
    for phase, seconds in seen.phases._asdict().items():
        facts[f"podgate.seconds.{phase}"] = seconds
    failed = seen.error is not None or bool(seen.fault)
    return Span(f"{seen.stage.value} review", facts, seen.parent, failed=failed)


def rule_of(violation: Violation) -> dict[str, str]:
    """One broken rule for a log line."""
    policy = violation.source.policy if violation.source else ""
    return {"policy": policy, "rule": violation.rule, "path": wording.place(violation.path)}
