"""priorityClass: several places that schedulers read in order and that must agree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from webhook.evaluation.state import Evaluation
from webhook.fields.notation import Place
from webhook.fields.scalar import ScalarRules, rules_of
from webhook.fields.workload import PRIORITY_LABEL
from webhook.fields.workload_paths import Locate
from webhook.objects.path import read
from webhook.pods.pod_view import PodView
from webhook.policy.combine import Leaf
from webhook.policy.row import Field


class PriorityField:
    """priorityClass: several places that schedulers read in order and that must agree."""

    __slots__ = ("field", "rules", "second_places")

    def __init__(self, field: Field, leaf: Leaf, second_places: Locate) -> None:
        self.field = field
        self.rules: ScalarRules = rules_of(field, leaf)
        self.second_places = second_places

    def places(self, ev: Evaluation, document: Any, views: Sequence[PodView]) -> list[Place]:
        """Workload label, pod labels, pod specs, second places of the kind: those with a value."""
        found = []
        if label := read(document, PRIORITY_LABEL):
            found.append(Place(PRIORITY_LABEL, label, "workload"))
        for view in views:
            location = view.location
            name = f"{location.component}/{location.instance}"
            if location.metadata_path is not None:
                path = location.metadata_path + PRIORITY_LABEL[1:]
                if path != PRIORITY_LABEL and (label := read(document, path)):
                    found.append(Place(path, label, f"label {name}"))
            path = (*location.spec_path, "priorityClassName")
            if of_spec := read(document, path):
                found.append(Place(path, of_spec, f"spec {name}"))
        found.extend(each for each in self.second_places(ev, document) if each.value is not None)
        return found

    def seen(self, ev: Evaluation, document: Any, views: Sequence[PodView]) -> list[Place]:
        """Everything that is read of a document."""
        return self.places(ev, document, views)

    def before(self, ev: Evaluation, views: Sequence[PodView]) -> dict[str, Place]:
        """The same places before the update by their key."""
        if ev.old is None:
            return {}
        old = [view.old for view in views if view.old is not None]
        return {place.key: place for place in self.places(ev, ev.old, old)}

    def intent(self, views: Sequence[PodView], ev: Evaluation) -> None:
        """Prohibitions on every place that has a value."""
        if not self.rules.prohibitions:
            return
        before = self.before(ev, views)
        for place in self.places(ev, ev.request.object, views):
            old = before.get(place.key)
            known = (
                None
                if old is None and not ev.updating
                else (place.path, old.value if old else None)
            )
            self.rules.judge_intent(ev, place.path, place.value, known, None)

    def fill(self, views: Sequence[PodView], ev: Evaluation) -> None:
        """Write the workload label where no place says anything; the pods' if the class exists."""
        default = self.rules.default
        if default is None or self.places(ev, ev.request.object, views):
            return
        value, kept = default.value, "default"
        old = list(self.before(ev, views).values())
        if old and self.rules.allows(old[0].value) and not ev.intent.shown_before(old[0].path):
            value, kept = old[0].value, "kept"
        if ev.can_write(PRIORITY_LABEL):
            ev.write(self.field.path, PRIORITY_LABEL, value, kept, default.source)
        if value not in ev.references.priority_classes:
            return
        for view in views:
            path = (*view.spec_path, "priorityClassName")
            if view.spec_path not in ev.as_before and ev.can_write(path):
                ev.write(self.field.path, path, value, kept, default.source)

    def final(self, views: Sequence[PodView], ev: Evaluation) -> None:
        """Final rules on the first place; places that disagree are refused."""
        places = self.places(ev, ev.draft.document, views)
        before = self.before(ev, views)
        if not places:
            self.rules.judge_required(ev, PRIORITY_LABEL, unchanged=ev.updating and not before)
            return
        first = places[0]
        old = before.get(first.key)
        unchanged = old is not None and old.value == first.value
        self.rules.judge_final(ev, first.path, first.value, unchanged=unchanged)
        for place in places[1:]:
            if place.value == first.value:
                continue
            held = before.get(place.key)
            if unchanged and held is not None and held.value == place.value:
                continue
            source = self.source()
            ev.violate(
                self.field.path,
                place.path,
                self.rules.show_native_at(place.path, place.value),
                self.rules.show_native_at(first.path, first.value),
                None,
                reason="places-disagree",
                source=source,
            )

    def source(self) -> Any:
        """Some policy that speaks of the priority class."""
        for each in (*self.rules.prohibitions, *self.rules.required):
            return each.source
        if self.rules.final:
            return self.rules.final[0][0].source
        return self.rules.default.source if self.rules.default else None

    def current(self, views: Any, ev: Evaluation) -> Any:
        """Nothing is computed from it."""
        return None
