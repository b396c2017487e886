"""Explanations as JSON; the keys are part of podgate's interface."""

from __future__ import annotations

from typing import Any

from webhook.cases.run_offline import Verdict
from webhook.cli import report
from webhook.decision.messages import warning_text
from webhook.documents.problem import Source
from webhook.explain.model import Entry, FieldReport, KindReport, LeafReport, ObjectReport
from webhook.explain.namespaces import TypeReport
from webhook.objects.path import ABSENT, display


def source_json(source: Source | None) -> dict[str, Any]:
    """The policy that a value or rule comes from, with its scope."""
    if source is None:
        return {"policy": None, "scope": None}
    found = {"policy": source.policy, "scope": source.scope}
    if source.namespace:
        found["namespace"] = source.namespace
    if source.enforcement != "Enforce":
        found["enforcement"] = source.enforcement
    return found


def leaf_json(leaf: LeafReport) -> dict[str, Any]:
    """One leaf; `null` means that the value is never shown."""
    default = leaf.default
    return {
        "field": leaf.field,
        "reach": leaf.support,
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
            for each in leaf.unenforced
        ],
    }


def kind_json(kind_report: KindReport) -> dict[str, Any]:
    """The effective policy of a kind."""
    return {
        "kind": kind_report.kind,
        "group": kind_report.group,
        "version": kind_report.version,
        "workloadType": kind_report.workload_type or None,
        "namespace": kind_report.namespace,
        "ruleCombination": kind_report.combination,
        "policies": [source_json(each) for each in kind_report.policies],
        "components": [
            {
                "component": each.component,
                "role": each.role,
                "pods": each.pods,
                "fields": [leaf_json(leaf) for leaf in each.leaves],
            }
            for each in kind_report.components
        ],
        "workload": [leaf_json(leaf) for leaf in kind_report.workload],
    }


def type_json(type_report: TypeReport) -> dict[str, Any]:
    """The effective policy of a workload type in a namespace."""
    return {
        "namespace": type_report.namespace,
        "workloadType": type_report.workload_type or None,
        "kinds": list(type_report.kinds),
        "ruleCombination": type_report.combination,
        "policies": [source_json(each) for each in type_report.policies],
        "components": [
            {
                "component": each.component or None,
                "role": each.role,
                "fields": [leaf_json(leaf) for leaf in each.leaves],
            }
            for each in type_report.components
        ],
    }


def entry_json(entry: Entry) -> dict[str, Any]:
    """One value; `set` distinguishes an unset field from a value that is never shown."""
    return {
        "set": entry.value is not ABSENT,
        "value": None if entry.value is ABSENT else entry.value,
        "path": display(entry.path) if entry.path else None,
        "key": entry.key or None,
        "source": entry.source,
        **source_json(entry.by),
        **({"derived": True} if entry.derived else {}),
        "note": entry.note or None,
        "attributes": [
            {
                "name": each.name,
                "value": each.value,
                "path": display(each.path),
                "source": each.source,
                **source_json(each.by),
            }
            for each in entry.attributes
        ],
        "violations": [report.violation_json(each) for each in entry.violations],
        "warnings": [warning_text(each) for each in entry.warnings],
    }


def field_json(field_report: FieldReport) -> dict[str, Any]:
    """One field of an object: its values, and the leaves of the policy."""
    return {
        "field": field_report.field,
        **({"secret": True} if field_report.secret else {}),
        "values": [entry_json(each) for each in field_report.entries],
        "policy": [leaf_json(each) for each in field_report.leaves],
    }


def object_json(verdict: Verdict, found: ObjectReport | None) -> dict[str, Any]:
    """One manifest with all its fields; without a report if its kind is unknown."""
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
                "path": display(each.path),
                "fields": [field_json(one) for one in each.fields],
            }
            for each in found.pods
        ],
        "workload": [field_json(each) for each in found.workload],
        "violations": [report.violation_json(each) for each in found.violations],
        "warnings": [warning_text(each) for each in found.warnings],
        "audit": [report.violation_json(each) for each in found.audit],
    }
