"""The scale subresource: a review that carries only a number of replicas, judged like the workload."""

from __future__ import annotations

from typing import Any

from webhook.catalog.catalog import Catalog
from webhook.catalog.plan import Plan, component_roles
from webhook.decision.conclusion import concluded
from webhook.evaluation.outcome import UNKNOWN_KIND, Allowed, Decision
from webhook.evaluation.references import References
from webhook.evaluation.request import Request
from webhook.evaluation.state import Evaluation, ratchets
from webhook.fields.replicas import closer
from webhook.fields.scalar import INVALID, rules_of
from webhook.interface.profile import ScaleOf
from webhook.objects.path import Path, read
from webhook.pods.definition import Definition
from webhook.policy.combine import Leaf
from webhook.policy.merge_components import united
from webhook.policy.row import Field
from webhook.policy.table import TABLE

REPLICAS: Path = ("spec", "replicas")


def decide_scale(
    request: Request, catalog: Catalog, references: References
) -> tuple[Decision, Decision | None]:
    """Rules on scale.replicas, on the field whose number is scaled, on all GPUs.

    The second decision is that of the trial, None when there is none.
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
    decision = judge_scale(request, references, plans.enforced, target)
    if plans.trial is None:
        return decision, None
    return decision, judge_scale(request, references, plans.trial, target)


def judge_scale(request: Request, references: References, plan: Plan, target: ScaleOf) -> Decision:
    """One number of replicas under one plan."""
    definition = plan.definition
    ev = Evaluation(request, references, definition)
    ev.writes = False
    for row, leaf in scaled_leaves(plan, definition, target):
        judge_replicas(ev, row, leaf)
    judge_total_gpus(ev, plan, target)
    return concluded(ev)


def scaled_leaves(plan: Plan, definition: Definition, target: ScaleOf) -> list[tuple[Field, Leaf]]:
    """The leaves whose value a scale request sets."""
    paths = [target.field] if target.field else ["scale.replicas"]
    for path, held in definition.profile.fields.items():
        of = held.scale_of
        if of is None or of.component != target.component:
            continue
        if (of.instance or "").casefold() == (target.instance or "").casefold():
            paths.append(path)
    leaves = [(path, leaf_of(plan, target, path)) for path in paths if path in TABLE.fields]
    return [(TABLE.fields[path], leaf) for path, leaf in leaves if leaf is not None]


def leaf_of(plan: Plan, target: ScaleOf, path: str) -> Leaf | None:
    """The rules of a field for what is scaled: of one component, or of the workload."""
    if target.field:
        pairs = component_roles(plan.definition) or [("", ("worker",))]
    else:
        component = plan.definition.profile.component(target.component)
        pairs = [(target.component, component.roles(target.instance or ""))]
    return united(path, [plan.effective(*each) for each in pairs])


def judge_replicas(ev: Evaluation, row: Field, leaf: Leaf) -> None:
    """Prohibitions and final rules on the number; no further from a rule than before passes."""
    rules = rules_of(row, leaf)
    native: Any = read(ev.request.object, REPLICAS) or 0
    old: Any = read(ev.old, REPLICAS) if ev.old is not None else None
    before = (REPLICAS, old or 0) if ev.old is not None else None
    if before is not None and before[1] == native:
        return
    if ev.judges_intent:
        rules.judge_intent(ev, REPLICAS, native, before, None)
    value = rules.read(native)
    if value is INVALID:
        rules.refuse_invalid(ev, REPLICAS, native)
        return
    for each, holds in rules.final:
        if holds(value, each.argument):
            continue
        was = before[1] if before is not None else None
        if isinstance(was, int) and ratchets(each) and closer(each.rule, value, was):
            continue
        ev.violate(row.path, REPLICAS, rules.show(value), rules.show_argument(each), each)


TOTAL_GPUS = "total.gpuDevices"
GPUS_OF_A_POD = "compute.gpuDevicesRequest"


def judge_total_gpus(ev: Evaluation, plan: Plan, target: ScaleOf) -> None:
    """The maximum of all GPUs, as far as a number of pods can tell.

    The review does not say how many GPUs a pod has. Where the policy asks for some of every pod,
    fewer cannot be; where it bounds them, more cannot. In between it is told that nobody judged.
    """
    leaf = leaf_of(plan, target, TOTAL_GPUS)
    number, before = replicas_of(ev.request.object), replicas_of(ev.old)
    if leaf is None or number is None or before is None or number <= before:
        return
    row = TABLE.fields[TOTAL_GPUS]
    rules = rules_of(row, leaf)
    fewest, most = gpus_of_a_pod(leaf_of(plan, target, GPUS_OF_A_POD))
    held = [each for each in plan.definition.interface.components if each.form is not None]
    alone = len(held) == 1 and held[0].ids is None
    if target.field:
        # It multiplies pods, and nothing here says how many.
        fewest, alone = 0, False
    for each, holds in rules.final:
        if each.rule != "max" or (
            alone and most is not None and holds(most * number, each.argument)
        ):
            continue
        if holds(fewest * number, each.argument):
            ev.warn("unseen-gpus", TOTAL_GPUS, REPLICAS, source=each.source)
            continue
        shown = f"at least {fewest * number}"
        ev.violate(TOTAL_GPUS, REPLICAS, shown, rules.show_argument(each), each)


def replicas_of(document: Any) -> int | None:
    """The replicas of a scale, 0 when absent; None for what is no number, or where nothing is."""
    native = read(document, REPLICAS) if document is not None else None
    if document is None or isinstance(native, bool):
        return None
    number: Any = native or 0
    return number if isinstance(number, int) else None


def gpus_of_a_pod(leaf: Leaf | None) -> tuple[int, int | None]:
    """The fewest and the most GPUs that the policy allows a pod; None where nothing bounds them."""
    constraints = leaf.constraints if leaf is not None else ()
    lowest = [each.argument for each in constraints if each.rule == "min"]
    highest = [each.argument for each in constraints if each.rule == "max"]
    required = any(each.rule == "required" for each in constraints)
    return max([0, *lowest]) if required else 0, min(highest, default=None)
