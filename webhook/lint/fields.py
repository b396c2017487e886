"""Checks for unknown kinds, fields that no kind carries, and rules without a value to restrict."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from webhook.documents.problem import Problem
from webhook.lint.coverage import includes, list_names
from webhook.lint.kinds import Kind, LintContext, PolicyInContext, identity
from webhook.objects.path import ABSENT
from webhook.policy.body import resolve_level
from webhook.policy.catalogue.workloads import PRIORITIES
from webhook.policy.leaves import leaf_type
from webhook.policy.names import closest
from webhook.policy.policy import Entry, Policy
from webhook.policy.row import Binding
from webhook.policy.rules import TABLE as RULES
from webhook.policy.table import TABLE

PRIORITY = "priorityClass"
SOURCE = "security.uidGidSource"
USERS = ("security.runAsUid", "security.runAsGid")


class NoShippedKind:
    """The kinds of a policy must have definitions."""

    ids: ClassVar = {
        "no-shipped-kind": "No kind that has a definition is governed by the policy.",
    }
    severity = "warning"

    def run(self, subject: PolicyInContext) -> Iterator[Problem]:
        context, policy = subject
        labels = {each.label: each for each in context.kinds}
        known = {(each.group, each.name) for each in context.kinds}
        for index, (group, name) in enumerate(listed_kinds(context, policy)):
            if (group, name) not in known:
                label = Kind(group, name).label
                meant = closest(label, labels)
                fix = (
                    f"did you mean {meant}?"
                    if meant
                    else "add its ResourceInterface (--interfaces)"
                )
                found = f"{label}, which has no definition"
                path = ("spec", "kinds", index)
                yield context.problem(self, policy, path, found, fix)
        if policy.workload_types and not context.kinds_in_scope(policy):
            found = f"{', '.join(sorted(policy.workload_types))}, and no kind of these types has a definition"
            fix = "name other types, or add ResourceInterfaces (--interfaces)"
            yield context.problem(self, policy, ("spec", "workloadTypes"), found, fix)


def listed_kinds(context: LintContext, policy: Policy) -> list[tuple[str, str]]:
    """Return the kinds of a policy in the order of its document."""
    document = context.sources.get(identity(policy))
    spec = document.data.get("spec") if document and isinstance(document.data, dict) else None
    given = spec.get("kinds") if isinstance(spec, dict) else None
    if not isinstance(given, list):
        return sorted(policy.kinds or ())
    return [(str(each.get("group") or ""), str(each.get("kind"))) for each in given]


class NoKindCarries:
    """For each field, some kind that the policy applies to must have a path."""

    ids: ClassVar = {
        "no-kind-carries": "No kind that the policy governs has a path for the field.",
    }
    severity = "warning"

    def run(self, subject: PolicyInContext) -> Iterator[Problem]:
        context, policy = subject
        kinds = context.kinds_in_scope(policy)
        if not kinds:
            return
        reported: set[str] = set()
        for (what, level, leaf, word), _ in sorted(
            policy.positions.items(), key=lambda one: one[1][1:]
        ):
            row = TABLE.owner(leaf) if leaf in TABLE.fields or leaf in TABLE.attributes else None
            if what not in ("default", "rule") or row is None or row.path in reported:
                continue
            if row.binding is not Binding.NOTHING and not any(each.carries(row) for each in kinds):
                reported.add(row.path)
                carriers = [each.label for each in context.kinds if each.carries(row)]
                fix = f"only {list_names(carriers)} have it" if carriers else "remove it"
                found = f"{row.path}, which no kind that the policy governs can carry"
                yield policy.problem(self, (what, level, leaf, word), found, fix)


class WithoutValue:
    """Options and bounds need a field that always has a value."""

    ids: ClassVar = {
        "single-option": "Only one value is allowed, and leaving it out may give another one.",
        "bound-without-value": "A bound applies to values that are set; an absent one passes.",
    }
    severity = "warning"

    def run(self, subject: PolicyInContext) -> Iterator[Problem]:
        context, policy = subject
        for level, leaves in policy.body.rules.items():
            for leaf, arguments in leaves.items():
                if is_always_supplied(context, policy, level, leaf):
                    continue
                options = arguments.get("options")
                if options is not None and len(options) == 1 and needs_value(leaf):
                    value = leaf_type(leaf).show(next(iter(options)))
                    found = f"{value} as the only option of {leaf}, without default and required"
                    fix = f"give {leaf} this value in defaults, or write required: true"
                    yield policy.problem(self, ("rule", level, leaf, "options"), found, fix)
                bounds = [name for name in bounds_of(leaf) if name in arguments]
                if bounds:
                    found = f"{' and '.join(bounds)} of {leaf}, which does not apply where no value is set"
                    fix = "write required: true beside it, or give a default"
                    entry = ("rule", level, leaf, bounds[0])
                    yield policy.problem(self, entry, found, fix, "bound-without-value")


class UnknownPriorityClass:
    """Priority classes of defaults and options must be those of the platform."""

    ids: ClassVar = {
        "unknown-priority-class": "A priority class that is none of the platform's.",
    }
    severity = "warning"

    def run(self, subject: PolicyInContext) -> Iterator[Problem]:
        policy = subject.policy
        for level, leaves in policy.body.rules.items():
            for name in sorted(leaves.get(PRIORITY, {}).get("options") or ()):
                if name not in PRIORITIES:
                    yield self.unknown(policy, ("rule", level, PRIORITY, "options"), name)
        for level, defaults in policy.body.defaults.items():
            given = defaults.get(PRIORITY)
            if given is not None and given.value not in PRIORITIES:
                yield self.unknown(policy, ("default", level, PRIORITY, ""), given.value)

    def unknown(self, policy: Policy, entry: Entry, name: str) -> Problem:
        """Return the warning for one of them."""
        meant = closest(name, PRIORITIES)
        fix = (
            f"did you mean {meant}?"
            if meant
            else "make sure that the cluster has this PriorityClass"
        )
        found = f"{name}, which is none of the platform's priority classes"
        return policy.problem(self, entry, found, fix)


class RequiredWithoutEffect:
    """`required` has an effect only on fields that can have no value."""

    ids: ClassVar = {
        "required-without-effect": "The field always has a value, so required refuses nothing.",
    }
    severity = "warning"

    def run(self, subject: PolicyInContext) -> Iterator[Problem]:
        policy = subject.policy
        for level, leaves in policy.body.rules.items():
            for leaf, arguments in leaves.items():
                if arguments.get("required") is not True or not always_has_value(leaf):
                    continue
                found = f"required of {leaf}, which has a value even where it is left out"
                fix = "remove it; canEdit, blocked or options restrict the value"
                entry = ("rule", level, leaf, "required")
                yield policy.problem(self, entry, found, fix)


def always_has_value(leaf: str) -> bool:
    """Whether a field or an attribute has a value even if it is absent."""
    if leaf in TABLE.attributes:
        return TABLE.attributes[leaf][1].absent is not ABSENT
    row = TABLE.fields[leaf]
    return leaf == SOURCE or (isinstance(row.absent, bool | str) and not row.explicit)


def needs_value(leaf: str) -> bool:
    """Whether a single option has a gap: an absent value passes, and may become another one.

    A device without a configuration is not shared, so rules of its configuration have no gap.
    """
    in_config = leaf in TABLE.fields and TABLE.fields[leaf].binding is Binding.CONFIG
    return not (leaf_type(leaf).is_array or always_has_value(leaf) or in_config)


def bounds_of(leaf: str) -> tuple[str, ...]:
    """Return the bounds that have no effect without a value: for user ids only the lower one."""
    if leaf.startswith("compute.") and leaf.endswith("Limit"):
        return ("min", "max")
    return ("min",) if leaf in USERS else ()


def is_always_supplied(context: LintContext, policy: Policy, level: str, leaf: str) -> bool:
    """Whether there is always a value: it is required, has a default, or cannot be set."""
    for each in context.policies:
        if each is not policy and not includes(each, policy):
            continue
        arguments = resolve_level(each.body.rules, level).get(leaf, {})
        if arguments.get("required") is True or "defaultFrom" in arguments:
            return True
        if leaf in resolve_level(each.body.defaults, level):
            return True
    own = policy.body.rules[level][leaf]
    return any(
        RULES[name].prohibits(argument) and not RULES[name].of_items
        for name, argument in own.items()
    )
