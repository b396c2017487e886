"""Compares the violations of what a controller made with those of its owner."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from webhook.evaluation.outcome import Violation
from webhook.objects import quantity
from webhook.objects.draft import same
from webhook.objects.path import ABSENT, Path, read, real
from webhook.pods.pod_view import Container, PodView
from webhook.policy.row import Binding
from webhook.policy.table import TABLE

WHOLE: Final = object()
"""Stands for the content of a whole container or pod: it is about what is missing in there."""


@dataclass(frozen=True, slots=True)
class Seen:
    """A violation with what tells it from others wherever its pod is, and what the object has there."""

    violation: Violation
    key: tuple[Any, ...]
    content: Any
    place: tuple[Any, ...]

    def is_no_further(self, other: Seen) -> bool:
        """Whether it breaks the same rule in the same place, and no further than the other does."""
        if self.key != other.key:
            return False
        if self.violation.rule in ("max", "min"):
            mine, bound = amount(self.violation), amount(other.violation)
            if mine is not None and bound is not None:
                return mine <= bound if self.violation.rule == "max" else mine >= bound
        if self.violation.value != other.violation.value:
            return False
        return is_of_pod(self.violation) or same(self.content, other.content)


def amount(violation: Violation) -> float | int | None:
    """The amount that a violation reports; infinite without a bound, None for what is no amount."""
    if violation.reason == "unbounded":
        return math.inf
    try:
        return quantity.parse(violation.value) if violation.value else None
    except ValueError:
        return None


def is_of_pod(violation: Violation) -> bool:
    """Whether a violation is about the total of a pod, wherever its path points."""
    row = TABLE.owner(violation.field)
    return row.binding is Binding.AMOUNT


Containers = Mapping[Path, Container]


def seen_in(view: PodView, document: Any, violations: Iterable[Violation]) -> list[Seen]:
    """The violations of one pod, ready to be compared."""
    containers = {real(each.path): each for each in view.everyone}
    return [seen(view, containers, document, each) for each in violations]


def without_known(found: Iterable[Seen], known: Iterable[Seen]) -> list[Seen]:
    """The violations that go further than those that are known."""
    before: dict[Any, list[Seen]] = {}
    for each in known:
        before.setdefault(each.key, []).append(each)
    return [
        each
        for each in found
        if not any(each.is_no_further(other) for other in before.get(each.key, ()))
    ]


def seen(view: PodView, containers: Containers, document: Any, violation: Violation) -> Seen:
    """One violation, ready to be compared."""
    place, content = place_of(view, containers, document, violation.path)
    shared = () if violation.field and is_of_pod(violation) else place
    source = violation.source
    origin = (source.policy, source.scope, source.namespace) if source else ()
    # What has no bound is compared by itself, whichever of it a violation names.
    name = "" if violation.reason == "unbounded" else violation.key
    key = (violation.field, violation.rule, origin, name, shared)
    return Seen(violation, key, content, place)


def place_of(
    view: PodView, containers: Containers, document: Any, path: Path
) -> tuple[tuple[Any, ...], Any]:
    """Where a path is in its pod, list items by their names, and what the object has there."""
    content = read(document, path)
    container = container_at(containers, path)
    if container is not None:
        own = real(container.path)
        rest = names_along(container.body, path[len(own) :])
        return (container.list, container.name, *rest), content if rest else WHOLE
    spec_path = real(view.spec_path)
    if path[: len(spec_path)] == spec_path:
        rest = names_along(view.spec, path[len(spec_path) :])
        return ("spec", *rest), content if rest else WHOLE
    metadata_path = view.location.metadata_path
    if metadata_path is not None and path[: len(metadata_path)] == metadata_path:
        return ("metadata", *path[len(metadata_path) :]), content
    return ("", *(step for step in path if isinstance(step, str))), content


def container_at(containers: Containers, path: Path) -> Container | None:
    """The container that a path leads to or into."""
    prefixes = (path[:length] for length in range(1, len(path) + 1))
    return next((containers[each] for each in prefixes if each in containers), None)


def names_along(node: Any, path: Path) -> tuple[Any, ...]:
    """The steps of a path with the names of list items instead of their numbers."""
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
