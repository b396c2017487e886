"""Explains the effective policy of a kind: every leaf with its settings, and where it applies."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import takewhile
from typing import Any

from webhook.catalog.catalog import Plans
from webhook.catalog.plan import component_roles
from webhook.documents.problem import Source
from webhook.explain.kinds import names_component
from webhook.explain.model import (
    ENFORCE,
    ComponentReport,
    ItemSetting,
    KindReport,
    LeafReport,
    Setting,
)
from webhook.explain.overridden import explain_loss, lost_attributes, lost_rules
from webhook.explain.support import find_support
from webhook.explain.values import attributes_of, default_of, rule_setting
from webhook.fields.registry import is_of_workload
from webhook.pods.component_plan import fragment_specs
from webhook.pods.definition import Definition
from webhook.policy.combine import RANK, Effective, Leaf, View, view
from webhook.policy.merge_components import merge_leaf
from webhook.policy.policy import Asset, Policy
from webhook.policy.rules.prohibitions import Locked
from webhook.policy.table import TABLE


def explain_kind(
    definition: Definition, version: str, namespace: str, plans: Plans, component: str = ""
) -> KindReport:
    """Return the effective policy of a kind, or of one component or role."""
    leaves = Leaves(plans)
    interface = definition.interface
    components = tuple(
        ComponentReport(
            name, " and ".join(roles), pods_at(definition, name), leaves.of(name, roles)
        )
        for name, roles in component_roles(definition)
        if names_component(component, name, roles)
    )
    return KindReport(
        interface.group,
        version,
        interface.kind,
        definition.profile.workload_type or "",
        namespace,
        plans.enforced.combination,
        policies_of(plans),
        components,
        leaves.of_workload(),
    )


def policies_of(plans: Plans) -> tuple[Source, ...]:
    """Return every policy that applies to the kind, including warn and audit mode, broadest scope first."""
    return ordered_sources((plans.with_warn or plans.enforced).policies)


def ordered_sources(policies: Iterable[Policy]) -> tuple[Source, ...]:
    """Return the sources of policies, broadest scope first."""
    ordered = sorted(policies, key=lambda each: (RANK[each.scope], each.namespace, each.name))
    return tuple(each.source for each in ordered)


def pods_at(definition: Definition, component: str) -> str:
    """Return the path of a component's pods, or the longest common path of their fragments."""
    found = definition.interface.component(component)
    if found is None:
        return ""
    if found.places is not None:
        return found.places.text
    fragments = [each.place.text.split(".") for each in fragment_specs(found, definition.profile)]
    if not fragments:
        return ""
    shared = list(takewhile(lambda steps: len(set(steps)) == 1, zip(*fragments, strict=False)))
    # A single fragment shares all its steps with itself.
    shared = shared[:-1] if len(fragments) == 1 else shared
    return f"{'.'.join(steps[0] for steps in shared) or '.'} (in fragments)"


