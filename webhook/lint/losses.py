"""Tells of rules and defaults that nothing comes of beside other policies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from webhook.documents.problem import Problem
from webhook.lint.kinds import World
from webhook.policy import combine
from webhook.policy.checks.conflicts import levels
from webhook.policy.checks.meeting import Meetings
from webhook.policy.checks.policy_set import COMPONENT, ROLE, namespace_cells, problem
from webhook.policy.combine import Constraint, Leaf, constrains
from webhook.policy.policy import Place, Policy
from webhook.policy.table import TABLE


def losses(world: World) -> Iterator[Problem]:
    """Rules and defaults that are in force in none of the combinations that surely occur."""
    own = {id(each) for each in world.own}
    said: dict[Said, Lost | None] = {}
    apart: dict[Said, Problem] = {}
    for cell in cells(world.policies):
        for level in levels(*cell):
            effective = effective_of(world, cell, level)
            for key, found in without_common_image(level, effective.get("image")):
                if id(key.policy) in own:
                    apart.setdefault(key, found)
            for policy in cell:
                if id(policy) in own:
                    for key, lost in outcome(policy, level, effective):
                        known = said.get(key, lost)
                        said[key] = lost if known is not None and lost is not None else None
    for key, lost in said.items():
        if lost is not None:
            yield problem(key.policy, key.place, lost.reason, lost.found, lost.fix)
    yield from apart.values()


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


def without_common_image(level: str, leaf: Leaf | None) -> Iterator[tuple[Said, Problem]]:
    """A warning on each list of images that has none in common with the others, which all apply."""
    lists = leaf.of("options") if leaf is not None else ()
    if len(lists) < 2 or set.intersection(*(set(each.argument) for each in lists)):
        return
    for each in lists:
        others = ", ".join(one.source.label() for one in lists if one is not each)
        place: Place = ("rule", level, "image", "options")
        found = f"options of image, which have no image in common with those of {others}"
        fix = "an image must be on all of these lists: have them share some"
        yield (
            said(each.policy, place),
            problem(each.policy, place, "no-common-image", found, fix),
        )


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
        return Lost(reason, found, "the broader scope's rules apply: write it there too")
    return Lost(reason, found, "the closer scope's rules apply: write it there")


def lost_default(policy: Policy, leaf: str, effective: Leaf) -> Lost | None:
    """A default that a closer scope replaces wherever the policy holds."""
    for lost in effective.lost:
        if lost.what == "default" and lost.source == policy.source and lost.to is not None:
            found = f"the default of {leaf}, which {lost.to.label()} always replaces"
            return Lost("default-never-written", found, "remove it")
    return None
