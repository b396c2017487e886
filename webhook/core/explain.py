"""Explains the effective policy of a kind: every leaf, who says what, where it lands, what lost.

Nothing is decided here: the plan of a request is taken apart, so that what is told is what holds.
Values of secret fields are None, everything else is ready to be printed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from webhook.core.catalog import Catalog, Plans
from webhook.core.decision import Problem, Source
from webhook.core.plan import Plan, component_roles, united
from webhook.core.policy.combine import (
    DOCUMENTED,
    RANK,
    RULES_OF,
    STRICTEST,
    SYSTEM,
    Constraint,
    Effective,
    EffectiveItem,
    Leaf,
    Lost,
    View,
    constrains,
    constraints_of,
    released,
    view,
)
from webhook.core.policy.fields import PRIORITY, SCALE, TABLE, WORKLOAD, Binding, Field
from webhook.core.policy.model import Asset, Default, DefaultFrom, Policy
from webhook.core.policy.rules import Step
from webhook.core.wording import clean
from webhook.core.workload.locations import Definition
from webhook.core.workload.suggestions import closest

MAPPED, UNMAPPED, FORBIDDEN, NOT_NATIVE = "mapped", "unmapped", "forbidden", "not-native"
ENFORCE = "Enforce"
LOCK = "shut-out-by-lock"
CLOSER = "a closer scope says it"
REASONS: Mapping[str, str] = {
    LOCK: "a lock of a broader scope holds its own default",
    "imposed-twice": "a broader scope imposes an item of that key",
}


@dataclass(frozen=True, slots=True)
class Said:
    """One thing that a policy says: its word (`default`, a rule), the value, and who says it."""

    what: str
    value: Any
    source: Source


@dataclass(frozen=True, slots=True)
class ItemSaid:
    """One default or imposed item; attribute values are None where they are never shown."""

    key: str
    attributes: Mapping[str, Any]
    source: Source
    imposed: bool = False
    asset: str = ""
    locked: bool = False


@dataclass(frozen=True, slots=True)
class LostSaid:
    """Something that a policy says and that is not in force: why, and whose word stands instead."""

    what: str
    value: Any
    source: Source
    reason: str
    to: Source | None


@dataclass(frozen=True, slots=True)
class LeafReport:
    """One leaf of the effective policy; `reach`: whether the kind can carry it, `why` if not."""

    field: str
    secret: bool
    reach: str = MAPPED
    why: str = ""
    default: Said | None = None
    rules: tuple[Said, ...] = ()
    items: tuple[ItemSaid, ...] = ()
    lost: tuple[LostSaid, ...] = ()
    trial: tuple[Said, ...] = ()


@dataclass(frozen=True, slots=True)
class ComponentReport:
    """The leaves of one component in one role; `pods` is where the kind keeps its pods."""

    component: str
    role: str
    pods: str
    leaves: tuple[LeafReport, ...]


@dataclass(frozen=True, slots=True)
class KindReport:
    """The effective policy of a kind in a namespace; `workload` are fields of the whole object."""

    group: str
    version: str
    kind: str
    workload_type: str
    namespace: str
    combination: str
    policies: tuple[Source, ...]
    components: tuple[ComponentReport, ...]
    workload: tuple[LeafReport, ...]


# Kinds


def find_kind(catalog: Catalog, text: str) -> tuple[Definition, str] | Problem:
    """The definition and version that KIND[.group][/version] names, in any letter case."""
    name, _, version = text.partition("/")
    kind, dot, group = name.partition(".")
    known = [each for found in catalog.definitions.values() for each in found]
    named = [each for each in known if kind.casefold() in names_of(each)]
    if not named:
        near = closest(kind, (name for each in known for name in names_of(each)))
        meant = next((each for each in known if near in names_of(each)), None)
        fix = f"did you mean {full_name(meant)}?" if meant else "add a definition: --interfaces"
        return Problem("--kind", "", f"no kind {clean(kind)}", fix, "unknown-kind")
    if dot:
        wanted = "" if group == "core" else group.casefold()
        here = [each for each in named if each.interface.group.casefold() == wanted]
    else:
        here = named
    groups = sorted({full_name(each) for each in named})
    if not here or len({each.interface.group for each in here}) > 1:
        found = f"{clean(name)}, which {'no' if not here else 'more than one'} group has"
        return Problem("--kind", "", found, f"write {' or '.join(groups)}", "unknown-kind")
    versions = {each: one for one in here for each in one.versions}
    newest = max(versions, key=seniority)
    chosen = next((each for each in versions if each.casefold() == version.casefold()), None)
    if version and chosen is None:
        found = f"no definition of {clean(name)} in version {clean(version)}"
        fix = f"write {' or '.join(sorted(versions, key=seniority, reverse=True))}"
        return Problem("--kind", "", found, fix, "unknown-version")
    return versions[chosen or newest], chosen or newest


def names_of(definition: Definition) -> tuple[str, ...]:
    """What a kind is called, in lower case: its kind and its plural."""
    kind, resource = definition.interface.kind.casefold(), definition.profile.resource.casefold()
    return (kind, resource) if resource else (kind,)


def full_name(definition: Definition) -> str:
    """Kind.group, or the kind alone in the core group."""
    interface = definition.interface
    return f"{interface.kind}.{interface.group}" if interface.group else interface.kind


def seniority(version: str) -> tuple[int, int, int, str]:
    """The order of API versions that Kubernetes has: stable before beta before alpha."""
    match = re.fullmatch(r"v(\d+)(?:(alpha|beta)(\d+))?", version)
    if match is None:
        return (-1, 0, 0, version)
    major, level, minor = match.groups()
    return ({"alpha": 0, "beta": 1}.get(level, 2), int(major), int(minor or 0), version)


# Reports


def explain_kind(
    definition: Definition, version: str, namespace: str, plans: Plans, component: str = ""
) -> KindReport:
    """The effective policy of a kind, of one component (or role) where it is named."""
    leaves = Leaves(plans)
    interface = definition.interface
    components = tuple(
        ComponentReport(name, roles[0], pods_at(definition, name), leaves.of(name, roles))
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


def names_component(wanted: str, name: str, roles: Sequence[str]) -> bool:
    """Whether a component is asked for, by its name or a role; without a word all are."""
    return not wanted or wanted.casefold() in {
        name.casefold(),
        *(each.casefold() for each in roles),
    }


def component_names(definition: Definition) -> list[str]:
    """The names of components with pods, then their roles."""
    pairs = component_roles(definition)
    return list(dict.fromkeys([*(name for name, _ in pairs), *(r for _, rs in pairs for r in rs)]))


def policies_of(plans: Plans) -> tuple[Source, ...]:
    """Every policy that reaches the kind, those on trial included, the broadest scope first."""
    named = (plans.trial or plans.enforced).policies
    ordered = sorted(named, key=lambda each: (RANK[each.scope], each.namespace, each.name))
    return tuple(each.source for each in ordered)


def pods_at(definition: Definition, component: str) -> str:
    """The path of a component's pods, as the kind's definition writes it."""
    found = definition.interface.component(component)
    return found.places.text if found is not None and found.places is not None else ""


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
                if not is_of_workload(TABLE.owner(each.field))
            )
        return self.made[key]

    def every(self, component: str, roles: tuple[str, ...]) -> Iterator[LeafReport]:
        """All leaves that some policy names for a component, those on trial alone included."""
        plan, trial = self.plans.enforced, self.plans.trial
        effective = plan.effective(component, roles)
        tried = trial.effective(component, roles) if trial is not None else {}
        views = views_of(plan, roles, component)
        for path in in_order({*effective, *tried}):
            leaf = effective.get(path, Leaf(path))
            said = report(leaf, effective, views, plan)
            reach, why = reach_of(self.definition, component, TABLE.owner(path))
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
                if is_of_workload(TABLE.owner(each.field)):
                    known = found.get(each.field)
                    found[each.field] = each if known is None else joined(known, each)
        plan = self.plans.enforced
        effectives = [plan.effective(*each) for each in pairs]
        for path, each in found.items():
            leaf = united(path, effectives)
            if leaf is not None and leaf.default is not None:
                found[path] = replace(each, default=default_of(leaf))
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


def views_of(plan: Plan, roles: Iterable[str], component: str) -> list[View]:
    """The plan's policies as they apply to one component."""
    return [view(policy, roles, component) for policy in plan.policies]


