"""Effective policy × interface × profile, compiled once for all requests that share them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from webhook.core.pointer import ABSENT, Path, read
from webhook.core.policy.combine import GUARDED, RANK, Constraint, Effective, Leaf, combine, view
from webhook.core.policy.fields import (
    NOTHING,
    PREEMPTIBILITY,
    PRIORITY,
    SCALE,
    SERVING_PORT,
    TABLE,
    TOTAL_GPUS,
    WORKLOAD,
    WORKLOAD_ITEMS,
    Field,
)
from webhook.core.policy.model import Asset, DefaultFrom, Policy
from webhook.core.server_defaults import KindDefaults
from webhook.core.workload.bindings.annotation_items import AnnotationItemsField
from webhook.core.workload.bindings.computed import ComputedField
from webhook.core.workload.bindings.gpus import GpuField
from webhook.core.workload.bindings.items import ItemsField
from webhook.core.workload.bindings.preemptibility import PreemptibilityField
from webhook.core.workload.bindings.shapes import POD_BINDINGS, Given
from webhook.core.workload.bindings.totals_of_gpus import TotalGpusField
from webhook.core.workload.bindings.unmapped import NothingField
from webhook.core.workload.bindings.workloads import (
    Locate,
    Place,
    PriorityField,
    ScaleField,
    WorkloadField,
)
from webhook.core.workload.evaluation import Evaluation
from webhook.core.workload.locations import Definition
from webhook.core.workload.profile import FieldPlaces, ScaleOf
from webhook.core.workload.query import Program
from webhook.core.workload.scale import Scale
from webhook.core.workload.vocabulary import Vocabulary


@dataclass(frozen=True, slots=True)
class Steps:
    """The bindings of one component (or of the workload) by what they have to do.

    `fixed` are those whose default must be there in the final object.
    """

    intent: tuple[Any, ...] = ()
    fill: tuple[Any, ...] = ()
    final: tuple[Any, ...] = ()
    fixed: tuple[Any, ...] = ()

    @property
    def empty(self) -> bool:
        """Whether nothing is judged or written here."""
        return not (self.intent or self.fill or self.final)


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
        if component.form is None:
            continue
        profile = definition.profile.component(component.name)
        roles = {profile.role, *profile.by_instance.values()} if component.ids else {profile.role}
        found += [(component.name, (role,)) for role in sorted(roles)]
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
POD_SHAPES = frozenset(POD_BINDINGS)


def named_rows(effective: Effective, shapes: frozenset[str]) -> Iterable[Field]:
    """The rows of the table that the policy names, itself or by an attribute, in table order."""
    owners = {TABLE.owner(path).path for path in effective}
    return (row for row in TABLE.fields.values() if row.path in owners and row.shape in shapes)


def pod_steps(plan: Plan, effective: Effective, component: str) -> Steps:
    """Compile the pod fields of one component."""
    bindings: dict[str, Any] = {}
    forbidden = {each.field for each in plan.definition.profile.forbidden_fields}
    for row in named_rows(effective, POD_SHAPES):
        leaf = effective.get(row.path, Leaf(row.path))
        if row.path in forbidden and leaf.items:
            leaf = replace(leaf, items=())
        binding = pod_binding(plan, row, leaf, effective, component)
        if binding is not None:
            bindings[row.path] = binding
    steps = steps_of(bindings, lambda path: empty_pod_binding(plan, path))
    return without_forbidden(steps, effective, forbidden)


def without_forbidden(steps: Steps, effective: Effective, forbidden: set[str]) -> Steps:
    """The steps without defaults for fields that the kind refuses; each is told once instead."""
    told = tuple(
        ForbiddenDefault(path)
        for path in sorted(forbidden & set(effective))
        if effective[path].default is not None or effective[path].items
    )
    if not told:
        return steps
    return replace(
        steps,
        fill=(*(each for each in steps.fill if each.field.path not in forbidden), *told),
        fixed=tuple(each for each in steps.fixed if each.field.path not in forbidden),
    )


@dataclass(frozen=True, slots=True)
class ForbiddenDefault:
    """Stands in place of a default that the kind would refuse, and says so."""

    path: str

    def fill(self, view: Any, ev: Evaluation) -> None:
        """Write nothing and tell."""
        ev.warn("forbidden-default", self.path, (), ev.request.kind)


def empty_pod_binding(plan: Plan, path: str) -> Any:
    """A binding without rules, to read a field that only a computed default names."""
    row = TABLE.fields.get(path)
    if row is None or row.shape not in POD_SHAPES or row.items is not None:
        return None
    return pod_binding(plan, row, Leaf(path), {})


def steps_of(bindings: dict[str, Any], other: Callable[[str], Any]) -> Steps:
    """Order the bindings: plain ones in table order, computed defaults after what they follow."""
    computed: dict[str, Any] = {}
    for path in list(bindings):
        computed_binding(path, bindings, other, computed, ())
    ordered = [each for path, each in bindings.items() if path not in computed]
    ordered += computed.values()
    return Steps(
        tuple(each for each in ordered if judges_intent(each)),
        tuple(each for each in ordered if fills(each)),
        tuple(each for each in ordered if judges_final(each)),
        tuple(each for each in ordered if is_fixed(each)),
    )


def computed_binding(
    path: str,
    bindings: dict[str, Any],
    other: Callable[[str], Any],
    computed: dict[str, Any],
    trail: tuple[str, ...],
) -> Any:
    """The binding of a path, wrapped when its default is computed; a cycle is cut."""
    if path in computed:
        return computed[path]
    binding = bindings.get(path) or other(path)
    constraint = following(binding)
    if constraint is None or path in trail:
        return binding
    source = computed_binding(constraint.argument.field, bindings, other, computed, (*trail, path))
    if source is None:
        return binding
    computed[path] = bindings[path] = ComputedField(binding, source, constraint)
    return computed[path]


def following(binding: Any) -> Constraint | None:
    """The defaultFrom that beats the static default of its scope and of broader ones."""
    rules = getattr(binding, "rules", None)
    if rules is None or isinstance(binding, ComputedField):
        return None
    for each in rules.computed:
        assert isinstance(each.argument, DefaultFrom)
        default = rules.default
        if default is None or RANK[default.scope] <= RANK[each.policy.scope]:
            return each  # type: ignore[no-any-return]
    return None


def judges_intent(binding: Any) -> bool:
    """Whether the binding has anything to judge before defaults."""
    if isinstance(binding, ItemsField):
        closed = any(each.rules.prohibitions for each in binding.attributes)
        return bool(
            binding.can_add or binding.locked or closed or any(i.imposed for i in binding.items)
        )
    return bool(binding.rules.prohibitions)


def fills(binding: Any) -> bool:
    """Whether the binding has a default to write."""
    if isinstance(binding, ItemsField):
        return bool(binding.items) or any(each.rules.default for each in binding.attributes)
    return isinstance(binding, ComputedField) or binding.rules.default is not None


def is_fixed(binding: Any) -> bool:
    """Whether the binding writes a default that nobody may change."""
    if isinstance(binding, ItemsField):
        return False
    return fills(binding) and any(each.rule == "canEdit" for each in binding.rules.prohibitions)


def judges_final(binding: Any) -> bool:
    """Whether the binding has anything to judge on the result."""
    if isinstance(binding, ItemsField):
        bound = any(each.rules.final or each.rules.required for each in binding.attributes)
        return bound or bool(binding.guarded)
    if isinstance(binding, PriorityField | GpuField):
        return True
    return bool(binding.rules.final or binding.rules.required)


def workload_steps(plan: Plan) -> Steps:
    """Compile the fields of the workload as a whole; every component's rules bind them."""
    effectives = [
        (component, roles, plan.effective(component, roles))
        for component, roles in component_roles(plan.definition)
    ] or [("", ("worker",), plan.effective("", ("worker",)))]
    bindings: dict[str, Any] = {}
    for row in TABLE.fields.values():
        if row.shape == SCALE:
            for component, roles, effective in effectives:
                if row.path in effective:
                    locate = scale_places(plan.definition, component, roles)
                    name = f"{row.path}:{component}:{roles}"
                    bindings[name] = ScaleField(row, effective[row.path], locate, component, roles)
        elif row.shape == WORKLOAD_ITEMS:
            leaves = united_attributes(row, [each for _, _, each in effectives])
            leaf = united(row.path, [each for _, _, each in effectives])
            if leaf is not None or leaves:
                bindings[row.path] = AnnotationItemsField(row, leaf or Leaf(row.path), leaves)
        elif row.shape in WORKLOAD_SHAPES and not lies_in_pods(plan, row):
            leaf = united(row.path, [each for _, _, each in effectives])
            if leaf is not None:
                bindings[row.path] = workload_binding(plan, row, leaf)
    return steps_of(bindings, lambda path: empty_workload_binding(plan, path))


