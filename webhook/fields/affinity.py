"""Fields of affinity: required node affinity, and pod affinity that keeps a workload's pods together."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from webhook.evaluation.state import Evaluation
from webhook.fields.handler import FieldSource, FieldValue, PodHandler
from webhook.fields.pod import AFFINITY, PodSpecField
from webhook.fields.scalar import ScalarRules, rules_of
from webhook.objects.path import ABSENT, Path, read
from webhook.pods.pod_view import PodView, mapping, sequence
from webhook.policy.combine import Effective, Leaf
from webhook.policy.row import NODE_AFFINITY, POD_AFFINITY, Field
from webhook.policy.table import TABLE

TYPE, KEY = "podAffinity.type", "podAffinity.key"
POD_AFFINITY_PATH: Path = ("affinity", "podAffinity")
LISTS = {
    "Required": "requiredDuringSchedulingIgnoredDuringExecution",
    "Preferred": "preferredDuringSchedulingIgnoredDuringExecution",
}
WEIGHT = 100
OWN_LABEL = "podgate.dev/workload"
LABEL_VALUE = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")


class NodeAffinityField(PodSpecField):
    """The terms of the required node affinity, compared as one value regardless of their order.

    Terms are alternatives: another term would allow more nodes. So a default is written only if
    there are none, and a user's own terms are refused if they may not differ.
    """

    __slots__ = ()

    def __init__(self, row: Field, leaf: Leaf) -> None:
        super().__init__(row, leaf, AFFINITY, None)
        self.get = node_terms


def node_terms(spec: dict[str, Any]) -> Any:
    """Return the required node affinity of a pod spec, None without terms."""
    found = read(spec, AFFINITY)
    if found is ABSENT or not found:
        return None
    empty = isinstance(found, dict) and not any(found.values())
    return None if empty else found


class Term(NamedTuple):
    """One term of pod affinity: its path, its list in the policy's terms, its topology key."""

    path: Path
    type: str
    key: Any

    @property
    def key_path(self) -> Path:
        """The path of the topology key."""
        inner = ("podAffinityTerm",) if self.type == "Preferred" else ()
        return (*self.path, *inner, "topologyKey")


def terms_of(spec: dict[str, Any], spec_path: Path) -> list[Term]:
    """Return every term of pod affinity, required ones first. Raises MalformedPod."""
    if spec.get("affinity") is None:
        return []
    affinity = mapping(spec["affinity"], (*spec_path, "affinity"))
    path = (*spec_path, *POD_AFFINITY_PATH)
    held = mapping(affinity.get("podAffinity"), path)
    found = []
    for kind, name in LISTS.items():
        for index, entry in enumerate(sequence(held.get(name), (*path, name))):
            place = (*path, name, index)
            body = mapping(entry, place)
            if kind == "Preferred":
                body = mapping(body.get("podAffinityTerm"), (*place, "podAffinityTerm"))
            found.append(Term(place, kind, body.get("topologyKey")))
    return found


