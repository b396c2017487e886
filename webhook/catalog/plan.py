"""Effective policy × interface × profile, compiled once for all requests that share them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from webhook.evaluation.installation import Vocabulary
from webhook.evaluation.server_defaults import KindDefaults
from webhook.evaluation.state import Evaluation
from webhook.fields import companions
from webhook.fields.annotation_items import AnnotationItemsField
from webhook.fields.derived import DerivedField
from webhook.fields.gpu.workload_total import TotalGpusField
from webhook.fields.inherited import InheritedField
from webhook.fields.notation import form_of
from webhook.fields.preemptibility import PreemptibilityField
from webhook.fields.priority import PriorityField
from webhook.fields.registry import POD_BINDINGS, Given
from webhook.fields.replicas import ScaleField
from webhook.fields.steps import Steps, steps_of
from webhook.fields.unmapped import NothingField, RefusedDefault
from webhook.fields.workload import WorkloadField
from webhook.fields.workload_paths import (
    nowhere,
    place_of_every_kind,
    places_in,
    places_of,
    scale_places,
    scale_writes,
    shadow,
    sum_of_scales,
    unlimited_in,
    writes_in,
)
from webhook.interface.profile import FieldPlaces
from webhook.pods.definition import Definition
from webhook.policy.combine import GUARDED, Constraint, Effective, Leaf, combine, view
from webhook.policy.merge_components import united, united_attributes
from webhook.policy.policy import Asset, Policy
from webhook.policy.row import (
    NOTHING,
    POD,
    PREEMPTIBILITY,
    PRIORITY,
    SCALE,
    SERVING_PORT,
    TOTAL_GPUS,
    WORKLOAD,
    WORKLOAD_ITEMS,
    Field,
)
from webhook.policy.table import TABLE


@dataclass(slots=True)
class Plan:
    """What a set of policies means for one kind; pods are compiled per component and roles."""

    definition: Definition
    policies: tuple[Policy, ...]
    combination: str
    assets: Mapping[str, Asset]
    vocabulary: Vocabulary
    server: KindDefaults
    workload: Steps = field(default_factory=Steps)
    strict: bool = False
    pods: dict[tuple[str, tuple[str, ...]], Steps] = field(default_factory=dict)

    def effective(self, component: str, roles: tuple[str, ...]) -> dict[str, Leaf]:
        """The effective policy of one component."""
        views = [view(policy, roles, component) for policy in self.policies]
        return combine(views, self.combination, self.assets)

    def pod(self, component: str, roles: tuple[str, ...]) -> Steps:
        """The compiled steps for the pods of one component."""
        key = (component, roles)
        steps = self.pods.get(key)
        if steps is None:
            effective = self.effective(component, roles)
            steps = self.pods[key] = pod_steps(self, effective, component)
        return steps


def compile_plan(
    policies: Sequence[Policy],
    definition: Definition,
    combination: str = GUARDED,
    assets: Mapping[str, Asset] | None = None,
    vocabulary: Vocabulary | None = None,
    server: KindDefaults | None = None,
) -> Plan:
    """The plan of these policies for one kind and version."""
    plan = Plan(
        definition,
        tuple(policies),
        combination,
        assets or {},
        vocabulary or Vocabulary(),
        server or KindDefaults(),
    )
    plan.strict = any(not policy.tolerates_existing for policy in policies)
    plan.workload = workload_steps(plan)
    for component, roles in component_roles(definition):
        plan.pod(component, roles)
    return plan


def component_roles(definition: Definition) -> list[tuple[str, tuple[str, ...]]]:
    """Every pair of component with pods and roles that the definition knows in advance."""
    found: list[tuple[str, tuple[str, ...]]] = []
    for component in definition.interface.components:
        if not component.has_pods:
            continue
        profile = definition.profile.component(component.name)
        roles = {profile.role, *profile.by_instance.values()} if component.ids else {profile.role}
        if profile.leader_with is not None:
            roles.add("leader")
        found += [(component.name, (role,)) for role in sorted(roles)]
        if profile.stands_in_for:
            other = definition.profile.component(profile.stands_in_for).roles("")
            found.append((component.name, (*other, *profile.roles(""))))
    return found


def pod_binding(
    plan: Plan, row: Field, leaf: Leaf, effective: Effective, component: str = ""
) -> Any:
    """The binding of one field for the pods of a component; None where they do not carry it."""
    given = Given(row, leaf, effective, component, plan.definition, plan.server, plan.vocabulary)
    return POD_BINDINGS[row.shape](given)


WORKLOAD_SHAPES = frozenset(
    {
        NOTHING,
        PREEMPTIBILITY,
        PRIORITY,
        SCALE,
        SERVING_PORT,
        TOTAL_GPUS,
        WORKLOAD,
        WORKLOAD_ITEMS,
    }
)
OF_EVERY_KIND = frozenset({PREEMPTIBILITY, PRIORITY, WORKLOAD_ITEMS})
POD_SHAPES = frozenset(POD_BINDINGS)


def named_rows(effective: Effective, shapes: frozenset[str]) -> Iterable[Field]:
    """The rows of the table that the policy names, itself or by an attribute, in table order."""
    owners = {TABLE.owner(path).path for path in effective}
    return (row for row in TABLE.fields.values() if row.path in owners and row.shape in shapes)


def pod_steps(plan: Plan, effective: Effective, component: str) -> Steps:
    """Compile the pod fields of one component."""
    bindings: dict[str, Any] = {}
    forbidden = {
        each.field
        for each in plan.definition.profile.forbidden_fields
        if each.unless not in plan.vocabulary.features
    }
    for row in named_rows(effective, POD_SHAPES):
        leaf = effective.get(row.path, Leaf(row.path))
        if row.path in forbidden:
            rest = tuple(each for each in leaf.constraints if each.rule != "required")
            leaf = replace(leaf, items=(), constraints=rest)
        binding = pod_binding(plan, row, leaf, effective, component)
        if binding is not None:
            bindings[row.path] = binding
    steps = steps_of(bindings, lambda path: empty_pod_binding(plan, path))
    return without_forbidden(steps, effective, forbidden)


def without_forbidden(steps: Steps, effective: Effective, forbidden: set[str]) -> Steps:
    """The steps without defaults for fields that the kind refuses, and a warning for each.

    Nobody can meet `required` there: that is a warning too.
    """
    named = [effective[path] for path in sorted(forbidden & set(effective))]
    warned = tuple(
        ForbiddenDefault(each.path) for each in named if each.default is not None or each.items
    )
    unmet = tuple(ForbiddenRule(each.path, each.of("required")) for each in named)
    unmet = tuple(each for each in unmet if each.constraints)
    if unmet:
        steps = replace(steps, final=(*steps.final, *unmet))
    if not warned:
        return steps
    return replace(
        steps,
        fill=(*(each for each in steps.fill if each.field.path not in forbidden), *warned),
        fixed=tuple(each for each in steps.fixed if each.field.path not in forbidden),
        needed=tuple(each for each in steps.needed if each.field.path not in forbidden),
    )


@dataclass(frozen=True, slots=True)
class ForbiddenDefault:
    """Stands in place of a default that the kind would refuse, and says so."""

    path: str

    def fill(self, view: Any, ev: Evaluation) -> None:
        """Write nothing and tell."""
        ev.warn("forbidden-default", self.path, (), ev.request.kind)


@dataclass(frozen=True, slots=True)
class ForbiddenRule:
    """Replaces `required` on a field that the kind refuses: a warning."""

    path: str
    constraints: tuple[Constraint, ...]

    @property
    def field(self) -> Field:
        """The row of the field."""
        return TABLE.fields[self.path]

    def final(self, view: Any, ev: Evaluation) -> None:
        """Report the rule; nothing can be refused."""
        source = self.constraints[0].source
        ev.warn("forbidden-rule", self.path, (), ev.request.kind, source=source)


def empty_pod_binding(plan: Plan, path: str) -> Any:
    """A binding without rules, to read a field that only a computed default names."""
    row = TABLE.fields.get(path)
    if row is None or row.shape not in POD_SHAPES or row.items is not None:
        return None
    return pod_binding(plan, row, Leaf(path), {})


def workload_steps(plan: Plan) -> Steps:
    """Compile the fields of the workload as a whole; every component's rules bind them."""
    pairs = component_roles(plan.definition) or [("", ("worker",))]
    known = [(component, roles, plan.effective(component, roles)) for component, roles in pairs]
    effectives = [effective for _, _, effective in known]
    bindings: dict[str, Any] = {}
    refused: list[Any] = []
    rows = (row for row in TABLE.fields.values() if concerns(plan, row))
    for row in sorted(rows, key=lambda row: waits(plan, row)):
        if row.shape == SCALE:
            bindings |= scale_fields(plan, row, known)
        elif row.shape == WORKLOAD_ITEMS:
            leaves = united_attributes(row, effectives)
            leaf = united(row.path, effectives)
            if leaf is not None or leaves:
                bindings[row.path] = AnnotationItemsField(row, leaf or Leaf(row.path), leaves)
        elif row.shape in WORKLOAD_SHAPES and not lies_in_pods(plan, row):
            leaf = united(row.path, effectives)
            if leaf is not None and refuses_default(plan, row, leaf):
                leaf = replace(leaf, default=None)
                refused.append(RefusedDefault(row))
            if leaf is not None:
                bindings[row.path] = workload_binding(plan, row, leaf)
        elif row.shape == POD and row.path in plan.definition.profile.fields:
            leaf, held = united(row.path, effectives), plan.definition.profile.fields[row.path]
            if leaf is not None:
                filled = shadow(plan.definition, plan.server, held)
                places = places_in(held, plan.definition.profile)
                bindings[row.path] = InheritedField(row, leaf, places, filled)

    def other(path: str) -> Any:
        return empty_workload_binding(plan, path)

    companions.join_targets(bindings, other)
    ordered = tuple(companions.ordered(bindings, other))
    steps = steps_of(bindings, other)
    return replace(steps, fill=(*steps.fill, *refused), final=(*steps.final, *ordered))