def lies_in_pods(plan: Plan, row: Field) -> bool:
    """Whether the kind has this field in the main containers of its pods."""
    held = plan.definition.profile.fields.get(row.path)
    return held is not None and bool(held.main_port)


def united_attributes(row: Field, effectives: Sequence[Effective]) -> dict[str, Leaf]:
    """The leaves of an itemized field's attributes for the whole workload, by attribute name."""
    assert row.items is not None
    found = {
        each.name: united(f"{row.path}.{each.name}", effectives) for each in row.items.attributes
    }
    return {name: leaf for name, leaf in found.items() if leaf is not None}


def empty_workload_binding(plan: Plan, path: str) -> Any:
    """A binding without rules, to read a field that only a computed default names."""
    row = TABLE.fields.get(path)
    if row is None or row.shape != WORKLOAD:
        return None
    return workload_binding(plan, row, Leaf(path))


def united(path: str, effectives: Sequence[Effective]) -> Leaf | None:
    """One leaf for the whole workload: all components' rules, the last (worker's) default."""
    leaves = [each[path] for each in effectives if path in each]
    if not leaves:
        return None
    default = next((leaf.default for leaf in reversed(leaves) if leaf.default is not None), None)
    items = next((leaf.items for leaf in reversed(leaves) if leaf.items), ())
    return Leaf(path, unique(leaves), default, items)


