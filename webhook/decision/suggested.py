"""Suggests entries for the list of injected content that would admit a controller-made object."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

from webhook.catalog.catalog import Catalog
from webhook.decision.comparison import Containers, container_at, is_of_pod
from webhook.decision.decide import decide
from webhook.decision.derived_pods import DerivedPods
from webhook.decision.origins import without_filled_in
from webhook.decision.pods import views_of
from webhook.evaluation.outcome import Denied, Violation
from webhook.evaluation.references import References
from webhook.evaluation.request import Request
from webhook.evaluation.state import Evaluation
from webhook.fields.store_registry import store_of
from webhook.interface.injected_items import (
    Injected,
    InjectedItem,
    container_entry,
    devices_of,
    item_entry,
    merge_lists,
)
from webhook.jq.external import Facts
from webhook.objects.lookup import frozen
from webhook.objects.path import read
from webhook.pods.definition import Definition
from webhook.pods.location import LocationError
from webhook.pods.pod_view import Container, MalformedPod, PodView
from webhook.policy.row import ITEMS, POD, POD_SET
from webhook.policy.table import TABLE

EntryKind = Literal["containers", "items"]


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of the list, with the violations that it `excuses`.

    `of_owner` marks a container of the owner that was changed.
    """

    kind: EntryKind
    body: dict[str, Any]
    excuses: tuple[Violation, ...] = field(default=(), compare=False)
    of_owner: bool = False

    @property
    def title(self) -> str:
        """The entry's name in output."""
        if self.kind == "items":
            return f"item {self.body['field']}"
        changed = ", which its owner has otherwise" if self.of_owner else ""
        return f"container {self.body['name']}{changed}"


@dataclass(frozen=True, slots=True)
class Suggestion:
    """The entries that an object needs, and the violations that no entry excuses."""

    entries: tuple[Entry, ...] = ()
    left: tuple[Violation, ...] = ()


def suggest(
    request: Request,
    catalog: Catalog,
    references: References,
    definition: Definition,
    facts: Facts | None,
    refused: Denied,
) -> Suggestion:
    """Return the entries that the object needs in order not to be `refused`.

    Each kind of entry is tried, and dropped if it changes nothing. The request must contain all
    objects that its decision needs.
    """
    asked = Asked(request, references, definition, facts)

    def left_with(entries: Sequence[Entry]) -> tuple[Violation, ...]:
        decision = decide(request, listing(catalog, entries), references, facts)
        return decision.violations if isinstance(decision, Denied) else ()

    own = owners_containers(request, catalog, references)
    kept: list[Entry] = []
    left = refused.violations
    for find in FINDERS:
        views = asked.views(listing(catalog, kept).config.injected) if left else ()
        found = merge_entries(
            each
            for view in views
            for each in find(Pod(view, definition, catalog, own, request.object), left)
        )
        if found:
            after = left_with([*kept, *found])
            useful = [each for each in found if set(each.excuses) - set(after)]
            left = after if len(useful) == len(found) else left_with([*kept, *useful])
            kept += useful
    return Suggestion(tuple(kept), left)


def merge_entries(entries: Iterable[Entry]) -> list[Entry]:
    """Return the entries without duplicates, each with all violations that it excuses."""
    found: dict[Any, Entry] = {}
    for each in entries:
        key = frozen(each.body)
        known = found.get(key)
        found[key] = each if known is None else replace(known, excuses=known.excuses + each.excuses)
    return list(found.values())


@dataclass(frozen=True, slots=True)
class Asked:
    """One object whose pods are read again for each list."""

    request: Request
    references: References
    definition: Definition
    facts: Facts | None

    def views(self, injected: Injected) -> list[PodView]:
        """Return its pods without the containers that a list allows, none if they are unreadable."""
        try:
            whole = without_filled_in(self.request, self.definition)
            found = DerivedPods(whole, self.references, self.definition, injected, self.facts)
        except (LocationError, MalformedPod):
            return []
        return found.views


def listing(catalog: Catalog, entries: Sequence[Entry]) -> Catalog:
    """Return the catalog with these entries added to its list."""
    containers = tuple(each.body for each in entries if each.kind == "containers")
    items = tuple(
        InjectedItem(each.body["field"], each.body["content"], tuple(each.body.get("mounts") or ()))
        for each in entries
        if each.kind == "items"
    )
    both = merge_lists((catalog.config.injected, Injected(containers, items)))
    return replace(catalog, config=replace(catalog.config, injected=both), excusing={})


