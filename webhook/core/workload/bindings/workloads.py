"""Fields of the workload as a whole: places from the profile, replicas, priority class."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from webhook.core.pointer import Path, read
from webhook.core.policy.combine import Leaf
from webhook.core.policy.fields import Field
from webhook.core.workload.bindings.scalar import INVALID, Before, ScalarRules, rules_of
from webhook.core.workload.evaluation import Evaluation, ratchets
from webhook.core.workload.podspec import PodView

PRIORITY_LABEL: Path = ("metadata", "labels", "priorityClassName")


class Place(NamedTuple):
    """One concrete place of a workload field, its value (None: absent), and its written default.

    `key` identifies the place across an update, where list items may have moved.
    """

    path: Path
    value: Any
    key: str = ""
    computed: bool = False


Locate = Callable[[Evaluation, Any], Sequence[Place]]


class WorkloadField:
    """A workload-level scalar: rules look at every place, a default goes to the `write` ones."""

    __slots__ = ("field", "places", "rules", "server_default", "write")

    def __init__(
        self, field: Field, leaf: Leaf, places: Locate, write: Locate | None, server_default: Any
    ) -> None:
        self.field = field
        self.rules: ScalarRules = rules_of(field, leaf)
        self.places = places
        self.write = write
        self.server_default = server_default

    def seen(self, ev: Evaluation, document: Any, views: Sequence[PodView]) -> list[Place]:
        """Everything that is read of a document."""
        return list(self.places(ev, document))

    def before(self, ev: Evaluation, place: Place) -> Before:
        """The same place before the update."""
        if ev.old is None:
            return None
        for each in self.places(ev, ev.old):
            if each.key == place.key:
                return each.path, each.value
        return None

    def intent(self, views: Sequence[PodView], ev: Evaluation) -> None:
        """Prohibitions on every place that has a value."""
        if not self.rules.prohibitions:
            return
        for place in self.places(ev, ev.request.object):
            if place.value is not None and not place.computed:
                before = self.before(ev, place)
                self.rules.judge_intent(ev, place.path, place.value, before, self.server_default)

    def fill(self, views: Sequence[PodView], ev: Evaluation) -> None:
        """Write the default where a writable place is unset."""
        default = self.rules.default
        if default is None:
            return
        if self.write is None:
            ev.warn("unmapped-default", self.field.path, (), ev.request.kind)
            return
        for place in self.write(ev, ev.request.object):
            before = self.before(ev, place)
            wanted = self.rules.defaulting.wanted(
                ev, place.path, place.value, self.server_default, before
            )
            if wanted is None or not ev.can_write(place.path):
                continue
            kept, value = wanted
            if kept == "default":
                value = self.rules.codec.write(default.value, default.raw)
            if value != place.value:
                ev.write_workload(self.field.path, place.path, value, kept, default.source)

    def final(self, views: Sequence[PodView], ev: Evaluation) -> None:
        """Final rules on every place; `required` is met by any of them."""
        rules = self.rules
        if not rules.final and not rules.required:
            return
        places = self.places(ev, ev.draft.document)
        present = [place for place in places if place.value is not None]
        for place in present:
            before = self.before(ev, place)
            unchanged = before is not None and before[1] == place.value
            rules.judge_final(ev, place.path, place.value, unchanged=unchanged)
        if not present:
            if not places:
                for each in rules.required:
                    ev.warn(
                        "unmapped-rule", self.field.path, (), ev.request.kind, source=each.source
                    )
                return
            old = [self.before(ev, place) for place in places]
            unchanged = ev.updating and all(b is not None and b[1] is None for b in old)
            rules.judge_required(ev, places[0].path, unchanged=unchanged)

    def current(self, views: Any, ev: Evaluation) -> Any:
        """The native value of the first place that has one; None when unset."""
        for place in self.places(ev, ev.draft.document):
            if place.value is not None:
                return place.value
        return None


class ScaleField:
    """scale.replicas: the replicas of each instance of one component; never written."""

    __slots__ = ("component", "field", "read_scales", "roles", "rules")

    def __init__(
        self, field: Field, leaf: Leaf, read_scales: Locate, component: str, roles: Any
    ) -> None:
        self.field = field
        self.rules: ScalarRules = rules_of(field, leaf)
        self.read_scales = read_scales
        self.component = component
        self.roles = roles

    def seen(self, ev: Evaluation, document: Any, views: Sequence[PodView]) -> list[Place]:
        """Everything that is read of a document."""
        return list(self.read_scales(ev, document))

    def intent(self, views: Sequence[PodView], ev: Evaluation) -> None:
        """No intent rules exist for it."""

    def fill(self, views: Sequence[PodView], ev: Evaluation) -> None:
        """Nothing is ever written."""

    def final(self, views: Sequence[PodView], ev: Evaluation) -> None:
        """min, max and step on the larger of replicas and an autoscaler's maximum."""
        old = self.read_scales(ev, ev.old) if ev.old else ()
        before = {place.key: place.value for place in old}
        for place in self.read_scales(ev, ev.draft.document):
            if place.value is None:
                continue
            value = self.rules.read(place.value)
            if value is INVALID:
                self.rules.refuse_invalid(ev, place.path, place.value)
                continue
            self.judge(ev, place, value, before.get(place.key))

    def judge(self, ev: Evaluation, place: Place, value: int, old: Any) -> None:
        """One instance; an update passes while it does not move further from the rule."""
        for each, holds in self.rules.final:
            if holds(value, each.argument):
                continue
            if isinstance(old, int) and ratchets(each) and closer(each.rule, value, old):
                continue
            ev.violate(
                self.field.path,
                place.path,
                self.rules.show(value),
                self.rules.show_argument(each),
                each,
                key=place.key,
            )

    def current(self, views: Any, ev: Evaluation) -> Any:
        """Nothing is computed from it."""
        return None


def closer(rule: str, value: int, old: int) -> bool:
    """Whether a value is no further from the rule than the old one."""
    if rule == "max":
        return value <= old
    if rule == "min":
        return value >= old
    return value == old


class PriorityField:
    """priorityClass: several places that schedulers read in order and that must agree."""

    __slots__ = ("field", "rules", "second_places")

    def __init__(self, field: Field, leaf: Leaf, second_places: Locate) -> None:
        self.field = field
        self.rules: ScalarRules = rules_of(field, leaf)
        self.second_places = second_places

    def places(self, ev: Evaluation, document: Any, views: Sequence[PodView]) -> list[Place]:
        """Workload label, pod labels, pod specs, second places of the kind: those with a value."""
        found = [Place(PRIORITY_LABEL, read(document, PRIORITY_LABEL) or None, "workload")]
        for view in views:
            name = f"{view.location.component}/{view.location.instance}"
            if view.location.metadata_path is not None:
                path = (*view.location.metadata_path, "labels", "priorityClassName")
                if path != PRIORITY_LABEL:
                    found.append(Place(path, read(document, path) or None, f"label {name}"))
            path = (*view.spec_path, "priorityClassName")
            found.append(Place(path, read(document, path) or None, f"spec {name}"))
        found.extend(self.second_places(ev, document))
        return [place for place in found if place.value is not None]

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
                self.rules.show_native(place.value),
                self.rules.show_native(first.value),
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
