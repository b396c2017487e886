"""Explains one new object: each field's value in its completed form, its place and its source.

The steps of a decision are taken once more, so that values can be told of a refused object too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from webhook.core.catalog import Plans
from webhook.core.decide import changed_views, run
from webhook.core.decision import Change, Decision, Denied, Source, Violation, Warning
from webhook.core.explain import (
    FORBIDDEN,
    LeafReport,
    Leaves,
    factor_text,
    is_of_workload,
    names_component,
    policies_of,
    reach_of,
)
from webhook.core.intent import contains
from webhook.core.patch import PatchError
from webhook.core.plan import (
    POD_SHAPES,
    Plan,
    Steps,
    component_roles,
    pod_binding,
    united,
    workload_binding,
)
from webhook.core.pointer import ABSENT, Path, read
from webhook.core.policy import rules as rule_table
from webhook.core.policy.combine import Leaf
from webhook.core.policy.fields import (
    AMOUNT,
    CONTAINER,
    GPU,
    ITEMS,
    PRIORITY,
    PULL_SECRETS,
    SCALE,
    TABLE,
    WORKLOAD,
    WORKLOAD_ITEMS,
    Binding,
    Field,
)
from webhook.core.references import References
from webhook.core.request import Request
from webhook.core.workload.bindings.annotation_items import AnnotationItemsField
from webhook.core.workload.bindings.attribute_values import Unreadable
from webhook.core.workload.bindings.computed import ComputedField
from webhook.core.workload.bindings.items import ItemsField, reread
from webhook.core.workload.bindings.scalar import reader
from webhook.core.workload.bindings.stores import NativeItem
from webhook.core.workload.evaluation import Evaluation
from webhook.core.workload.exclude import excluded_items
from webhook.core.workload.locations import LocationError
from webhook.core.workload.places import scale_places
from webhook.core.workload.podspec import Container, MalformedPod, PodView
from webhook.core.workload.written import Place

REQUEST, SERVER, UNSET, COMPUTED = "request", "server default", "unset", "computed"
DEFAULT, DEFAULT_FROM, KIND = "default", "defaultFrom", "kind"
SOURCES: Mapping[str, str] = {
    "default": DEFAULT,
    "default item": "default item",
    "attribute default": "attribute default",
    "imposed": "imposed",
    "imposed asset": "imposed",
    "kept": "kept",
}
"""Why a decision wrote something, in the words of an explanation."""


@dataclass(slots=True)
class AttributeEntry:
    """One attribute of an item: its value (None: never shown), place and source."""

    name: str
    value: Any
    path: Path
    source: str
    by: Source | None = None


@dataclass(slots=True)
class Entry:
    """One value of a field in the completed object: its place, its source, and what is wrong.

    `value` is ABSENT where nothing is set and None where it is never shown; `key` names the
    container, item or instance.
    """

    path: Path
    value: Any
    source: str
    by: Source | None = None
    key: str = ""
    note: str = ""
    attributes: list[AttributeEntry] = field(default_factory=list)
    violations: list[Violation] = field(default_factory=list)
    warnings: list[Warning] = field(default_factory=list)


@dataclass(slots=True)
class FieldReport:
    """One field of a pod or of the workload: its values, and what the policies say of it."""

    field: str
    secret: bool
    leaves: tuple[LeafReport, ...]
    entries: list[Entry]


@dataclass(slots=True)
class PodReport:
    """One pod location with its fields."""

    component: str
    instance: str
    roles: tuple[str, ...]
    path: Path
    fields: list[FieldReport]


@dataclass(slots=True)
class ObjectReport:
    """One object; `violations` and `warnings` are those that belong to no field told here."""

    policies: tuple[Source, ...]
    pods: list[PodReport]
    workload: list[FieldReport]
    violations: list[Violation]
    warnings: list[Warning]
    audit: tuple[Violation, ...] = ()


def explain_object(
    request: Request,
    plans: Plans,
    references: References,
    decision: Decision,
    component: str = "",
) -> ObjectReport:
    """Every field that a policy names or the object sets, of one new object and its decision.

    `request` is the object offline, with its raw form; `decision` is what both passes said.
    """
    found = Explanation(request, plans, references)
    result = found.report(component)
    violations = decision.violations if isinstance(decision, Denied) else ()
    result.audit = decision.audit
    result.violations = [each for each in violations if not found.attach(each, result)]
    result.warnings = [each for each in decision.warnings if not attach_warning(each, result)]
    return result


class Explanation:
    """The state of one explanation: the decision's steps taken, and what they wrote."""

    def __init__(self, request: Request, plans: Plans, references: References) -> None:
        self.request, self.plans = request, plans
        self.plan: Plan = plans.enforced
        self.definition = self.plan.definition
        self.leaves = Leaves(plans)
        self.ev = Evaluation(request, references, self.definition)
        self.before: list[PodView] = []
        self.views: list[PodView] = []
        try:
            self.before, _ = changed_views(self.ev, self.plan)
            self.ev.excluded = excluded_items(self.ev)
            run(self.ev, self.plan, self.before)
            self.views = [reread(view, self.ev) for view in self.before]
        except (LocationError, MalformedPod, PatchError):
            # Pods that cannot be told have no fields to tell of; the decision says what is wrong.
            self.views = []
        self.document = self.ev.draft.document
        self.changes: dict[Path, Change] = {each.path: each for each in self.ev.findings.changes}

    def report(self, component: str) -> ObjectReport:
        """The fields of every pod, or of the pods of one component, and of the workload."""
        pods = [
            self.pod(view)
            for view in self.views
            if names_component(component, view.location.component, view.location.roles)
        ]
        workload = self.workload() if self.views or not self.before else []
        return ObjectReport(policies_of(self.plans), pods, workload, [], [])

    # Pods

    def pod(self, view: PodView) -> PodReport:
        """One pod: what its policies name, then what the object sets beside that."""
        location = view.location
        leaves = self.leaves.of(location.component, location.roles)
        effective = self.plan.effective(location.component, location.roles)
        steps = self.plan.pod(location.component, location.roles)
        fields: list[FieldReport] = []
        for row in TABLE.fields.values():
            if row.shape not in POD_SHAPES or is_of_workload(row):
                continue
            said = tuple(each for each in leaves if TABLE.owner(each.field) is row)
            leaf = effective.get(row.path, Leaf(row.path))
            binding = pod_binding(self.plan, row, leaf, effective)
            entries = list(self.pod_entries(view, row, binding))
            present = [each for each in entries if each.value is not ABSENT]
            if row.shape not in (ITEMS, PULL_SECRETS):
                entries = present or entries[:1]
            if said or present:
                for each in entries:
                    self.tell_computed(each, row, steps, view)
                    tell_reach(each, *reach_of(self.definition, location.component, row))
                fields.append(FieldReport(row.path, row.secret, said, entries))
        return PodReport(
            location.component, location.instance, location.roles, location.place, fields
        )

    def pod_entries(self, view: PodView, row: Field, binding: Any) -> Iterator[Entry]:
        """The values of a field in one pod; the first is where a default would go."""
        if row.shape in (CONTAINER, AMOUNT):
            yield from self.container_entries(view, row)
        elif row.shape == GPU:
            use, path = binding.use(view, self.ev), binding.place(view)
            if use.forms or use.unbounded or binding.stated(view):
                yield self.entry(row, path, binding.shown(use), key="total of the pod")
            else:
                yield Entry(path, ABSENT, UNSET)
        elif row.shape in (ITEMS, PULL_SECRETS):
            yield from self.item_entries(view, row, binding)
        elif hasattr(binding, "read"):
            path, native = binding.read(view)
            yield self.entry(row, path, native)
        elif binding is not None:
            yield self.entry(row, (*view.spec_path, *row.at), binding.current(view, self.ev))

    def container_entries(self, view: PodView, row: Field) -> Iterator[Entry]:
        """The pod's own value, then each container's; an inherited one is not repeated."""
        get = reader(row.at)
        pod_at = row.pod_at or (row.at if row.shape == AMOUNT and "resources" in view.spec else ())
        if pod_at:
            inherited = self.entry(row, (*view.spec_path, *pod_at), reader(pod_at)(view.spec))
            inherited.key = "the pod"
            yield inherited
        bound = view.everyone if row.binding is Binding.SAFETY else view.containers
        for container in in_turn(view, bound):
            entry = self.entry(row, (*container.path, *row.at), get(container.body))
            entry.key = container.name
            if entry.value is ABSENT and isinstance(row.absent, bool | str):
                entry.note = f"without a value it is {str(row.absent).lower()}"
            yield entry

    def item_entries(self, view: PodView, row: Field, binding: ItemsField) -> Iterator[Entry]:
        """Every item of the pod, then the policy's items that are not there."""
        natives = [
            each for each in binding.store.read(view) if not binding.store.belongs_elsewhere(each)
        ]
        for native in natives:
            yield self.item(row, native)
        left_out = binding.excluded(view, self.ev)
        for item in binding.items:
            if not any(binding.same(item, native) for native in natives):
                note = "left out by the annotation podgate.dev/exclude"
                yield Entry(
                    view.location.place,
                    ABSENT,
                    UNSET,
                    key=item.key,
                    note=note if item.key in left_out else "",
                )

    def item(self, row: Field, native: NativeItem) -> Entry:
        """One item with its attributes."""
        entry = self.entry(row, native.path, native.raw)
        entry.key = native.key
        for name, values in native.values.items():
            if name in native.unseen:
                continue
            places = native.at.get(name, ())
            for position, value in enumerate(values):
                path = places[position] if position < len(places) else native.path
                source, by = (
                    self.source(path) if read(self.document, path) is not ABSENT else (UNSET, None)
                )
                if source != UNSET:
                    shown = None if row.secret and name != "name" else plain(row, name, value)
                    entry.attributes.append(AttributeEntry(name, shown, path, source, by))
        entry.value = None if row.secret else item_value(native, entry.attributes)
        return entry

    # The workload

    def workload(self) -> list[FieldReport]:
        """The fields of the object as a whole, and the replicas of every component."""
        leaves = {each.field: each for each in self.leaves.of_workload()}
        pairs = component_roles(self.definition) or [("", ("worker",))]
        effectives = [self.plan.effective(*each) for each in pairs]
        fields: list[FieldReport] = []
        for row in TABLE.fields.values():
            if row.shape == SCALE:
                fields += self.scales(row)
            elif is_of_workload(row):
                leaf = united(row.path, effectives) or Leaf(row.path)
                said = (leaves[row.path],) if row.path in leaves else ()
                entries = self.workload_entries(row, leaf)
                if said or any(each.value is not ABSENT for each in entries):
                    reach = reach_of(self.definition, "", row)
                    for each in entries:
                        self.tell_computed(each, row, self.plan.workload, self.before)
                        tell_reach(each, *reach)
                    fields.append(FieldReport(row.path, row.secret, said, entries))
        return fields

    def workload_entries(self, row: Field, leaf: Leaf) -> list[Entry]:
        """The values of one field of the workload; one unset entry where there is none."""
        held = self.definition.profile.fields.get(row.path)
        if row.shape == WORKLOAD_ITEMS:
            return self.listed_entries(row, leaf)
        if row.shape not in (WORKLOAD, PRIORITY):
            return [Entry((), ABSENT, UNSET)]
        if held is not None and held.derived is not None:
            return [Entry((), held.derived, KIND, note="follows from the kind")]
        binding = workload_binding(self.plan, row, leaf)
        places: Sequence[Place] = binding.seen(self.ev, self.document, self.views)
        if held is not None and held.scale_of is not None:
            entries = [self.counted(row, each, "") for each in places]
        else:
            entries = [self.entry(row, each.path, each.value) for each in places]
        present = [each for each in entries if each.value is not ABSENT]
        return present or entries[:1] or [Entry((), ABSENT, UNSET)]

    def listed_entries(self, row: Field, leaf: Leaf) -> list[Entry]:
        """The items of an annotation; one unset entry where it has none or cannot be read."""
        binding = AnnotationItemsField(row, leaf, {})
        view = binding.view(self.ev, self.document)
        found = [] if view is None else list(self.item_entries(view, row, binding.items))
        return found or [Entry((), ABSENT, UNSET)]

    def scales(self, row: Field) -> Iterator[FieldReport]:
        """The replicas of each component of which a policy bounds them."""
        for component, roles in component_roles(self.definition):
            leaves = self.leaves.of(component, roles)
            said = tuple(each for each in leaves if each.field == row.path)
            locate = scale_places(self.definition, component, roles)
            places = locate(self.ev, self.document) if said else ()
            entries = [self.counted(row, each, each.key) for each in places]
            if said:
                yield FieldReport(row.path, row.secret, said, entries)

    # Sources

    def entry(self, row: Field, path: Path, native: Any, key: str = "") -> Entry:
        """A value with its place and source."""
        if native is None:
            return Entry(path, ABSENT, UNSET, key=key)
        source, by = self.source(path)
        return Entry(path, None if row.secret else native, source, by, key)

    def counted(self, row: Field, place: Place, key: str) -> Entry:
        """A number of replicas, which may be no single place's: bounds and absence count too."""
        entry = self.entry(row, place.path, place.value, key)
        if entry.value is not ABSENT and read(self.document, place.path) != entry.value:
            entry.source, entry.by = COMPUTED, None
            entry.note = "counted from replicas and their bounds, or what absence means"
        return entry

    def source(self, path: Path) -> tuple[str, Source | None]:
        """Where the value at a place of the completed object comes from."""
        for size in range(len(path), 0, -1):
            change = self.changes.get(path[:size])
            if change is not None:
                return SOURCES.get(change.why, change.why), change.source
        if read(self.document, path) is ABSENT:
            return COMPUTED, None
        written = contains(self.request.raw, self.document, path)
        return (REQUEST if written else SERVER), None

    def tell_computed(self, entry: Entry, row: Field, steps: Steps, subject: Any) -> None:
        """Tell a computed default from a static one, and a default that was brought in line."""
        if entry.source != DEFAULT:
            return
        binding = next((each for each in steps.fill if each.field is row), None)
        if binding is None or not hasattr(binding, "rules"):
            return
        rules = binding.rules
        if isinstance(binding, ComputedField):
            rules = binding.resolved(subject, self.ev).rules
            if rules.default is not binding.rules.default:
                entry.source = DEFAULT_FROM
                entry.note = f"{binding.source.field.path} x {factor_text(binding.factor)}"
        default = rules.default
        amount = row.shape == AMOUNT and default is not None and entry.value is not None
        if amount and rules.read(entry.value) != default.value:
            part = "request" if row.at[1] == "limits" else "limit"
            entry.note = f"{rules.show(default.value)}, brought in line with the {part}"

    # Violations

    def attach(self, violation: Violation, result: ObjectReport) -> bool:
        """Put a violation beside the value that it is about; False where there is none."""
        path = violation.path
        if self.ev.findings.violations and self.is_of_request(violation):
            path = moved(path, self.request.object, self.document)
        entry = nearest(violation.field, path, violation.key, result)
        if entry is not None:
            entry.violations.append(violation)
        return entry is not None

    def is_of_request(self, violation: Violation) -> bool:
        """Whether the place is one of the request, before defaults moved list items."""
        row = rule_table.TABLE.get(violation.rule)
        return row is not None and row.stage == rule_table.INTENT