class Leaves:
    """Reports of leaves by component and roles, each built once."""

    def __init__(self, plans: Plans) -> None:
        self.plans = plans
        self.definition = plans.enforced.definition
        self.made: dict[tuple[str, tuple[str, ...]], tuple[LeafReport, ...]] = {}

    def of(self, component: str, roles: tuple[str, ...]) -> tuple[LeafReport, ...]:
        """Return the leaves of a component's pods, and its replicas, in the table's order."""
        key = (component, roles)
        if key not in self.made:
            self.made[key] = tuple(
                each
                for each in self.every(component, roles)
                if not is_of_workload(TABLE.owner(each.field), self.definition)
            )
        return self.made[key]

    def every(self, component: str, roles: tuple[str, ...]) -> Iterator[LeafReport]:
        """Yield all leaves that some policy names for a component, including warn and audit mode."""
        plan, with_warn = self.plans.enforced, self.plans.with_warn
        effective = plan.effective(component, roles)
        tried = with_warn.effective(component, roles) if with_warn is not None else {}
        views = views_of(plan.policies, roles, component)
        for path in in_order({*effective, *tried}):
            leaf = effective.get(path, Leaf(path))
            setting = report(leaf, effective, views, plan.assets, plan.combination)
            support, why = find_support(plan, component, path)
            extra = unenforced_values(tried.get(path)) if path in tried else ()
            found = replace(setting, support=support, why=why, unenforced=extra)
            if leaf.constraints or has_settings(found):
                yield found

    def of_workload(self) -> tuple[LeafReport, ...]:
        """Return the leaves of the workload as a whole, merged over all components."""
        pairs = component_roles(self.definition) or [("", ("worker",))]
        found: dict[str, LeafReport] = {}
        for component, roles in pairs:
            for each in self.every(component, roles):
                if is_of_workload(TABLE.owner(each.field), self.definition):
                    known = found.get(each.field)
                    found[each.field] = each if known is None else merge_leaves(known, each)
        plan = self.plans.enforced
        effectives = [plan.effective(*each) for each in pairs]
        for path, each in found.items():
            leaf = merge_leaf(path, effectives)
            if leaf is not None and leaf.default is not None:
                found[path] = replace(each, default=default_of(leaf))
            if leaf is not None and leaf.items:
                found[path] = replace(found[path], items=items_of(leaf))
        return tuple(found[path] for path in in_order(found))


def has_settings(leaf: LeafReport) -> bool:
    """Return whether a leaf has any settings."""
    return bool(leaf.default or leaf.rules or leaf.items or leaf.lost or leaf.unenforced)


def merge_leaves(one: LeafReport, other: LeafReport) -> LeafReport:
    """Merge the reports of one leaf in two components, without duplicates."""

    def both(name: str) -> tuple[Any, ...]:
        first, second = getattr(one, name), getattr(other, name)
        return (*first, *(each for each in second if each not in first))

    return replace(one, rules=both("rules"), lost=both("lost"), unenforced=both("unenforced"))


def views_of(policies: Iterable[Policy], roles: Iterable[str], component: str) -> list[View]:
    """Return the policies as they apply to one component."""
    return [view(policy, roles, component) for policy in policies]


def in_order(paths: Iterable[str]) -> list[str]:
    """Sort leaves in the table's order, attributes after the field that has them."""
    order = {path: index for index, path in enumerate(TABLE.fields)}
    return sorted(paths, key=lambda path: (order[TABLE.owner(path).path], path))


def report(
    leaf: Leaf,
    effective: Effective,
    views: Sequence[View],
    assets: Mapping[str, Asset],
    combination: str,
) -> LeafReport:
    """Report the settings of one leaf of the enforced policy, and those that lost."""
    path = leaf.path
    lost = (
        *(explain_loss(each, leaf, views, assets) for each in leaf.lost),
        *lost_rules(path, views, combination),
        *lost_attributes(leaf, effective, views),
    )
    return LeafReport(
        path,
        TABLE.owner(path).secret,
        default=default_of(leaf),
        rules=tuple(rule_setting(path, each) for each in leaf.constraints),
        items=items_of(leaf),
        lost=lost,
    )


def items_of(leaf: Leaf) -> tuple[ItemSetting, ...]:
    """Return the default and imposed items of a leaf, with their locks."""
    secret, locked = TABLE.owner(leaf.path).secret, leaf.of(Locked)
    return tuple(
        ItemSetting(
            each.key,
            attributes_of(each.attributes, secret=secret),
            each.source,
            each.imposed,
            each.asset_id,
            each.imposed or any({each.key, each.asset_id} & set(c.argument) for c in locked),
        )
        for each in leaf.items
    )


def unenforced_values(leaf: Leaf | None) -> tuple[Setting, ...]:
    """Return the settings of policies in warn or audit mode."""
    if leaf is None:
        return ()
    settings = [rule_setting(leaf.path, each) for each in leaf.constraints]
    default = default_of(leaf)
    if default is not None:
        settings.insert(0, default)
    settings += [Setting(f"item {each.key}", None, each.source) for each in leaf.items]
    return tuple(each for each in settings if each.source.enforcement != ENFORCE)
