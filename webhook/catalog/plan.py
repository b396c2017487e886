"""Effective policy × interface × profile, compiled once for all requests that share them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from webhook.devices.definitions import has_devices
from webhook.evaluation.installation import InstallationConfig
from webhook.evaluation.server_defaults import KindDefaults
from webhook.fields.companions import ordered_fields
from webhook.fields.handler import CompiledField, FieldHandler, FieldSource
from webhook.fields.registry import POD_HANDLERS, WORKLOAD_HANDLERS
from webhook.fields.steps import Fields, Steps, steps_of
from webhook.fields.unmapped import ForbiddenDefault, ForbiddenRule
from webhook.pods.definition import Definition
from webhook.pods.pod_view import PodView
from webhook.policy.combine import GUARDED, Effective, Leaf, combine, view
from webhook.policy.merge_components import merge_leaf
from webhook.policy.policy import Asset, Policy
from webhook.policy.row import Field
from webhook.policy.rules.requirements import Required
from webhook.policy.table import TABLE

Pods = Sequence[PodView]


@dataclass(slots=True)
class Plan:
    """The compiled policies for one kind. Pods are compiled per component and roles."""

    definition: Definition
    policies: tuple[Policy, ...]
    combination: str
    assets: Mapping[str, Asset]
    config: InstallationConfig
    server: KindDefaults
    workload: Steps[Pods] = field(default_factory=Steps)
    strict: bool = False
    pods: dict[tuple[str, tuple[str, ...]], Steps[PodView]] = field(default_factory=dict)

    def effective(self, component: str, roles: tuple[str, ...]) -> dict[str, Leaf]:
        """Return the effective policy of one component."""
        views = [view(policy, roles, component) for policy in self.policies]
        return combine(views, self.combination, self.assets)

    def source(
        self,
        row: Field,
        effective: Effective,
        component: str = "",
        roles: tuple[str, ...] = (),
    ) -> FieldSource:
        """Return the source of a field. One that no policy names has no rules."""
        leaf = effective.get(row.path, Leaf(row.path))
        definition, server, config = self.definition, self.server, self.config
        return FieldSource(row, leaf, effective, component, roles, definition, server, config)

    def pod(self, component: str, roles: tuple[str, ...]) -> Steps[PodView]:
        """Return the compiled steps for the pods of one component."""
        key = (component, roles)
        steps = self.pods.get(key)
        if steps is None:
            effective = self.effective(component, roles)
            steps = self.pods[key] = pod_steps(self, effective, component, roles)
        return steps


def compile_plan(
    policies: Sequence[Policy],
    definition: Definition,
    combination: str = GUARDED,
    assets: Mapping[str, Asset] | None = None,
    config: InstallationConfig | None = None,
    server: KindDefaults | None = None,
) -> Plan:
    """Return the plan of these policies for one kind and version."""
    plan = Plan(
        definition,
        tuple(policies),
        combination,
        assets or {},
        config or InstallationConfig(),
        server or KindDefaults(),
    )
    plan.strict = any(not policy.tolerates_existing for policy in policies)
    plan.workload = workload_steps(plan)
    for component, roles in component_roles(definition):
        plan.pod(component, roles)
    return plan


def component_roles(definition: Definition) -> list[tuple[str, tuple[str, ...]]]:
    """Return every pair of component with pods and roles that the definition knows in advance."""
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


def pod_steps(
    plan: Plan, effective: Effective, component: str, roles: tuple[str, ...]
) -> Steps[PodView]:
    """Compile the pod fields of one component."""
    fields: Fields[PodView] = {}
    forbidden = forbidden_fields(plan, effective)
    for row in named_rows(effective):
        source = plan.source(row, effective, component, roles)
        if row.path in forbidden:
            rest = tuple(each for each in source.leaf.constraints if not each.type.requires_value)
            source = replace(source, leaf=replace(source.leaf, items=(), constraints=rest))
        field = POD_HANDLERS[row.shape].compile(source)
        if field is not None:
            fields[row.path] = field

    def unnamed(path: str) -> CompiledField[PodView] | None:
        handler = handler_feeding_defaults(path, POD_HANDLERS)
        return None if handler is None else handler.compile(plan.source(TABLE.fields[path], {}))

    return without_forbidden(steps_of(fields, unnamed), forbidden)


def forbidden_fields(plan: Plan, effective: Effective) -> dict[str, Leaf]:
    """Return the leaves of fields that the kind refuses, by path."""
    sources = (
        plan.source(TABLE.fields[path], effective)
        for path in sorted(effective)
        if path in TABLE.fields
    )
    return {each.row.path: each.leaf for each in sources if each.is_forbidden()}


Handler = TypeVar("Handler", bound=FieldHandler[Any])


def handler_feeding_defaults(path: str, handlers: Mapping[str, Handler]) -> Handler | None:
    """Return the handler of a field that defaults are computed from though no policy names it."""
    row = TABLE.fields.get(path)
    handler = None if row is None else handlers.get(row.shape)
    return handler if handler is not None and handler.feeds_defaults else None


def named_rows(effective: Effective) -> Iterable[Field]:
    """Return the rows with a pod handler that the policy names, also by an attribute, in table order."""
    owners = {TABLE.owner(path).path for path in effective}
    rows = (row for row in TABLE.fields.values() if row.path in owners)
    return (row for row in rows if row.shape in POD_HANDLERS)


def without_forbidden(steps: Steps[PodView], forbidden: Mapping[str, Leaf]) -> Steps[PodView]:
    """Return the steps without defaults for fields that the kind refuses, with a warning for each.

    Nobody can satisfy `required` there, so that is a warning too.
    """
    rows = {path: TABLE.fields[path] for path in forbidden}
    unmet: list[CompiledField[PodView]] = [
        ForbiddenRule(rows[path], rules)
        for path, leaf in forbidden.items()
        if (rules := leaf.of(Required))
    ]
    warned: list[CompiledField[PodView]] = [
        ForbiddenDefault(rows[path])
        for path, leaf in forbidden.items()
        if leaf.default is not None or leaf.items
    ]
    if unmet:
        steps = replace(steps, final=(*steps.final, *unmet))
    if not warned:
        return steps
    return replace(
        steps,
        fill=(*(each for each in steps.fill if each.row.path not in forbidden), *warned),
        locked=tuple(each for each in steps.locked if each.row.path not in forbidden),
        needed=tuple(each for each in steps.needed if each.row.path not in forbidden),
    )


def workload_steps(plan: Plan) -> Steps[Pods]:
    """Compile the fields of the workload as a whole. The rules of every component apply."""
    pairs = component_roles(plan.definition) or [("", ("worker",))]
    known = [(component, roles, plan.effective(component, roles)) for component, roles in pairs]
    rows = [row for row in TABLE.fields.values() if concerns(plan, row)]
    rows = [row for row in rows if row.shape in WORKLOAD_HANDLERS]
    effective = merged(rows, [each for _, _, each in known])
    fields: Fields[Pods] = {}
    refused: list[ForbiddenDefault[Pods]] = []
    for row in sorted(rows, key=lambda row: waits(plan, row)):
        handler = WORKLOAD_HANDLERS[row.shape]
        if handler.by_component:
            for component, roles, own in known:
                source = plan.source(row, own, component, roles)
                field = handler.compile(source) if row.path in own else None
                if field is not None:
                    fields[f"{row.path}:{component}:{roles}"] = field
        elif not effective.keys().isdisjoint(leaves_of(row)):
            source = plan.source(row, effective)
            field = handler.compile(source)
            if field is not None:
                fields[row.path] = field
                refused += [ForbiddenDefault(row)] if handler.refuses_default(source) else []

    def unnamed(path: str) -> CompiledField[Pods] | None:
        handler = handler_feeding_defaults(path, WORKLOAD_HANDLERS)
        return None if handler is None else handler.compile(plan.source(TABLE.fields[path], {}))

    steps = steps_of(fields, unnamed)
    ordered = ordered_fields(fields, lambda path: plan.source(TABLE.fields[path], effective))
    return replace(steps, fill=(*steps.fill, *refused), final=(*steps.final, *ordered))


def leaves_of(row: Field) -> list[str]:
    """Return the paths by which policies name a field, itself or by an attribute."""
    attributes = row.items.attributes if row.items is not None else ()
    return [row.path, *(f"{row.path}.{each.name}" for each in attributes)]


def merged(rows: Iterable[Field], effectives: Sequence[Effective]) -> dict[str, Leaf]:
    """Return the leaves of these fields, merged over all components."""
    paths = (path for row in rows for path in leaves_of(row))
    found = {path: merge_leaf(path, effectives) for path in paths}
    return {path: leaf for path, leaf in found.items() if leaf is not None}


def concerns(plan: Plan, row: Field) -> bool:
    """Return whether a field is for this kind: by its workload type, or because the kind has a path.

    A field of other types needs no report here, like a policy for other types. For a kind that only
    wraps others, only fields that all objects have count; the wrapped objects have the rest.
    """
    profile = plan.definition.profile
    handler = WORKLOAD_HANDLERS.get(row.shape)
    of_devices = handler is not None and handler.of_devices
    if has_devices(plan.definition):
        return of_devices
    if of_devices and row.shape not in POD_HANDLERS:
        return False
    of_every_kind = row.at or (handler is not None and handler.of_every_kind)
    if plan.definition.only_wraps and not of_every_kind:
        return row.path in profile.fields
    named = not profile.workload_type or profile.workload_type in row.types
    return named or row.path in profile.fields


def waits(plan: Plan, row: Field) -> bool:
    """Return whether a default of a field depends on values that others may write first."""
    paths = plan.definition.profile.fields.get(row.path)
    if paths is None:
        return False
    selects = any("select(" in each.text for each in paths.write)
    return selects or paths.only_with is not None or paths.not_with is not None
