"""priorityClass: several places that schedulers read in order and that must agree."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from webhook.evaluation.state import Evaluation
from webhook.fields.handler import FieldSource, FieldValue, WorkloadField, WorkloadHandler
from webhook.fields.notation import PathValue
from webhook.fields.scalar import rules_of
from webhook.fields.workload import PRIORITY_LABEL
from webhook.fields.workload_paths import Locate, locate_programs
from webhook.objects.path import read
from webhook.pods.pod_view import PodView
from webhook.policy.combine import Leaf
from webhook.policy.row import PRIORITY, Field


class PriorityField(WorkloadField):
    """priorityClass: several places that schedulers read in order and that must agree."""

    __slots__ = ("second_places",)

    def __init__(self, row: Field, leaf: Leaf, second_places: Locate) -> None:
        super().__init__(row, rules_of(row, leaf))
        # Different values are refused whatever the rules are.
        self.phases = replace(self.phases, final=True)
        self.second_places = second_places

    def path_values(
        self, ev: Evaluation, document: Any, views: Sequence[PodView]
    ) -> list[PathValue]:
        """Return workload label, pod labels, pod specs and second paths of the kind that have a value."""
        found = []
        if label := read(document, PRIORITY_LABEL):
            found.append(PathValue(PRIORITY_LABEL, label, "workload"))
        for view in views:
            location = view.location
            name = f"{location.component}/{location.instance}"
            if location.metadata_path is not None:
                path = location.metadata_path + PRIORITY_LABEL[1:]
                if path != PRIORITY_LABEL and (label := view.read_in(document, path)):
                    found.append(PathValue(path, label, f"label {name}"))
            path = (*location.spec_path, "priorityClassName")
            if of_spec := view.read_in(document, path):
                found.append(PathValue(path, of_spec, f"spec {name}"))
        found.extend(each for each in self.second_places(ev, document) if each.value is not None)
        return found

    def compared_values(
        self, ev: Evaluation, document: Any, views: Sequence[PodView]
    ) -> list[PathValue]:
        """Everything that is read of a document."""
        return self.path_values(ev, document, views)

    def before(self, ev: Evaluation, views: Sequence[PodView]) -> dict[str, PathValue]:
        """Return the values before the update by their key."""
        if ev.old is None:
            return {}
        old = [view.old for view in views if view.old is not None]
        return {path_value.key: path_value for path_value in self.path_values(ev, ev.old, old)}

    def check_intent(self, views: Sequence[PodView], ev: Evaluation) -> None:
        """Check prohibitions on every path with a value."""
        if not self.rules.prohibitions:
            return
        before = self.before(ev, views)
        for path_value in self.path_values(ev, ev.request.object, views):
            old = before.get(path_value.key)
            known = (
                None
                if old is None and not ev.updating
                else (path_value.path, old.value if old else None)
            )
            self.rules.check_intent(ev, path_value.path, path_value.value, known, None)

    def fill(self, views: Sequence[PodView], ev: Evaluation) -> None:
        """Write the workload label if no path is set, and the pods' if the class exists."""
        default = self.rules.default
        if default is None or self.path_values(ev, ev.request.object, views):
            return
        value, kept = default.value, "default"
        old = list(self.before(ev, views).values())
        if (
            old
            and self.rules.allows(old[0].value)
            and not ev.intent.was_written_by_user(old[0].path)
        ):
            value, kept = old[0].value, "kept"
        if ev.can_write(PRIORITY_LABEL):
            ev.write(self.row.path, PRIORITY_LABEL, value, kept, default.source)
        if value not in ev.references.priority_classes:
            return
        for view in views:
            path = (*view.spec_path, "priorityClassName")
            if view.spec_path not in ev.as_before and ev.can_write(path):
                ev.write(self.row.path, path, value, kept, default.source)

    def check_final(self, views: Sequence[PodView], ev: Evaluation) -> None:
        """Check final rules on the first path. Different values are refused."""
        path_values = self.path_values(ev, ev.draft.document, views)
        before = self.before(ev, views)
        if not path_values:
            self.rules.check_required(ev, PRIORITY_LABEL, unchanged=ev.updating and not before)
            return
        first = path_values[0]
        old = before.get(first.key)
        unchanged = old is not None and old.value == first.value
        self.rules.check_final(ev, first.path, first.value, unchanged=unchanged)
        for path_value in path_values[1:]:
            if path_value.value == first.value:
                continue
            field_paths = before.get(path_value.key)
            if unchanged and field_paths is not None and field_paths.value == path_value.value:
                continue
            source = self.source()
            ev.violate(
                self.row.path,
                path_value.path,
                self.rules.show_native_at(path_value.path, path_value.value),
                self.rules.show_native_at(first.path, first.value),
                None,
                reason="places-disagree",
                source=source,
            )

    def source(self) -> Any:
        """Return the source of some policy that names the priority class."""
        for each in (*self.rules.prohibitions, *self.rules.required):
            return each.source
        if self.rules.final:
            return self.rules.final[0][0].source
        return self.rules.default.source if self.rules.default else None

    def read(self, views: Sequence[PodView], ev: Evaluation) -> Iterator[FieldValue]:
        """Every path that names the priority class."""
        for path_value in self.path_values(ev, ev.draft.document, views):
            yield FieldValue(path_value.path, path_value.value)

    def current(self, views: Any, ev: Evaluation) -> Any:
        """Return None: nothing is computed from it."""
        return None


class PriorityHandler(WorkloadHandler):
    """The priority class of a workload."""

    name = PRIORITY
    of_every_kind = True

    def compile(self, source: FieldSource) -> PriorityField:
        """The field at all places that schedulers read."""
        second = source.definition.profile.priority_class.second_places
        return PriorityField(source.row, source.leaf, locate_programs(second))
