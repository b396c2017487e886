"""scale.replicas: the largest number of pods of each instance of a component."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from webhook.evaluation.state import Evaluation, ratchets
from webhook.fields.handler import (
    COMPUTED,
    MAPPED,
    UNMAPPED,
    FieldSource,
    FieldValue,
    Support,
    WorkloadField,
    WorkloadHandler,
)
from webhook.fields.notation import PathValue
from webhook.fields.scalar import INVALID, rules_of
from webhook.fields.workload_paths import Locate, locate_scale_maxima
from webhook.objects.path import read
from webhook.pods.definition import Definition
from webhook.pods.pod_view import PodView
from webhook.pods.replicas import UNLIMITED
from webhook.policy.combine import Leaf
from webhook.policy.row import SCALE, Field

COUNTED = "counted from replicas and their bounds, or what absence means"
NO_BOUND = "unlimited"
UNSTATED = "Set it to at most {}; absent or 0 means no limit."
OPENED = "Choose another value, with which the object sets a number of at most {}."


class ScaleField(WorkloadField):
    """scale.replicas: the replicas of each instance of one component; never written."""

    __slots__ = ("component", "read_scales", "roles")

    def __init__(
        self, row: Field, leaf: Leaf, read_scales: Locate, component: str, roles: Any
    ) -> None:
        super().__init__(row, rules_of(row, leaf))
        self.read_scales = read_scales
        self.component = component
        self.roles = roles

    def compared_values(
        self, ev: Evaluation, document: Any, views: Sequence[PodView]
    ) -> list[PathValue]:
        """Everything that is read of a document."""
        return list(self.read_scales(ev, document))

    def check_intent(self, views: Sequence[PodView], ev: Evaluation) -> None:
        """Do nothing: there are no intent rules for it."""

    def fill(self, views: Sequence[PodView], ev: Evaluation) -> None:
        """Nothing is ever written."""

    def check_final(self, views: Sequence[PodView], ev: Evaluation) -> None:
        """Check min, max and step on the larger of replicas and an autoscaler's maximum."""
        old = self.read_scales(ev, ev.old) if ev.old else ()
        before = {path_value.key: path_value.value for path_value in old}
        for path_value in self.read_scales(ev, ev.draft.document):
            if path_value.value is None:
                continue
            value = self.rules.read(path_value.value)
            if value is INVALID:
                self.rules.refuse_invalid(ev, path_value.path, path_value.value)
                continue
            self.check_number(ev, path_value, value, before.get(path_value.key))

    def check_number(self, ev: Evaluation, path_value: PathValue, value: int, old: Any) -> None:
        """Check one instance. An update that makes it no worse passes."""
        for each, holds in self.rules.final:
            if holds(value, each.argument):
                continue
            if isinstance(old, int) and ratchets(each) and each.type.is_no_further(value, old):
                continue
            shown, allowed = self.rules.show(value), self.rules.show_argument(each)
            fix = ""
            if value >= UNLIMITED:
                shown, fix = NO_BOUND, how_to_bound(ev, path_value).format(allowed)
            ev.violate(
                self.row.path, path_value.path, shown, allowed, each, key=path_value.key, fix=fix
            )

    def read(self, views: Sequence[PodView], ev: Evaluation) -> Iterator[FieldValue]:
        """The number of each instance."""
        document = ev.draft.document
        for path_value in self.read_scales(ev, document):
            yield count_replicas(path_value, document, path_value.key)

    def current(self, views: Any, ev: Evaluation) -> Any:
        """Nothing is computed from it."""
        return None


def how_to_bound(ev: Evaluation, path_value: PathValue) -> str:
    """Return the fix at the path that leaves the number open, "" if the path has a number."""
    stated = ev.now(path_value.path)
    if isinstance(stated, str):
        return OPENED
    return "" if stated else UNSTATED


class ScaleHandler(WorkloadHandler):
    """The replicas of each component."""

    name = SCALE
    by_component = True

    def compile(self, source: FieldSource) -> ScaleField:
        """The field of one component in one role."""
        locate = locate_scale_maxima(source.definition, source.component, source.roles)
        return ScaleField(source.row, source.leaf, locate, source.component, source.roles)

    def support(self, row: Field, definition: Definition, component: str) -> Support:
        """A component has it whose number of replicas can be read, or is known when absent."""
        found = definition.interface.component(component)
        profile = definition.profile.component(component)
        if found is None or found.scales or profile.scale.absent is not None:
            return MAPPED, ""
        return UNMAPPED, f"{component} has no number of replicas"


def count_replicas(path_value: PathValue, document: Any, key: str) -> FieldValue:
    """A number of replicas, which may be at no single path: bounds and absence count too."""
    if path_value.value is None or read(document, path_value.path) == path_value.value:
        return FieldValue(path_value.path, path_value.value, key)
    return FieldValue(path_value.path, path_value.value, key, note=COUNTED, origin=COMPUTED)
