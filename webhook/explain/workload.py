"""TABLE of readers: for each shape of field of the workload as a whole, its values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from webhook.catalog.plan import Plan, workload_binding
from webhook.evaluation.state import Evaluation
from webhook.explain.items import item_entries
from webhook.explain.model import COMPUTED, KIND, UNSET, Entry
from webhook.explain.origins import Origins
from webhook.fields import derived
from webhook.fields.annotation_items import AnnotationItemsField
from webhook.fields.notation import Place
from webhook.fields.scalar import INVALID
from webhook.fields.secret_paths import is_secret_place
from webhook.objects.path import ABSENT, read
from webhook.pods.pod_view import PodView
from webhook.policy.combine import Leaf
from webhook.policy.row import NOTHING, PREEMPTIBILITY, PRIORITY, TOTAL_GPUS, WORKLOAD_ITEMS, Field

COUNTED = "counted from replicas and their bounds, or what absence means"
TOTAL = "replicas times the GPUs of a pod, summed"
UNREADABLE = "the annotation cannot be read"


@dataclass(frozen=True, slots=True)
class Asked:
    """What a reader is asked: the values of a field of the workload in the completed object."""

    origins: Origins
    ev: Evaluation
    views: Sequence[PodView]
    plan: Plan
    row: Field
    leaf: Leaf

    @property
    def document(self) -> Any:
        """The completed object."""
        return self.origins.document

    def binding(self) -> Any:
        """What judges and fills the field on this kind."""
        return workload_binding(self.plan, self.row, self.leaf)


def of_items(asked: Asked) -> Iterator[Entry]:
    """The items that an annotation lists."""
    binding = AnnotationItemsField(asked.row, asked.leaf, {})
    view = binding.view(asked.ev, asked.document)
    if view is None:
        path = binding.items.annotation
        yield Entry(path, None, asked.origins.source(path)[0], note=UNREADABLE)
        return
    yield from item_entries(asked.origins, view, asked.ev, asked.row, binding.items)


def of_priority(asked: Asked) -> Iterator[Entry]:
    """Every place that names the priority class."""
    for place in asked.binding().seen(asked.ev, asked.document, asked.views):
        yield asked.origins.entry(asked.row, place.path, place.value)


def of_preemptibility(asked: Asked) -> Iterator[Entry]:
    """The labels, else what the priority class says."""
    binding = asked.binding()
    places = binding.places(asked.ev, asked.document, asked.views)
    for place in places:
        yield asked.origins.entry(asked.row, place.path, place.value)
    for place in () if places else binding.derived(asked.ev, asked.document, asked.views):
        entry = asked.origins.entry(asked.row, place.path, place.value, derived=True)
        entry.source, entry.by, entry.note = COMPUTED, None, "follows from the priority class"
        yield entry


def of_totals(asked: Asked) -> Iterator[Entry]:
    """The GPUs that all pods may come to, where a policy asks."""
    if asked.leaf.constraints:
        total = asked.binding().total(asked.ev, asked.document, asked.views)
        value = total.shown() if total.unbounded else total.count
        yield Entry((), value, COMPUTED, note=TOTAL, derived=True)


def of_nothing(asked: Asked) -> Iterator[Entry]:
    """What no object has."""
    return iter(())


def of_places(asked: Asked) -> Iterator[Entry]:
    """A scalar at the places that all kinds, this kind or none has."""
    held = asked.plan.definition.profile.fields.get(asked.row.path)
    binding = asked.binding()
    if isinstance(binding, derived.DerivedField):
        note = "follows from the kind"
        yield Entry((), binding.native, KIND, note=note, derived=True)
        return
    for place in binding.look(asked.ev, asked.document):
        if held is not None and held.scale_of is not None:
            yield counted(asked.origins, asked.row, place, "")
        else:
            yield noted(asked, binding, place)


def noted(asked: Asked, binding: Any, place: Place) -> Entry:
    """A value in the notation of its field, with the object's own where they differ."""
    value = in_notation(binding, asked.row, place.value)
    written = binding.form.codec is not asked.row.reading() or binding.form.together
    entry = asked.origins.entry(asked.row, place.path, value, derived=written)
    literal = read(asked.document, place.path)
    plain = not isinstance(literal, dict | list) and literal is not ABSENT
    if entry.derived and plain and not is_secret_place(entry.path):
        entry.note = f"written {str(literal).lower() if isinstance(literal, bool) else literal}"
    return entry


def in_notation(binding: Any, row: Field, native: Any) -> Any:
    """A native value as policies write it; as it is where it cannot be read."""
    if native is None or binding.form.codec is row.reading():
        return native
    value = binding.rules.read(native)
    if value is INVALID:
        return native
    plain = isinstance(value, str | bool) or row.value == "integer"
    return value if plain else binding.rules.show(value)


def counted(origins: Origins, row: Field, place: Place, key: str) -> Entry:
    """A number of replicas, which may be no single place's: bounds and absence count too."""
    entry = origins.entry(row, place.path, place.value, key)
    if entry.value is not ABSENT and read(origins.document, place.path) != entry.value:
        entry.source, entry.by, entry.derived = COMPUTED, None, True
        entry.note = COUNTED
    return entry


READERS: dict[str, Callable[[Asked], Iterator[Entry]]] = {
    WORKLOAD_ITEMS: of_items,
    PRIORITY: of_priority,
    PREEMPTIBILITY: of_preemptibility,
    TOTAL_GPUS: of_totals,
    NOTHING: of_nothing,
}


def workload_entries(asked: Asked) -> list[Entry]:
    """The values of one field of the workload; one unset entry where there is none.

    Raises LocationError where the object's numbers cannot be told.
    """
    found = list(READERS.get(asked.row.shape, of_places)(asked))
    present = [each for each in found if each.value is not ABSENT]
    if asked.row.shape == WORKLOAD_ITEMS and found:
        return found
    return present or found[:1] or [Entry((), ABSENT, UNSET)]
