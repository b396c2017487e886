"""Combines the policies of all scopes for one kind and component into one effective policy."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from webhook.documents.problem import Source
from webhook.policy import rules as rule_table
from webhook.policy.policy import (
    EVERYWHERE,
    SCOPES,
    Asset,
    Default,
    DefaultFrom,
    DefaultItem,
    Policy,
    component_level,
    role_level,
)
from webhook.policy.table import TABLE

GUARDED, DOCUMENTED, STRICTEST = "guarded", "documented", "strictest"
COMBINATIONS = (GUARDED, DOCUMENTED, STRICTEST)
RANK = {scope: rank for rank, scope in enumerate(SCOPES)}
UNBOUNDED = len(SCOPES)
WORKER, SYSTEM = "worker", "system"
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Constraint:
    """One rule in force at a leaf, and who said it."""

    rule: str
    argument: Any
    source: Source
    policy: Policy

    @property
    def prohibits(self) -> bool:
        """Whether it forbids editing, adding or setting."""
        return rule_table.prohibits(self.rule, self.argument)


@dataclass(frozen=True, slots=True)
class EffectiveDefault:
    """The default in force at a leaf, and who said it."""

    value: Any
    raw: Any
    source: Source
    scope: str


@dataclass(frozen=True, slots=True)
class EffectiveItem:
    """A default or imposed item in force; an imposed one is always locked."""

    key: str
    attributes: Mapping[str, Default]
    source: Source
    scope: str
    imposed: bool = False
    asset_id: str = ""
    tolerates_existing: bool = True


@dataclass(frozen=True, slots=True)
class Lost:
    """Something a policy said that is not in force: what, and which policy's word stands."""

    leaf: str
    what: str
    source: Source
    reason: str
    to: Source | None = None


@dataclass(frozen=True, slots=True)
class Leaf:
    """One leaf of the effective policy: rules, default, default items, and what lost."""

    path: str
    constraints: tuple[Constraint, ...] = ()
    default: EffectiveDefault | None = None
    items: tuple[EffectiveItem, ...] = ()
    lost: tuple[Lost, ...] = ()

    def of(self, rule: str) -> tuple[Constraint, ...]:
        """The constraints of one rule name."""
        return tuple(each for each in self.constraints if each.rule == rule)


Effective = Mapping[str, Leaf]


@dataclass(frozen=True, slots=True)
class View:
    """One policy as it applies to one component: leaves after its levels are resolved.

    A leaf has one rules object, or one per role where a component serves several.
    """

    policy: Policy
    defaults: Mapping[str, Default]
    items: Mapping[str, tuple[DefaultItem, ...]]
    rules: Mapping[str, tuple[Mapping[str, Any], ...]]
    imposed: tuple[str, ...]

    @property
    def rank(self) -> int:
        """0 for the broadest scope (system), 4 for project."""
        return RANK[self.policy.scope]


def levels_of(role: str, component: str) -> tuple[str, ...]:
    """The levels a component reads in one role, weakest first: everywhere, role, its own name."""
    return (EVERYWHERE, *([role_level(role)] if role else []), component_level(component))


def resolved(table: Mapping[str, Mapping[str, T]], levels: Iterable[str]) -> dict[str, T]:
    """The leaves of a table after later levels replaced those of earlier ones."""
    result: dict[str, T] = {}
    for level in levels:
        result.update(table.get(level, {}))
    return result


def view(policy: Policy, roles: Iterable[str], component: str) -> View:
    """Resolve a policy's levels for one component: the component's own leaf wins.

    With several roles the rules of each apply, and the defaults are those of the worker.
    """
    body = policy.body
    ordered = sorted(set(roles), key=lambda role: (role == WORKER, role)) or [""]
    rules: dict[str, tuple[Mapping[str, Any], ...]] = {}
    for role in ordered:
        for leaf, arguments in resolved(body.rules, levels_of(role, component)).items():
            said = rules.get(leaf, ())
            rules[leaf] = said if arguments in said else (*said, arguments)
    last = levels_of(ordered[-1], component)
    every = dict.fromkeys(level for role in ordered for level in levels_of(role, component))
    imposed = dict.fromkeys(each for level in every for each in body.imposed.get(level, ()))
    defaults, items = resolved(body.defaults, last), resolved(body.items, last)
    return View(policy, defaults, items, rules, tuple(imposed))


def age(each: View) -> tuple[str, ...]:
    """The order of policies that are otherwise equal: the oldest first, however they are listed."""
    policy = each.policy
    return (policy.created, policy.name, policy.namespace, policy.digest)


def claims(objects: Iterable[Mapping[str, Any]]) -> bool:
    """Whether a rules object claims its leaf: any member but a lone `blocked: false`."""
    return any(
        not (name == "blocked" and argument is False)
        for rules in objects
        for name, argument in rules.items()
    )


