"""Finds the policies that apply to one kind, and those of them that can contradict one another.

An installation can have a thousand policies. Most pairs of them have no field in common.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from webhook.policy import rules
from webhook.policy.checks.defaults import broken
from webhook.policy.leaves import leaf_type
from webhook.policy.policy import Asset, Policy

Kind = tuple[str, str, str]


@dataclass(frozen=True)
class PolicySet:
    """All policies, the assets that they can impose, and how scopes are combined."""

    policies: Sequence[Policy]
    assets: Mapping[str, Asset]
    combination: str


class Meetings:
    """Policies by the kinds or workload types that they select."""

    def __init__(self, policies: Sequence[Policy]) -> None:
        self.order = {id(each): index for index, each in enumerate(policies)}
        self.everywhere: list[Policy] = []
        self.bound: dict[tuple[str, str] | str, list[Policy]] = {}
        for each in policies:
            names = each.kinds if each.kinds is not None else each.workload_types
            if names is None:
                self.everywhere.append(each)
            for name in names or ():
                self.bound.setdefault(name, []).append(each)

    @property
    def kinds(self) -> list[Kind]:
        """Return every type and kind that the policies name, and one that none of them names."""
        named: set[Kind] = {("", "", "")}
        for name in self.bound:
            named.add(("", "", name) if isinstance(name, str) else (*name, ""))
        return sorted(named)

    def of(self, kind: Kind) -> list[Policy]:
        """Return the policies that apply to a kind, in their order."""
        group, name, workload_type = kind
        met = [*self.everywhere, *self.bound.get(workload_type or (group, name), ())]
        return sorted(met, key=lambda each: self.order[id(each)])


class Interplay:
    """For each policy, the other policies that override or reject one of its defaults.

    Equal values and rules are compared once, so that a thousand policies are not a million pairs.
    Assets that are not in `assets` are skipped. The check ImposedAssets reports them.
    """

    def __init__(self, policies: Sequence[Policy], assets: Mapping[str, Asset]) -> None:
        self.rulers: dict[str, dict[str, tuple[Any, set[int]]]] = {}
        self.imposers: dict[tuple[str, str], set[int]] = {}
        self.refusers: dict[tuple[str, str], set[int]] = {}
        self.against: dict[int, list[set[int]]] = {}
        for each in policies:
            self.note(each, assets)
        for each in policies:
            found = [owners for owners in self.find_opponents(each, assets) if owners - {id(each)}]
            if found:
                self.against[id(each)] = found

    def note(self, policy: Policy, assets: Mapping[str, Asset]) -> None:
        """Index the rules and imposed assets of a policy."""
        for level in policy.body.rules.values():
            for leaf, arguments in level.items():
                known = self.rulers.setdefault(leaf, {})
                known.setdefault(repr(arguments), (arguments, set()))[1].add(id(policy))
        for asset in imposed_assets(policy, assets):
            self.imposers.setdefault((asset.field, asset.name), set()).add(id(policy))

    def find_opponents(self, policy: Policy, assets: Mapping[str, Asset]) -> Iterator[set[int]]:
        """Return, for each default of a policy, the policies that oppose it, itself included."""
        for leaf, value in default_values(policy):
            yield self.refusing(leaf, value)
        for asset in imposed_assets(policy, assets):
            yield self.imposers[asset.field, asset.name]
            yield self.refusing(asset.field, None)

    def refusing(self, leaf: str, value: Any) -> set[int]:
        """Return the policies whose rules could override or reject a value."""
        key = (leaf, repr(value))
        found = self.refusers.get(key)
        if found is None:
            found = self.refusers[key] = set()
            for arguments, owners in self.rulers.get(leaf, {}).values():
                if refuses(leaf, value, arguments):
                    found |= owners
        return found

    def among(self, policies: Sequence[Policy]) -> bool:
        """Whether any of these policies opposes another one."""
        opposed = [id(each) for each in policies if id(each) in self.against]
        met = {id(each) for each in policies} if opposed else set()
        return any((owners & met) - {each} for each in opposed for owners in self.against[each])


def imposed_assets(policy: Policy, assets: Mapping[str, Asset]) -> Iterator[Asset]:
    """Return the assets that a policy imposes."""
    for identities in policy.body.imposed.values():
        yield from (assets[each] for each in identities if each in assets)


def refuses(leaf: str, value: Any, arguments: Any) -> bool:
    """Whether these rules could override or reject a value. None is any item."""
    if any(rules.TABLE[name].prohibits(argument) for name, argument in arguments.items()):
        return True
    return value is not None and bool(broken(leaf_type(leaf), value, arguments))


def default_values(policy: Policy) -> Iterator[tuple[str, Any]]:
    """Return every leaf for which a policy has a default or an item, with the value."""
    for level in policy.body.defaults.values():
        for leaf, default in level.items():
            yield leaf, default.value
    for items in policy.body.items.values():
        for leaf, listed in items.items():
            yield leaf, None
            for item in listed:
                for name, attribute in item.attributes.items():
                    yield f"{leaf}.{name}", attribute.value