def in_order(paths: Iterable[str]) -> list[str]:
    """Leaves in the table's order, attributes behind the field that holds them."""
    order = {path: index for index, path in enumerate(TABLE.fields)}
    return sorted(paths, key=lambda path: (order[TABLE.owner(path).path], path))


def is_of_workload(row: Field) -> bool:
    """Whether a field belongs to the object as a whole; replicas belong to their component."""
    return row.shape in (WORKLOAD, PRIORITY) or row.binding is Binding.NOTHING


def reach_of(definition: Definition, component: str, row: Field) -> tuple[str, str]:
    """Whether a kind can carry a field: mapped, unmapped, forbidden or in no native object; why."""
    if row.binding is Binding.NOTHING:
        return NOT_NATIVE, "no native object has a place for it, so nothing enforces it"
    profile, interface = definition.profile, definition.interface
    for each in profile.forbidden_fields:
        if each.field == row.path:
            unless = f", unless {each.unless} is on" if each.unless else ""
            return FORBIDDEN, f"{each.reason or 'the kind refuses it'}{unless}"
    found = interface.component(component)
    lacking = f"{interface.kind} has no place for it"
    if row.shape == WORKLOAD and row.path not in profile.fields:
        return UNMAPPED, lacking
    if row.shape == SCALE and found is not None:
        known = found.scales or profile.component(component).scale.absent is not None
        return (MAPPED, "") if known else (UNMAPPED, f"{component} has no number of replicas")
    if row.binding is Binding.METADATA and found is not None and found.form == "spec":
        return (MAPPED, "") if found.metadata else (UNMAPPED, f"{component} has no pod metadata")
    return MAPPED, ""


