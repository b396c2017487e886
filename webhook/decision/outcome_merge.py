"""Makes one answer of several decisions: of those on wrapped objects, of other policies, of trials."""

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


def joined(
    request: Request,
    own: Decision,
    parts: Sequence[tuple[Wrapped, Decision | None]],
    fault: Violation | None = None,
) -> Decision:
    """The decision on the whole: all violations with their places in it, one patch, one object."""
    violations = [*(own.violations if isinstance(own, Denied) else ()), *([fault] if fault else ())]
    warnings, audit = [*own.warnings], [*own.audit]
    excused = [*own.excused]
    changes = [*(own.changes if isinstance(own, Allowed) else ())]
    draft = Draft(own.object if isinstance(own, Allowed) else request.object)
    for found, decision in parts:
        violations += found.faults
        warnings += found.warnings
        if decision is None:
            continue
        at = found.path
        warnings += [moved_warning(each, at) for each in decision.warnings]
        audit += [moved(each, at) for each in decision.audit]
        excused += [each._replace(violation=moved(each.violation, at)) for each in decision.excused]
        if isinstance(decision, Denied):
            violations += [moved(each, at) for each in decision.violations]
            continue
        changes += [each._replace(path=(*at, *each.path)) for each in decision.changes]
        if decision.patch and found.request is not None:
            draft.set(at, carry(found.body, found.request.object, decision.object))
    told = tuple(dict.fromkeys(warnings))
    if violations:
        ordered = tuple(sorted(dict.fromkeys(violations), key=sort_key))
        decisions = (own, *(decision for _, decision in parts))
        owners = (each.tell for each in decisions if isinstance(each, Denied))
        tell = next((each for each in owners if each is not None), None)
        return Denied(ordered, told, tuple(audit), tell, tuple(excused))
    patch = tuple(diff(request.object, draft.document))
    reasons = [why_not_evaluated(each) for _, each in parts if each is not None]
    reason = "" if "" in reasons else why_not_evaluated(own)
    return Allowed(
        draft.document, patch, tuple(changes), told, tuple(audit), reason, tuple(excused)
    )


def moved(violation: Violation, at: Path) -> Violation:
    """A violation with its place in the object around, also where its sentence names it."""
    allowed = violation.allowed
    if allowed and violation.path and violation.source is None:
        allowed = allowed.replace(display(violation.path), display((*at, *violation.path)), 1)
    return replace(violation, path=(*at, *violation.path), allowed=allowed)


def moved_warning(warning: Warning, at: Path) -> Warning:
    """The same for a warning; one of the whole object stays without a place."""
    would_be = moved(warning.would_be, at) if warning.would_be is not None else None
    path = (*at, *warning.path) if warning.path else ()
    return warning._replace(path=path, would_be=would_be)


def stricter(decision: Decision, other: Decision) -> Decision:
    """The decision with what the policies of the object's own kind alone refuse.

    Anybody can write an owner reference, or wrap an object, so the policies of the other kind only
    ever add.
    """
    if isinstance(other, Allowed):
        return decision
    violations = other.violations
    if isinstance(decision, Denied):
        violations = (*decision.violations, *violations)
    excused = (*decision.excused, *other.excused)
    told = tuple(sorted(dict.fromkeys(violations), key=sort_key))
    return Denied(told, decision.warnings, excused=excused)


def with_trial(decision: Decision, trial: Decision) -> Decision:
    """The decision with what Warn and Audit policies would add: reported, never enforced."""
    if isinstance(trial, Allowed):
        return decision
    known = set(decision.violations) if isinstance(decision, Denied) else set()
    added = [each for each in trial.violations if each not in known and is_trial(each)]
    warned = tuple(
        Warning("trial", each.field, each.path, (), each.source, each)
        for each in added
        if each.source is not None and each.source.enforcement == "Warn"
    )
    return replace(decision, warnings=(*decision.warnings, *warned), audit=tuple(added))


def is_trial(violation: Violation) -> bool:
    """Whether a violation comes from a policy on trial."""
    return violation.source is not None and violation.source.enforcement != "Enforce"