def in_turn(view: PodView, containers: Iterable[Container]) -> list[Container]:
    """The main container, then the others."""
    return sorted(containers, key=lambda each: each is not view.main)


def plain(row: Field, name: str, value: Any) -> Any:
    """An attribute's value as people write it: amounts with their unit, what is unreadable as is."""
    if isinstance(value, Unreadable):
        return value.raw
    attribute = row.items.attribute(name) if row.items is not None else None
    if attribute is None or attribute.codec is None or isinstance(value, str):
        return value
    return attribute.codec.show(value)


def item_value(native: NativeItem, attributes: Iterable[AttributeEntry]) -> Any:
    """What an item is to people: a plain value, or its attributes, lists where mounts differ."""
    if not isinstance(native.raw, dict | list):
        return native.raw
    found: dict[str, list[Any]] = {}
    for each in attributes:
        known = found.setdefault(each.name, [])
        if each.name != "name" and each.value not in known:
            known.append(each.value)
    shown = {
        name: values[0] if len(values) == 1 else values for name, values in found.items() if values
    }
    return shown or native.key


def tell_reach(entry: Entry, reach: str, why: str) -> None:
    """Say of an unset field why the kind cannot carry it."""
    if why and (entry.value is ABSENT or reach == FORBIDDEN):
        entry.note = why


