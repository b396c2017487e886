"""Which policies meet for a kind, and which of those can contradict one another at all.

An installation may have a thousand policies; most pairs of them never speak of the same leaf.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from webhook.policy import rules
from webhook.policy.checks import one_policy as checks
from webhook.policy.leaves import leaf_type
from webhook.policy.policy import Asset, Policy

Kind = tuple[str, str, str]


class Meetings:
    """Policies by what they are bound to: kinds, workload types, or nothing."""

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
        """Every type and kind that the policies name, and one that none of them names."""
        named: set[Kind] = {("", "", "")}
        for name in self.bound:
            named.add(("", "", name) if isinstance(name, str) else (*name, ""))
        return sorted(named)

    def of(self, kind: Kind) -> list[Policy]:
        """The policies that govern a kind, in their order."""
        group, name, workload_type = kind
        met = [*self.everywhere, *self.bound.get(workload_type or (group, name), ())]
        return sorted(met, key=lambda each: self.order[id(each)])


class Interplay:
    """Of each policy, who else takes away or refuses something that it gives.

    Values and rules that are equal are compared once, so that a thousand policies are not a million
    pairs. What is not in `assets` cannot be imposed, and is told elsewhere.
    """

    def __init__(self, policies: Sequence[Policy], assets: Mapping[str, Asset]) -> None:
        self.rulers: dict[str, dict[str, tuple[Any, set[int]]]] = {}
        self.imposers: dict[tuple[str, str], set[int]] = {}
        self.refusers: dict[tuple[str, str], set[int]] = {}
        self.against: dict[int, list[set[int]]] = {}
        for each in policies:
            self.note(each, assets)
        for each in policies:
            found = [owners for owners in self.opposed(each, assets) if owners - {id(each)}]
            if found:
                self.against[id(each)] = found

    def note(self, policy: Policy, assets: Mapping[str, Asset]) -> None:
        """Remember what a policy rules and imposes."""
        for level in policy.body.rules.values():
            for leaf, arguments in level.items():
                known = self.rulers.setdefault(leaf, {})
                known.setdefault(repr(arguments), (arguments, set()))[1].add(id(policy))
        for asset in imposed(policy, assets):
            self.imposers.setdefault((asset.field, asset.name), set()).add(id(policy))

    def opposed(self, policy: Policy, assets: Mapping[str, Asset]) -> Iterator[set[int]]:
        """Who, itself included, opposes each thing that a policy gives."""
        for leaf, value in given(policy):
            yield self.refusing(leaf, value)
        for asset in imposed(policy, assets):
            yield self.imposers[asset.field, asset.name]
            yield self.refusing(asset.field, None)

    def refusing(self, leaf: str, value: Any) -> set[int]:
        """Whose rules could take a value away, or refuse it."""
        key = (leaf, repr(value))
        found = self.refusers.get(key)
        if found is None:
            found = self.refusers[key] = set()
            for arguments, owners in self.rulers.get(leaf, {}).values():
                if refuses(leaf, value, arguments):
                    found |= owners
        return found

    def among(self, policies: Sequence[Policy]) -> bool:
        """Whether any two of these have something to do with one another."""
        opposed = [id(each) for each in policies if id(each) in self.against]
        met = {id(each) for each in policies} if opposed else set()
        return any((owners & met) - {each} for each in opposed for owners in self.against[each])


def imposed(policy: Policy, assets: Mapping[str, Asset]) -> Iterator[Asset]:
    """The assets that a policy imposes."""
    for identities in policy.body.imposed.values():
        yield from (assets[each] for each in identities if each in assets)


def refuses(leaf: str, value: Any, arguments: Any) -> bool:
    """Whether these rules could take a value away, or refuse it; None stands for any item."""
    if any(rules.prohibits(name, argument) for name, argument in arguments.items()):
        return True
    return value is not None and bool(checks.broken(leaf_type(leaf), value, arguments))


def given(policy: Policy) -> Iterator[tuple[str, Any]]:
    """Every leaf for which a policy has a default or an item, with the value."""
    for level in policy.body.defaults.values():
        for leaf, default in level.items():
            yield leaf, default.value
    for items in policy.body.items.values():
        for leaf, listed in items.items():
            yield leaf, None
            for item in listed:
                for name, attribute in item.attributes.items():
                    yield f"{leaf}.{name}", attribute.value
