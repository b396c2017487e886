"""Advice on policies that load: what is legal and yet hardly what its author wants.

Every finding is a warning with a reason of the table. Facts about kinds come from outside, since
policies know nothing of the kinds that they govern.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from webhook.core.decision import Problem
from webhook.core.pointer import Path
from webhook.core.policy import combine, rules
from webhook.core.policy.combine import GUARDED, Constraint, Leaf, constrains
from webhook.core.policy.conflicts import levels
from webhook.core.policy.draft import holding
from webhook.core.policy.fields import TABLE
from webhook.core.policy.interplay import Meetings
from webhook.core.policy.leaves import leaf_type
from webhook.core.policy.model import (
    EVERYWHERE,
    Asset,
    Place,
    Policy,
    component_level,
    role_level,
)
from webhook.core.policy.reach import Overlap, reaches
from webhook.core.policy.report import Report
from webhook.core.policy.row import SERVING_PORT, WORKLOAD, Binding, Field
from webhook.core.policy.selectors import NAME_LABEL, OPERATORS, contradict, implies
from webhook.core.policy.spelling import closest
from webhook.core.policy.together import COMPONENT, ROLE, namespace_cells, problem
from webhook.core.source import SourceDocument

GUARDING = frozenset({"compute", "security", "scheduling", "total"})
IMAGE = "image"
MOST_NAMED = 6
NEGATIVE = frozenset({"NotIn", "DoesNotExist"})
NAME_LIKE = frozenset({"name", "namespace", "metadata.name", "kubernetes.io/name"})
USERS = ("security.runAsUid", "security.runAsGid")

Identity = tuple[str, str, str]
Unit = tuple["Kind", str, str]
"""A kind, one of its components, and a role that this component has."""


@dataclass(frozen=True)
class Kind:
    """What policies need to know of a kind that has a definition."""

    group: str
    name: str
    workload_type: str = ""
    fields: frozenset[str] = frozenset()
    forbidden: frozenset[str] = frozenset()
    components: tuple[tuple[str, tuple[str, ...]], ...] = ()

    @property
    def label(self) -> str:
        """Kind.group, as kubectl takes it."""
        return f"{self.name}.{self.group}" if self.group else self.name

    def carries(self, row: Field) -> bool:
        """Whether a workload of this kind has a place for the field."""
        if row.path in self.forbidden or row.binding is Binding.NOTHING:
            return False
        return row.shape not in (WORKLOAD, SERVING_PORT) or row.path in self.fields

    def units(self) -> list[Unit]:
        """Its components with their roles."""
        pairs = [(name, role) for name, roles in self.components for role in roles]
        return [(self, name, role) for name, role in pairs or [("", "worker")]]


@dataclass(frozen=True)
class World:
    """All that is looked at: every policy, those to advise on, and what they meet."""

    policies: Sequence[Policy]
    own: Sequence[Policy]
    kinds: Sequence[Kind]
    assets: Mapping[str, Asset] = field(default_factory=dict)
    sources: Mapping[Identity, SourceDocument] = field(default_factory=dict)
    combination: str = GUARDED

    def governed(self, policy: Policy) -> list[Kind]:
        """The kinds in reach of a policy."""
        return [k for k in self.kinds if policy.governs_kind(k.group, k.name, k.workload_type)]

    def at_envelope(self, policy: Policy, path: Path, reason: str, found: str, fix: str) -> Problem:
        """A warning at a place outside the body."""
        document = self.sources.get(identity(policy))
        if document is None:
            return Problem(policy.origin, "", found, fix, reason, severity="warning")
        report = Report(document)
        report.warn(path, reason, found, fix)
        return report.problems[0]


def identity(policy: Policy) -> Identity:
    """What tells policies and their documents apart."""
    return (policy.origin, policy.name, policy.namespace)


def lint(world: World) -> tuple[Problem, ...]:
    """Every piece of advice, in order of place."""
    found = chain.from_iterable(check(world, policy) for policy in world.own for check in CHECKS)
    problems = [*found, *losses(world)]
    return tuple(sorted(problems, key=lambda each: (each.origin, each.line, each.column)))


# Kinds that a rule does not reach


def uncovered_kinds(world: World, policy: Policy) -> Iterator[Problem]:
    """Rules that guard a cluster, and the kinds where nobody says them."""
    for leaf, level in guarding_leaves(policy):
        others = [each for each in world.policies if each is policy or includes(each, policy)]
        missed = [
            unit
            for kind in world.kinds
            if kind.carries(TABLE.owner(leaf))
            for unit in kind.units()
            if not any(covers(each, leaf, unit) for each in others)
        ]
        if missed:
            name = next(iter(policy.body.rules[level][leaf]))
            found = f"a rule on {leaf} that leaves out {named_units(world, missed)}"
            fix = "a user can choose one of these: say it for all, or there too"
            yield problem(policy, ("rule", level, leaf, name), "kinds-not-covered", found, fix)


def guarding_leaves(policy: Policy) -> list[tuple[str, str]]:
    """Leaves of amounts, safety and images that a policy has rules for, each with one level."""
    found: dict[str, str] = {}
    for level, leaves in policy.body.rules.items():
        for leaf, arguments in leaves.items():
            row = TABLE.owner(leaf)
            if (row.section in GUARDING or row.path == IMAGE) and restricts(arguments):
                found.setdefault(leaf, level)
    return sorted(found.items())


def restricts(arguments: Mapping[str, Any]) -> bool:
    """Whether a rules object can refuse anything."""
    return any(
        rules.prohibits(name, argument)
        or (rules.TABLE[name].stage == rules.FINAL and argument is not False)
        for name, argument in arguments.items()
    )


def includes(wide: Policy, narrow: Policy) -> bool:
    """Whether one policy holds wherever the other does, as firmly."""
    if wide.enforcement != "Enforce" and narrow.enforcement == "Enforce":
        return False
    if wide.namespace:
        return wide.namespace == narrow.namespace
    if narrow.namespace:
        return reaches(wide, narrow.namespace) is Overlap.CERTAIN
    if not wide.exclude_namespaces <= narrow.exclude_namespaces:
        return False
    return implies(narrow.namespace_selector, wide.namespace_selector)


def covers(policy: Policy, leaf: str, unit: Unit) -> bool:
    """Whether a policy has rules for the leaf of this component."""
    kind, component, role = unit
    if not policy.governs_kind(kind.group, kind.name, kind.workload_type):
        return False
    said = (EVERYWHERE, role_level(role), component_level(component))
    return any(restricts(policy.body.rules.get(level, {}).get(leaf, {})) for level in said)


def named_units(world: World, missed: Sequence[Unit]) -> str:
    """What is left out, for people: whole types, then kinds, then roles of kinds."""
    units = set(missed)
    whole = [kind for kind in world.kinds if all(unit in units for unit in kind.units())]
    types = sorted({kind.workload_type for kind in whole if kind.workload_type})
    full = [
        name
        for name in types
        if all(kind in whole for kind in world.kinds if kind.workload_type == name)
    ]
    words = [f"all of {', '.join(full)}"] if full else []
    rest = [kind.label for kind in whole if kind.workload_type not in full]
    words += [listed(rest)] if rest else []
    parts: dict[str, set[str]] = {}
    for kind, _, role in missed:
        if kind not in whole:
            parts.setdefault(role, set()).add(kind.label)
    words += [f"the {role} of {listed(sorted(kinds))}" for role, kinds in sorted(parts.items())]
    return "; ".join(words)


def listed(names: Sequence[str]) -> str:
    """A few names, and how many more."""
    more = len(names) - MOST_NAMED
    shown = ", ".join(names[:MOST_NAMED])
    return f"{shown} and {more} more" if more > 0 else shown


# Kinds that cannot be reached


def unknown_kinds(world: World, policy: Policy) -> Iterator[Problem]:
    """Kinds without definition, and policies that govern none that has one."""
    labels = {each.label: each for each in world.kinds}
    known = {(each.group, each.name) for each in world.kinds}
    for index, (group, name) in enumerate(listed_kinds(world, policy)):
        if (group, name) not in known:
            label = Kind(group, name).label
            meant = closest(label, labels)
            fix = f"did you mean {meant}?" if meant else "add its ResourceInterface (--interfaces)"
            found = f"{label}, which has no definition"
            path = ("spec", "kinds", index)
            yield world.at_envelope(policy, path, "no-shipped-kind", found, fix)
    if policy.workload_types and not world.governed(policy):
        found = f"{', '.join(sorted(policy.workload_types))}, of which no kind has a definition"
        fix = "name other types, or add ResourceInterfaces (--interfaces)"
        yield world.at_envelope(policy, ("spec", "workloadTypes"), "no-shipped-kind", found, fix)


def listed_kinds(world: World, policy: Policy) -> list[tuple[str, str]]:
    """The kinds of a policy in the order of its document."""
    document = world.sources.get(identity(policy))
    spec = document.data.get("spec") if document and isinstance(document.data, dict) else None
    given = spec.get("kinds") if isinstance(spec, dict) else None
    if not isinstance(given, list):
        return sorted(policy.kinds or ())
    return [(str(each.get("group") or ""), str(each.get("kind"))) for each in given]


def uncarried(world: World, policy: Policy) -> Iterator[Problem]:
    """Fields that no kind in reach has a place for."""
    kinds = world.governed(policy)
    if not kinds:
        return
    told: set[str] = set()
    for (what, level, leaf, word), _ in sorted(policy.places.items(), key=lambda one: one[1][1:]):
        row = TABLE.owner(leaf) if leaf in TABLE.fields or leaf in TABLE.attributes else None
        if what not in ("default", "rule") or row is None or row.path in told:
            continue
        if row.binding is not Binding.NOTHING and not any(each.carries(row) for each in kinds):
            told.add(row.path)
            carriers = [each.label for each in world.kinds if each.carries(row)]
            fix = f"only {listed(carriers)} can carry it" if carriers else "remove it"
            found = f"{row.path}, which no kind that the policy governs can carry"
            yield problem(policy, (what, level, leaf, word), "no-kind-carries", found, fix)


# Rules that do less than they seem to


def without_value(world: World, policy: Policy) -> Iterator[Problem]:
    """Options of one value and bounds that whoever gives no value passes."""
    for level, leaves in policy.body.rules.items():
        for leaf, arguments in leaves.items():
            if supplied(world, policy, level, leaf):
                continue
            options = arguments.get("options")
            if options is not None and len(options) == 1 and not leaf_type(leaf).is_array:
                value = leaf_type(leaf).show(next(iter(options)))
                found = f"{value} as the only option of {leaf}, without default and required"
                fix = f"give {leaf} this value in defaults, or write required: true"
                yield problem(policy, ("rule", level, leaf, "options"), "single-option", found, fix)
            bounds = [name for name in bounds_of(leaf) if name in arguments]
            if bounds:
                found = f"{' and '.join(bounds)} of {leaf}, which pass where no value is given"
                fix = "write required: true beside it, or give a default"
                place = ("rule", level, leaf, bounds[0])
                yield problem(policy, place, "bound-without-value", found, fix)


def bounds_of(leaf: str) -> tuple[str, ...]:
    """The bounds of a leaf that are void without a value: of limits both, of user ids the lower."""
    if leaf.startswith("compute.") and leaf.endswith("Limit"):
        return ("min", "max")
    return ("min",) if leaf in USERS else ()


def supplied(world: World, policy: Policy, level: str, leaf: str) -> bool:
    """Whether there is always a value: required, a default, or no value that anybody may give."""
    for each in world.policies:
        if each is not policy and not includes(each, policy):
            continue
        arguments = holding(each.body.rules, level).get(leaf, {})
        if arguments.get("required") is True or "defaultFrom" in arguments:
            return True
        if leaf in holding(each.body.defaults, level):
            return True
    own = policy.body.rules[level][leaf]
    return any(rules.prohibits(name, own.get(name)) for name in ("canEdit", "blocked"))


# Selectors


def selectors(world: World, policy: Policy) -> Iterator[Problem]:
    """Selectors of namespaces that select others than one would think."""
    at: Path = ("spec", "namespaceSelector")
    selector = policy.namespace_selector
    if selector is None:
        document = world.sources.get(identity(policy))
        spec = document.data.get("spec") if document and isinstance(document.data, dict) else None
        if isinstance(spec, dict) and spec.get("namespaceSelector") is not None:
            fix = "write matchLabels, or leave namespaceSelector out"
            yield world.at_envelope(policy, at, "selector-all", "an empty selector", fix)
        return
    wanted = selector.requirements
    if any(contradict(a, b) for i, a in enumerate(wanted) for b in wanted[i + 1 :] if a[0] == b[0]):
        fix = "remove one of the two requirements on one label"
        yield world.at_envelope(policy, at, "selector-empty", "two that exclude each other", fix)
        return
    if all(operator in NEGATIVE for _, operator, _ in wanted):
        found = (
            f"only {' and '.join(each for each in OPERATORS if each in NEGATIVE)} in the selector"
        )
        fix = "add a requirement that a namespace has to have"
        yield world.at_envelope(policy, at, "selector-negative", found, fix)
    for key, _, _ in wanted:
        if key in NAME_LIKE or (key != NAME_LABEL and closest(key, [NAME_LABEL])):
            fix = f"write {NAME_LABEL} to select by name"
            yield world.at_envelope(policy, at, "selector-name-label", f"the label {key}", fix)
    for name in sorted(policy.exclude_namespaces):
        if reaches_without_exclusion(policy, name) is Overlap.NONE:
            found, fix = (
                f"{name}, which is not selected anyway",
                "remove it, or correct the selector",
            )
            path = ("spec", "excludeNamespaces")
            yield world.at_envelope(policy, path, "exclusion-without-effect", found, fix)


def reaches_without_exclusion(policy: Policy, name: str) -> Overlap:
    """Whether the selector alone selects the namespace of that name."""
    by_name = [each for each in selector_of(policy) if each[0] == NAME_LABEL]
    chosen = any(operator == "In" and name not in values for _, operator, values in by_name)
    return Overlap.NONE if chosen else Overlap.POSSIBLE


def selector_of(policy: Policy) -> tuple[tuple[str, str, tuple[str, ...]], ...]:
    """The requirements of a policy's selector."""
    return policy.namespace_selector.requirements if policy.namespace_selector else ()


