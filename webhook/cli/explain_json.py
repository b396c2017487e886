"""Explanations as JSON, whose keys stay what they are."""

from __future__ import annotations

from typing import Any

from webhook.cases.run_offline import Verdict
from webhook.cli import report
from webhook.decision import messages as wording
from webhook.documents.problem import Source
from webhook.explain.model import Entry, FieldReport, KindReport, LeafReport, ObjectReport
from webhook.explain.namespaces import TypeReport
from webhook.objects import path as pointer
from webhook.objects.path import ABSENT


def source_json(source: Source | None) -> dict[str, Any]:
    """The policy that says something, with its scope."""
    if source is None:
        return {"policy": None, "scope": None}
    found = {"policy": source.policy, "scope": source.scope}
    if source.namespace:
        found["namespace"] = source.namespace
    if source.enforcement != "Enforce":
        found["enforcement"] = source.enforcement
    return found


def leaf_json(leaf: LeafReport) -> dict[str, Any]:
    """One leaf; `null` stands for a value that is never shown."""
    default = leaf.default
    return {
        "field": leaf.field,
        "reach": leaf.reach,
        **({"why": leaf.why} if leaf.why else {}),
        **({"secret": True} if leaf.secret else {}),
        "default": {"value": default.value, **source_json(default.source)} if default else None,
        "rules": [
            {"rule": each.what, "argument": each.value, **source_json(each.source)}
            for each in leaf.rules
        ],
        "items": [
            {
                "key": each.key,
                "attributes": each.attributes,
                "locked": each.locked,
                "imposed": each.imposed,
                **({"asset": each.asset} if each.asset else {}),
                **source_json(each.source),
            }
            for each in leaf.items
        ],
        "lost": [
            {
                "what": each.what,
                "value": each.value,
                **source_json(each.source),
                "reason": each.reason,
                "to": source_json(each.to) if each.to else None,
            }
            for each in leaf.lost
        ],
        "trial": [
            {"what": each.what, "value": each.value, **source_json(each.source)}
            for each in leaf.trial
        ],
    }


def kind_json(told: KindReport) -> dict[str, Any]:
    """The effective policy of a kind."""
    return {
        "kind": told.kind,
        "group": told.group,
        "version": told.version,
        "workloadType": told.workload_type or None,
        "namespace": told.namespace,
        "ruleCombination": told.combination,
        "policies": [source_json(each) for each in told.policies],
        "components": [
            {
                "component": each.component,
                "role": each.role,
                "pods": each.pods,
                "fields": [leaf_json(leaf) for leaf in each.leaves],
            }
            for each in told.components
        ],
        "workload": [leaf_json(leaf) for leaf in told.workload],
    }


def type_json(told: TypeReport) -> dict[str, Any]:
    """The effective policy of a workload type in a namespace."""
    return {
        "namespace": told.namespace,
        "workloadType": told.workload_type or None,
        "kinds": list(told.kinds),
        "ruleCombination": told.combination,
        "policies": [source_json(each) for each in told.policies],
        "components": [
            {
                "component": each.component or None,
                "role": each.role,
                "fields": [leaf_json(leaf) for leaf in each.leaves],
            }
            for each in told.components
        ],
    }


def entry_json(entry: Entry) -> dict[str, Any]:
    """One value; `set` tells an unset field from a value that is never shown."""
    return {
        "set": entry.value is not ABSENT,
        "value": None if entry.value is ABSENT else entry.value,
        "path": pointer.display(entry.path) if entry.path else None,
        "key": entry.key or None,
        "source": entry.source,
        **source_json(entry.by),
        **({"derived": True} if entry.derived else {}),
        "note": entry.note or None,
        "attributes": [
            {
                "name": each.name,
                "value": each.value,
                "path": pointer.display(each.path),
                "source": each.source,
                **source_json(each.by),
            }
            for each in entry.attributes
        ],
        "violations": [report.violation_json(each) for each in entry.violations],
        "warnings": [wording.warning_text(each) for each in entry.warnings],
    }


def field_json(told: FieldReport) -> dict[str, Any]:
    """One field of an object: its values, and the leaves of the policy."""
    return {
        "field": told.field,
        **({"secret": True} if told.secret else {}),
        "values": [entry_json(each) for each in told.entries],
        "policy": [leaf_json(each) for each in told.leaves],
    }


def object_json(verdict: Verdict, found: ObjectReport | None) -> dict[str, Any]:
    """One manifest with all its fields; without a report for a kind that nothing is known of."""
    body: dict[str, Any] = {
        "source": verdict.source,
        "kind": verdict.kind,
        "name": verdict.name,
        **report.outcome_json(verdict),
        "judged": found is not None and not verdict.reason,
    }
    if found is None:
        violations = [report.violation_json(each) for each in report.violations_of(verdict)]
        audit = [report.violation_json(each) for each in verdict.decision.audit]
        warnings = report.warnings_of(verdict)
        return {**body, "violations": violations, "audit": audit, "warnings": warnings}
    return {
        **body,
        "policies": [source_json(each) for each in found.policies],
        "pods": [
            {
                "component": each.component,
                "instance": each.instance,
                "roles": list(each.roles),
                "path": pointer.display(each.path),
                "fields": [field_json(one) for one in each.fields],
            }
            for each in found.pods
        ],
        "workload": [field_json(each) for each in found.workload],
        "violations": [report.violation_json(each) for each in found.violations],
        "warnings": [wording.warning_text(each) for each in found.warnings],
        "audit": [report.violation_json(each) for each in found.audit],
    }
