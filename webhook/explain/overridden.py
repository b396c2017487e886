"""Explains settings of a leaf that are not in force: why, and which source applies instead."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from webhook.documents.problem import Source
from webhook.explain.model import LostSetting
from webhook.explain.values import argument_of, default_value
from webhook.policy.combine import (
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
    constraints_of,
    is_released,
)
from webhook.policy.policy import Asset, Default, Policy
from webhook.policy.table import TABLE

LOCK = "shut-out-by-lock"
CLOSER = "a closer scope sets it"
REASONS: Mapping[str, str] = {
    LOCK: "a lock of a broader scope keeps its own default",
    "shut-out-by-list": "a broader scope's list of images lacks it",
    "imposed-twice": "a broader scope imposes an item of that key",
}


def explain_loss(
    lost: Lost, leaf: Leaf, views: Sequence[View], assets: Mapping[str, Asset]
) -> LostSetting:
    """Return a default or item that lost, with its value and the reason."""
    to = lost.to
    if lost.reason == LOCK and to is None:
        locks = [each for each in leaf.constraints if each.prohibits]
        broadest = min(locks, key=lambda each: RANK[each.policy.scope], default=None)
        to = broadest.source if broadest is not None else None
    reason = REASONS.get(lost.reason, lost.reason)
    if lost.reason == CLOSER and to is not None and to.scope == lost.source.scope:
        reason = "an older policy of the same scope sets it"
    if lost.what == "default":
        return LostSetting("default", lost_default(lost, views), lost.source, reason, to)
    return LostSetting(f"item {lost.what}", None, lost.source, reason, to)


def lost_default(lost: Lost, views: Sequence[View]) -> Any:
    """Return the value of a default that lost."""
    for each in views:
        default = each.defaults.get(lost.leaf)
        if default is not None and each.policy.source == lost.source:
            return default_value(lost.leaf, default.value, default.raw)
    return None


def lost_rules(path: str, views: Sequence[View], combination: str) -> Iterator[LostSetting]:
    """Yield the rules of a leaf that are not in force."""
    kept = RULES_OF[combination](views, path)
    written = constraints_of(views, path)
    for each in written:
        in_force = any(same(each, other) for other in kept)
        stronger = next(
            (
                other
                for other in kept
                if other.type is each.type and other.prohibits and not same(each, other)
            ),
            None,
        )
        if not each.constrains:
            if stronger is not None:
                reason = "the prohibition of another policy stays in force"
                yield lost_rule(path, each, reason, stronger.source)
        elif not in_force:
            yield lost_rule(path, each, *why_lost(path, each, written, kept, combination))


def same(one: Constraint, other: Constraint) -> bool:
    """Return whether two constraints are the same setting of a policy."""
    return one.policy is other.policy and one.type is other.type and one.argument == other.argument


def lost_rule(path: str, each: Constraint, reason: str, to: Source | None) -> LostSetting:
    """Return a rule that is not in force."""
    return LostSetting(each.rule, argument_of(path, each), each.source, reason, to)


def why_lost(
    path: str,
    lost: Constraint,
    written: Sequence[Constraint],
    kept: Sequence[Constraint],
    combination: str,
) -> tuple[str, Source | None]:
    """Return why a rule is not in force, and the source of the rules that are."""
    others = [each for each in written if each.policy.scope != SYSTEM]
    if lost.policy.scope == SYSTEM and is_released(lost, others):
        opener = next(e for e in others if e.type is lost.type and not e.prohibits)
        return "a prohibition of the system scope that another scope lifts", opener.source
    winner = kept[0].source if kept else None
    if combination == STRICTEST or winner is None:
        return "another rule applies", winner
    order = "broadest" if TABLE.owner(path).broadest_first else "closest"
    if winner.scope == SYSTEM or lost.policy.scope == SYSTEM:
        return "the system scope gives way to any other", winner
    suffix = "" if combination == DOCUMENTED else "; only prohibitions of broader scopes stay"
    return f"the rules of this field come from the {order} scope{suffix}", winner


def lost_attributes(
    leaf: Leaf, effective: Effective, views: Sequence[View]
) -> Iterator[LostSetting]:
    """Yield attributes that default items may not set, because a broader scope locks them."""
    for item in leaf.items:
        original = None if item.imposed else find_written_item(leaf.path, item, views)
        for name in original.keys() - item.attributes.keys() if original is not None else ():
            attribute_leaf = effective.get(f"{leaf.path}.{name}", Leaf(""))
            lock = next(
                (each.source for each in attribute_leaf.constraints if each.prohibits), None
            )
            yield LostSetting(f"{name} of item {item.key}", None, item.source, REASONS[LOCK], lock)


def find_written_item(
    path: str, item: EffectiveItem, views: Sequence[View]
) -> Mapping[str, Default] | None:
    """Return an item's attributes as its policy has them."""
    for each in views:
        if speaks_for(each.policy, item.source):
            for other in each.items.get(path, ()):
                if other.key == item.key:
                    return other.attributes
    return None


def speaks_for(policy: Policy, source: Source) -> bool:
    """Return whether a source names this policy."""
    return (policy.name, policy.scope, policy.namespace) == (
        source.policy,
        source.scope,
        source.namespace,
    )