def constraints_of(views: Iterable[View], path: str) -> list[Constraint]:
    """Every rule these policies put on one leaf, those that constrain nothing included."""
    return [
        Constraint(name, argument, each.policy.source, each.policy)
        for each in views
        for rules in each.rules.get(path, ())
        for name, argument in rules.items()
    ]


def released(constraint: Constraint, others: Iterable[Constraint]) -> bool:
    """A system prohibition is lifted where another scope says the opposite."""
    return constraint.prohibits and any(
        other.rule == constraint.rule and not other.prohibits for other in others
    )


def strictest(views: Sequence[View], path: str) -> tuple[Constraint, ...]:
    """Every scope's rules together; a system prohibition may be released by any other scope."""
    system = constraints_of((each for each in views if each.rank == 0), path)
    others = constraints_of((each for each in views if each.rank > 0), path)
    return (*(each for each in system if not released(each, others)), *others)


def by_precedence(views: Sequence[View], path: str) -> list[list[View]]:
    """The claiming policies grouped by scope, the winning scope first, system always last."""
    claiming = [each for each in views if claims(each.rules.get(path, ()))]
    ranks = sorted({each.rank for each in claiming if each.rank > 0})
    if not TABLE.owner(path).broadest_first:
        ranks.reverse()
    ranks += [0] if any(each.rank == 0 for each in claiming) else []
    return [[each for each in claiming if each.rank == rank] for rank in ranks]


def documented(views: Sequence[View], path: str) -> tuple[Constraint, ...]:
    """The whole rules object of a leaf comes from one scope."""
    groups = by_precedence(views, path)
    return tuple(constraints_of(groups[0], path)) if groups else ()


def is_list_of_images(path: str, constraint: Constraint) -> bool:
    """Whether a rule lists the images that may be used, which a narrower scope cannot replace."""
    of_images = path == "image" or path.startswith("images.")
    return of_images and constraint.rule == "options"


def guarded(views: Sequence[View], path: str) -> tuple[Constraint, ...]:
    """As documented, and prohibitions and lists of images of scopes broader than the winner stay.

    A prohibition of the system scope can be released; its list of images gives way to any other.
    """
    groups = by_precedence(views, path)
    if not groups:
        return ()
    winner = groups[0][0].rank
    rest = constraints_of((each for group in groups[1:] for each in group), path)
    others = constraints_of((each for each in views if each.rank > 0), path)
    kept = [
        each
        for each in rest
        if each.prohibits
        and RANK[each.policy.scope] < winner
        and not (each.policy.scope == SYSTEM and released(each, others))
    ]
    kept += [each for each in rest if is_list_of_images(path, each) and each.policy.scope != SYSTEM]
    return (*constraints_of(groups[0], path), *kept)


RULES_OF: Mapping[str, Callable[[Sequence[View], str], tuple[Constraint, ...]]] = {
    GUARDED: guarded,
    DOCUMENTED: documented,
    STRICTEST: strictest,
}


def lock_rank(constraints: Iterable[Constraint]) -> int:
    """The broadest scope that forbids editing or setting this leaf; UNBOUNDED when none does."""
    return min(
        (
            RANK[each.policy.scope]
            for each in constraints
            if each.prohibits and each.rule in ("canEdit", "blocked")
        ),
        default=UNBOUNDED,
    )


def closest_default(
    views: Sequence[View], path: str, constraints: tuple[Constraint, ...]
) -> tuple[EffectiveDefault | None, list[Lost]]:
    """The closest scope's default that no broader lock shuts out; of one scope the older one.

    A broader list of images shuts out the defaults that are not on it.
    """
    bound = lock_rank(constraints)
    lists = [each for each in constraints if is_list_of_images(path, each)]
    chosen: EffectiveDefault | None = None
    lost: list[Lost] = []
    ordered = sorted(views, key=lambda each: (-each.rank, age(each)))
    for each in ordered:
        default = each.defaults.get(path)
        if default is None:
            continue
        if each.rank > bound:
            lost.append(Lost(path, "default", each.policy.source, "shut-out-by-lock"))
        elif closed := unlisted(default, each.rank, lists):
            lost.append(
                Lost(path, "default", each.policy.source, "shut-out-by-list", closed.source)
            )
        elif chosen is None:
            scope = each.policy.scope
            chosen = EffectiveDefault(default.value, default.raw, each.policy.source, scope)
        else:
            lost.append(
                Lost(path, "default", each.policy.source, "a closer scope sets it", chosen.source)
            )
    return chosen, lost


def unlisted(default: Default, rank: int, lists: Iterable[Constraint]) -> Constraint | None:
    """The first list of a broader scope than `rank` that lacks a default; None where none does."""
    broader = (each for each in lists if RANK[each.policy.scope] < rank)
    return next((each for each in broader if default.value not in each.argument), None)


