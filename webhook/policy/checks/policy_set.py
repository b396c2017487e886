"""Checks policies and assets against one another."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import ClassVar

from webhook.documents.problem import Problem
from webhook.policy import combine
from webhook.policy.body import resolve_level
from webhook.policy.checks.conflicts import levels
from webhook.policy.checks.defaults import broken
from webhook.policy.checks.meeting import Interplay, Meetings, PolicySet
from webhook.policy.combine import Constraint, Leaf
from webhook.policy.leaves import leaf_type
from webhook.policy.policy import EVERYWHERE, Asset, Entry, Policy
from webhook.policy.reasons import REASONS
from webhook.policy.selector_overlap import (
    Overlap,
    overlap,
    overlap_with_namespace,
    selects_by_name,
)
from webhook.policy.selectors import requirements_of

Cell = tuple[Policy, ...]
ROLE, COMPONENT = "role:", "component:"
LOST = {
    "shut-out-by-lock": "a broader scope forbids changes; write it there, or remove it",
    "shut-out-by-list": "write an image that every broader scope's list has, or add it there",
    "imposed-twice": "remove one of the two assets",
}


class ImposedAssets:
    """Every imposed asset must exist, and be of a kind that can be imposed."""

    ids: ClassVar = {
        "unknown-asset": "The imposed asset does not exist.",
        "asset-with-credential": "An asset that refers to a credential cannot be imposed.",
        "asset-not-imposable": "The asset is of a kind that cannot be imposed.",
    }
    severity = "error"

    def run(self, subject: PolicySet) -> Iterator[Problem]:
        for policy in subject.policies:
            for level, identities in policy.body.imposed.items():
                for identity in identities:
                    asset = subject.assets.get(identity)
                    if asset is None:
                        reason, fix = "unknown-asset", "add the asset, or correct the id"
                    elif asset.credential:
                        reason, fix = "asset-with-credential", "impose an asset without credential"
                    elif not asset.field:
                        reason, fix = "asset-not-imposable", "impose a data source"
                    else:
                        continue
                    named = f"{identity} ({asset.kind} {asset.name})" if asset else identity
                    entry = ("imposed", level, "", identity)
                    yield policy.problem(self, entry, named, fix, reason)


class LockedWithoutItem:
    """Every locked key needs a default or imposed item in a policy of this or a broader scope."""

    ids: ClassVar = {
        "locked-without-item": "A key is locked for which there is no default or imposed item."
    }
    severity = "warning"

    def run(self, subject: PolicySet) -> Iterator[Problem]:
        assets = subject.assets
        for policy in subject.policies:
            broader: list[Policy] | None = None
            for level in policy.body.rules:
                for leaf, arguments in policy.body.rules[level].items():
                    locked: frozenset[str] = arguments.get("locked", frozenset())
                    missing = locked - known_keys([policy], assets, leaf)
                    if not missing:
                        continue
                    if broader is None:
                        broader = not_narrower(policy, subject.policies)
                    for key in sorted(missing - known_keys(broader, assets, leaf)):
                        fix = f"give {leaf} a default item {key}, or remove the key"
                        yield policy.problem(self, ("rule", level, leaf, "locked"), key, fix)


def not_narrower(policy: Policy, policies: Iterable[Policy]) -> list[Policy]:
    """Return the policies of this or a broader scope that can apply to the same workload."""
    return [
        each
        for each in policies
        if combine.RANK[each.scope] <= combine.RANK[policy.scope]
        and overlap(policy, each) is not Overlap.NONE
    ]


def known_keys(policies: Iterable[Policy], assets: Mapping[str, Asset], leaf: str) -> set[str]:
    """Return the keys of a field's default and imposed items at all levels, and asset ids."""
    known: set[str] = set()
    for policy in policies:
        for items in policy.body.items.values():
            known |= {item.key for item in items.get(leaf, ()) if not item.excluded}
        for identities in policy.body.imposed.values():
            held = [assets[each] for each in identities if each in assets]
            known |= {name for each in held if each.field == leaf for name in (each.name, each.id)}
    return known


def combine_at(
    policies: Sequence[Policy], level: str, combination: str, assets: Mapping[str, Asset]
) -> dict[str, Leaf]:
    """Combine the policies at one level."""
    roles = (level.removeprefix(ROLE),) if level.startswith(ROLE) else ()
    component = level.removeprefix(COMPONENT) if level.startswith(COMPONENT) else ""
    views = [combine.view(each, roles, component) for each in policies]
    return combine.combine(views, combination, assets)


