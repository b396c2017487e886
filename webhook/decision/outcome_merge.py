"""Merges decisions: on wrapped objects, under other policies, and under warn or audit mode."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from webhook.decision.carry_to_manifest import carry
from webhook.decision.wrapped import Wrapped
from webhook.evaluation.outcome import (
    Allowed,
    Decision,
    Denied,
    Violation,
    Warning,
    sort_key,
    why_not_evaluated,
)
from webhook.evaluation.request import Request
from webhook.objects.draft import Draft, diff
from webhook.objects.path import Path, display


def merge_outcomes(
    request: Request,
    own: Decision,
    wrapped: Sequence[tuple[Wrapped, Decision | None]],
    fault: Violation | None = None,
) -> Decision:
    """Merge the decisions on an object and on those that it wraps, with paths of the whole object."""
    violations = [*(own.violations if isinstance(own, Denied) else ()), *([fault] if fault else ())]
    warnings, audit = [*own.warnings], [*own.audit]
    excused = [*own.excused]
    changes = [*(own.changes if isinstance(own, Allowed) else ())]
    draft = Draft(own.object if isinstance(own, Allowed) else request.object)
    for found, decision in wrapped:
        violations += found.faults
        warnings += found.warnings
        if decision is None:
            continue
        at = found.path
        warnings += [moved_warning(each, at) for each in decision.warnings]
        audit += [move_violation(each, at) for each in decision.audit]
        excused += [
            each._replace(violation=move_violation(each.violation, at)) for each in decision.excused
        ]
        if isinstance(decision, Denied):
            violations += [move_violation(each, at) for each in decision.violations]
            continue
        changes += [each._replace(path=(*at, *each.path)) for each in decision.changes]
        if decision.patch and found.request is not None:
            draft.set(at, carry(found.body, found.request.object, decision.object))
    unique_warnings = tuple(dict.fromkeys(warnings))
    if violations:
        ordered = tuple(sorted(dict.fromkeys(violations), key=sort_key))
        decisions = (own, *(decision for _, decision in wrapped))
        owners = (each.report_to for each in decisions if isinstance(each, Denied))
        report_to = next((each for each in owners if each is not None), None)
        return Denied(ordered, unique_warnings, tuple(audit), report_to, tuple(excused))
    patch = tuple(diff(request.object, draft.document))
    reasons = [why_not_evaluated(each) for _, each in wrapped if each is not None]
    reason = "" if "" in reasons else why_not_evaluated(own)
    return Allowed(
        draft.document, patch, tuple(changes), unique_warnings, tuple(audit), reason, tuple(excused)
    )


def move_violation(violation: Violation, at: Path) -> Violation:
    """Return a violation with its path in the outer object, also where `allowed` names the path."""
    allowed = violation.allowed
    if allowed and violation.path and violation.source is None:
        allowed = allowed.replace(display(violation.path), display((*at, *violation.path)), 1)
    return replace(violation, path=(*at, *violation.path), allowed=allowed)


def moved_warning(warning: Warning, at: Path) -> Warning:
    """Return a warning with its path in the outer object. One without a path keeps none."""
    would_be = move_violation(warning.would_be, at) if warning.would_be is not None else None
    path = (*at, *warning.path) if warning.path else ()
    return warning._replace(path=path, would_be=would_be)


def stricter(decision: Decision, other: Decision) -> Decision:
    """Return the decision with the violations that the policies of the object's own kind find.

    Anybody can write an owner reference or wrap an object, so policies of another kind can only add
    violations.
    """
    if isinstance(other, Allowed):
        return decision
    violations = other.violations
    if isinstance(decision, Denied):
        violations = (*decision.violations, *violations)
    excused = (*decision.excused, *other.excused)
    ordered = tuple(sorted(dict.fromkeys(violations), key=sort_key))
    return Denied(ordered, decision.warnings, excused=excused)


def add_would_be_violations(decision: Decision, with_warn: Decision) -> Decision:
    """Return the decision with the violations of Warn and Audit policies: reported, not enforced."""
    if isinstance(with_warn, Allowed):
        return decision
    known = set(decision.violations) if isinstance(decision, Denied) else set()
    added = [each for each in with_warn.violations if each not in known and is_not_enforced(each)]
    warned = tuple(
        Warning("trial", each.field, each.path, (), each.source, each)
        for each in added
        if each.source is not None and each.source.enforcement == "Warn"
    )
    return replace(decision, warnings=(*decision.warnings, *warned), audit=tuple(added))


def is_not_enforced(violation: Violation) -> bool:
    """Whether a violation comes from a policy in warn or audit mode."""
    return violation.source is not None and violation.source.enforcement != "Enforce"
