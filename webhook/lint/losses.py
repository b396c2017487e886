"""Checks for rules and defaults that other policies always override."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from webhook.documents.problem import Problem
from webhook.lint.kinds import LintContext
from webhook.policy import combine
from webhook.policy.checks.conflicts import levels
from webhook.policy.checks.meeting import Meetings
from webhook.policy.checks.policy_set import combine_at, namespace_cells
from webhook.policy.combine import Constraint, Leaf
from webhook.policy.policy import Entry, Policy
from webhook.policy.rules import TABLE as RULES
from webhook.policy.rules.requirements import Options
from webhook.policy.table import TABLE


class Losses:
    """Rules and defaults must be in force in one of the combinations that certainly occur."""

    ids: ClassVar = {
        "prohibition-lost": "A prohibition is not in force where a broader scope claims the leaf.",
        "rules-lost": "Rules that are never in force, because another scope claims the leaf.",
        "default-never-written": "A default that no workload ever gets.",
        "no-common-image": "Lists of images apply together and have no image in common.",
    }
    severity = "warning"

    def run(self, context: LintContext) -> Iterator[Problem]:
        own = {id(each) for each in context.own}
        fates: dict[Setting, Lost | None] = {}
        apart: dict[Setting, Problem] = {}
        for cell in cells(context.policies):
            for level in levels(*cell):
                effective = combine_at(cell, level, context.combination, context.assets)
                for key, found in self.without_common_image(level, effective.get("image")):
                    if id(key.policy) in own:
                        apart.setdefault(key, found)
                for policy in (each for each in cell if id(each) in own):
                    for key, lost in find_outcomes(policy, level, effective):
                        known = fates.get(key, lost)
                        fates[key] = lost if known is not None and lost is not None else None
        for key, fate in fates.items():
            if fate is not None:
                yield key.policy.problem(self, key.entry, fate.found, fate.fix, fate.reason)
        yield from apart.values()

    def without_common_image(
        self, level: str, leaf: Leaf | None
    ) -> Iterator[tuple[Setting, Problem]]:
        """Warn of lists of images that apply together and have no image in common."""
        lists = leaf.of(Options) if leaf is not None else ()
        if len(lists) < 2 or set.intersection(*(set(each.argument) for each in lists)):
            return
        entry: Entry = ("rule", level, "image", "options")
        for each in lists:
            others = ", ".join(one.source.label() for one in lists if one is not each)
            found = f"options of image, which have no image in common with those of {others}"
            fix = "an image must be on all of these lists: have them share some"
            problem = each.policy.problem(self, entry, found, fix, "no-common-image")
            yield make_setting(each.policy, entry), problem


@dataclass(frozen=True, eq=False)
class Lost:
    """Why a rule or default is not in force."""

    reason: str
    found: str
    fix: str


@dataclass(frozen=True)
class Setting:
    """A rule or default of a policy, at its own level."""

    origin: str
    name: str
    entry: Entry
    policy: Policy = field(compare=False)


def cells(policies: Sequence[Policy]) -> Iterator[tuple[Policy, ...]]:
    """Return every set of policies that certainly apply together, with and without warn mode."""
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


def find_outcomes(
    policy: Policy, level: str, effective: Mapping[str, Leaf]
) -> Iterator[tuple[Setting, Lost | None]]:
    """Return each rule and default of a policy at this level, with None if it is in force."""
    for leaf, arguments in policy.body.rules.get(level, {}).items():
        held = effective[leaf].constraints if leaf in effective else ()
        for name, argument in arguments.items():
            each = Constraint(RULES[name], argument, policy.source, policy)
            if policy.scope == combine.SYSTEM or not each.constrains:
                continue
            kept = any(one.policy is policy and one.rule == name for one in held)
            winner = next((one.source.label() for one in held if one.policy is not policy), "")
            entry = ("rule", level, leaf, name)
            yield make_setting(policy, entry), None if kept else lost_rule(each, leaf, winner)
    for leaf in policy.body.defaults.get(level, {}):
        if leaf in effective:
            entry = ("default", level, leaf, "")
            yield make_setting(policy, entry), lost_default(policy, leaf, effective[leaf])


def make_setting(policy: Policy, entry: Entry) -> Setting:
    """Return the setting of a policy at an entry."""
    return Setting(policy.origin, f"{policy.namespace}/{policy.name}", entry, policy)


def lost_rule(each: Constraint, leaf: str, winner: str) -> Lost:
    """Return why a rule is not in force: the rules of another scope apply."""
    reason = "prohibition-lost" if each.prohibits else "rules-lost"
    found = f"{each.rule} of {leaf}, which {winner or 'another policy'} decides instead"
    if TABLE.owner(leaf).broadest_first:
        return Lost(reason, found, "the broader scope's rules apply: write it there too")
    return Lost(reason, found, "the closer scope's rules apply: write it there")


def lost_default(policy: Policy, leaf: str, effective: Leaf) -> Lost | None:
    """Return why a default is not in force. None if it is, or is lost for another reason."""
    for lost in effective.lost:
        if lost.what == "default" and lost.source == policy.source and lost.to is not None:
            found = f"the default of {leaf}, which {lost.to.label()} always replaces"
            return Lost("default-never-written", found, "remove it")
    return None