# What other scopes take away


def losses(world: World) -> Iterator[Problem]:
    """Rules and defaults that are in force in none of the combinations that surely occur."""
    own = {id(each) for each in world.own}
    said: dict[Said, Lost | None] = {}
    for cell in cells(world.policies):
        for level in levels(*cell):
            effective = effective_of(world, cell, level)
            for policy in cell:
                if id(policy) in own:
                    for key, lost in outcome(policy, level, effective):
                        known = said.get(key, lost)
                        said[key] = lost if known is not None and lost is not None else None
    for key, lost in said.items():
        if lost is not None:
            yield problem(key.policy, key.place, lost.reason, lost.found, lost.fix)


@dataclass(frozen=True, eq=False)
class Lost:
    """What became of something that is not in force."""

    reason: str
    found: str
    fix: str


@dataclass(frozen=True)
class Said:
    """Something that a policy says at a level of its own."""

    origin: str
    name: str
    place: Place
    policy: Policy = field(compare=False)


def cells(policies: Sequence[Policy]) -> Iterator[tuple[Policy, ...]]:
    """Every set of policies that surely meet; those under trial meet the enforced ones too."""
    seen: set[frozenset[int]] = set()
    for members in namespace_cells(policies):
        for kind in Meetings(members).kinds:
            met = [each for each in members if each.governs_kind(*kind)]
            enforced = [each for each in met if each.enforcement == "Enforce"]
            for cell in (enforced, met) if len(enforced) != len(met) else (met,):
                ids = frozenset(map(id, cell))
                if cell and ids not in seen:
                    seen.add(ids)
                    yield tuple(cell)


