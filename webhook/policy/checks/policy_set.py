"""Checks policies and assets against one another: what each of them alone cannot show."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from webhook.documents.problem import Problem
from webhook.policy import combine
from webhook.policy.body import holding
from webhook.policy.checks import one_policy as checks
from webhook.policy.checks.conflicts import conflicts, levels, place_in
from webhook.policy.checks.meeting import Interplay, Meetings
from webhook.policy.combine import Constraint, Leaf
from webhook.policy.leaves import leaf_type
from webhook.policy.policy import EVERYWHERE, Asset, Place, Policy
from webhook.policy.selector_overlap import Overlap, overlap, reaches, selects_by_name
from webhook.policy.selectors import requirements_of

Cell = tuple[Policy, ...]
ROLE, COMPONENT = "role:", "component:"


def check_together(
    policies: Sequence[Policy], assets: Mapping[str, Asset], combination: str = combine.GUARDED
) -> tuple[Problem, ...]:
    """Every problem between documents; those of one place and reason are told once."""
    found = [
        *asset_problems(policies, assets),
        *conflicts(policies),
        *locks_without_item(policies, assets),
        *combined_problems(policies, assets, combination),
    ]
    unique = {(each.origin, each.path, each.line, each.reason, each.found): each for each in found}
    return tuple(sorted(unique.values(), key=lambda each: (each.origin, each.line, each.column)))


def problem(
    policy: Policy, place: Place, reason: str, found: str, fix: str, severity: str = "warning"
) -> Problem:
    """A problem at what a policy says."""
    path, line, column = place_in(policy, place)
    return Problem(policy.origin, path, found, fix, reason, line, column, severity)


def asset_problems(policies: Iterable[Policy], assets: Mapping[str, Asset]) -> Iterator[Problem]:
    """Imposed assets that do not exist or cannot be imposed."""
    for policy in policies:
        for level, identities in policy.body.imposed.items():
            for identity in identities:
                place = ("imposed", level, "", identity)
                asset = assets.get(identity)
                if asset is None:
                    reason, fix = "unknown-asset", "add the asset, or correct the id"
                elif asset.credential:
                    reason, fix = "asset-with-credential", "impose an asset without credential"
                elif not asset.field:
                    reason, fix = "asset-not-imposable", "impose a data source"
                else:
                    continue
                named = f"{identity} ({asset.kind} {asset.name})" if asset else identity
                yield problem(policy, place, reason, named, fix, "error")


def locks_without_item(
    policies: Sequence[Policy], assets: Mapping[str, Asset]
) -> Iterator[Problem]:
    """Locked keys for which no policy of this or a broader scope has a default or imposed item."""
    for policy in policies:
        reachable: list[Policy] | None = None
        for level in policy.body.rules:
            for leaf, arguments in policy.body.rules[level].items():
                missing = arguments.get("locked", frozenset()) - known_keys([policy], assets, leaf)
                if not missing:
                    continue
                if reachable is None:
                    reachable = not_narrower(policy, policies)
                for key in sorted(missing - known_keys(reachable, assets, leaf)):
                    place = ("rule", level, leaf, "locked")
                    fix = f"give {leaf} a default item {key}, or remove the key"
                    yield problem(policy, place, "locked-without-item", key, fix)


def not_narrower(policy: Policy, policies: Iterable[Policy]) -> list[Policy]:
    """The policies of this or a broader scope that may govern something with it."""
    return [
        each
        for each in policies
        if combine.RANK[each.scope] <= combine.RANK[policy.scope]
        and overlap(policy, each) is not Overlap.NONE
    ]


def known_keys(policies: Iterable[Policy], assets: Mapping[str, Asset], leaf: str) -> set[str]:
    """The keys of default and imposed items of a field, at whatever level; assets also by id."""
    known: set[str] = set()
    for policy in policies:
        for items in policy.body.items.values():
            known |= {item.key for item in items.get(leaf, ()) if not item.excluded}
        for identities in policy.body.imposed.values():
            held = [assets[each] for each in identities if each in assets]
            known |= {name for each in held if each.field == leaf for name in (each.name, each.id)}
    return known


def combined_problems(
    policies: Sequence[Policy], assets: Mapping[str, Asset], combination: str
) -> Iterator[Problem]:
    """What is wrong only with the combined policies, for every combination that surely occurs."""
    for cell in cells(policies, Interplay(policies, assets)):
        for level in levels(*cell):
            roles = (level.removeprefix(ROLE),) if level.startswith(ROLE) else ()
            component = level.removeprefix(COMPONENT) if level.startswith(COMPONENT) else ""
            views = [combine.view(each, roles, component) for each in cell]
            effective = combine.combine(views, combination, assets)
            for leaf in effective.values():
                yield from lost_problems(cell, leaf, level, assets)
                for policy in cell:
                    yield from outside(policy, leaf, level, effective)


def cells(policies: Sequence[Policy], interplay: Interplay) -> list[Cell]:
    """The sets of policies that surely meet and may say more together than alone.

    They meet per namespace or selector, per type or kind. Policies under trial are joined to the
    enforced ones, which are also looked at alone.
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
    """The policies that surely govern one namespace, for each that differs."""
    wide = [each for each in policies if not each.namespace]
    by_name = [each for each in wide if selects_by_name(each)]
    local: dict[str, list[Policy]] = {}
    for each in policies:
        if each.namespace:
            local.setdefault(each.namespace, []).append(each)
    for namespace, own in local.items():
        yield [each for each in by_name if reaches(each, namespace) is Overlap.CERTAIN] + own
    required = [(each, requirements_of(each.namespace_selector)) for each in wide]
    for wanted in {found for _, found in required}:
        yield [each for each, found in required if found <= wanted]


