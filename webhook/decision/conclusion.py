"""Turns the findings on one object into a decision."""

from __future__ import annotations

from webhook.evaluation.outcome import Allowed, Decision, Denied, sort_key
from webhook.evaluation.state import Evaluation
from webhook.objects.draft import diff


def conclude(ev: Evaluation) -> Decision:
    """Return Denied with sorted violations, or Allowed with the patch that the draft needs."""
    findings = ev.findings
    excused = ev.excuse()
    warnings = tuple(findings.warnings)
    if len(warnings) > 1:
        warnings = tuple(dict.fromkeys(warnings))
    if findings.violations:
        violations = tuple(sorted(dict.fromkeys(findings.violations), key=sort_key))
        return Denied(violations, warnings, excused=excused)
    if not ev.writes or not findings.changes:
        return Allowed(ev.request.object, warnings=warnings, excused=excused)
    patch = diff(ev.request.object, ev.draft.document)
    changes = tuple(findings.changes)
    return Allowed(ev.draft.document, tuple(patch), changes, warnings, excused=excused)
