"""Combines the policies of all scopes for one kind and component into one effective policy."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from webhook.documents.problem import Source
from webhook.policy.policy import (
    EVERYWHERE,
    SCOPES,
    Asset,
    Default,
    DefaultItem,
    Policy,
    component_level,
    role_level,
)
from webhook.policy.rules import TABLE as RULES
from webhook.policy.rules.requirements import Options
from webhook.policy.rules.rule_type import RuleType
from webhook.policy.table import TABLE

GUARDED, DOCUMENTED, STRICTEST = "guarded", "documented", "strictest"
COMBINATIONS = (GUARDED, DOCUMENTED, STRICTEST)
RANK = {scope: rank for rank, scope in enumerate(SCOPES)}
UNBOUNDED = len(SCOPES)
WORKER, SYSTEM = "worker", "system"
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Constraint:
    """One rule in force at a leaf, and the policy that sets it."""

    type: RuleType
    argument: Any
    source: Source
    policy: Policy

    @property
    def rule(self) -> str:
        """The name of the rule."""
        return self.type.name

    @property
    def prohibits(self) -> bool:
        """Whether the rule forbids editing, adding or setting."""
        return self.type.prohibits(self.argument)

    @property
    def constrains(self) -> bool:
        """Whether the rule can reject or compute anything (canEdit: true cannot)."""
        return self.type.constrains(self.argument)


@dataclass(frozen=True, slots=True)
class EffectiveDefault:
    """The default in force at a leaf, and the policy that sets it."""

    value: Any
    raw: Any
    source: Source
    scope: str


@dataclass(frozen=True, slots=True)
class EffectiveItem:
    """A default or imposed item in force. An imposed item is always locked."""

    key: str
    attributes: Mapping[str, Default]
    source: Source
    scope: str
    imposed: bool = False
    asset_id: str = ""
    tolerates_existing: bool = True


@dataclass(frozen=True, slots=True)
class Lost:
    """A value of a policy that is not in force: what it is, why, and the policy that wins (`to`)."""

    leaf: str
    what: str
    source: Source
    reason: str
    to: Source | None = None


@dataclass(frozen=True, slots=True)
class Leaf:
    """One leaf of the effective policy: rules, default, default items, and overridden values."""

    path: str
    constraints: tuple[Constraint, ...] = ()
    default: EffectiveDefault | None = None
    items: tuple[EffectiveItem, ...] = ()
    lost: tuple[Lost, ...] = ()

    def of(self, rule: type[RuleType]) -> tuple[Constraint, ...]:
        """Return the constraints of one rule type."""
        return tuple(each for each in self.constraints if isinstance(each.type, rule))


Effective = Mapping[str, Leaf]


@dataclass(frozen=True, slots=True)
class View:
    """One policy as it applies to one component: its leaves after resolving levels.

    A leaf has one rules object, or one per role if a component has several roles.
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
    """Return the levels of a component in one role, weakest first: everywhere, role, own name."""
    return (EVERYWHERE, *([role_level(role)] if role else []), component_level(component))


def resolve_levels(table: Mapping[str, Mapping[str, T]], levels: Iterable[str]) -> dict[str, T]:
    """Return the leaves of a table. Later levels override earlier ones."""
    result: dict[str, T] = {}
    for level in levels:
        result.update(table.get(level, {}))
    return result


def view(policy: Policy, roles: Iterable[str], component: str) -> View:
    """Resolve the levels of a policy for one component: the component's own leaf wins.

    With several roles the rules of each apply, and the defaults are those of the worker.
    """
    body = policy.body
    ordered = sorted(set(roles), key=lambda role: (role == WORKER, role)) or [""]
    rules: dict[str, tuple[Mapping[str, Any], ...]] = {}
    for role in ordered:
        for leaf, arguments in resolve_levels(body.rules, levels_of(role, component)).items():
            known = rules.get(leaf, ())
            rules[leaf] = known if arguments in known else (*known, arguments)
    last = levels_of(ordered[-1], component)
    every = dict.fromkeys(level for role in ordered for level in levels_of(role, component))
    imposed = dict.fromkeys(each for level in every for each in body.imposed.get(level, ()))
    defaults, items = resolve_levels(body.defaults, last), resolve_levels(body.items, last)
    return View(policy, defaults, items, rules, tuple(imposed))


def age(each: View) -> tuple[str, ...]:
    """Return the sort key of policies of one scope: the oldest first, in any order of listing."""
    policy = each.policy
    return (policy.created, policy.name, policy.namespace, policy.digest)


def claims(objects: Iterable[Mapping[str, Any]]) -> bool:
    """Whether a rules object sets its leaf: any rule except a single `blocked: false`."""
    return any(
        RULES[name].claims(argument) for rules in objects for name, argument in rules.items()
    )


def constraints_of(views: Iterable[View], path: str) -> list[Constraint]:
    """Return every rule of these policies for one leaf, including those without effect."""
    return [
        Constraint(RULES[name], argument, each.policy.source, each.policy)
        for each in views
        for rules in each.rules.get(path, ())
        for name, argument in rules.items()
    ]


def is_released(constraint: Constraint, others: Iterable[Constraint]) -> bool:
    """Whether another scope lifts a system prohibition by setting the opposite."""
    return constraint.prohibits and any(
        other.type is constraint.type and not other.prohibits for other in others
    )


def combine_strictest(views: Sequence[View], path: str) -> tuple[Constraint, ...]:
    """Apply the rules of all scopes. Any other scope can lift a system prohibition."""
    system = constraints_of((each for each in views if each.rank == 0), path)
    others = constraints_of((each for each in views if each.rank > 0), path)
    return (*(each for each in system if not is_released(each, others)), *others)