def concerns(plan: Plan, row: Field) -> bool:
    """Whether a field is for this kind: by its workload type, or because the kind has a place.

    What is for other types alone is no more to be told here than a policy for other types. Of what
    only wraps others nothing is asked but what all objects carry; the wrapped ones have the rest.
    """
    profile = plan.definition.profile
    if plan.definition.only_wraps and row.shape not in OF_EVERY_KIND and not row.at:
        return row.path in profile.fields
    named = not profile.workload_type or profile.workload_type in row.types
    return named or row.path in profile.fields


def waits(plan: Plan, row: Field) -> bool:
    """Whether a default of a field depends on what others may write first."""
    held = plan.definition.profile.fields.get(row.path)
    if held is None:
        return False
    selects = any("select(" in each.text for each in held.write)
    return selects or held.only_with is not None or held.not_with is not None


def scale_fields(
    plan: Plan, row: Field, known: Sequence[tuple[str, tuple[str, ...], Effective]]
) -> dict[str, ScaleField]:
    """The bindings of replicas for each component and role that a policy bounds."""
    found = {}
    for component, roles, effective in known:
        if row.path in effective:
            locate = scale_places(plan.definition, component, roles)
            name = f"{row.path}:{component}:{roles}"
            found[name] = ScaleField(row, effective[row.path], locate, component, roles)
    return found


