"""preemptibility: a label of the workload or its pods, else what the priority says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from webhook.evaluation.state import Evaluation
from webhook.fields.notation import Place
from webhook.fields.priority import PriorityField
from webhook.objects.path import Path, read
from webhook.pods.pod_view import PodView
from webhook.policy.catalogue.workloads import PRIORITIES

LABEL = "kai.scheduler/preemptibility"
WORKLOAD_LABEL: Path = ("metadata", "labels", LABEL)
# Workloads below this priority may be preempted.
NON_PREEMPTIBLE = 100


class PreemptibilityField(PriorityField):
    """The labels are judged like the places of a priority class, which stands in for them.

    What follows from the priority is nobody's choice: only final rules look at it.
    """

    __slots__ = ()

    def places(self, ev: Evaluation, document: Any, views: Sequence[PodView]) -> list[Place]:
        """The labels of the workload and of its pods that have a value, in this order."""
        found = [Place(WORKLOAD_LABEL, read(document, WORKLOAD_LABEL) or None, "workload")]
        for view in views:
            metadata = view.location.metadata_path
            path = (*metadata, "labels", LABEL) if metadata is not None else WORKLOAD_LABEL
            if path != WORKLOAD_LABEL:
                key = f"label {view.location.component}/{view.location.instance}"
                found.append(Place(path, read(document, path) or None, key))
        return [place for place in found if place.value is not None]

    def derived(self, ev: Evaluation, document: Any, views: Sequence[PodView]) -> list[Place]:
        """What the first place of the priority class says; none for a class that is not known."""
        for place in super().places(ev, document, views)[:1]:
            priority = PRIORITIES.get(place.value) if isinstance(place.value, str) else None
            if priority is not None:
                value = "preemptible" if priority < NON_PREEMPTIBLE else "non-preemptible"
                return [Place(place.path, value, f"priority {place.key}", computed=True)]
        return []

    def seen(self, ev: Evaluation, document: Any, views: Sequence[PodView]) -> list[Place]:
        """Everything that is read of a document."""
        return [*self.places(ev, document, views), *self.derived(ev, document, views)]

    def fill(self, views: Sequence[PodView], ev: Evaluation) -> None:
        """Write the workload label where no label says anything."""
        default = self.rules.default
        if default is None or self.places(ev, ev.request.object, views):
            return
        old = next(iter(self.before(ev, views).values()), None)
        before = (old.path, old.value) if old is not None else None
        wanted = self.rules.wanted(ev, WORKLOAD_LABEL, None, None, before)
        if wanted is None or not ev.can_write(WORKLOAD_LABEL):
            return
        kept, value = wanted
        value = value if kept == "kept" else default.value
        ev.write(self.field.path, WORKLOAD_LABEL, value, kept, default.source)

    def final(self, views: Sequence[PodView], ev: Evaluation) -> None:
        """Final rules on the first label, else on what the priority says; labels have to agree."""
        document = ev.draft.document
        if self.places(ev, document, views):
            super().final(views, ev)
            return
        old = [(each.key, each.value) for each in self.derived_before(ev, views)]
        derived = self.derived(ev, document, views)
        for place in derived:
            unchanged = (place.key, place.value) in old
            self.rules.judge_final(ev, place.path, place.value, unchanged=unchanged)
        if not derived:
            unchanged = ev.updating and not old and not self.before(ev, views)
            self.rules.judge_required(ev, WORKLOAD_LABEL, unchanged=unchanged)

    def derived_before(self, ev: Evaluation, views: Sequence[PodView]) -> list[Place]:
        """What the priority said before the update, where no label did."""
        if ev.old is None or self.before(ev, views):
            return []
        old = [view.old for view in views if view.old is not None]
        return self.derived(ev, ev.old, old)

    def current(self, views: Any, ev: Evaluation) -> Any:
        """The value of the first place now, the priority's included; None when unset."""
        document = ev.draft.document
        found = self.places(ev, document, views) or self.derived(ev, document, views)
        return found[0].value if found else None
