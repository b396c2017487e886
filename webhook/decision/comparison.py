"""Compares the violations of an object that a controller made with those of its owner."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from webhook.evaluation.outcome import Violation
from webhook.objects import quantity
from webhook.objects.lookup import frozen
from webhook.objects.path import ABSENT, Path, read
from webhook.pods.pod_view import Container, PodView
from webhook.policy.row import Binding
from webhook.policy.table import TABLE

WHOLE: Final = object()
"""The content of a violation of a whole container or pod, which reports something missing in it."""


@dataclass(frozen=True, slots=True)
class ComparableViolation:
    """A violation in a form that can be compared between pods at different paths.

    `key` is equal for violations of one rule at one path of a pod. `content` is the value at that
    path. `pod_path` is the path in the pod, with names instead of list indices.
    """

    violation: Violation
    key: tuple[Any, ...]
    content: Any
    pod_path: tuple[Any, ...]

    @property
    def amount(self) -> float | int | None:
        """The amount that a rule with an order bounds; None for any other violation."""
        rule = self.violation.rule_type
        return amount(self.violation) if rule is not None and rule.is_ordered else None

    @property
    def compared(self) -> Hashable:
        """The value and content: equal for equal violations of a rule without an amount."""
        content = None if is_of_pod(self.violation) else frozen(self.content)
        return self.violation.value, content


class KnownViolations:
    """The violations of an owner that break one rule at one path of a pod."""

    __slots__ = ("bounds", "compared", "without_amount")

    def __init__(self, violations: Iterable[ComparableViolation]) -> None:
        amounts = [(each.amount, each.compared) for each in violations]
        self.bounds = [found for found, _ in amounts if found is not None]
        self.compared = {compared for _, compared in amounts}
        self.without_amount = {compared for found, compared in amounts if found is None}
        if self.bounds:
            # Only the extremes matter, and users choose how many violations there are.
            self.bounds = [min(self.bounds), max(self.bounds)]

    def cover(self, violation: ComparableViolation) -> bool:
        """Return whether one of them goes at least as far as this one."""
        rule, mine = violation.violation.rule_type, violation.amount
        if mine is None:
            return violation.compared in self.compared
        assert rule is not None
        if any(rule.is_no_further(mine, bound) for bound in self.bounds):
            return True
        return violation.compared in self.without_amount


def amount(violation: Violation) -> float | int | None:
    """Return the amount that a violation reports: infinite without a bound, None for no amount."""
    if violation.reason == "unbounded":
        return math.inf
    try:
        return quantity.parse(violation.value) if violation.value else None
    except ValueError:
        return None


def is_of_pod(violation: Violation) -> bool:
    """Return whether a violation is about the total of a pod, wherever its path points."""
    row = TABLE.owner(violation.field)
    return row.binding is Binding.AMOUNT


Containers = Mapping[Path, Container]


def describe_violations(
    view: PodView, document: Any, violations: Iterable[Violation]
) -> list[ComparableViolation]:
    """Describe the violations of one pod for a comparison."""
    containers = {view.at(each.path).report: each for each in view.everyone}
    return [describe_violation(view, containers, document, each) for each in violations]


def find_new_violations(
    found: Iterable[ComparableViolation], known: Iterable[ComparableViolation]
) -> list[ComparableViolation]:
    """Return the violations that go further than the known ones."""
    grouped: dict[Any, list[ComparableViolation]] = {}
    for each in known:
        grouped.setdefault(each.key, []).append(each)
    before = {key: KnownViolations(several) for key, several in grouped.items()}
    return [each for each in found if each.key not in before or not before[each.key].cover(each)]


def describe_violation(
    view: PodView, containers: Containers, document: Any, violation: Violation
) -> ComparableViolation:
    """Describe one violation for a comparison."""
    pod_path, content = locate_in_pod(view, containers, document, violation.path)
    shared = () if violation.field and is_of_pod(violation) else pod_path
    source = violation.source
    origin = (source.policy, source.scope, source.namespace) if source else ()
    # An unbounded value is compared as such, whichever of its keys the violation names.
    name = "" if violation.reason == "unbounded" else violation.key
    key = (violation.field, violation.rule, origin, name, shared)
    return ComparableViolation(violation, key, content, pod_path)


def locate_in_pod(
    view: PodView, containers: Containers, document: Any, path: Path
) -> tuple[tuple[Any, ...], Any]:
    """Return a path relative to its pod, with the names of list items, and the object's value."""
    content = read(document, path)
    container = container_at(containers, path)
    if container is not None:
        own = view.at(container.path).report
        rest = names_along(container.body, path[len(own) :])
        return (container.list, container.name, *rest), content if rest else WHOLE
    spec_path = view.at(view.spec_path).report
    if path[: len(spec_path)] == spec_path:
        rest = names_along(view.spec, path[len(spec_path) :])
        return ("spec", *rest), content if rest else WHOLE
    metadata_path = view.location.metadata_path
    if metadata_path is not None and path[: len(metadata_path)] == metadata_path:
        return ("metadata", *path[len(metadata_path) :]), content
    return ("", *(step for step in path if isinstance(step, str))), content


def container_at(containers: Containers, path: Path) -> Container | None:
    """Return the container that a path leads to or into."""
    prefixes = (path[:length] for length in range(1, len(path) + 1))
    return next((containers[each] for each in prefixes if each in containers), None)


def names_along(node: Any, path: Path) -> tuple[Any, ...]:
    """Return the steps of a path with the names of list items instead of their indices."""
    found: list[Any] = []
    for step in path:
        node = read(node, (step,))
        if isinstance(step, str):
            found.append(step)
        elif isinstance(node, dict):
            found.append(str(node.get("name") or node.get("mountPath") or ""))
        if node is ABSENT:
            node = None
    return tuple(found)
