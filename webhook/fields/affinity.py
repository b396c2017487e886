"""Fields of affinity: hard node affinity, and pods of a workload kept together."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from webhook.evaluation.state import Evaluation
from webhook.fields.pod import AFFINITY, PodField
from webhook.fields.scalar import ScalarRules, rules_of
from webhook.objects.path import ABSENT, Path, read
from webhook.pods.pod_view import PodView, mapping, sequence
from webhook.policy.combine import Effective, Leaf
from webhook.policy.row import Field
from webhook.policy.table import TABLE

TYPE, KEY = "podAffinity.type", "podAffinity.key"
POD_AFFINITY: Path = ("affinity", "podAffinity")
LISTS = {
    "Required": "requiredDuringSchedulingIgnoredDuringExecution",
    "Preferred": "preferredDuringSchedulingIgnoredDuringExecution",
}
WEIGHT = 100
OWN_LABEL = "podgate.dev/workload"
LABEL_VALUE = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")


class NodeAffinityField(PodField):
    """The terms of the required node affinity, compared as one value in an order of their own.

    Terms are alternatives: one more would let pods go to more nodes, so a default is written only
    where there are none, and a user's own ones are refused where they may not differ.
    """

    __slots__ = ()

    def __init__(self, field: Field, leaf: Leaf) -> None:
        super().__init__(field, leaf, AFFINITY, None)
        self.get = node_terms


def node_terms(spec: dict[str, Any]) -> Any:
    """The required node affinity of a pod spec; None where it has no terms."""
    found = read(spec, AFFINITY)
    if found is ABSENT or not found:
        return None
    empty = isinstance(found, dict) and not any(found.values())
    return None if empty else found


class Term(NamedTuple):
    """One term of pod affinity: its place, its list as a policy calls it, its topology key."""

    path: Path
    type: str
    key: Any

    @property
    def key_path(self) -> Path:
        """The place of the topology key."""
        inner = ("podAffinityTerm",) if self.type == "Preferred" else ()
        return (*self.path, *inner, "topologyKey")


def terms_of(spec: dict[str, Any], spec_path: Path) -> list[Term]:
    """Every term of pod affinity, required ones first; MalformedPod for what is none."""
    if spec.get("affinity") is None:
        return []
    affinity = mapping(spec["affinity"], (*spec_path, "affinity"))
    path = (*spec_path, *POD_AFFINITY)
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


class PodAffinityField(PodField):
    """Type or key of pod affinity: one term that keeps the pods of a workload together.

    The type is that of the term with the policy's topology key; keys are those of all terms. Both
    defaults make one term together, so each binding knows the rules of both.
    """

    __slots__ = ("name_label", "pair")

    def __init__(self, field: Field, leaf: Leaf, effective: Effective, name_label: str) -> None:
        super().__init__(field, leaf, POD_AFFINITY, None)
        self.name_label = name_label
        self.pair: dict[str, ScalarRules] = {
            path: rules_of(TABLE.fields[path], effective.get(path, Leaf(path)))
            for path in (TYPE, KEY)
        }

    def managed(self, terms: list[Term]) -> list[Term]:
        """The terms with the policy's topology key; all where the policy has none."""
        default = self.pair[KEY].default
        return [each for each in terms if default is None or each.key == default.value]

    def found(self, spec: dict[str, Any], spec_path: Path) -> list[tuple[Path, Any]]:
        """The values that a pod spec has, with their places."""
        terms = terms_of(spec, spec_path)
        if self.field.path == TYPE:
            return [(each.path, each.type) for each in self.managed(terms)[:1]]
        return [(each.key_path, each.key) for each in terms if each.key is not None]

    def found_before(self, view: PodView) -> list[tuple[Path, Any]]:
        """The same before the update."""
        return self.found(view.old.spec, view.old.spec_path) if view.old is not None else []

    def read(self, view: PodView) -> tuple[Path, Any]:
        """The first place with its value; None when unset."""
        found = self.found(view.spec, view.spec_path)
        return found[0] if found else ((*view.spec_path, *self.at), None)

    def intent(self, view: PodView, ev: Evaluation) -> None:
        """Prohibitions on every value."""
        if not self.rules.prohibitions:
            return
        old = self.found_before(view)
        for path, value in self.found(view.spec, view.spec_path):
            known = next((each for each in old if each[1] == value), (path, None))
            self.rules.judge_intent(ev, path, value, known if view.old else None, None)

    def fill(self, view: PodView, ev: Evaluation) -> None:
        """Add the one term that both defaults make, or note this half of it."""
        chosen = self.chosen(view, ev)
        if chosen is None:
            return
        term = self.added(view, ev) or self.add(view, ev, chosen)
        if term is None:
            return
        default = self.rules.default
        source = default.source if default is not None else None
        why, value = chosen[self.field.path]
        path = term.path if self.field.path == TYPE else term.key_path
        ev.note_item(self.field, path, value, why, source)

    def chosen(self, view: PodView, ev: Evaluation) -> dict[str, tuple[str, str]] | None:
        """Why and what to write for type and key; None where the pod is to stay as it is."""
        terms = terms_of(view.spec, view.spec_path)
        if self.managed(terms) or (terms and not self.fixed):
            return None
        found: dict[str, tuple[str, str]] = {}
        for path, rules in self.pair.items():
            old = self.before_of(path, view)
            wanted = rules.wanted(ev, (*view.spec_path, *self.at), None, None, old)
            if wanted is None:
                ev.warn("default-needs-other", self.field.path, view.spec_path, path)
                return None
            why, value = wanted
            if why == "default" and rules.default is not None:
                value = rules.default.value
            found[path] = (why, value)
        return found

    @property
    def fixed(self) -> bool:
        """Whether a default of one half may not be changed, so that other terms do not replace it."""
        return any(
            rules.default is not None and any(each.rule == "canEdit" for each in rules.prohibitions)
            for rules in self.pair.values()
        )

    def before_of(self, path: str, view: PodView) -> tuple[Path, Any] | None:
        """Type or key of the term that there was before the update."""
        if view.old is None:
            return None
        terms = self.managed(terms_of(view.old.spec, view.old.spec_path))
        if not terms:
            return (*view.old.spec_path, *self.at), None
        first = terms[0]
        return (first.path, first.type) if path == TYPE else (first.key_path, first.key)

    def added(self, view: PodView, ev: Evaluation) -> Term | None:
        """The term that the other half has put into the copy already."""
        before = {each.path for each in terms_of(view.spec, view.spec_path)}
        now = terms_of(ev.now(view.spec_path) or {}, view.spec_path)
        return next((each for each in now if each.path not in before), None)

    def add(self, view: PodView, ev: Evaluation, chosen: dict[str, tuple[str, str]]) -> Term | None:
        """Append the term to the copy, and the label it selects by where no controller sets one."""
        kind, key = chosen[TYPE][1], chosen[KEY][1]
        path = (*view.spec_path, *POD_AFFINITY, LISTS[kind])
        if not ev.can_write(path):
            return None
        selector = self.selector(view, ev)
        if selector is None:
            return None
        term: dict[str, Any] = {"labelSelector": {"matchLabels": selector}, "topologyKey": key}
        if kind == "Preferred":
            term = {"weight": WEIGHT, "podAffinityTerm": term}
        index = len(sequence(ev.now(path), path))
        ev.draft.append(path, term)
        return Term((*path, index), kind, key)

    def selector(self, view: PodView, ev: Evaluation) -> dict[str, str] | None:
        """The label that all pods of the workload have alike; None where there can be none."""
        name = read(ev.request.object, ("metadata", "name"))
        if not isinstance(name, str) or not LABEL_VALUE.fullmatch(name):
            ev.warn("unnamed-workload", self.field.path, ("metadata", "name"))
            return None
        if self.name_label:
            return {self.name_label: name}
        metadata = view.location.metadata_path
        if metadata is None:
            ev.warn("unmapped-default", self.field.path, view.location.place)
            return None
        path = (*metadata, "labels", OWN_LABEL)
        held = ev.now(path)
        if isinstance(held, str) and held:
            return {OWN_LABEL: held}
        ev.draft.set(path, name)
        ev.note_item(self.field, path, name, "default", None)
        return {OWN_LABEL: name}

    def final(self, view: PodView, ev: Evaluation) -> None:
        """Options on every value; `required` where there is none."""
        found, old = self.found(view.spec, view.spec_path), self.found_before(view)
        if not found:
            path = (*view.spec_path, *self.at)
            self.rules.judge_required(ev, path, unchanged=view.old is not None and not old)
        known = [value for _, value in old]
        for path, value in found:
            self.rules.judge_final(ev, path, value, unchanged=value in known)

    def current(self, view: PodView, ev: Evaluation) -> Any:
        """The native value that the pod has now; None when unset."""
        found = self.found(ev.now(view.spec_path) or {}, view.spec_path)
        return found[0][1] if found else None
