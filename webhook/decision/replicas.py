"""Evaluates requests on the scale subresource, which contain only a number of replicas."""

from __future__ import annotations

from typing import Any

from webhook.catalog.catalog import Catalog
from webhook.catalog.plan import Plan, component_roles
from webhook.decision.conclusion import conclude
from webhook.evaluation.outcome import UNKNOWN_KIND, Allowed, Decision
from webhook.evaluation.references import References
from webhook.evaluation.request import Request
from webhook.evaluation.state import Evaluation, ratchets
from webhook.fields.scalar import INVALID, rules_of
from webhook.interface.profile import ScaleSubresource
from webhook.objects.path import Path, read
from webhook.pods.definition import Definition
from webhook.policy.combine import Leaf
from webhook.policy.merge_components import merge_leaf
from webhook.policy.row import Field
from webhook.policy.table import TABLE

REPLICAS: Path = ("spec", "replicas")


def decide_scale(
    request: Request, catalog: Catalog, references: References
) -> tuple[Decision, Decision | None]:
    """Apply rules on scale.replicas, on the field that is scaled, and on the total of GPUs.

    The second decision includes Warn and Audit policies. It is None if there are none.
    """
    definition = catalog.definition_of_resource(
        request.resource_group, request.resource, request.resource_version
    )
    target = definition.profile.scale_subresource if definition is not None else None
    if definition is None or target is None:
        return Allowed(request.object, not_evaluated=UNKNOWN_KIND), None
    plans = catalog.plans_for(
        definition, request.namespace, references, request.namespace_labels or None
    )
    decision = evaluate_scale(request, references, plans.enforced, target)
    if plans.with_warn is None:
        return decision, None
    return decision, evaluate_scale(request, references, plans.with_warn, target)


def evaluate_scale(
    request: Request, references: References, plan: Plan, target: ScaleSubresource
) -> Decision:
    """Evaluate a number of replicas under one plan."""
    definition = plan.definition
    ev = Evaluation(request, references, definition)
    ev.writes = False
    for row, leaf in scaled_leaves(plan, definition, target):
        check_replicas(ev, row, leaf)
    for total, of_pod in OF_A_POD.items():
        check_total(ev, plan, target, total, of_pod)
    return conclude(ev)


def scaled_leaves(
    plan: Plan, definition: Definition, target: ScaleSubresource
) -> list[tuple[Field, Leaf]]:
    """Return the leaves whose value a scale request sets."""
    paths = [target.field] if target.field else ["scale.replicas"]
    for path, held in definition.profile.fields.items():
        of = held.scale_of
        if of is None or of.component != target.component:
            continue
        if (of.instance or "").casefold() == (target.instance or "").casefold():
            paths.append(path)
    leaves = [(path, leaf_of(plan, target, path)) for path in paths if path in TABLE.fields]
    return [(TABLE.fields[path], leaf) for path, leaf in leaves if leaf is not None]


def leaf_of(plan: Plan, target: ScaleSubresource, path: str) -> Leaf | None:
    """Return the rules of a field for the scaled component, or for the workload."""
    if target.field:
        pairs = component_roles(plan.definition) or [("", ("worker",))]
    else:
        component = plan.definition.profile.component(target.component)
        pairs = [(target.component, component.roles(target.instance or ""))]
    return merge_leaf(path, [plan.effective(*each) for each in pairs])


def check_replicas(ev: Evaluation, row: Field, leaf: Leaf) -> None:
    """Check the number. A violation that is no worse than before the update passes."""
    rules = rules_of(row, leaf)
    native: Any = read(ev.request.object, REPLICAS) or 0
    old: Any = read(ev.old, REPLICAS) if ev.old is not None else None
    before = (REPLICAS, old or 0) if ev.old is not None else None
    if before is not None and before[1] == native:
        return
    if ev.checks_intent:
        rules.check_intent(ev, REPLICAS, native, before, None)
    value = rules.read(native)
    if value is INVALID:
        rules.refuse_invalid(ev, REPLICAS, native)
        return
    for each, holds in rules.final:
        if holds(value, each.argument):
            continue
        was = before[1] if before is not None else None
        if isinstance(was, int) and ratchets(each) and each.type.is_no_further(value, was):
            continue
        ev.violate(row.path, REPLICAS, rules.show(value), rules.show_argument(each), each)


OF_A_POD = {
    "total.gpuDevices": "compute.gpuDevicesRequest",
    "total.devices": "devices.perPod",
}
"""The fields of totals, each with that of one pod."""


def check_total(
    ev: Evaluation, plan: Plan, target: ScaleSubresource, total: str, of_pod: str
) -> None:
    """Check the maximum of all devices, as far as the number of pods allows.

    The review does not contain the devices of a pod. The policy may set a minimum and a maximum for
    them. If these do not settle the total, a warning reports that it was not evaluated.
    """
    leaf = leaf_of(plan, target, total)
    number, before = replicas_of(ev.request.object), replicas_of(ev.old)
    if leaf is None or number is None or before is None or number <= before:
        return
    rules = rules_of(TABLE.fields[total], leaf)
    fewest, most = devices_of_a_pod(leaf_of(plan, target, of_pod))
    held = [each for each in plan.definition.interface.components if each.form is not None]
    alone = len(held) == 1 and held[0].ids is None
    if target.field:
        # The field multiplies pods, and the review does not contain their number.
        fewest, alone = 0, False
    for each, holds in rules.final:
        if not each.type.is_maximum or (
            alone and most is not None and holds(most * number, each.argument)
        ):
            continue
        if holds(fewest * number, each.argument):
            ev.warn("unseen-gpus", total, REPLICAS, source=each.source)
            continue
        shown = f"at least {fewest * number}"
        ev.violate(total, REPLICAS, shown, rules.show_argument(each), each)


def replicas_of(document: Any) -> int | None:
    """Return the replicas of a scale, 0 if absent, None without a document or for no number."""
    native = read(document, REPLICAS) if document is not None else None
    if document is None or isinstance(native, bool):
        return None
    number: Any = native or 0
    return number if isinstance(number, int) else None


def devices_of_a_pod(leaf: Leaf | None) -> tuple[int, int | None]:
    """Return the fewest and the most devices that the policy allows a pod, None for no maximum."""
    constraints = leaf.constraints if leaf is not None else ()
    lowest = [each.argument for each in constraints if each.type.is_minimum]
    highest = [each.argument for each in constraints if each.type.is_maximum]
    required = any(each.type.requires_value for each in constraints)
    return max([0, *lowest]) if required else 0, min(highest, default=None)
