"""Tells of selectors of namespaces that select others than one would think."""

from __future__ import annotations

from collections.abc import Iterator

from webhook.documents.problem import Problem
from webhook.lint.kinds import World, identity
from webhook.objects.path import Path
from webhook.policy.names import closest
from webhook.policy.policy import Policy
from webhook.policy.selector_overlap import Overlap
from webhook.policy.selectors import NAME_LABEL, OPERATORS, contradict

NEGATIVE = frozenset({"NotIn", "DoesNotExist"})
NAME_LIKE = frozenset({"name", "namespace", "metadata.name", "kubernetes.io/name"})


def selectors(world: World, policy: Policy) -> Iterator[Problem]:
    """Selectors of namespaces that select others than one would think."""
    at: Path = ("spec", "namespaceSelector")
    selector = policy.namespace_selector
    if selector is None:
        document = world.sources.get(identity(policy))
        spec = document.data.get("spec") if document and isinstance(document.data, dict) else None
        if isinstance(spec, dict) and spec.get("namespaceSelector") is not None:
            fix = "write matchLabels, or leave namespaceSelector out"
            yield world.at_envelope(policy, at, "selector-all", "an empty selector", fix)
        return
    wanted = selector.requirements
    if any(contradict(a, b) for i, a in enumerate(wanted) for b in wanted[i + 1 :] if a[0] == b[0]):
        fix = "remove one of the two requirements on one label"
        yield world.at_envelope(
            policy, at, "selector-empty", "two requirements that exclude each other", fix
        )
        return
    if all(operator in NEGATIVE for _, operator, _ in wanted):
        found = (
            f"only {' and '.join(each for each in OPERATORS if each in NEGATIVE)} in the selector"
        )
        fix = "add a requirement on a label that namespaces must have"
        yield world.at_envelope(policy, at, "selector-negative", found, fix)
    for key, _, _ in wanted:
        if key in NAME_LIKE or (key != NAME_LABEL and closest(key, [NAME_LABEL])):
            fix = f"write {NAME_LABEL} to select by name"
            yield world.at_envelope(policy, at, "selector-name-label", f"the label {key}", fix)
    for name in sorted(policy.exclude_namespaces):
        if reaches_without_exclusion(policy, name) is Overlap.NONE:
            found, fix = (
                f"{name}, which is not selected anyway",
                "remove it, or correct the selector",
            )
            path = ("spec", "excludeNamespaces")
            yield world.at_envelope(policy, path, "exclusion-without-effect", found, fix)


def reaches_without_exclusion(policy: Policy, name: str) -> Overlap:
    """Whether the selector alone selects the namespace of that name."""
    by_name = [each for each in selector_of(policy) if each[0] == NAME_LABEL]
    chosen = any(operator == "In" and name not in values for _, operator, values in by_name)
    return Overlap.NONE if chosen else Overlap.POSSIBLE


def selector_of(policy: Policy) -> tuple[tuple[str, str, tuple[str, ...]], ...]:
    """The requirements of a policy's selector."""
    return policy.namespace_selector.requirements if policy.namespace_selector else ()
