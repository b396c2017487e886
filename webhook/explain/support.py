"""Tells whether a kind can carry a leaf of a policy, and if not, or not always, why."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from webhook.catalog.plan import Plan, concerns
from webhook.explain.model import FORBIDDEN, MAPPED, NOT_NATIVE, UNMAPPED
from webhook.fields.annotation_list import AnnotationItemStore
from webhook.interface.fragment import Part
from webhook.interface.profile import FieldPlaces
from webhook.objects.path import Path, display
from webhook.pods.definition import Definition
from webhook.policy.checks.unenforceable import POLICY_ONLY
from webhook.policy.row import (
    AMOUNT,
    CONTAINER,
    GPU,
    GPU_FORM,
    HOME,
    HOST_PORTS,
    IDENTITY,
    ITEMS,
    NODE_AFFINITY,
    NODE_POOLS,
    NODE_TYPE,
    NOTHING,
    POD,
    POD_AFFINITY,
    POD_SET,
    PREEMPTIBILITY,
    PRIORITY,
    PROBE,
    PULL_SECRETS,
    SCALE,
    SERVING_PORT,
    SHARED_MEMORY,
    TOTAL_GPUS,
    WORKLOAD,
    WORKLOAD_ITEMS,
    Binding,
    Field,
)
from webhook.policy.table import TABLE

Reach = tuple[str, str]
READ_FORMS: Final = frozenset(
    {"hostPath", "claim", "emptyDir", "memory", "text", "devices", "amount", "seen"}
)
"""Pieces that the operator turns into something else: nothing can be put there."""
NO_FORMS: Final = frozenset({"containers", "item", "told"})
"""Pieces that hold nothing of the first container themselves."""
OF_WORKLOAD: Final = frozenset(
    {WORKLOAD, WORKLOAD_ITEMS, PRIORITY, PREEMPTIBILITY, TOTAL_GPUS, NOTHING}
)
MAIN: Final[Path] = ("spec", "containers", 0)
HELD_AT: Final[dict[str, Path]] = {
    GPU: (*MAIN, "resources"),
    GPU_FORM: ("metadata", "annotations"),
    HOME: (*MAIN, "volumeMounts"),
    HOST_PORTS: (*MAIN, "ports"),
    IDENTITY: ("spec", "securityContext", "runAsUser"),
    NODE_AFFINITY: ("spec", "affinity"),
    NODE_POOLS: ("metadata", "labels"),
    NODE_TYPE: ("spec", "nodeSelector"),
    POD_AFFINITY: ("spec", "affinity"),
    PULL_SECRETS: ("spec", "imagePullSecrets"),
    SHARED_MEMORY: (*MAIN, "volumeMounts"),
}
"""Where pods hold fields of these shapes."""
STORED_AT: Final[dict[str, Path]] = {
    "annotations": ("metadata", "annotations"),
    "environment": (*MAIN, "env"),
    "extended-resources": (*MAIN, "resources"),
    "labels": ("metadata", "labels"),
    "ports": (*MAIN, "ports"),
    "tolerations": ("spec", "tolerations"),
}
"""The same for items, which are volumes where they are not listed here."""
NO_OBJECT: Final = "no Kubernetes object has a path for it, so nothing enforces it"


def is_of_workload(definition: Definition, row: Field) -> bool:
    """Whether a field belongs to the object as a whole; replicas belong to their component.

    A serving port does where the kind has it outside its pods, or nowhere.
    """
    if row.shape == SERVING_PORT:
        held = definition.profile.fields.get(row.path)
        return held is None or not held.main_port
    return row.shape in OF_WORKLOAD


def reach_of(plan: Plan, component: str, path: str) -> Reach:
    """Whether a kind can carry a field or attribute: mapped, unmapped, forbidden, not-native; why."""
    row = TABLE.owner(path)
    if row.shape == NOTHING:
        return NOT_NATIVE, NO_OBJECT
    if path in TABLE.attributes:
        attribute = TABLE.attributes[path][1]
        if not attribute.native and attribute.name not in POLICY_ONLY:
            return NOT_NATIVE, NO_OBJECT
    if row.binding is Binding.NOTHING:
        return NOT_NATIVE, f"kept in {kept_at(row)}, for others to act on"
    return refused(plan, row) or of_other_types(plan, row) or carried(plan, component, row)


def kept_at(row: Field) -> str:
    """The label or annotation of the workload that keeps what no native field says."""
    path = row.at if row.items is None else AnnotationItemStore(row.items).path
    return display(path)


def of_other_types(plan: Plan, row: Field) -> Reach | None:
    """What a field is for, where that is not this kind's workload type."""
    if not is_of_workload(plan.definition, row) or concerns(plan, row):
        return None
    return UNMAPPED, f"for workloads of type {', '.join(row.types)} only"


