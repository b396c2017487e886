"""Sets of names that a pod uses: sysctls, types of volumes. They are checked, never written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from webhook.evaluation.injected import is_injected
from webhook.evaluation.state import Evaluation, ratchets
from webhook.fields.handler import FieldSource, FieldValue, PodField, PodHandler
from webhook.fields.own_volumes import OwnVolumes, own_volumes
from webhook.fields.scalar import reader, rules_of
from webhook.objects.lookup import Lookup, frozen
from webhook.objects.path import Path
from webhook.pods.pod_view import MalformedPod, PodView, mapping, sequence
from webhook.policy.combine import Constraint, Leaf
from webhook.policy.row import POD_SET, Field


@dataclass(slots=True)
class Element:
    """One name in use: its path, its content, and the key that identifies it across an update.

    `content` must be unchanged for it to be the same: another host path is another volume, whatever
    its name.
    """

    name: str
    path: Path
    raw: Any
    key: str
    content: Any = None


def source_names(volume: dict[str, Any]) -> list[str]:
    """Return the types of a volume: its keys except the name. Without any it is an emptyDir."""
    named = [str(key) for key, value in volume.items() if key != "name" and value is not None]
    return named or ["emptyDir"]


def volume_elements(body: dict[str, Any], path: Path) -> Iterator[Element]:
    """Yield the types of one volume, identified by its name."""
    for name in source_names(body):
        place = (*path, name) if name in body else path
        yield Element(name, place, body, f"{body.get('name')}/{name}", body.get(name))


def claim_element(body: dict[str, Any], path: Path) -> Element:
    """Yield the type of the volume that a workload's claim template adds to its pods."""
    metadata = body.get("metadata")
    known = {**body, **metadata} if isinstance(metadata, dict) else body
    names = (known.get(key) for key in ("name", "claimName", "volumeClaimName", "mountPath"))
    name = next((each for each in names if isinstance(each, str)), path[-1])
    return Element(CLAIM, path, body, f"{name}/claim template", body)


def named_elements(body: dict[str, Any], path: Path) -> Iterator[Element]:
    """Yield the name of one entry."""
    name = str(body.get("name") or "")
    yield Element(name, (*path, "name"), body, name)


ELEMENTS: dict[str, Callable[[dict[str, Any], Path], Iterator[Element]]] = {
    "security.volumeTypes": volume_elements,
    "security.sysctls": named_elements,
}
CLAIM = "persistentVolumeClaim"


