"""preemptibility: a label of the workload or its pods, else derived from the priority."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from webhook.evaluation.state import Evaluation
from webhook.fields.handler import COMPUTED, FieldSource, FieldValue, WorkloadHandler
from webhook.fields.notation import PathValue
from webhook.fields.priority import PriorityField
from webhook.fields.workload_paths import locate_programs
from webhook.objects.path import Path, read
from webhook.pods.pod_view import PodView
from webhook.policy.catalogue.workloads import PRIORITIES
from webhook.policy.row import PREEMPTIBILITY

LABEL = "kai.scheduler/preemptibility"
WORKLOAD_LABEL: Path = ("metadata", "labels", LABEL)
# Workloads below this priority may be preempted.
NON_PREEMPTIBLE = 100


class PreemptibilityField(PriorityField):
    """The labels are checked like the paths of a priority class, which replaces missing labels.

    Nobody chooses a value that follows from the priority, so only final rules apply to it.
    """

    __slots__ = ()

    def path_values(
        self, ev: Evaluation, document: Any, views: Sequence[PodView]
    ) -> list[PathValue]:
        """The labels of the workload and of its pods that have a value, in this order."""
        found = [PathValue(WORKLOAD_LABEL, read(document, WORKLOAD_LABEL) or None, "workload")]
        for view in views:
            metadata = view.location.metadata_path
            path = (*metadata, "labels", LABEL) if metadata is not None else WORKLOAD_LABEL
            if path != WORKLOAD_LABEL:
                key = f"label {view.location.component}/{view.location.instance}"
                found.append(PathValue(path, view.read_in(document, path) or None, key))
        return [path_value for path_value in found if path_value.value is not None]

    def derive_value(
        self, ev: Evaluation, document: Any, views: Sequence[PodView]
    ) -> list[PathValue]:
        """Return the value for the first priority class, none for an unknown class."""
        for path_value in super().path_values(ev, document, views)[:1]:
            priority = (
                PRIORITIES.get(path_value.value) if isinstance(path_value.value, str) else None
            )
            if priority is not None:
                value = "preemptible" if priority < NON_PREEMPTIBLE else "non-preemptible"
                return [
                    PathValue(path_value.path, value, f"priority {path_value.key}", computed=True)
                ]
        return []

    def compared_values(
        self, ev: Evaluation, document: Any, views: Sequence[PodView]
    ) -> list[PathValue]:
        """Everything that is read of a document."""
        return [*self.path_values(ev, document, views), *self.derive_value(ev, document, views)]

    def fill(self, views: Sequence[PodView], ev: Evaluation) -> None:
        """Write the workload label if no label is set."""
        default = self.rules.default
        if default is None or self.path_values(ev, ev.request.object, views):
            return
        old = next(iter(self.before(ev, views).values()), None)
        before = (old.path, old.value) if old is not None else None
        wanted = self.rules.choose_value(ev, WORKLOAD_LABEL, None, None, before)
        if wanted is None or not ev.can_write(WORKLOAD_LABEL):
            return
        kept, value = wanted
        value = value if kept == "kept" else default.value
        ev.write(self.row.path, WORKLOAD_LABEL, value, kept, default.source)

    def check_final(self, views: Sequence[PodView], ev: Evaluation) -> None:
        """Check final rules on the first label, else on the priority's value. Labels must agree."""
        document = ev.draft.document
        if self.path_values(ev, document, views):
            super().check_final(views, ev)
            return
        old = [(each.key, each.value) for each in self.derived_before(ev, views)]
        derived = self.derive_value(ev, document, views)
        for path_value in derived:
            unchanged = (path_value.key, path_value.value) in old
            self.rules.check_final(ev, path_value.path, path_value.value, unchanged=unchanged)
        if not derived:
            unchanged = ev.updating and not old and not self.before(ev, views)
            self.rules.check_required(ev, WORKLOAD_LABEL, unchanged=unchanged)

    def derived_before(self, ev: Evaluation, views: Sequence[PodView]) -> list[PathValue]:
        """Return the priority's value before the update, if no label was set."""
        if ev.old is None or self.before(ev, views):
            return []
        old = [view.old for view in views if view.old is not None]
        return self.derive_value(ev, ev.old, old)

    def read(self, views: Sequence[PodView], ev: Evaluation) -> Iterator[FieldValue]:
        """The labels, else what the priority class says."""
        document = ev.draft.document
        path_values = self.path_values(ev, document, views)
        for path_value in path_values:
            yield FieldValue(path_value.path, path_value.value)
        for path_value in () if path_values else self.derive_value(ev, document, views):
            note = "follows from the priority class"
            yield FieldValue(path_value.path, path_value.value, note=note, origin=COMPUTED)

    def current(self, views: Any, ev: Evaluation) -> Any:
        """Return the first value, including the priority's, None if unset."""
        document = ev.draft.document
        found = self.path_values(ev, document, views) or self.derive_value(ev, document, views)
        return found[0].value if found else None


class PreemptibilityHandler(WorkloadHandler):
    """Whether a workload may be preempted."""

    name = PREEMPTIBILITY
    of_every_kind = True

    def compile(self, source: FieldSource) -> PreemptibilityField:
        """Compile the field with the labels, and the paths of the priority class as their replacement."""
        second = source.definition.profile.priority_class.second_places
        return PreemptibilityField(source.row, source.leaf, locate_programs(second))