# Leaves


def report(leaf: Leaf, effective: Effective, views: Sequence[View], plan: Plan) -> LeafReport:
    """What is said at one leaf of the enforced policy, and what lost."""
    path, secret = leaf.path, TABLE.owner(leaf.path).secret
    locked = leaf.of("locked")
    items = tuple(
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
    lost = (
        *(explained(each, leaf, views, plan.assets) for each in leaf.lost),
        *lost_rules(path, views, plan.combination),
        *lost_attributes(leaf, effective, views),
    )
    return LeafReport(
        path,
        secret,
        default=default_of(leaf),
        rules=tuple(rule_said(path, each) for each in leaf.constraints),
        items=items,
        lost=lost,
    )


def default_of(leaf: Leaf) -> Said | None:
    """The default in force; its value as the author wrote it, None for a secret one."""
    default = leaf.default
    if default is None:
        return None
    return Said("default", default_value(leaf.path, default.value, default.raw), default.source)


def default_value(path: str, value: Any, raw: Any) -> Any:
    """A default as JSON: the author's notation where there is one."""
    if TABLE.owner(path).secret:
        return None
    return TABLE.leaf_codec(path).show(value) if raw is None else raw


def attributes_of(attributes: Mapping[str, Default], *, secret: bool) -> dict[str, Any]:
    """An item's attributes; of secret fields only the name has a value."""
    return {
        name: None if secret and name != "name" else each.value if each.raw is None else each.raw
        for name, each in attributes.items()
    }


def rule_said(path: str, constraint: Constraint) -> Said:
    """A rule with its argument as JSON: true, false, a text, or a list of texts."""
    return Said(constraint.rule, argument_of(path, constraint), constraint.source)


def argument_of(path: str, constraint: Constraint) -> Any:
    """A rule's argument; None where it holds a value of a secret field."""
    argument, codec = constraint.argument, TABLE.leaf_codec(path)
    if isinstance(argument, bool):
        return argument
    if isinstance(argument, DefaultFrom):
        return f"{argument.field} x {factor_text(argument.factor)}"
    if constraint.rule == "locked":
        return sorted(argument)
    if TABLE.owner(path).secret:
        return None
    if isinstance(argument, Step):
        return f"{codec.show(argument.distance)}, counted from {codec.show(argument.anchor)}"
    if constraint.rule == "options":
        return sorted(each if isinstance(each, str) else codec.show(each) for each in argument)
    return codec.show(argument)


def factor_text(factor: Fraction) -> str:
    """A factor as a decimal."""
    return str(factor.numerator) if factor.denominator == 1 else str(float(factor))


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


# What lost


def explained(
    lost: Lost, leaf: Leaf, views: Sequence[View], assets: Mapping[str, Asset]
) -> LostSaid:
    """A default or item that lost, with its value and the reason in words."""
    to = lost.to
    if lost.reason == LOCK and to is None:
        locks = [each for each in leaf.constraints if each.prohibits or each.rule == "locked"]
        broadest = min(locks, key=lambda each: RANK[each.policy.scope], default=None)
        to = broadest.source if broadest is not None else None
    reason = REASONS.get(lost.reason, lost.reason)
    if lost.reason == CLOSER and to is not None and to.scope == lost.source.scope:
        reason = "an older policy of the same scope says it"
    if lost.what == "default":
        return LostSaid("default", lost_default(lost, views), lost.source, reason, to)
    return LostSaid(f"item {lost.what}", None, lost.source, reason, to)


def lost_default(lost: Lost, views: Sequence[View]) -> Any:
    """The value of a default that lost."""
    for each in views:
        default = each.defaults.get(lost.leaf)
        if default is not None and each.policy.source == lost.source:
            return default_value(lost.leaf, default.value, default.raw)
    return None


def lost_rules(path: str, views: Sequence[View], combination: str) -> Iterator[LostSaid]:
    """The rules that some policy says of a leaf and that are not in force."""
    kept = RULES_OF[combination](views, path)
    said = constraints_of(views, path)
    for each in said:
        in_force = any(same(each, other) for other in kept)
        stronger = next(
            (
                other
                for other in kept
                if other.rule == each.rule and other.prohibits and not same(each, other)
            ),
            None,
        )
        if not constrains(each):
            if stronger is not None:
                reason = "the prohibition of another policy stays in force"
                yield lost_rule(path, each, reason, stronger.source)
        elif not in_force:
            yield lost_rule(path, each, *why_lost(path, each, said, kept, combination))


def same(one: Constraint, other: Constraint) -> bool:
    """Whether two constraints are one and the same word of a policy."""
    return one.policy is other.policy and one.rule == other.rule and one.argument == other.argument


def lost_rule(path: str, each: Constraint, reason: str, to: Source | None) -> LostSaid:
    """A rule that is not in force."""
    return LostSaid(each.rule, argument_of(path, each), each.source, reason, to)


def why_lost(
    path: str,
    lost: Constraint,
    said: Sequence[Constraint],
    kept: Sequence[Constraint],
    combination: str,
) -> tuple[str, Source | None]:
    """Why a rule is not in force, and whose rules are."""
    others = [each for each in said if each.policy.scope != SYSTEM]
    if lost.policy.scope == SYSTEM and released(lost, others):
        opener = next(e for e in others if e.rule == lost.rule and not e.prohibits)
        return "a prohibition of the system scope that another scope lifts", opener.source
    winner = kept[0].source if kept else None
    if combination == STRICTEST or winner is None:
        return "another rule stands", winner
    order = "broadest" if TABLE.owner(path).broadest_first else "closest"
    if winner.scope == SYSTEM or lost.policy.scope == SYSTEM:
        return "the system scope gives way to any other", winner
    suffix = "" if combination == DOCUMENTED else "; only prohibitions of broader scopes stay"
    return f"the rules of this field come from the {order} scope{suffix}", winner


def lost_attributes(leaf: Leaf, effective: Effective, views: Sequence[View]) -> Iterator[LostSaid]:
    """Attributes that default items may not supply, because a broader scope locks them."""
    for item in leaf.items:
        original = None if item.imposed else said_item(leaf.path, item, views)
        for name in original.keys() - item.attributes.keys() if original is not None else ():
            held = effective.get(f"{leaf.path}.{name}", Leaf(""))
            lock = next((each.source for each in held.constraints if each.prohibits), None)
            yield LostSaid(f"{name} of item {item.key}", None, item.source, REASONS[LOCK], lock)


def said_item(
    path: str, item: EffectiveItem, views: Sequence[View]
) -> Mapping[str, Default] | None:
    """An item's attributes as its policy says them."""
    for each in views:
        if speaks_for(each.policy, item.source):
            for other in each.items.get(path, ()):
                if other.key == item.key:
                    return other.attributes
    return None


def speaks_for(policy: Policy, source: Source) -> bool:
    """Whether a source names this policy."""
    return (policy.name, policy.scope, policy.namespace) == (
        source.policy,
        source.scope,
        source.namespace,
    )
