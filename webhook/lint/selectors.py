"""Checks namespace selectors that do not select what their author probably expects."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from webhook.documents.problem import Problem
from webhook.lint.kinds import PolicyInContext, identity
from webhook.objects.path import Path
from webhook.policy.names import closest
from webhook.policy.policy import Policy
from webhook.policy.selector_overlap import Overlap
from webhook.policy.selectors import NAME_LABEL, OPERATORS, disjoint

NEGATIVE = frozenset({"NotIn", "DoesNotExist"})
AT: Path = ("spec", "namespaceSelector")
NAME_LIKE = frozenset({"name", "namespace", "metadata.name", "kubernetes.io/name"})


class SelectorAll:
    """A selector must have a requirement. An empty one selects all namespaces."""

    ids: ClassVar = {
        "selector-all": "An empty selector selects nothing apart: every namespace is governed."
    }
    severity = "warning"

    def run(self, subject: PolicyInContext) -> Iterator[Problem]:
        context, policy = subject
        document = context.sources.get(identity(policy))
        spec = document.data.get("spec") if document and isinstance(document.data, dict) else None
        given = spec.get("namespaceSelector") if isinstance(spec, dict) else None
        if policy.namespace_selector is None and given is not None:
            fix = "write matchLabels, or leave namespaceSelector out"
            yield context.problem(self, policy, AT, "an empty selector", fix)


class SelectorEmpty:
    """Some namespace must be able to match the selector."""

    ids: ClassVar = {"selector-empty": "No namespace can match all that the selector asks for."}
    severity = "warning"

    def run(self, subject: PolicyInContext) -> Iterator[Problem]:
        context, policy = subject
        if matches_nothing(policy):
            found = "two requirements that exclude each other"
            fix = "remove one of the two requirements on one label"
            yield context.problem(self, policy, AT, found, fix)


class SelectorNegative:
    """A selector must require a label. Otherwise it also selects namespaces without labels."""

    ids: ClassVar = {
        "selector-negative": "The selector also matches namespaces that have no such label."
    }
    severity = "warning"

    def run(self, subject: PolicyInContext) -> Iterator[Problem]:
        context, policy = subject
        if policy.namespace_selector is None or matches_nothing(policy):
            return
        if all(operator in NEGATIVE for _, operator, _ in selector_of(policy)):
            words = " and ".join(each for each in OPERATORS if each in NEGATIVE)
            fix = "add a requirement on a label that namespaces must have"
            yield context.problem(self, policy, AT, f"only {words} in the selector", fix)


class SelectorNameLabel:
    """To select a namespace by name, a selector must use the label that Kubernetes sets."""

    ids: ClassVar = {
        "selector-name-label": "A label that looks like a namespace's name, and that is never set."
    }
    severity = "warning"

    def run(self, subject: PolicyInContext) -> Iterator[Problem]:
        context, policy = subject
        for key, _, _ in () if matches_nothing(policy) else selector_of(policy):
            if key in NAME_LIKE or (key != NAME_LABEL and closest(key, [NAME_LABEL])):
                fix = f"write {NAME_LABEL} to select by name"
                yield context.problem(self, policy, AT, f"the label {key}", fix)


class ExclusionWithoutEffect:
    """An excluded namespace must match the selector. Otherwise the exclusion has no effect."""

    ids: ClassVar = {
        "exclusion-without-effect": "A namespace is excluded that the selector does not select."
    }
    severity = "warning"

    def run(self, subject: PolicyInContext) -> Iterator[Problem]:
        context, policy = subject
        if policy.namespace_selector is None or matches_nothing(policy):
            return
        for name in sorted(policy.exclude_namespaces):
            if overlap_without_exclusion(policy, name) is Overlap.NONE:
                path, found = ("spec", "excludeNamespaces"), f"{name}, which is not selected anyway"
                yield context.problem(
                    self, policy, path, found, "remove it, or correct the selector"
                )


def matches_nothing(policy: Policy) -> bool:
    """Whether two requirements on one label exclude each other."""
    return disjoint(policy.namespace_selector, None)


def overlap_without_exclusion(policy: Policy, name: str) -> Overlap:
    """Whether the selector, without exclusions, selects the namespace with this name."""
    by_name = [each for each in selector_of(policy) if each[0] == NAME_LABEL]
    chosen = any(operator == "In" and name not in values for _, operator, values in by_name)
    return Overlap.NONE if chosen else Overlap.POSSIBLE


def selector_of(policy: Policy) -> tuple[tuple[str, str, tuple[str, ...]], ...]:
    """Return the requirements of a policy's selector."""
    return policy.namespace_selector.requirements if policy.namespace_selector else ()