def unique(leaves: Iterable[Leaf]) -> tuple[Constraint, ...]:
    """The constraints of several leaves, those of one policy said alike only once."""
    found: list[Constraint] = []
    for leaf in leaves:
        for each in leaf.constraints:
            known = any(
                each.rule == other.rule
                and each.argument == other.argument
                and each.policy is other.policy
                for other in found
            )
            if not known:
                found.append(each)
    return tuple(found)


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
    if row.at:
        return WorkloadField(row, leaf, *place_of_every_kind(row.at), None)
    held = profile.fields.get(row.path)
    if held is None:
        return WorkloadField(row, leaf, lambda ev, document: (), None, None)
    if held.scale_of is not None:
        locate = sum_of_scales(held.scale_of)
        write = scale_writes(held.scale_of)
        return WorkloadField(row, leaf, locate, write, shadow(plan, held))
    return WorkloadField(
        row, leaf, places_of(held.places), places_of(held.write, held.only_with), shadow(plan, held)
    )


def place_of_every_kind(at: Path) -> tuple[Locate, Locate]:
    """The one place of a field that all kinds have in common."""

    def locate(ev: Evaluation, document: Any) -> list[Place]:
        value = read(document, at)
        return [Place(at, None if value is ABSENT or value == "" else value, "common")]

    return locate, locate


def shadow(plan: Plan, held: FieldPlaces) -> Any:
    """What the server, the CRD or the operator would fill in at a field's place."""
    texts = {each.text for each in held.places}
    for default in plan.definition.profile.shadow_defaults:
        if default.place.text in texts:
            return default.value
    for each in held.places:
        if each.is_plain:
            value = plan.server.workload(each.text)
            if value is not None:
                return value
    return None


def element_key(document: Any, bindings: tuple[Path, ...]) -> str:
    """What names a list element across updates: its name, else its index."""
    parts = []
    for binding in bindings:
        element = read(document, binding)
        name = (
            element.get("name") or element.get("groupName") if isinstance(element, dict) else None
        )
        parts.append(str(name or binding[-1]))
    return "/".join(parts)


def places_of(programs: Sequence[Program], only_with: Program | None = None) -> Locate:
    """Concrete places of several programs, in order; none while `only_with` is absent."""

    def locate(ev: Evaluation, document: Any) -> list[Place]:
        if only_with is not None and not any(m.value for m in only_with.matches_or_none(document)):
            return []
        return [
            Place(
                match.path,
                match.value,
                f"{program.text}|{element_key(document, match.bindings)}",
            )
            for program in programs
            for match in program.matches_or_none(document)
            if match.path is not None
        ]

    return locate


def chosen(scales: Sequence[Scale], of: ScaleOf) -> list[Scale]:
    """The scales of a component, or of one of its instances."""
    return [
        each
        for each in scales
        if each.component == of.component
        and (of.instance is None or each.instance.casefold() == of.instance.casefold())
    ]


def highest(scale: Scale) -> int | None:
    """The most that an instance can become: operators raise to the minimum, autoscalers further."""
    counts = [n for n in (scale.replicas, scale.minimum, scale.maximum) if n is not None]
    return max(counts) if counts else None


def sum_of_scales(of: ScaleOf) -> Locate:
    """The sum of a component's replicas as one place; its value 0 when it has no instance."""

    def locate(ev: Evaluation, document: Any) -> list[Place]:
        scales = chosen(ev.scales(document), of)
        total = sum(max(each.replicas or 0, each.minimum or 0) for each in scales)
        path = next((each.place for each in scales), ())
        return [Place(path, total, "sum")]

    return locate


def scale_writes(of: ScaleOf) -> Locate | None:
    """Where the one instance's replicas are written, when that is a plain place."""
    if of.instance is None:
        return None

    def locate(ev: Evaluation, document: Any) -> list[Place]:
        return [
            Place(each.path, read(document, each.path) or None, each.instance)
            for each in chosen(ev.scales(document), of)
            if each.path is not None
        ]

    return locate


def scale_places(definition: Definition, component: str, roles: tuple[str, ...]) -> Locate:
    """The most that each instance of a component with these roles can become."""
    profile = definition.profile.component(component)

    def locate(ev: Evaluation, document: Any) -> list[Place]:
        return [
            Place(each.place, highest(each), f"{component}/{each.instance}".rstrip("/"))
            for each in ev.scales(document)
            if each.component == component and profile.roles(each.instance) == roles
        ]

    return locate