def by_precedence(views: Sequence[View], path: str) -> list[list[View]]:
    """Group the policies that set a leaf by scope, the winning scope first, system always last."""
    claiming = [each for each in views if claims(each.rules.get(path, ()))]
    ranks = sorted({each.rank for each in claiming if each.rank > 0})
    if not TABLE.owner(path).broadest_first:
        ranks.reverse()
    ranks += [0] if any(each.rank == 0 for each in claiming) else []
    return [[each for each in claiming if each.rank == rank] for rank in ranks]


def combine_documented(views: Sequence[View], path: str) -> tuple[Constraint, ...]:
    """Take the whole rules object of a leaf from one scope."""
    groups = by_precedence(views, path)
    return tuple(constraints_of(groups[0], path)) if groups else ()


def is_list_of_images(path: str, constraint: Constraint) -> bool:
    """Whether a rule is a list of allowed images. A narrower scope cannot replace it."""
    of_images = path == "image" or path.startswith("images.")
    return of_images and isinstance(constraint.type, Options)


def combine_guarded(views: Sequence[View], path: str) -> tuple[Constraint, ...]:
    """Like `combine_documented`, but prohibitions and image lists of broader scopes stay in force.

    Other scopes can lift a prohibition of the system scope, and replace its list of images.
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
        and not (each.policy.scope == SYSTEM and is_released(each, others))
    ]
    kept += [each for each in rest if is_list_of_images(path, each) and each.policy.scope != SYSTEM]
    return (*constraints_of(groups[0], path), *kept)


RULES_OF: Mapping[str, Callable[[Sequence[View], str], tuple[Constraint, ...]]] = {
    GUARDED: combine_guarded,
    DOCUMENTED: combine_documented,
    STRICTEST: combine_strictest,
}


def lock_rank(constraints: Iterable[Constraint]) -> int:
    """Return the rank of the broadest scope that forbids setting this leaf, else UNBOUNDED."""
    return min(
        (
            RANK[each.policy.scope]
            for each in constraints
            if each.prohibits and not each.type.of_items
        ),
        default=UNBOUNDED,
    )


def closest_default(
    views: Sequence[View], path: str, constraints: tuple[Constraint, ...]
) -> tuple[EffectiveDefault | None, list[Lost]]:
    """Return the default of the closest scope, and the overridden ones. Older policies come first.

    A lock or an image list of a broader scope overrides defaults that it does not allow.
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
        elif closed := find_list_without(default, each.rank, lists):
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


def find_list_without(
    default: Default, rank: int, lists: Iterable[Constraint]
) -> Constraint | None:
    """Return the first list of a scope broader than `rank` that lacks a default, else None."""
    broader = (each for each in lists if RANK[each.policy.scope] < rank)
    return next((each for each in broader if default.value not in each.argument), None)


def item_lock_rank(constraints: Iterable[Constraint], key: str) -> int:
    """Return the rank of the broadest scope that has canAdd: false or locks this key."""
    return min(
        (
            RANK[each.policy.scope]
            for each in constraints
            if each.type.locks_item(each.argument, key)
        ),
        default=UNBOUNDED,
    )


def merge_items(
    views: Sequence[View],
    path: str,
    constraints: tuple[Constraint, ...],
    assets: Mapping[str, Asset],
) -> tuple[tuple[EffectiveItem, ...], list[Lost]]:
    """Merge default items by key: the closest item wins as a whole. Imposed items override all.

    If the winning item is excluded, there is no item with that key.
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


def remove_locked_attributes(
    items: tuple[EffectiveItem, ...], path: str, effective: Mapping[str, Leaf]
) -> tuple[EffectiveItem, ...]:
    """Remove attributes that a rule of a broader scope locks from default items."""
    kept = []
    for item in items:
        locked = {
            name
            for name in item.attributes
            if (leaf := effective.get(f"{path}.{name}")) is not None
            and RANK[item.scope] > lock_rank(leaf.constraints)
        }
        if locked:
            remaining = {k: v for k, v in item.attributes.items() if k not in locked}
            item = replace(item, attributes=remaining)
        kept.append(item)
    return tuple(kept)


def paths_of(views: Iterable[View], assets: Mapping[str, Asset]) -> list[str]:
    """Return every leaf that a policy names, attributes before their fields."""
    named: set[str] = set()
    for each in views:
        named |= set(each.defaults) | set(each.items) | set(each.rules)
        named |= {assets[identity].field for identity in each.imposed if identity in assets}
    return sorted(named, key=lambda path: (path not in TABLE.attributes, path))


def combine(
    views: Sequence[View], combination: str = GUARDED, assets: Mapping[str, Asset] | None = None
) -> dict[str, Leaf]:
    """Return the effective policy of one component: every leaf with rules, default and items."""
    assets = assets or {}
    views = sorted(views, key=age)
    effective: dict[str, Leaf] = {}
    for path in paths_of(views, assets):
        constraints = RULES_OF[combination](views, path)
        default, lost = closest_default(views, path, constraints)
        items: tuple[EffectiveItem, ...] = ()
        if path in TABLE.fields and TABLE.fields[path].items is not None:
            items, lost_items = merge_items(views, path, constraints, assets)
            items = remove_locked_attributes(items, path, effective)
            lost += lost_items
        in_force = tuple(each for each in constraints if each.constrains)
        effective[path] = Leaf(path, in_force, default, items, tuple(lost))
    return effective