class PodAffinityField(PodSpecField):
    """Type or key of pod affinity: one term that keeps the pods of a workload together.

    The type is that of the term with the policy's topology key. Keys are those of all terms. Both
    defaults make one term together, so each field has the rules of both.
    """

    __slots__ = ("name_label", "pair")

    def __init__(self, row: Field, leaf: Leaf, effective: Effective, name_label: str) -> None:
        super().__init__(row, leaf, POD_AFFINITY_PATH, None)
        self.name_label = name_label
        self.pair: dict[str, ScalarRules] = {
            path: rules_of(TABLE.fields[path], effective.get(path, Leaf(path)))
            for path in (TYPE, KEY)
        }

    def managed_terms(self, terms: list[Term]) -> list[Term]:
        """Return the terms with the policy's topology key, all terms if the policy has none."""
        default = self.pair[KEY].default
        return [each for each in terms if default is None or each.key == default.value]

    def find_terms(self, spec: dict[str, Any], spec_path: Path) -> list[tuple[Path, Any]]:
        """Return the values in a pod spec, with their paths."""
        terms = terms_of(spec, spec_path)
        if self.row.path == TYPE:
            return [(each.path, each.type) for each in self.managed_terms(terms)[:1]]
        return [(each.key_path, each.key) for each in terms if each.key is not None]

    def found_before(self, view: PodView) -> list[tuple[Path, Any]]:
        """The same before the update."""
        return self.find_terms(view.old.spec, view.old.spec_path) if view.old is not None else []

    def find(self, view: PodView) -> tuple[Path, Any]:
        """Return the first path with its value, None if unset."""
        found = self.find_terms(view.spec, view.spec_path)
        return found[0] if found else ((*view.spec_path, *self.at), None)

    def read(self, view: PodView, ev: Evaluation) -> Iterator[FieldValue]:
        """Types, or keys, of the terms."""
        for path, value in self.find_terms(view.spec, view.spec_path):
            yield FieldValue(path, value, derived=True)
        yield FieldValue((*view.spec_path, *self.at), None)

    def check_intent(self, view: PodView, ev: Evaluation) -> None:
        """Prohibitions on every value."""
        if not self.rules.prohibitions:
            return
        old = self.found_before(view)
        for path, value in self.find_terms(view.spec, view.spec_path):
            known = next((each for each in old if each[1] == value), (path, None))
            self.rules.check_intent(ev, path, value, known if view.old else None, None)

    def fill(self, view: PodView, ev: Evaluation) -> None:
        """Add the term that both defaults make, or note this half of it."""
        chosen = self.choose_values(view, ev)
        if chosen is None:
            return
        term = self.find_added_term(view, ev) or self.add(view, ev, chosen)
        if term is None:
            return
        default = self.rules.default
        source = default.source if default is not None else None
        why, value = chosen[self.row.path]
        path = term.path if self.row.path == TYPE else term.key_path
        ev.note_item(self.row, path, value, why, source)

    def choose_values(self, view: PodView, ev: Evaluation) -> dict[str, tuple[str, str]] | None:
        """Return the reason and the values for type and key, None if the pod is not changed."""
        terms = terms_of(view.spec, view.spec_path)
        if self.managed_terms(terms) or (terms and not self.is_fixed):
            return None
        found: dict[str, tuple[str, str]] = {}
        for path, rules in self.pair.items():
            old = self.before_of(path, view)
            wanted = rules.choose_value(ev, (*view.spec_path, *self.at), None, None, old)
            if wanted is None:
                ev.warn("default-needs-other", self.row.path, view.spec_path, path)
                return None
            why, value = wanted
            if why == "default" and rules.default is not None:
                value = rules.default.value
            found[path] = (why, value)
        return found

    @property
    def is_fixed(self) -> bool:
        """Return whether a default of one half is fixed, so that other terms do not replace it."""
        return any(
            rules.default is not None
            and any(each.type.fixes_default for each in rules.prohibitions)
            for rules in self.pair.values()
        )

    def before_of(self, path: str, view: PodView) -> tuple[Path, Any] | None:
        """Return the type or key of the term before the update."""
        if view.old is None:
            return None
        terms = self.managed_terms(terms_of(view.old.spec, view.old.spec_path))
        if not terms:
            return (*view.old.spec_path, *self.at), None
        first = terms[0]
        return (first.path, first.type) if path == TYPE else (first.key_path, first.key)

    def find_added_term(self, view: PodView, ev: Evaluation) -> Term | None:
        """Return the term that the other half has already written."""
        before = {each.path for each in terms_of(view.spec, view.spec_path)}
        now = terms_of(ev.now(view.spec_path) or {}, view.spec_path)
        return next((each for each in now if each.path not in before), None)

    def add(self, view: PodView, ev: Evaluation, chosen: dict[str, tuple[str, str]]) -> Term | None:
        """Append the term, and the label that it selects by if no controller sets one."""
        kind, key = chosen[TYPE][1], chosen[KEY][1]
        path = (*view.spec_path, *POD_AFFINITY_PATH, LISTS[kind])
        if not ev.can_write(path):
            return None
        selector = self.selector(view, ev)
        if selector is None:
            return None
        term: dict[str, Any] = {"labelSelector": {"matchLabels": selector}, "topologyKey": key}
        if kind == "Preferred":
            term = {"weight": WEIGHT, "podAffinityTerm": term}
        index = len(sequence(ev.now(path), path))
        ev.append(path, term)
        return Term((*path, index), kind, key)

    def selector(self, view: PodView, ev: Evaluation) -> dict[str, str] | None:
        """Return a label that all pods of the workload share, None if there is none."""
        name = read(ev.request.object, ("metadata", "name"))
        if not isinstance(name, str) or not LABEL_VALUE.fullmatch(name):
            ev.warn("unnamed-workload", self.row.path, ("metadata", "name"))
            return None
        if self.name_label:
            return {self.name_label: name}
        metadata = view.location.metadata_path
        if metadata is None:
            ev.warn("unmapped-default", self.row.path, view.location.place)
            return None
        path = (*metadata, "labels", OWN_LABEL)
        held = ev.now(path)
        if isinstance(held, str) and held:
            return {OWN_LABEL: held}
        ev.assign(path, name)
        ev.note_item(self.row, path, name, "default", None)
        return {OWN_LABEL: name}

    def check_final(self, view: PodView, ev: Evaluation) -> None:
        """Check options on every value, and `required` if there is none."""
        found, old = self.find_terms(view.spec, view.spec_path), self.found_before(view)
        if not found:
            path = (*view.spec_path, *self.at)
            self.rules.check_required(ev, path, unchanged=view.old is not None and not old)
        known = [value for _, value in old]
        for path, value in found:
            self.rules.check_final(ev, path, value, unchanged=value in known)

    def current(self, view: PodView, ev: Evaluation) -> Any:
        """The native value that the pod has now; None when unset."""
        found = self.find_terms(ev.now(view.spec_path) or {}, view.spec_path)
        return found[0][1] if found else None


class NodeAffinityHandler(PodHandler):
    """The terms of the required node affinity."""

    name = NODE_AFFINITY

    def compile(self, source: FieldSource) -> NodeAffinityField:
        """The field, whose value is all terms together."""
        return NodeAffinityField(source.row, source.leaf)

    def pod_paths(self, row: Field) -> Sequence[Path]:
        """Where a pod template has the field."""
        return [("spec", "affinity")]


class PodAffinityHandler(PodHandler):
    """The term of pod affinity that keeps the pods of a workload together."""

    name = POD_AFFINITY

    def compile(self, source: FieldSource) -> PodAffinityField:
        """One half of the term, type or key, which knows the rules of both."""
        label = source.definition.profile.name_label
        return PodAffinityField(source.row, source.leaf, source.effective, label)

    def pod_paths(self, row: Field) -> Sequence[Path]:
        """Where a pod template has the field."""
        return [("spec", "affinity")]
