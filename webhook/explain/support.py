"""Finds whether a kind can have a leaf of a policy, and why not, or what limits it."""

from __future__ import annotations

from typing import Final

from webhook.catalog.plan import Plan, concerns
from webhook.devices.definitions import has_devices
from webhook.explain.model import FORBIDDEN, NOT_NATIVE
from webhook.fields.annotation_list import AnnotationItemStore
from webhook.fields.handler import UNMAPPED, Support
from webhook.fields.registry import handler_of, is_of_workload
from webhook.objects.path import display
from webhook.policy.checks.unenforceable import POLICY_ONLY
from webhook.policy.row import NOTHING, Binding, Field
from webhook.policy.table import TABLE

NO_OBJECT: Final = "no Kubernetes object has a path for it, so nothing enforces it"


def find_support(plan: Plan, component: str, path: str) -> Support:
    """Return whether a kind can have a leaf (mapped, unmapped, forbidden, not-native), and why."""
    row = TABLE.owner(path)
    if row.shape == NOTHING:
        return NOT_NATIVE, NO_OBJECT
    if path in TABLE.attributes:
        attribute = TABLE.attributes[path][1]
        if not attribute.native and attribute.name not in POLICY_ONLY:
            return NOT_NATIVE, NO_OBJECT
    if row.binding is Binding.NOTHING:
        return NOT_NATIVE, f"kept in {kept_at(row)}, for others to act on"
    if has_devices(plan.definition) and not concerns(plan, row):
        return UNMAPPED, f"{plan.definition.interface.kind} has no pods"
    support = find_refusal(plan, row) or of_other_types(plan, row)
    return support or handler_of(row, plan.definition).support(row, plan.definition, component)


def kept_at(row: Field) -> str:
    """Return the label or annotation of the workload for values without a native field."""
    path = row.at if row.items is None else AnnotationItemStore(row.items).path
    return display(path)


def of_other_types(plan: Plan, row: Field) -> Support | None:
    """Return the limit of a field that is for other workload types."""
    if not is_of_workload(row, plan.definition) or concerns(plan, row):
        return None
    return UNMAPPED, f"for workloads of type {', '.join(row.types)} only"


def find_refusal(plan: Plan, row: Field) -> Support | None:
    """Return why the kind refuses a field, None if a feature of the cluster allows it."""
    for each in plan.definition.profile.forbidden_fields:
        if each.field == row.path and each.unless not in plan.config.features:
            reason = each.reason or f"{plan.definition.interface.kind} refuses it"
            unless = f" unless the cluster has {each.unless} on (setting: features)"
            return FORBIDDEN, f"{reason}{unless if each.unless else ''}"
    return None