def effective_of(world: World, cell: Sequence[Policy], level: str) -> dict[str, Leaf]:
    """The combined policy at one level."""
    roles = (level.removeprefix(ROLE),) if level.startswith(ROLE) else ()
    component = level.removeprefix(COMPONENT) if level.startswith(COMPONENT) else ""
    views = [combine.view(each, roles, component) for each in cell]
    return combine.combine(views, world.combination, world.assets)


def outcome(
    policy: Policy, level: str, effective: Mapping[str, Leaf]
) -> Iterator[tuple[Said, Lost | None]]:
    """What a policy says at its own level, with what became of it; None for what is in force."""
    for leaf, arguments in policy.body.rules.get(level, {}).items():
        held = effective[leaf].constraints if leaf in effective else ()
        for name, argument in arguments.items():
            each = Constraint(name, argument, policy.source, policy)
            if policy.scope == combine.SYSTEM or not constrains(each):
                continue
            kept = any(one.policy is policy and one.rule == name for one in held)
            winner = next((one.source.label() for one in held if one.policy is not policy), "")
            place = ("rule", level, leaf, name)
            yield said(policy, place), None if kept else lost_rule(each, leaf, winner)
    for leaf in policy.body.defaults.get(level, {}):
        if leaf in effective:
            place = ("default", level, leaf, "")
            yield said(policy, place), lost_default(policy, leaf, effective[leaf])


def said(policy: Policy, place: Place) -> Said:
    """What a policy says at a place."""
    return Said(policy.origin, f"{policy.namespace}/{policy.name}", place, policy)


def lost_rule(each: Constraint, leaf: str, winner: str) -> Lost:
    """A rule that another scope's claim on the leaf takes away."""
    reason = "prohibition-lost" if each.prohibits else "rules-lost"
    found = f"{each.rule} of {leaf}, which {winner or 'another policy'} decides instead"
    if TABLE.owner(leaf).broadest_first:
        return Lost(reason, found, "the broader scope's rules hold: have it say this too")
    return Lost(reason, found, "the closer scope's rules hold: say it there")


def lost_default(policy: Policy, leaf: str, effective: Leaf) -> Lost | None:
    """A default that a closer scope replaces wherever the policy holds."""
    for lost in effective.lost:
        if lost.what == "default" and lost.source == policy.source and lost.to is not None:
            found = f"the default of {leaf}, which {lost.to.label()} always replaces"
            return Lost("default-never-written", found, "remove it")
    return None


Check = Callable[[World, Policy], Iterator[Problem]]
CHECKS: tuple[Check, ...] = (uncovered_kinds, unknown_kinds, uncarried, without_value, selectors)
