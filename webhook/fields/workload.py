"""Fields of the workload as a whole: places from the profile, replicas, priority class."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from webhook.evaluation.state import Evaluation, ratchets
from webhook.fields.notation import Form, Place
from webhook.fields.scalar import Before, ScalarRules
from webhook.fields.workload_paths import Locate
from webhook.objects.path import ABSENT, Path
from webhook.pods.location import LocationError
from webhook.pods.pod_view import PodView
from webhook.policy.combine import Leaf
from webhook.policy.row import Field

PRIORITY_LABEL: Path = ("metadata", "labels", "priorityClassName")
NO_LIMIT = "no limit is set"
NOT_APPLIED = "no limit applies"
"""Of a number that the operator ignores as the object is."""
SUM = "The sum of {} groups counts, and this is the first: change one of them."


class WorkloadField:
    """A workload-level scalar: rules look at every place, a default goes to the `write` ones.

    `write` is None where the kind has no such place; `form` says how the object writes the value.
    """

    __slots__ = ("field", "form", "places", "rules", "server_default", "unlimited", "write")

    def __init__(
        self,
        field: Field,
        leaf: Leaf,
        places: Locate,
        write: Locate | None,
        server_default: Any = None,
        form: Form | None = None,
        unlimited: Locate | None = None,
    ) -> None:
        self.field = field
        self.form = form or Form(field.reading())
        self.rules = rules_in_form(field, leaf, self.form)
        self.places = places
        self.write = write
        self.server_default = server_default
        self.unlimited = unlimited

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
        return ev.once((self, "before"), lambda: self.all_before(ev)).get(place.key)

    def all_before(self, ev: Evaluation) -> dict[str, tuple[Path, Any]]:
        """Return the places before the update by their keys."""
        try:
            old = self.look(ev, ev.old)
        except LocationError:
            return {}
        return {each.key: (each.path, each.value) for each in reversed(old)}

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
        limited = present
        if self.unlimited is not None and self.rules.final:
            zeros = [each for each in present if self.is_zero_of_operator(ev, each)]
            limited = [each for each in present if each not in zeros]
            self.refuse_unlimited(ev, [*self.unlimited(ev, ev.draft.document), *zeros])
        for place in limited if self.rules.final else ():
            before = self.before(ev, place)
            unchanged = before is not None and before[1] == place.value
            fix = SUM.format(place.added_up) if place.added_up > 1 else ""
            self.rules.judge_final(ev, place.path, place.value, unchanged=unchanged, fix=fix)
        if not present and self.rules.required and not self.absent_is_value():
            old = [self.before(ev, place) for place in places]
            unchanged = ev.updating and all(b is not None and b[1] is None for b in old)
            self.rules.judge_required(ev, places[0].path, unchanged=unchanged)

    def is_zero_of_operator(self, ev: Evaluation, place: Place) -> bool:
        """Whether a place has the 0 for "no limit" that an operator writes where users set nothing."""
        zero = self.form.unlimited and self.rules.read(place.value) == 0
        return zero and not self.is_said(ev, place)

    def refuse_unlimited(self, ev: Evaluation, places: Sequence[Place]) -> None:
        """Record every place without a limit as breaking `max`, unless it had none before either."""
        maxima = [each for each, _ in self.rules.final if each.rule == "max"]
        before = self.unlimited_before(ev) if maxima and places else frozenset()
        for place in places:
            for each in maxima:
                if place.key in before and ratchets(each):
                    continue
                allowed = self.rules.show_argument(each)
                ignored = place.value is not None and not self.form.unlimited
                found = NOT_APPLIED if ignored else NO_LIMIT
                ev.violate(self.field.path, place.path, found, allowed, each)

    def unlimited_before(self, ev: Evaluation) -> frozenset[str]:
        """Return the keys of the places that had no limit before the update: absent, or 0 for none."""
        if ev.old is None or self.unlimited is None:
            return frozenset()
        try:
            set_then = self.look(ev, ev.old) if self.form.unlimited else ()
            zeros = [each for each in set_then if self.rules.read(each.value) == 0]
            return frozenset(each.key for each in (*zeros, *self.unlimited(ev, ev.old)))
        except LocationError:
            return frozenset()

    def absent_is_value(self) -> bool:
        """Whether leaving the place empty is a value, of the field or as the object writes the default."""
        if self.field.absent is not ABSENT:
            return True
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
