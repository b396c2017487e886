"""The whole effective policy of a namespace, by workload type, and the policies that say it."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from webhook.catalog.catalog import Catalog
from webhook.documents.problem import Source
from webhook.explain.leaves import (
    in_order,
    on_trial,
    ordered_sources,
    report,
    says_something,
    views_of,
)
from webhook.explain.model import ComponentReport
from webhook.pods.definition import Definition
from webhook.policy.combine import WORKER, Effective, Leaf, combine, view
from webhook.policy.policy import EVERYWHERE, ROLES, Policy, level_path
from webhook.policy.selectors import NAME_LABEL
from webhook.policy.table import TABLE

Parts = tuple[tuple[str, str], ...]
"""Components with the role that each has there; ("", "worker") is everything else."""


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
    """The kinds by workload type and policies, those without a type last."""
    found: dict[tuple[str, tuple[int, ...]], list[Definition]] = {}
    policies: dict[tuple[str, tuple[int, ...]], tuple[Policy, ...]] = {}
    for kind, definitions in sorted(catalog.definitions.items()):
        applying = tuple(catalog.policies_for([kind], namespace, labels))
        key = catalog.workload_type(*kind), tuple(map(id, applying))
        found.setdefault(key, []).append(definitions[0])
        policies[key] = applying
    groups = [Group(key[0], tuple(each), policies[key]) for key, each in found.items()]
    return sorted(groups, key=lambda each: (not each.workload_type, each.workload_type))


def parts_of(policies: Sequence[Policy]) -> Parts:
    """The roles and components that policies tell apart, and everything else."""
    levels = dict.fromkeys(
        level
        for each in policies
        for table in (each.body.defaults, each.body.items, each.body.rules, each.body.imposed)
        for level in table
        if level != EVERYWHERE
    )
    named = [level.partition(":") for level in levels]
    roles = [role for role in ROLES if any(each[::2] == ("role", role) for each in named)]
    parts = [("", role) for role in roles if role != WORKER]
    parts += [(name, WORKER) for kind, _, name in named if kind == "component"]
    return (*parts, ("", WORKER))


def explain_namespace(
    catalog: Catalog, namespace: str, labels: Mapping[str, str]
) -> list[TypeReport]:
    """One report for each workload type, or more where kinds of it have policies of their own."""
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
    """Kind.group, or the kind alone in the core group."""
    interface = definition.interface
    return f"{interface.kind}.{interface.group}" if interface.group else interface.kind


def components_of(group: Group, catalog: Catalog) -> Iterator[ComponentReport]:
    """The leaves by component and role, whatever the kinds can carry."""
    enforced = [each for each in group.policies if each.enforcement == "Enforce"]
    for component, role in parts_of(group.policies):
        views = views_of(enforced, (role,), component)
        effective = combine(views, catalog.combination, catalog.assets)
        tried: Effective = {}
        if len(enforced) != len(group.policies):
            every = views_of(group.policies, (role,), component)
            tried = combine(every, catalog.combination, catalog.assets)
        leaves = []
        for path in in_order({*effective, *tried}):
            leaf = effective.get(path, Leaf(path))
            said = report(leaf, effective, views, catalog.assets, catalog.combination)
            said = replace(said, trial=on_trial(tried.get(path)))
            if leaf.constraints or says_something(said):
                leaves.append(said)
        yield ComponentReport(component, role, "", tuple(leaves))


def policies_in(catalog: Catalog, namespace: str, labels: Mapping[str, str]) -> list[Policy]:
    """The policies that apply in a namespace to some kind."""
    found = {
        id(each): each for group in groups_of(catalog, namespace, labels) for each in group.policies
    }
    return [each for each in catalog.policies if id(each) in found]


class InForce:
    """Finds what policies say without effect in a namespace, by leaving it out for trial."""

    def __init__(self, catalog: Catalog, namespace: str, labels: Mapping[str, str]) -> None:
        self.catalog = catalog
        self.groups = groups_of(catalog, namespace, labels)
        self.current: dict[int, Policy] = {}
        self.wanted = self.effect()

    def without_lost(self, policy: Policy, written: dict[str, Any], namespace: str) -> Any:
        """The written policy for this namespace alone, without what has no effect there."""
        document = bound(written, namespace)
        for section, level, field in said_by(policy):
            before = self.current.get(id(policy), policy)
            after = replace(before, body=less(before, section, level, field))
            if self.effect(policy, after) == self.wanted:
                self.current[id(policy)] = after
                remove(document["spec"], (section, *map(str, level_path(level)), *field.split(".")))
        return document

    def effect(self, changed: Policy | None = None, to: Policy | None = None) -> list[Any]:
        """All that the policies enforce and try, with one of them changed."""
        found = []
        for group in self.groups:
            now = [
                to if each is changed and to is not None else self.current.get(id(each), each)
                for each in group.policies
            ]
            enforced = [each for each in now if each.enforcement == "Enforce"]
            parts = parts_of(group.policies)
            for some in (enforced, now):
                found += [outcome(some, part, self.catalog) for part in parts]
        return found


def outcome(policies: Sequence[Policy], part: tuple[str, str], catalog: Catalog) -> Any:
    """The effective policy of one component, as what it decides and who says it."""
    component, role = part
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


def said_by(policy: Policy) -> list[tuple[str, str, str]]:
    """Section, level and field of everything that a policy says."""
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
    """The body of a policy without one field at one level of a section."""

    def cut(table: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
        return {
            each: {
                path: said
                for path, said in leaves.items()
                if (each, TABLE.owner(path).path) != (level, field)
            }
            for each, leaves in table.items()
        }

    body = policy.body
    if section == "rules":
        return replace(body, rules=cut(body.rules))
    return replace(body, defaults=cut(body.defaults), items=cut(body.items))


def bound(written: dict[str, Any], namespace: str) -> dict[str, Any]:
    """A written policy that applies to one namespace alone."""
    document = copy.deepcopy(written)
    spec = document["spec"]
    if not document["metadata"].get("namespace"):
        spec.pop("excludeNamespaces", None)
        spec["namespaceSelector"] = {"matchLabels": {NAME_LABEL: namespace}}
    return document


def remove(tree: dict[str, Any], path: Sequence[str]) -> None:
    """Take a place out of nested maps, and the maps that are empty then."""
    first, *rest = path
    if first not in tree:
        return
    if rest:
        remove(tree[first], rest)
    if not rest or not tree[first]:
        del tree[first]
