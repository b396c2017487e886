"""Fields of the workload as a whole: places from the profile, replicas, priority class."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from webhook.core.pointer import Path, read
from webhook.core.policy.combine import Leaf
from webhook.core.policy.row import Field
from webhook.core.workload.bindings.scalar import INVALID, Before, ScalarRules, reader, rules_of
from webhook.core.workload.evaluation import Evaluation, ratchets
from webhook.core.workload.locating.location import LocationError
from webhook.core.workload.places import Locate
from webhook.core.workload.podspec import PodView
from webhook.core.workload.written import Form, Place

PRIORITY_LABEL: Path = ("metadata", "labels", "priorityClassName")


SUM = "{} groups count together, and this is the first of them."


class WorkloadField:
    """A workload-level scalar: rules look at every place, a default goes to the `write` ones.

    `write` is None where the kind has no such place; `form` says how the object writes the value.
    """

    __slots__ = ("field", "form", "places", "rules", "server_default", "write")

    def __init__(
        self,
        field: Field,
        leaf: Leaf,
        places: Locate,
        write: Locate | None,
        server_default: Any = None,
        form: Form | None = None,
    ) -> None:
        self.field = field
        self.form = form or Form(field.reading())
        self.rules = rules_in_form(field, leaf, self.form)
        self.places = places
        self.write = write
        self.server_default = server_default

    def look(self, ev: Evaluation, document: Any) -> list[Place]:
        """The places as the form has it."""
        return self.form.gather(self.places(ev, document))

    def seen(self, ev: Evaluation, document: Any, views: Sequence[PodView]) -> list[Place]:
        """Everything that is read of a document."""
        return self.look(ev, document)

    def before(self, ev: Evaluation, place: Place) -> Before:
        """The same place before the update; an old object that cannot be read excuses nothing."""
        if ev.old is None:
            return None
        try:
            old = self.look(ev, ev.old)
        except LocationError:
            return None
        return next(((each.path, each.value) for each in old if each.key == place.key), None)

    def intent(self, views: Sequence[PodView], ev: Evaluation) -> None:
        """Prohibitions on every place that has a value."""
        places = self.look(ev, ev.request.object)
        if not places and self.write is None:
            self.tell_unmapped(ev)
        for place in places:
            if place.value is None or place.computed or self.says_nothing(place.value):
                continue
            before = self.before(ev, place)
            self.rules.judge_intent(ev, place.path, place.value, before, self.server_default)

    def says_nothing(self, native: Any) -> bool:
        """Whether a value is no more than the absence of what the field would say."""
        default = self.rules.default
        wants = default is not None and default.value is True
        return self.form.only_true and not wants and self.rules.read(native) is False

    def fill(self, views: Sequence[PodView], ev: Evaluation) -> None:
        """Write the default where a writable place is unset."""
        default = self.rules.default
        if default is None:
            return
        native = self.rules.codec.write(default.value, default.raw)
        if native is None:
            return
        document = ev.draft.document
        if self.form.together and any(self.is_said(ev, each) for each in self.look(ev, document)):
            return
        places = self.form.gather(self.write(ev, document)) if self.write is not None else []
        if not places:
            reason = "unmapped-default" if self.write is None else "forbidden-default"
            ev.warn(reason, self.field.path, (), ev.request.kind)
        for place in places:
            self.fill_place(place, native, ev)

    def is_said(self, ev: Evaluation, place: Place) -> bool:
        """Whether a place has a value that no server filled in."""
        value = place.value
        return value is not None and ev.set_by_user(place.path, value, self.server_default)

    def fill_place(self, place: Place, native: Any, ev: Evaluation) -> None:
        """Write the old value, or the default, at one place where it is unset."""
        before = self.before(ev, place)
        wanted = self.rules.wanted(ev, place.path, place.value, self.server_default, before)
        if wanted is None or not ev.can_write(place.path):
            return
        kept, old = wanted
        value = self.form.lands(
            place.path, native if kept == "default" else old, ev.now(place.path)
        )
        if value is not None and value != place.value and self.agree(place.path, ev):
            source = self.rules.default.source if self.rules.default else None
            ev.write_workload(self.field.path, place.path, value, kept, source)

    def agree(self, path: Path, ev: Evaluation) -> bool:
        """Have the neighbour of a place go with what is written; told where the user's does not."""
        beside = self.form.beside
        if beside is None:
            return True
        at = beside.of(path)
        now = ev.now(at)
        if now is None or now == beside.value:
            return True
        if ev.set_by_user(at, now, beside.filled) or not ev.can_write(at):
            ev.warn("forbidden-default", self.field.path, (), beside.key)
            return False
        source = self.rules.default.source if self.rules.default else None
        ev.write_workload(self.field.path, at, beside.value, "default", source)
        return True

    def final(self, views: Sequence[PodView], ev: Evaluation) -> None:
        """Final rules on every place; `required` is met by any of them."""
        places = self.look(ev, ev.draft.document)
        if not places:
            self.tell_unmapped(ev)
            return
        present = [place for place in places if place.value is not None]
        for place in present if self.rules.final else ():
            before = self.before(ev, place)
            unchanged = before is not None and before[1] == place.value
            fix = SUM.format(place.added_up) if place.added_up > 1 else ""
            self.rules.judge_final(ev, place.path, place.value, unchanged=unchanged, fix=fix)
        if not present and self.rules.required and not self.absent_is_default():
            old = [self.before(ev, place) for place in places]
            unchanged = ev.updating and all(b is not None and b[1] is None for b in old)
            self.rules.judge_required(ev, places[0].path, unchanged=unchanged)

    def absent_is_default(self) -> bool:
        """Whether leaving the place empty is how the object writes the default."""
        default = self.rules.default
        return default is not None and self.rules.codec.write(default.value, default.raw) is None

    def tell_unmapped(self, ev: Evaluation) -> None:
        """Rules of a field that this object has no place for are told once."""
        rules = self.rules
        known = rules.required or [each for each, _ in rules.final[:1]] or rules.prohibitions
        if known:
            source = known[0].source
            ev.warn("unmapped-rule", self.field.path, (), ev.request.kind, source=source)

    def current(self, views: Any, ev: Evaluation) -> Any:
        """The native value of the first place that has one; None when unset."""
        for place in self.look(ev, ev.draft.document):
            if place.value is not None:
                return place.value
        return None