LOST = {
    "shut-out-by-lock": "a broader scope forbids changes; write it there, or remove it",
    "shut-out-by-list": "write an image that every broader scope's list has, or add it there",
    "imposed-twice": "remove one of the two assets",
}


def lost_problems(
    cell: Cell, leaf: Leaf, level: str, assets: Mapping[str, Asset]
) -> Iterator[Problem]:
    """What does not count because of a broader lock or a broader imposed asset."""
    for lost in leaf.lost:
        if lost.reason not in LOST:
            continue
        policy = next(each for each in cell if each.source == lost.source)
        is_default = lost.what == "default"
        kind = "default" if is_default else "item"
        place: Place = (kind, level, leaf.path, "" if is_default else lost.what)
        if not is_default and not is_placed(policy, place):
            place = ("imposed", level, "", identity_of(policy, lost.what, assets))
        said = f"the default of {leaf.path}" if is_default else f"item {lost.what} of {leaf.path}"
        found = f"{said} in {policy.source.label()}, which does not apply"
        yield problem(policy, place, lost.reason, found, LOST[lost.reason])


def identity_of(policy: Policy, name: str, assets: Mapping[str, Asset]) -> str:
    """The id of the asset of that name that a policy imposes."""
    imposed = (each for identities in policy.body.imposed.values() for each in identities)
    return next((each for each in imposed if each in assets and assets[each].name == name), name)


def is_placed(policy: Policy, place: Place) -> bool:
    """Whether the policy says something at that place."""
    kind, _, leaf, word = place
    return any((kind, level, leaf, word) in policy.places for level in (place[1], EVERYWHERE))


def outside(
    policy: Policy, leaf: Leaf, level: str, effective: Mapping[str, Leaf]
) -> Iterator[Problem]:
    """A default of a policy, or of an item of it, that a rule of another policy refuses."""
    if any(each.source == policy.source for each in leaf.lost if each.what == "default"):
        return
    default = holding(policy.body.defaults, level).get(leaf.path)
    foreign = [each for each in leaf.constraints if each.policy is not policy]
    if default is not None:
        place: Place = ("default", level, leaf.path, "")
        yield from refused(policy, leaf.path, default.value, foreign, place)
    lost = {each.what for each in leaf.lost if each.source == policy.source}
    for item in holding(policy.body.items, level).get(leaf.path, ()):
        for name, given in item.attributes.items():
            path = f"{leaf.path}.{name}"
            if item.excluded or item.key in lost or path not in effective:
                continue
            others = [each for each in effective[path].constraints if each.policy is not policy]
            place = ("attribute", level, path, item.key)
            yield from refused(policy, path, given.value, others, place)


def refused(
    policy: Policy, path: str, value: object, constraints: Iterable[Constraint], place: Place
) -> Iterator[Problem]:
    """A warning for each rule that a default breaks."""
    leaf = leaf_type(path)
    for each in constraints:
        for fault in checks.broken(leaf, value, {each.rule: each.argument}):
            found = f"default {leaf.show(value)} of {path} breaks {fault} of {each.source.label()}"
            fix = "write a default that the combined rules allow"
            yield problem(policy, place, "default-outside-combined-rules", found, fix)
