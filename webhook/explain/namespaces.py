"""Explains the effective policy of a namespace, by workload type, with its policies."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from webhook.catalog.catalog import Catalog
from webhook.documents.problem import Source
from webhook.explain.leaves import (
    has_settings,
    in_order,
    ordered_sources,
    report,
    unenforced_values,
    views_of,
)
from webhook.explain.model import ComponentReport
from webhook.pods.definition import Definition
from webhook.policy.combine import WORKER, Effective, Leaf, combine, view
from webhook.policy.policy import EVERYWHERE, ROLES, Policy, level_path
from webhook.policy.selectors import NAME_LABEL
from webhook.policy.table import TABLE

ComponentRoles = tuple[tuple[str, str], ...]
"""Pairs of component and role. ("", "worker") means everything else."""


@dataclass(frozen=True, slots=True)
class TypeReport:
    """The effective policy of the kinds of one workload type that the same policies govern."""

    namespace: str
    workload_type: str
    kinds: tuple[str, ...]
    combination: str
    policies: tuple[Source, ...]
    components: tuple[ComponentReport, ...]


@dataclass(frozen=True, slots=True)
class Group:
    """Kinds of one workload type, "" for none, and the policies that govern all of them."""

    workload_type: str
    definitions: tuple[Definition, ...]
    policies: tuple[Policy, ...]


def groups_of(catalog: Catalog, namespace: str, labels: Mapping[str, str]) -> list[Group]:
    """Group the kinds by workload type and policies, those without a type last."""
    found: dict[tuple[str, tuple[int, ...]], list[Definition]] = {}
    policies: dict[tuple[str, tuple[int, ...]], tuple[Policy, ...]] = {}
    for kind, definitions in sorted(catalog.definitions.items()):
        applying = tuple(catalog.policies_for([kind], namespace, labels))
        key = catalog.workload_type(*kind), tuple(map(id, applying))
        found.setdefault(key, []).append(definitions[0])
        policies[key] = applying
    groups = [Group(key[0], tuple(each), policies[key]) for key, each in found.items()]
    return sorted(groups, key=lambda each: (not each.workload_type, each.workload_type))


def find_component_roles(policies: Sequence[Policy]) -> ComponentRoles:
    """Return the roles and components that policies distinguish, and everything else."""
    levels = dict.fromkeys(
        level
        for each in policies
        for table in (each.body.defaults, each.body.items, each.body.rules, each.body.imposed)
        for level in table
        if level != EVERYWHERE
    )
    named = [level.partition(":") for level in levels]
    roles = [role for role in ROLES if any(each[::2] == ("role", role) for each in named)]
    component_roles = [("", role) for role in roles if role != WORKER]
    component_roles += [(name, WORKER) for kind, _, name in named if kind == "component"]
    return (*component_roles, ("", WORKER))


def explain_namespace(
    catalog: Catalog, namespace: str, labels: Mapping[str, str]
) -> list[TypeReport]:
    """Return one report for each workload type, or more if its kinds have different policies."""
    return [
        TypeReport(
            namespace,
            group.workload_type,
            tuple(name_of(each) for each in group.definitions),
            catalog.combination,
            ordered_sources(group.policies),
            tuple(components_of(group, catalog)),
        )
        for group in groups_of(catalog, namespace, labels)
    ]


def name_of(definition: Definition) -> str:
    """Return Kind.group, or the kind alone in the core group."""
    interface = definition.interface
    return f"{interface.kind}.{interface.group}" if interface.group else interface.kind


def components_of(group: Group, catalog: Catalog) -> Iterator[ComponentReport]:
    """Yield the leaves by component and role, whether or not the kinds support them."""
    enforced = [each for each in group.policies if each.enforcement == "Enforce"]
    for component, role in find_component_roles(group.policies):
        views = views_of(enforced, (role,), component)
        effective = combine(views, catalog.combination, catalog.assets)
        tried: Effective = {}
        if len(enforced) != len(group.policies):
            every = views_of(group.policies, (role,), component)
            tried = combine(every, catalog.combination, catalog.assets)
        leaves = []
        for path in in_order({*effective, *tried}):
            leaf = effective.get(path, Leaf(path))
            setting = report(leaf, effective, views, catalog.assets, catalog.combination)
            setting = replace(setting, unenforced=unenforced_values(tried.get(path)))
            if leaf.constraints or has_settings(setting):
                leaves.append(setting)
        yield ComponentReport(component, role, "", tuple(leaves))


def policies_in(catalog: Catalog, namespace: str, labels: Mapping[str, str]) -> list[Policy]:
    """Return the policies that apply to some kind in a namespace."""
    found = {
        id(each): each for group in groups_of(catalog, namespace, labels) for each in group.policies
    }
    return [each for each in catalog.policies if id(each) in found]


class InForce:
    """Finds settings without effect in a namespace, by removing each and comparing the result."""

    def __init__(self, catalog: Catalog, namespace: str, labels: Mapping[str, str]) -> None:
        self.catalog = catalog
        self.groups = groups_of(catalog, namespace, labels)
        self.current: dict[int, Policy] = {}
        self.wanted = self.effect()

    def without_lost(self, policy: Policy, written: dict[str, Any], namespace: str) -> Any:
        """Return the written policy for this namespace alone, without settings that have no effect there."""
        document = bound(written, namespace)
        for section, level, field in list_settings(policy):
            before = self.current.get(id(policy), policy)
            after = replace(before, body=less(before, section, level, field))
            if self.effect(policy, after) == self.wanted:
                self.current[id(policy)] = after
                remove(document["spec"], (section, *map(str, level_path(level)), *field.split(".")))
        return document

    def effect(self, changed: Policy | None = None, to: Policy | None = None) -> list[Any]:
        """Return the effective policies, enforced and not, with one policy replaced."""
        found = []
        for group in self.groups:
            now = [
                to if each is changed and to is not None else self.current.get(id(each), each)
                for each in group.policies
            ]
            enforced = [each for each in now if each.enforcement == "Enforce"]
            component_roles = find_component_roles(group.policies)
            for some in (enforced, now):
                found += [
                    outcome(some, component_role, self.catalog)
                    for component_role in component_roles
                ]
        return found


def outcome(policies: Sequence[Policy], component_role: tuple[str, str], catalog: Catalog) -> Any:
    """Return the effective policy of one component as comparable values with their sources."""
    component, role = component_role
    views = [view(each, (role,), component) for each in policies]
    leaves = combine(views, catalog.combination, catalog.assets).values()
    return [
        (
            leaf.path,
            sorted(
                (each.rule, repr(each.argument), repr(each.source)) for each in leaf.constraints
            ),
            leaf.default,
            leaf.items,
        )
        for leaf in leaves
        if leaf.constraints or leaf.default or leaf.items
    ]


def list_settings(policy: Policy) -> list[tuple[str, str, str]]:
    """Return section, level and field of every setting of a policy."""
    body = policy.body
    found = {
        (section, level, TABLE.owner(path).path)
        for section, table in (
            ("defaults", body.defaults),
            ("defaults", body.items),
            ("rules", body.rules),
        )
        for level, leaves in table.items()
        for path in leaves
    }
    return sorted(found)


def less(policy: Policy, section: str, level: str, field: str) -> Any:
    """Return the body of a policy without one field at one level of a section."""

    def cut(table: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
        return {
            each: {
                path: setting
                for path, setting in leaves.items()
                if (each, TABLE.owner(path).path) != (level, field)
            }
            for each, leaves in table.items()
        }

    body = policy.body
    if section == "rules":
        return replace(body, rules=cut(body.rules))
    return replace(body, defaults=cut(body.defaults), items=cut(body.items))


def bound(written: dict[str, Any], namespace: str) -> dict[str, Any]:
    """Return a written policy limited to one namespace."""
    document = copy.deepcopy(written)
    spec = document["spec"]
    if not document["metadata"].get("namespace"):
        spec.pop("excludeNamespaces", None)
        spec["namespaceSelector"] = {"matchLabels": {NAME_LABEL: namespace}}
    return document


def remove(tree: dict[str, Any], path: Sequence[str]) -> None:
    """Remove a path from nested maps, and the maps that become empty."""
    first, *rest = path
    if first not in tree:
        return
    if rest:
        remove(tree[first], rest)
    if not rest or not tree[first]:
        del tree[first]
