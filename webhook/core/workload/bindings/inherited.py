"""Fields of pods that those without them take from the workload."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from webhook.core.policy.combine import Leaf
from webhook.core.policy.row import Field
from webhook.core.workload.bindings.scalar import reader
from webhook.core.workload.bindings.workloads import WorkloadField
from webhook.core.workload.evaluation import Evaluation
from webhook.core.workload.places import Locate
from webhook.core.workload.podspec import PodView


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