class InheritedField(WorkloadField):
    """A field of pods that those without it take from the workload: judged there, written in pods.

    While every pod has a value of its own, that of the workload means nothing.
    """

    __slots__ = ("of_pod",)

    def __init__(self, field: Field, leaf: Leaf, places: Locate, server_default: Any) -> None:
        super().__init__(field, leaf, places, places, server_default)
        self.of_pod = reader(field.at)

    def counts(self, views: Sequence[PodView]) -> bool:
        """Whether some pod has no value of its own; pods that are not here are thought to."""
        return not views or any(self.of_pod(view.spec) is None for view in views)

    def intent(self, views: Sequence[PodView], ev: Evaluation) -> None:
        """Prohibitions, while the value means something."""
        if self.counts(views):
            super().intent(views, ev)

    def fill(self, views: Sequence[PodView], ev: Evaluation) -> None:
        """Nothing is written beside the pods."""

    def final(self, views: Sequence[PodView], ev: Evaluation) -> None:
        """Final rules on what is there."""
        if not self.counts([ev.as_it_stands(view) for view in views]):
            return
        for place in self.look(ev, ev.draft.document):
            if place.value is not None and self.rules.final:
                before = self.before(ev, place)
                unchanged = before is not None and before[1] == place.value
                self.rules.judge_final(ev, place.path, place.value, unchanged=unchanged)


def rules_in_form(field: Field, leaf: Leaf, form: Form) -> ScalarRules:
    """The rules of a field that read and write its values as the kind writes them."""
    array = field.value == "array"
    rules = ScalarRules(field.path, leaf, form.codec, array=array, secret=field.secret)
    if form.unlimited:
        rules.final = [
            (each, UNLIMITED[each.rule](holds) if each.rule in UNLIMITED else holds)
            for each, holds in rules.final
        ]
    return rules


Holds = Callable[[Any, Any], bool]
UNLIMITED: dict[str, Callable[[Holds], Holds]] = {
    "min": lambda holds: lambda value, argument: value == 0 or holds(value, argument),
    "max": lambda holds: lambda value, argument: value != 0 and holds(value, argument),
}
"""What 0 means to a bound where it stands for no limit."""


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