Name = tuple[str, str]
"""List and name of a container."""


def owners_containers(
    request: Request, catalog: Catalog, references: References
) -> frozenset[Name]:
    """Return the containers of the objects that were read for the decision."""
    found: set[Name] = set()
    for each in request.objects.values():
        document = each.object
        if not isinstance(document, dict):
            continue
        group, _, version = str(document.get("apiVersion")).rpartition("/")
        definition = catalog.any_definition(group, str(document.get("kind")), version)
        if definition is None or definition.foreign:
            continue
        asked = replace(request, object=document, operation="CREATE", old=None)
        try:
            views, _ = views_of(Evaluation(asked, references, definition))
        except (LocationError, MalformedPod):
            continue
        found |= {(one.list, one.name) for view in views for one in view.everyone}
    return frozenset(found)


class Pod:
    """One pod of the object, and the inputs of its entries. `own` are its owner's containers."""

    __slots__ = ("catalog", "containers", "definition", "document", "own", "view")

    def __init__(
        self,
        view: PodView,
        definition: Definition,
        catalog: Catalog,
        own: frozenset[Name],
        document: Any,
    ) -> None:
        self.view = view
        self.definition = definition
        self.catalog = catalog
        self.own = own
        self.document = document
        self.containers: Containers = {view.at(each.path).report: each for each in view.everyone}

    def entry(self, container: Container, excuses: Sequence[Violation]) -> Iterator[Entry]:
        """Yield the entry for a container, none without an image, which a list requires."""
        body = container_entry(container.body, self.view)
        if body.get("name") and body.get("image"):
            known = (container.list, container.name) in self.own
            yield Entry("containers", body, tuple(excuses), of_owner=known)

    def of_containers(self, violations: Sequence[Violation], *, own: bool) -> Iterator[Entry]:
        """Yield entries for containers that violate a rule, or count in a total that does."""
        by_path: dict[Any, list[Violation]] = {}
        for each in violations:
            container = container_at(self.containers, each.path)
            if container is not None:
                by_path.setdefault(self.view.at(container.path).report, []).append(each)
        totals = [each for each in violations if each.field and is_of_pod(each)]
        for path, container in self.containers.items():
            if ((container.list, container.name) in self.own) is not own:
                continue
            excuses = by_path.get(path, [])
            if totals and not own and devices_of(container.body):
                excuses = [*excuses, *totals]
            if excuses:
                yield from self.entry(container, excuses)


def added_containers(pod: Pod, violations: Sequence[Violation]) -> Iterator[Entry]:
    """Yield entries for containers that the owner does not have."""
    yield from pod.of_containers(violations, own=False)


def changed_containers(pod: Pod, violations: Sequence[Violation]) -> Iterator[Entry]:
    """Yield entries for containers of the owner that were changed."""
    yield from pod.of_containers(violations, own=True)


def items(pod: Pod, violations: Sequence[Violation]) -> Iterator[Entry]:
    """Yield entries for volumes with their mounts, devices, and single values of the pod."""
    for each in violations:
        row = TABLE.owner(each.field) if each.field else None
        if row is not None and row.shape == POD:
            content = read(pod.document, each.path)
            if content and isinstance(content, str | bool | int | list | dict):
                yield Entry("items", item_entry(row.path, content), (each,))
        elif row is not None and row.shape == ITEMS and row.section == "storage":
            store = store_of(row, pod.definition, pod.catalog.config)
            for native in store.read(pod.view):
                paths = (native.path, *(one for found in native.at.values() for one in found))
                if any(each.path[: len(one)] == one for one in paths):
                    whole, *mounts = native.raw
                    yield Entry("items", item_entry(row.path, whole, mounts), (each,))


def set_members(pod: Pod, violations: Sequence[Violation]) -> Iterator[Entry]:
    """Yield entries for volumes by their type, and for sysctls."""
    for each in violations:
        row = TABLE.fields.get(each.field)
        if row is None or row.shape != POD_SET:
            continue
        at = (*pod.view.at(pod.view.spec_path).report, *row.at)
        if each.path[: len(at)] == at and len(each.path) > len(at):
            content = read(pod.document, each.path[: len(at) + 1])
            if content and isinstance(content, dict):
                yield Entry("items", item_entry(row.path, content), (each,))


FINDERS: Final[tuple[Callable[[Pod, Sequence[Violation]], Iterator[Entry]], ...]] = (
    added_containers,
    items,
    set_members,
    changed_containers,
)
"""The order in which entries are tried: added containers, single items, changed containers."""
