"""The effective policy of a kind: every leaf with what is said of it, and where it lands."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import takewhile
from typing import Any

from webhook.catalog.catalog import Plans
from webhook.catalog.plan import component_roles
from webhook.documents.problem import Source
from webhook.explain.kinds import names_component
from webhook.explain.model import ENFORCE, ComponentReport, ItemSaid, KindReport, LeafReport, Said
from webhook.explain.overridden import explained, lost_attributes, lost_rules
from webhook.explain.support import is_of_workload, reach_of
from webhook.explain.values import attributes_of, default_of, rule_said
from webhook.pods.component_plan import pod_parts
from webhook.pods.definition import Definition
from webhook.policy.combine import RANK, Effective, Leaf, View, view
from webhook.policy.merge_components import united
from webhook.policy.policy import Asset, Policy
from webhook.policy.table import TABLE


def explain_kind(
    definition: Definition, version: str, namespace: str, plans: Plans, component: str = ""
) -> KindReport:
    """The effective policy of a kind, of one component (or role) where it is named."""
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
    """Every policy that reaches the kind, those on trial included, the broadest scope first."""
    return ordered_sources((plans.trial or plans.enforced).policies)


def ordered_sources(policies: Iterable[Policy]) -> tuple[Source, ...]:
    """How policies are named, the broadest scope first."""
    ordered = sorted(policies, key=lambda each: (RANK[each.scope], each.namespace, each.name))
    return tuple(each.source for each in ordered)


def pods_at(definition: Definition, component: str) -> str:
    """Where the pods of a component are; the nearest common place of one that is in pieces."""
    found = definition.interface.component(component)
    if found is None:
        return ""
    if found.places is not None:
        return found.places.text
    pieces = [each.place.text.split(".") for each in pod_parts(found, definition.profile)]
    if not pieces:
        return ""
    shared = list(takewhile(lambda steps: len(set(steps)) == 1, zip(*pieces, strict=False)))
    # One piece alone has its own last step in common with itself.
    shared = shared[:-1] if len(pieces) == 1 else shared
    return f"{'.'.join(steps[0] for steps in shared) or '.'} (in fragments)"


class Leaves:
    """Reports of leaves by component and roles, each made once."""

    def __init__(self, plans: Plans) -> None:
        self.plans = plans
        self.definition = plans.enforced.definition
        self.made: dict[tuple[str, tuple[str, ...]], tuple[LeafReport, ...]] = {}

    def of(self, component: str, roles: tuple[str, ...]) -> tuple[LeafReport, ...]:
        """The leaves that stand in a component's pods, and its replicas, in the table's order."""
        key = (component, roles)
        if key not in self.made:
            self.made[key] = tuple(
                each
                for each in self.every(component, roles)
                if not is_of_workload(self.definition, TABLE.owner(each.field))
            )
        return self.made[key]

    def every(self, component: str, roles: tuple[str, ...]) -> Iterator[LeafReport]:
        """All leaves that some policy names for a component, those on trial alone included."""
        plan, trial = self.plans.enforced, self.plans.trial
        effective = plan.effective(component, roles)
        tried = trial.effective(component, roles) if trial is not None else {}
        views = views_of(plan.policies, roles, component)
        for path in in_order({*effective, *tried}):
            leaf = effective.get(path, Leaf(path))
            said = report(leaf, effective, views, plan.assets, plan.combination)
            reach, why = reach_of(plan, component, path)
            extra = on_trial(tried.get(path)) if path in tried else ()
            found = replace(said, reach=reach, why=why, trial=extra)
            if leaf.constraints or says_something(found):
                yield found

    def of_workload(self) -> tuple[LeafReport, ...]:
        """The leaves of the workload as a whole: what is said for any component counts."""
        pairs = component_roles(self.definition) or [("", ("worker",))]
        found: dict[str, LeafReport] = {}
        for component, roles in pairs:
            for each in self.every(component, roles):
                if is_of_workload(self.definition, TABLE.owner(each.field)):
                    known = found.get(each.field)
                    found[each.field] = each if known is None else joined(known, each)
        plan = self.plans.enforced
        effectives = [plan.effective(*each) for each in pairs]
        for path, each in found.items():
            leaf = united(path, effectives)
            if leaf is not None and leaf.default is not None:
                found[path] = replace(each, default=default_of(leaf))
            if leaf is not None and leaf.items:
                found[path] = replace(found[path], items=items_of(leaf))
        return tuple(found[path] for path in in_order(found))


def says_something(leaf: LeafReport) -> bool:
    """Whether there is anything to tell about a leaf."""
    return bool(leaf.default or leaf.rules or leaf.items or leaf.lost or leaf.trial)


def joined(one: LeafReport, other: LeafReport) -> LeafReport:
    """One leaf of two components: what both say, once."""

    def both(name: str) -> tuple[Any, ...]:
        first, second = getattr(one, name), getattr(other, name)
        return (*first, *(each for each in second if each not in first))

    return replace(one, rules=both("rules"), lost=both("lost"), trial=both("trial"))


def views_of(policies: Iterable[Policy], roles: Iterable[str], component: str) -> list[View]:
    """Policies as they apply to one component."""
    return [view(policy, roles, component) for policy in policies]


def in_order(paths: Iterable[str]) -> list[str]:
    """Leaves in the table's order, attributes behind the field that holds them."""
    order = {path: index for index, path in enumerate(TABLE.fields)}
    return sorted(paths, key=lambda path: (order[TABLE.owner(path).path], path))


def report(
    leaf: Leaf,
    effective: Effective,
    views: Sequence[View],
    assets: Mapping[str, Asset],
    combination: str,
) -> LeafReport:
    """What is said at one leaf of the enforced policy, and what lost."""
    path = leaf.path
    lost = (
        *(explained(each, leaf, views, assets) for each in leaf.lost),
        *lost_rules(path, views, combination),
        *lost_attributes(leaf, effective, views),
    )
    return LeafReport(
        path,
        TABLE.owner(path).secret,
        default=default_of(leaf),
        rules=tuple(rule_said(path, each) for each in leaf.constraints),
        items=items_of(leaf),
        lost=lost,
    )


def items_of(leaf: Leaf) -> tuple[ItemSaid, ...]:
    """The default and imposed items of a leaf, with their locks."""
    secret, locked = TABLE.owner(leaf.path).secret, leaf.of("locked")
    return tuple(
        ItemSaid(
            each.key,
            attributes_of(each.attributes, secret=secret),
            each.source,
            each.imposed,
            each.asset_id,
            each.imposed or any({each.key, each.asset_id} & set(c.argument) for c in locked),
        )
        for each in leaf.items
    )


def on_trial(leaf: Leaf | None) -> tuple[Said, ...]:
    """What policies say that only warn or audit."""
    if leaf is None:
        return ()
    said = [rule_said(leaf.path, each) for each in leaf.constraints]
    default = default_of(leaf)
    if default is not None:
        said.insert(0, default)
    said += [Said(f"item {each.key}", None, each.source) for each in leaf.items]
    return tuple(each for each in said if each.source.enforcement != ENFORCE)
