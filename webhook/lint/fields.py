"""Tells of kinds that nobody knows, fields that no kind carries, and rules that bind no value."""

from __future__ import annotations

from collections.abc import Iterator

from webhook.documents.problem import Problem
from webhook.lint.coverage import includes, listed
from webhook.lint.kinds import Kind, World, identity
from webhook.objects.path import ABSENT
from webhook.policy import rules
from webhook.policy.body import holding
from webhook.policy.catalogue.workloads import PRIORITIES
from webhook.policy.checks.policy_set import problem
from webhook.policy.leaves import leaf_type
from webhook.policy.names import closest
from webhook.policy.policy import Place, Policy
from webhook.policy.row import Binding
from webhook.policy.table import TABLE

PRIORITY = "priorityClass"
SOURCE = "security.uidGidSource"
USERS = ("security.runAsUid", "security.runAsGid")


def unknown_kinds(world: World, policy: Policy) -> Iterator[Problem]:
    """Kinds without definition, and policies that govern none that has one."""
    labels = {each.label: each for each in world.kinds}
    known = {(each.group, each.name) for each in world.kinds}
    for index, (group, name) in enumerate(listed_kinds(world, policy)):
        if (group, name) not in known:
            label = Kind(group, name).label
            meant = closest(label, labels)
            fix = f"did you mean {meant}?" if meant else "add its ResourceInterface (--interfaces)"
            found = f"{label}, which has no definition"
            path = ("spec", "kinds", index)
            yield world.at_envelope(policy, path, "no-shipped-kind", found, fix)
    if policy.workload_types and not world.governed(policy):
        found = f"{', '.join(sorted(policy.workload_types))}, and no kind of these types has a definition"
        fix = "name other types, or add ResourceInterfaces (--interfaces)"
        yield world.at_envelope(policy, ("spec", "workloadTypes"), "no-shipped-kind", found, fix)


def listed_kinds(world: World, policy: Policy) -> list[tuple[str, str]]:
    """The kinds of a policy in the order of its document."""
    document = world.sources.get(identity(policy))
    spec = document.data.get("spec") if document and isinstance(document.data, dict) else None
    given = spec.get("kinds") if isinstance(spec, dict) else None
    if not isinstance(given, list):
        return sorted(policy.kinds or ())
    return [(str(each.get("group") or ""), str(each.get("kind"))) for each in given]


def uncarried(world: World, policy: Policy) -> Iterator[Problem]:
    """Fields that no kind in reach has a place for."""
    kinds = world.governed(policy)
    if not kinds:
        return
    told: set[str] = set()
    for (what, level, leaf, word), _ in sorted(policy.places.items(), key=lambda one: one[1][1:]):
        row = TABLE.owner(leaf) if leaf in TABLE.fields or leaf in TABLE.attributes else None
        if what not in ("default", "rule") or row is None or row.path in told:
            continue
        if row.binding is not Binding.NOTHING and not any(each.carries(row) for each in kinds):
            told.add(row.path)
            carriers = [each.label for each in world.kinds if each.carries(row)]
            fix = f"only {listed(carriers)} have it" if carriers else "remove it"
            found = f"{row.path}, which no kind that the policy governs can carry"
            yield problem(policy, (what, level, leaf, word), "no-kind-carries", found, fix)


def without_value(world: World, policy: Policy) -> Iterator[Problem]:
    """Options of one value and bounds that whoever gives no value passes."""
    for level, leaves in policy.body.rules.items():
        for leaf, arguments in leaves.items():
            if supplied(world, policy, level, leaf):
                continue
            options = arguments.get("options")
            if options is not None and len(options) == 1 and not leaf_type(leaf).is_array:
                value = leaf_type(leaf).show(next(iter(options)))
                found = f"{value} as the only option of {leaf}, without default and required"
                fix = f"give {leaf} this value in defaults, or write required: true"
                yield problem(policy, ("rule", level, leaf, "options"), "single-option", found, fix)
            bounds = [name for name in bounds_of(leaf) if name in arguments]
            if bounds:
                found = (
                    f"{' and '.join(bounds)} of {leaf}, which does not apply where no value is set"
                )
                fix = "write required: true beside it, or give a default"
                place = ("rule", level, leaf, bounds[0])
                yield problem(policy, place, "bound-without-value", found, fix)


def unknown_priorities(world: World, policy: Policy) -> Iterator[Problem]:
    """Priority classes that are none of the platform's: defaults and options."""
    for level, leaves in policy.body.rules.items():
        for name in sorted(leaves.get(PRIORITY, {}).get("options") or ()):
            if name not in PRIORITIES:
                yield unknown_priority(policy, ("rule", level, PRIORITY, "options"), name)
    for level, defaults in policy.body.defaults.items():
        given = defaults.get(PRIORITY)
        if given is not None and given.value not in PRIORITIES:
            yield unknown_priority(policy, ("default", level, PRIORITY, ""), given.value)


def unknown_priority(policy: Policy, place: Place, name: str) -> Problem:
    """The warning on one of them."""
    meant = closest(name, PRIORITIES)
    fix = f"did you mean {meant}?" if meant else "make sure that the cluster has this PriorityClass"
    found = f"{name}, which is none of the platform's priority classes"
    return problem(policy, place, "unknown-priority-class", found, fix)


def required_without_effect(world: World, policy: Policy) -> Iterator[Problem]:
    """`required` where absence has a value of its own, so that there always is one."""
    for level, leaves in policy.body.rules.items():
        for leaf, arguments in leaves.items():
            if arguments.get("required") is not True or not always_has_value(leaf):
                continue
            found = f"required of {leaf}, which has a value even where it is left out"
            fix = "remove it; canEdit, blocked or options restrict the value"
            place = ("rule", level, leaf, "required")
            yield problem(policy, place, "required-without-effect", found, fix)


def always_has_value(leaf: str) -> bool:
    """Whether leaving a field or an attribute out is a value in itself that nobody has to write."""
    if leaf in TABLE.attributes:
        return TABLE.attributes[leaf][1].absent is not ABSENT
    row = TABLE.fields[leaf]
    return leaf == SOURCE or (isinstance(row.absent, bool | str) and not row.explicit)


def bounds_of(leaf: str) -> tuple[str, ...]:
    """The bounds of a leaf that are void without a value: of limits both, of user ids the lower."""
    if leaf.startswith("compute.") and leaf.endswith("Limit"):
        return ("min", "max")
    return ("min",) if leaf in USERS else ()


def supplied(world: World, policy: Policy, level: str, leaf: str) -> bool:
    """Whether there is always a value: required, a default, or no value that anybody may give."""
    for each in world.policies:
        if each is not policy and not includes(each, policy):
            continue
        arguments = holding(each.body.rules, level).get(leaf, {})
        if arguments.get("required") is True or "defaultFrom" in arguments:
            return True
        if leaf in holding(each.body.defaults, level):
            return True
    own = policy.body.rules[level][leaf]
    return any(rules.prohibits(name, own.get(name)) for name in ("canEdit", "blocked"))