def refused(plan: Plan, row: Field) -> Reach | None:
    """What the kind says against a field, unless a feature of the cluster allows it."""
    for each in plan.definition.profile.forbidden_fields:
        if each.field == row.path and each.unless not in plan.vocabulary.features:
            reason = each.reason or f"{plan.definition.interface.kind} refuses it"
            unless = f" unless the cluster has {each.unless} on (setting: features)"
            return FORBIDDEN, f"{reason}{unless if each.unless else ''}"
    return None


def carried(plan: Plan, component: str, row: Field) -> Reach:
    """Whether the kind has a place for a field that it does not refuse."""
    profile, interface = plan.definition.profile, plan.definition.interface
    lacking = UNMAPPED, f"{interface.kind} has no path for it"
    if row.shape == SERVING_PORT or (row.shape == WORKLOAD and not row.at):
        held = profile.fields.get(row.path)
        if held is not None and held.main_port:
            serving = {component, profile.component(component).stands_in_for} & set(held.main_port)
            return (MAPPED, "") if serving else (UNMAPPED, f"pods of {component} do not serve")
        return lacking if held is None else (MAPPED, limits_of(held, interface.kind))
    found = interface.component(component)
    if row.shape == SCALE and found is not None:
        known = found.scales or profile.component(component).scale.absent is not None
        return (MAPPED, "") if known else (UNMAPPED, f"{component} has no number of replicas")
    if found is not None and found.form is None and row.shape not in OF_WORKLOAD:
        return UNMAPPED, f"the pods of {component} are set in other objects"
    if row.binding is Binding.METADATA and found is not None and found.form == "spec":
        return (MAPPED, "") if found.metadata else (UNMAPPED, f"{component} has no pod metadata")
    if found is not None and found.form == "fragments":
        return of_pieces(plan, component, row)
    return MAPPED, ""


def limits_of(held: FieldPlaces, kind: str) -> str:
    """Of a field that the profile has places for: which values, and when a default is written."""
    if held.derived is not None:
        return f"follows from the kind: {held.derived}"
    limits = []
    if held.allows:
        limits.append(f"{kind} takes only {' or '.join(held.allows)}")
    if held.only_with is not None:
        limits.append(f"a default is written only beside {held.only_with.text}")
    if held.not_with is not None:
        limits.append(f"no default is written beside {held.not_with.text}")
    return "; ".join(limits)


def of_pieces(plan: Plan, component: str, row: Field) -> Reach:
    """Whether a kind that states its pods piece by piece has a piece for a field."""
    found = next((each for each in plan.definition.plans if each.component == component), None)
    parts = found.parts if found is not None else ()
    forms = {
        part.form
        for at in places_in_pod(row)
        for part in parts
        if part.pod[: len(at)] == at[: len(part.pod)]
        and part.form not in NO_FORMS
        and len(part.pod) >= told_from(parts, at)
    }
    if not forms:
        kind = plan.definition.interface.kind
        return UNMAPPED, f"{kind} has no such part of the pods of {component}"
    return MAPPED, "" if forms - READ_FORMS else "evaluated, but a default has no path there"


def told_from(parts: Iterable[Part], at: Path) -> int:
    """How long the place is that cannot be written around `at`; 0 where there is none."""
    return max(
        (len(p.pod) for p in parts if p.form == "told" and at[: len(p.pod)] == p.pod), default=0
    )


def places_in_pod(row: Field) -> list[Path]:
    """Where a pod template, metadata included, holds a field."""
    if row.shape in (CONTAINER, AMOUNT, PROBE):
        of_pod = [("spec", *row.pod_at)] if row.pod_at else []
        return [(*MAIN, *row.at), *of_pod]
    if row.shape in (POD, POD_SET):
        return [("spec", *row.at)]
    if row.shape == ITEMS and row.items is not None:
        return [STORED_AT.get(row.items.store, ("spec", "volumes"))]
    return [HELD_AT.get(row.shape, ("spec",))]