def moved(path: Path, before: Any, after: Any) -> Path:
    """The place in the completed object that a place of the request has become."""
    result: list[str | int] = []
    for index, step in enumerate(path):
        if isinstance(step, int) and isinstance(before, list) and isinstance(after, list):
            if not step < len(before):
                return (*result, *path[index:])
            before = before[step]
            step = position_of(before, after, step)
            after = after[step] if step < len(after) else ABSENT
        elif isinstance(before, dict) and isinstance(after, dict):
            before, after = before.get(str(step)), after.get(str(step))
        else:
            return (*result, *path[index:])
        result.append(step)
    return tuple(result)


def position_of(element: Any, elements: list[Any], position: int) -> int:
    """Where an element, or its changed copy, stands now."""
    for index, each in enumerate(elements):
        if each is element:
            return index
    name = element.get("name") if isinstance(element, dict) else None
    for index, each in enumerate(elements):
        if name is not None and isinstance(each, dict) and each.get("name") == name:
            return index
    return position


def fields_of(result: ObjectReport) -> Iterator[tuple[Path, FieldReport]]:
    """Every field with the place of its pod, () for the workload's."""
    for pod in result.pods:
        for each in pod.fields:
            yield pod.path, each
    for each in result.workload:
        yield (), each


def nearest(name: str, path: Path, key: str, result: ObjectReport) -> Entry | None:
    """The value that a finding is about: of its field, at its place or else the nearest one."""
    best: tuple[tuple[int, ...], Entry] | None = None
    for place, each in fields_of(result):
        if name != each.field and not name.startswith(f"{each.field}."):
            continue
        for entry in each.entries:
            common = shared(path, entry.path)
            if common < min(len(place), len(path)):
                continue
            exact = path == entry.path or any(a.path == path for a in entry.attributes)
            score = (int(exact), int(bool(key) and key == entry.key), common)
            if best is None or score > best[0]:
                best = (score, entry)
    return best[1] if best is not None else None


def shared(one: Path, other: Path) -> int:
    """How many steps two places have in common."""
    count = 0
    for mine, theirs in zip(one, other, strict=False):
        if mine != theirs:
            break
        count += 1
    return count


def attach_warning(warning: Warning, result: ObjectReport) -> bool:
    """Put a warning beside the value that it is about; False where there is none."""
    if not warning.field:
        return False
    entry = nearest(warning.field, warning.path, "", result)
    if entry is not None:
        entry.warnings.append(warning)
    return entry is not None
