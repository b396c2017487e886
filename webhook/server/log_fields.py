"""Log fields and trace spans of a review: its outcome, names and paths, but no values."""

from __future__ import annotations

from typing import Any

from webhook.decision.messages import MOST_VIOLATIONS, place
from webhook.evaluation.outcome import NOT_EVALUATED, Allowed, Denied, Violation, why_not_evaluated
from webhook.server.call import Observation
from webhook.service.traces import Span


def outcome_of(seen: Observation) -> str:
    """allowed, patched, denied, not-evaluated, error, or the reason of a fault."""
    if seen.error is not None:
        return "error"
    match seen.decision:
        case Allowed():
            if not seen.decision.is_evaluated:
                return NOT_EVALUATED
            return "patched" if seen.decision.patch else "allowed"
        case Denied():
            return "denied"
        case None:
            return seen.fault


def violations_of(seen: Observation) -> tuple[Violation, ...]:
    """The violations of a refusal."""
    return seen.decision.violations if isinstance(seen.decision, Denied) else ()


def not_evaluated(seen: Observation) -> str:
    """The reason why the object was not evaluated, "" if it was."""
    return why_not_evaluated(seen.decision) if seen.decision else ""


def facts_of(seen: Observation) -> dict[str, Any]:
    """The log fields of a review: the requester, the object, and the broken rules with their paths;
    no values.
    """
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
    rules = [rule_of(each) for each in violations_of(seen)[:MOST_VIOLATIONS]]
    audit = seen.decision.audit if seen.decision else ()
    noted = [rule_of(each) for each in audit[:MOST_VIOLATIONS]]
    return facts | ({"rules": rules} if rules else {}) | ({"audit": noted} if noted else {})


def span_of(seen: Observation, outcome: str) -> Span:
    """The trace span of a review: the log fields without the user and the paths."""
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
    broken = (*violations_of(seen), *(decision.audit if decision else ()))
    policies = dict.fromkeys(each.source.policy for each in broken if each.source)
    if policies:
        facts["podgate.policies"] = tuple(policies)[:MOST_VIOLATIONS]
    for phase, seconds in seen.phases._asdict().items():
        facts[f"podgate.seconds.{phase}"] = seconds
    failed = seen.error is not None or bool(seen.fault)
    return Span(f"{seen.stage.value} review", facts, seen.parent, failed=failed)


def rule_of(violation: Violation) -> dict[str, str]:
    """One broken rule for a log line."""
    policy = violation.source.policy if violation.source else ""
    return {"policy": policy, "rule": violation.rule, "path": place(violation.path)}