class PodSetField(PodField):
    """One set of names of the pod spec."""

    __slots__ = ("at", "elements_of", "get", "own", "store")

    def __init__(self, row: Field, leaf: Leaf, own: OwnVolumes) -> None:
        self.own = own
        super().__init__(row, rules_of(row, leaf))
        self.at = row.at
        self.get = reader(row.at)
        self.elements_of = ELEMENTS[row.path]
        self.store = str(row.at[-1])

    def elements(self, view: PodView, ev: Evaluation) -> list[Element]:
        """Return every name in use, except those that Kubernetes adds. Raises MalformedPod.

        The workload's claim templates are volumes of its pods, whether or not something mounts
        them.
        """
        path = (*view.spec_path, *self.at)
        found: list[Element] = []
        for index, entry in enumerate(sequence(self.get(view.spec), path)):
            found += self.elements_of(mapping(entry, (*path, index)), (*path, index))
        for place, entries in view.overridden(self.at):
            for index, entry in enumerate(sequence(entries, place)):
                found += self.elements_of(mapping(entry, (*place, index)), (*place, index))
        found = [
            each
            for each in found
            if not is_injected(self.store, each, view, ev.request)
            and not ev.injected.has_content(each.raw)
        ]
        if self.store == "volumes" and view.claims:
            found += [claim_element(body, path) for path, body in view.claims]
        return found

    def elements_before(self, view: PodView, ev: Evaluation) -> list[Element] | None:
        """Return the names before the update, None on creation. Unreadable ones excuse nothing."""
        if view.old is None:
            return None
        try:
            return self.elements(view.old, ev)
        except MalformedPod:
            return []

    def not_own(self, view: PodView, ev: Evaluation, elements: list[Element]) -> list[Element]:
        """Return the names in use, except for volumes that the policy itself adds."""
        if self.store != "volumes":
            return elements
        own = self.own.reader(view, ev)
        return [one for one in elements if not own.has(one.raw, volume_path(one))]

    def check_intent(self, view: PodView, ev: Evaluation) -> None:
        """Check prohibitions: canEdit against the default, any name without a default."""
        if not self.rules.prohibitions:
            return
        elements = self.elements(view, ev)
        if not elements:
            return
        before = self.elements_before(view, ev)
        for each in self.rules.prohibitions:
            self.check_rule(view, ev, each, elements, before if ratchets(each) else None)

    def check_rule(
        self,
        view: PodView,
        ev: Evaluation,
        each: Constraint,
        elements: list[Element],
        before: list[Element] | None,
    ) -> None:
        """Check one prohibition on the names in use. Names that an update leaves alone pass."""
        default = self.rules.default
        allowed: frozenset[str] = frozenset()
        if default is not None and each.type.fixes_default:
            allowed = default.value
        shown = self.rules.show(allowed) if allowed else None
        elements, stood = self.not_own(view, ev, elements), Stood(self, view, ev, before)
        for one in elements:
            if one.name not in allowed and not stood.has(one):
                self.refuse(ev, one, shown, each)
        used = frozenset(one.name for one in elements)
        was = None if before is None else frozenset(one.name for one in before)
        if elements and used < allowed and used != was:
            path = (*view.spec_path, *self.at)
            ev.violate(self.row.path, path, self.rules.show(used), shown, each)

    def refuse(self, ev: Evaluation, one: Element, allowed: str | None, each: Constraint) -> None:
        """Report one name that is not allowed."""
        shown = self.rules.show(frozenset({one.name}))
        ev.violate(self.row.path, one.path, shown, allowed, each)

    def fill(self, view: PodView, ev: Evaluation) -> None:
        """Write nothing: a name alone is not an entry."""

    def check_final(self, view: PodView, ev: Evaluation) -> None:
        """Check options on every name, and required if there is none."""
        elements = self.elements(view, ev)
        before = self.elements_before(view, ev)
        if not elements:
            if self.row.windows or not view.windows:
                path = (*view.spec_path, *self.at)
                self.rules.check_required(ev, path, unchanged=before == [])
            return
        stood = Stood(self, view, ev, before)
        for each, holds in self.rules.final:
            argument = each.argument
            broken = [one for one in elements if not holds(frozenset({one.name}), argument)]
            for one in self.not_own(view, ev, broken):
                if not (ratchets(each) and stood.has(one)):
                    self.refuse(ev, one, self.rules.show_argument(each), each)

    def read(self, view: PodView, ev: Evaluation) -> Iterator[FieldValue]:
        """Every name in use."""
        for each in self.elements(view, ev):
            yield FieldValue(each.path, each.name, derived=True)
        yield FieldValue((*view.spec_path, *self.at), None)

    def current(self, view: PodView, ev: Evaluation) -> Any:
        """Return the sorted names in use, None if there are none."""
        return sorted({each.name for each in self.elements(view, ev)}) or None


def volume_path(one: Element) -> Path:
    """Return the path of the volume that an element belongs to."""
    return one.path if isinstance(one.path[-1], int) else one.path[:-1]


class Stood:
    """Finds names that were in use before the update, with the same content or podgate's defaults."""

    __slots__ = ("before", "completed", "ev", "field", "view")

    def __init__(
        self, field: PodSetField, view: PodView, ev: Evaluation, before: list[Element] | None
    ) -> None:
        self.field = field
        self.view = view
        self.ev = ev
        self.before = lookup(before or ())
        self.completed: Lookup[Element] | None = None

    def has(self, one: Element) -> bool:
        """Return whether a name was in use before."""
        if one.key not in self.before.by_key:
            return False
        if self.before.has(one.key, one):
            return True
        if self.completed is None:
            view = self.ev.complete_old(self.view)
            self.completed = lookup(self.field.elements(view, self.ev) if view is not None else ())
        return self.completed.has(one.key, one)


def lookup(elements: Iterable[Element]) -> Lookup[Element]:
    """Names in use by key and content."""
    return Lookup(
        elements,
        lambda each: each.key,
        lambda one, other: bool(one.content == other.content),
        lambda each: frozen(each.content),
    )


class PodSetHandler(PodHandler):
    """Sets of names in the pod spec: types of volumes, sysctls."""

    name = POD_SET

    def compile(self, source: FieldSource) -> PodSetField:
        """Compile the field, which ignores volumes that the same policies add."""
        return PodSetField(source.row, source.leaf, own_volumes(source))

    def pod_paths(self, row: Field) -> Sequence[Path]:
        """Where a pod template has the field."""
        return [("spec", *row.at)]