class CombinedPolicies:
    """Problems of combined policies, for every combination that certainly occurs."""

    ids: ClassVar = {
        "default-outside-combined-rules": "The default breaks a rule of another policy.",
        "shut-out-by-list": "A broader scope's list of images lacks the default, which does not count.",
        "shut-out-by-lock": "A broader scope forbids changes, so this value does not apply.",
        "imposed-twice": REASONS["imposed-twice"],
    }
    severity = "warning"

    def run(self, subject: PolicySet) -> Iterator[Problem]:
        for cell in cells(subject.policies, Interplay(subject.policies, subject.assets)):
            for level in levels(*cell):
                effective = combine_at(cell, level, subject.combination, subject.assets)
                for leaf in effective.values():
                    yield from self.check_lost(cell, leaf, level, subject.assets)
                    for policy in cell:
                        yield from self.check_defaults(policy, leaf, level, effective)

    def check_lost(
        self, cell: Cell, leaf: Leaf, level: str, assets: Mapping[str, Asset]
    ) -> Iterator[Problem]:
        """Report values that a lock or an imposed asset of a broader scope overrides."""
        for lost in leaf.lost:
            if lost.reason not in LOST:
                continue
            policy = next(each for each in cell if each.source == lost.source)
            is_default = lost.what == "default"
            kind = "default" if is_default else "item"
            entry: Entry = (kind, level, leaf.path, "" if is_default else lost.what)
            if not is_default and not has_entry(policy, entry):
                entry = ("imposed", level, "", identity_of(policy, lost.what, assets))
            what = "the default" if is_default else f"item {lost.what}"
            found = f"{what} of {leaf.path} in {policy.source.label()}, which does not apply"
            yield policy.problem(self, entry, found, LOST[lost.reason], lost.reason)

    def check_defaults(
        self, policy: Policy, leaf: Leaf, level: str, effective: Mapping[str, Leaf]
    ) -> Iterator[Problem]:
        """Report defaults and default items of a policy that break a rule of another policy."""
        if any(each.source == policy.source for each in leaf.lost if each.what == "default"):
            return
        default = resolve_level(policy.body.defaults, level).get(leaf.path)
        foreign = [each for each in leaf.constraints if each.policy is not policy]
        if default is not None:
            entry: Entry = ("default", level, leaf.path, "")
            yield from self.check_value(policy, leaf.path, default.value, foreign, entry)
        lost = {each.what for each in leaf.lost if each.source == policy.source}
        for item in resolve_level(policy.body.items, level).get(leaf.path, ()):
            for name, given in item.attributes.items():
                path = f"{leaf.path}.{name}"
                if item.excluded or item.key in lost or path not in effective:
                    continue
                others = [each for each in effective[path].constraints if each.policy is not policy]
                entry = ("attribute", level, path, item.key)
                yield from self.check_value(policy, path, given.value, others, entry)

    def check_value(
        self,
        policy: Policy,
        path: str,
        value: object,
        constraints: Iterable[Constraint],
        entry: Entry,
    ) -> Iterator[Problem]:
        """Report each rule that a default breaks."""
        leaf = leaf_type(path)
        for each in constraints:
            for fault in broken(leaf, value, {each.rule: each.argument}):
                found = (
                    f"default {leaf.show(value)} of {path} breaks {fault} of {each.source.label()}"
                )
                fix = "write a default that the combined rules allow"
                yield policy.problem(self, entry, found, fix)


def cells(policies: Sequence[Policy], interplay: Interplay) -> list[Cell]:
    """Return the sets of policies that certainly apply together and can affect one another.

    Sets are formed by namespace or selector, and by type or kind. Each set is checked twice: the
    enforced policies alone, and together with those in warn mode.
    """
    found: dict[frozenset[int], Cell] = {}
    for members in namespace_cells(policies):
        if not interplay.among(members):
            continue
        meetings = Meetings(members)
        for kind in meetings.kinds:
            met = meetings.of(kind)
            enforced = [each for each in met if each.enforcement == "Enforce"]
            for cell in (enforced, met):
                key = frozenset(map(id, cell))
                if len(cell) > 1 and key not in found and interplay.among(cell):
                    found[key] = tuple(cell)
    return list(found.values())


def namespace_cells(policies: Sequence[Policy]) -> Iterator[list[Policy]]:
    """Return each distinct set of policies that certainly applies to one namespace."""
    wide = [each for each in policies if not each.namespace]
    by_name = [each for each in wide if selects_by_name(each)]
    local: dict[str, list[Policy]] = {}
    for each in policies:
        if each.namespace:
            local.setdefault(each.namespace, []).append(each)
    for namespace, own in local.items():
        yield [
            each for each in by_name if overlap_with_namespace(each, namespace) is Overlap.CERTAIN
        ] + own
    required = [(each, requirements_of(each.namespace_selector)) for each in wide]
    for wanted in {found for _, found in required}:
        yield [each for each, found in required if found <= wanted]


def identity_of(policy: Policy, name: str, assets: Mapping[str, Asset]) -> str:
    """Return the id of the asset with this name that a policy imposes."""
    imposed = (each for identities in policy.body.imposed.values() for each in identities)
    return next((each for each in imposed if each in assets and assets[each].name == name), name)


def has_entry(policy: Policy, entry: Entry) -> bool:
    """Whether the policy has that entry, at its level or EVERYWHERE."""
    kind, _, leaf, word = entry
    return any((kind, level, leaf, word) in policy.positions for level in (entry[1], EVERYWHERE))
