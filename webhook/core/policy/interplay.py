"""Which policies meet for a kind, and which of those can contradict one another at all.

An installation may have a thousand policies; most pairs of them never speak of the same leaf.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, permutations
from typing import Any

from webhook.core.policy import checks, rules
from webhook.core.policy.leaves import leaf_type
from webhook.core.policy.model import Policy

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
    """Remembers of each pair of policies whether one can bear on what the other gives."""

    def __init__(self) -> None:
        self.known: dict[tuple[int, int], bool] = {}

    def among(self, policies: Sequence[Policy]) -> bool:
        """Whether any two of these have something to do with one another."""
        return any(self.between(one, other) for one, other in combinations(policies, 2))

    def between(self, one: Policy, other: Policy) -> bool:
        """Whether rules of one bear on what the other gives, or both impose assets."""
        key = (id(one), id(other))
        found = self.known.get(key)
        if found is None:
            found = any(bears_on(a, b) for a, b in permutations((one, other)))
            self.known[key] = found
        return found


def bears_on(ruling: Policy, giving: Policy) -> bool:
    """Whether a rule forbids, or breaks on, a default or item of another policy."""
    # What an asset is an item of, only the assets tell: whoever imposes any is looked at closely.
    if giving.body.imposed or (ruling.body.imposed and giving.body.items):
        return True
    ruled: dict[str, list[Any]] = {}
    for level in ruling.body.rules.values():
        for leaf, arguments in level.items():
            ruled.setdefault(leaf, []).append(arguments)
    return any(
        refuses(leaf, value, arguments)
        for leaf, value in given(giving)
        for arguments in ruled.get(leaf, ())
    )


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
