"""Sets of names that a pod uses: sysctls, kinds of volumes. They are judged and never written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from webhook.evaluation.injected import is_injected
from webhook.evaluation.state import Evaluation, ratchets
from webhook.fields.own_volumes import OwnVolumes
from webhook.fields.scalar import ScalarRules, reader, rules_of
from webhook.objects.lookup import Lookup, frozen
from webhook.objects.path import Path
from webhook.pods.pod_view import MalformedPod, PodView, mapping, sequence
from webhook.policy.combine import Constraint, Leaf
from webhook.policy.row import Field


@dataclass(slots=True)
class Element:
    """One name in use: where it is, what holds it, and by which key an update has the same one.

    `content` is what must be as before for it to be the same: another path of the node is another
    volume, whatever it is called.
    """

    name: str
    path: Path
    raw: Any
    key: str
    content: Any = None


def source_names(volume: dict[str, Any]) -> list[str]:
    """The types of a volume: its keys beside the name; one without any is an emptyDir."""
    named = [str(key) for key, value in volume.items() if key != "name" and value is not None]
    return named or ["emptyDir"]


def volume_elements(body: dict[str, Any], path: Path) -> Iterator[Element]:
    """The types of one volume, the same one while its name is."""
    for name in source_names(body):
        place = (*path, name) if name in body else path
        yield Element(name, place, body, f"{body.get('name')}/{name}", body.get(name))


def claim_element(body: dict[str, Any], path: Path) -> Element:
    """The type of the volume that a workload's claim template brings into its pods."""
    metadata = body.get("metadata")
    known = {**body, **metadata} if isinstance(metadata, dict) else body
    names = (known.get(key) for key in ("name", "claimName", "volumeClaimName", "mountPath"))
    name = next((each for each in names if isinstance(each, str)), path[-1])
    return Element(CLAIM, path, body, f"{name}/claim template", body)


def named_elements(body: dict[str, Any], path: Path) -> Iterator[Element]:
    """The name of one entry."""
    name = str(body.get("name") or "")
    yield Element(name, (*path, "name"), body, name)


ELEMENTS: dict[str, Callable[[dict[str, Any], Path], Iterator[Element]]] = {
    "security.volumeTypes": volume_elements,
    "security.sysctls": named_elements,
}
CLAIM = "persistentVolumeClaim"


class PodSetField:
    """One set of names of the pod spec."""

    __slots__ = ("at", "elements_of", "field", "get", "own", "rules", "store")

    def __init__(self, field: Field, leaf: Leaf, own: OwnVolumes) -> None:
        self.own = own
        self.field = field
        self.rules: ScalarRules = rules_of(field, leaf)
        self.at = field.at
        self.get = reader(field.at)
        self.elements_of = ELEMENTS[field.path]
        self.store = str(field.at[-1])

    def elements(self, view: PodView, ev: Evaluation) -> list[Element]:
        """Every name in use but those that Kubernetes itself brings; MalformedPod for no list.

        The workload's claim templates are volumes of its pods, whether something mounts them or not.
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
        """The same before the update, None on creation; what cannot be read excuses nothing."""
        if view.old is None:
            return None
        try:
            return self.elements(view.old, ev)
        except MalformedPod:
            return []

    def not_own(self, view: PodView, ev: Evaluation, elements: list[Element]) -> list[Element]:
        """The names in use without those of volumes that the policy itself brings."""
        if self.store != "volumes":
            return elements
        own = self.own.reader(view, ev)
        return [one for one in elements if not own.has(one.raw, volume_path(one))]

    def intent(self, view: PodView, ev: Evaluation) -> None:
        """canEdit compares the set with the default, blocked and no default refuse every name."""
        if not self.rules.prohibitions:
            return
        elements = self.elements(view, ev)
        if not elements:
            return
        before = self.elements_before(view, ev)
        for each in self.rules.prohibitions:
            self.judge(view, ev, each, elements, before if ratchets(each) else None)

    def judge(
        self,
        view: PodView,
        ev: Evaluation,
        each: Constraint,
        elements: list[Element],
        before: list[Element] | None,
    ) -> None:
        """One prohibition on the names in use; those that an update leaves alone are fine."""
        default = self.rules.default
        allowed: frozenset[str] = frozenset()
        if default is not None and each.rule == "canEdit":
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
            ev.violate(self.field.path, path, self.rules.show(used), shown, each)

    def refuse(self, ev: Evaluation, one: Element, allowed: str | None, each: Constraint) -> None:
        """Record one name that may not be in use."""
        shown = self.rules.show(frozenset({one.name}))
        ev.violate(self.field.path, one.path, shown, allowed, each)

    def fill(self, view: PodView, ev: Evaluation) -> None:
        """Nothing: a name alone is no entry."""

    def final(self, view: PodView, ev: Evaluation) -> None:
        """Options on every name; required where none is in use."""
        elements = self.elements(view, ev)
        before = self.elements_before(view, ev)
        if not elements:
            if self.field.windows or not view.windows:
                path = (*view.spec_path, *self.at)
                self.rules.judge_required(ev, path, unchanged=before == [])
            return
        stood = Stood(self, view, ev, before)
        for each, holds in self.rules.final:
            argument = each.argument
            broken = [one for one in elements if not holds(frozenset({one.name}), argument)]
            for one in self.not_own(view, ev, broken):
                if not (ratchets(each) and stood.has(one)):
                    self.refuse(ev, one, self.rules.show_argument(each), each)

    def current(self, view: PodView, ev: Evaluation) -> Any:
        """The names in use, sorted; None when there are none."""
        return sorted({each.name for each in self.elements(view, ev)}) or None


def volume_path(one: Element) -> Path:
    """Where the volume is that an element is a type of."""
    return one.path if isinstance(one.path[-1], int) else one.path[:-1]


class Stood:
    """Tells which names were in use before the update, with the same content or as we complete it."""

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
        """Whether a name was in use before."""
        if one.key not in self.before.by_key:
            return False
        if self.before.has(one.key, one):
            return True
        if self.completed is None:
            view = self.ev.completed(self.view)
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