def item_lock_rank(constraints: Iterable[Constraint], key: str) -> int:
    """The broadest scope that closes the list (canAdd: false) or locks this key."""
    ranks = [UNBOUNDED]
    for each in constraints:
        closes = each.rule == "canAdd" and each.prohibits
        if closes or (each.rule == "locked" and key in each.argument):
            ranks.append(RANK[each.policy.scope])
    return min(ranks)


def union_of_items(
    views: Sequence[View],
    path: str,
    constraints: tuple[Constraint, ...],
    assets: Mapping[str, Asset],
) -> tuple[tuple[EffectiveItem, ...], list[Lost]]:
    """Default items united by key, the closest whole item wins; imposed ones beat them all.

    One that wins and is excluded leaves nothing.
    """
    chosen: dict[str, EffectiveItem] = {}
    excluded: dict[str, Source] = {}
    lost: list[Lost] = []
    ordered = sorted(views, key=lambda each: (-each.rank, age(each)))
    for each in ordered:
        for item in each.items.get(path, ()):
            source, scope = each.policy.source, each.policy.scope
            if each.rank > item_lock_rank(constraints, item.key):
                lost.append(Lost(path, item.key, source, "shut-out-by-lock"))
            elif item.key in chosen or item.key in excluded:
                winner = excluded.get(item.key) or chosen[item.key].source
                lost.append(Lost(path, item.key, source, "a closer scope sets it", winner))
            elif item.excluded:
                excluded[item.key] = source
            else:
                tolerates = each.policy.tolerates_existing
                chosen[item.key] = EffectiveItem(
                    item.key, item.attributes, source, scope, tolerates_existing=tolerates
                )
    for each in sorted(views, key=lambda each: (each.rank, age(each))):
        for asset in (assets[identity] for identity in each.imposed if identity in assets):
            if asset.field != path:
                continue
            if each.rank > item_lock_rank(constraints, asset.name):
                lost.append(Lost(path, asset.name, each.policy.source, "shut-out-by-lock"))
                continue
            held = chosen.get(asset.name)
            if held is not None and held.imposed:
                lost.append(
                    Lost(path, asset.name, each.policy.source, "imposed-twice", held.source)
                )
                continue
            chosen[asset.name] = EffectiveItem(
                asset.name,
                asset.attributes,
                each.policy.source,
                each.policy.scope,
                imposed=True,
                asset_id=asset.id,
                tolerates_existing=each.policy.tolerates_existing,
            )
    return tuple(chosen.values()), lost


def without_shut_out_attributes(
    items: tuple[EffectiveItem, ...], path: str, effective: Mapping[str, Leaf]
) -> tuple[EffectiveItem, ...]:
    """Default items of scopes narrower than a lock on an attribute do not supply that attribute."""
    kept = []
    for item in items:
        shut = {
            name
            for name in item.attributes
            if (leaf := effective.get(f"{path}.{name}")) is not None
            and RANK[item.scope] > lock_rank(leaf.constraints)
        }
        if shut:
            remaining = {k: v for k, v in item.attributes.items() if k not in shut}
            item = replace(item, attributes=remaining)
        kept.append(item)
    return tuple(kept)


def paths_of(views: Iterable[View], assets: Mapping[str, Asset]) -> list[str]:
    """Every leaf that some policy names, attributes before the fields that hold them."""
    named: set[str] = set()
    for each in views:
        named |= set(each.defaults) | set(each.items) | set(each.rules)
        named |= {assets[identity].field for identity in each.imposed if identity in assets}
    return sorted(named, key=lambda path: (path not in TABLE.attributes, path))


def combine(
    views: Sequence[View], combination: str = GUARDED, assets: Mapping[str, Asset] | None = None
) -> dict[str, Leaf]:
    """The effective policy of one component: every leaf with its rules, default and sources."""
    assets = assets or {}
    views = sorted(views, key=age)
    effective: dict[str, Leaf] = {}
    for path in paths_of(views, assets):
        constraints = RULES_OF[combination](views, path)
        default, lost = closest_default(views, path, constraints)
        items: tuple[EffectiveItem, ...] = ()
        if path in TABLE.fields and TABLE.fields[path].items is not None:
            items, lost_items = union_of_items(views, path, constraints, assets)
            items = without_shut_out_attributes(items, path, effective)
            lost += lost_items
        in_force = tuple(each for each in constraints if constrains(each))
        effective[path] = Leaf(path, in_force, default, items, tuple(lost))
    return effective


def constrains(constraint: Constraint) -> bool:
    """Whether a rule in force can refuse or compute anything (canEdit: true cannot)."""
    if isinstance(constraint.argument, DefaultFrom):
        return True
    if constraint.rule in ("canEdit", "canAdd", "blocked", "locked"):
        return constraint.prohibits
    return constraint.argument is not False