def refuses_default(plan: Plan, row: Field, leaf: Leaf) -> bool:
    """Whether the kind would refuse the default: the field, or this value of it."""
    if leaf.default is None or row.shape != WORKLOAD:
        return False
    profile = plan.definition.profile
    if any(
        each.field == row.path and each.unless not in plan.vocabulary.features
        for each in profile.forbidden_fields
    ):
        return True
    held = profile.fields.get(row.path)
    if held is None or not held.allows:
        return False
    parse = row.reading().parse
    return leaf.default.value not in {parse(each, None) for each in held.allows}


def lies_in_pods(plan: Plan, row: Field) -> bool:
    """Whether the kind has this field in the main containers of its pods."""
    held = plan.definition.profile.fields.get(row.path)
    return held is not None and bool(held.main_port)


def empty_workload_binding(plan: Plan, path: str) -> Any:
    """A binding without rules, to read a field that only a computed default names."""
    row = TABLE.fields.get(path)
    if row is None or row.shape != WORKLOAD:
        return None
    return workload_binding(plan, row, Leaf(path))


def workload_binding(plan: Plan, row: Field, leaf: Leaf) -> Any:
    """The binding of one workload-level field on this kind."""
    profile = plan.definition.profile
    match row.shape:
        case "priority":
            return PriorityField(row, leaf, places_of(profile.second_priority_places))
        case "preemptibility":
            return PreemptibilityField(row, leaf, places_of(profile.second_priority_places))
        case "nothing":
            return NothingField(row, leaf)
        case "total-gpus":
            words = plan.vocabulary
            return TotalGpusField(row, leaf, words.gpu_resources, words.gpu_classes)
        case _:
            return plain_binding(plan, row, leaf)


def plain_binding(plan: Plan, row: Field, leaf: Leaf) -> Any:
    """The binding of one scalar of the workload: where all kinds, this kind or none has it."""
    if row.at and row.shape == WORKLOAD:
        common = place_of_every_kind(row.at)
        return WorkloadField(row, leaf, common, common)
    held = plan.definition.profile.fields.get(row.path)
    if held is None:
        return WorkloadField(row, leaf, nowhere, None)
    if held.derived is not None:
        return DerivedField(row, leaf, held.derived)
    return placed_binding(plan, row, leaf, held)


def placed_binding(plan: Plan, row: Field, leaf: Leaf, held: FieldPlaces) -> WorkloadField:
    """The binding of a field that the profile has places for."""
    form = form_of(row.reading(), held.written)
    filled = form.filled(shadow(plan.definition, plan.server, held))
    if held.scale_of is not None:
        write = scale_writes(plan.definition, held.scale_of)
        return WorkloadField(row, leaf, sum_of_scales(held.scale_of), write, filled, form)
    write = writes_in(held, plan.definition)
    unlimited = unlimited_in(held, plan.definition) if held.absent_is_unlimited else None
    places = places_in(held, plan.definition.profile)
    return WorkloadField(row, leaf, places, write, filled, form, unlimited)
