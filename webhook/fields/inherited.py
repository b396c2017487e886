"""Fields of pods that those without them take from the workload."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from webhook.evaluation.state import Evaluation
from webhook.fields.notation import Place
from webhook.fields.scalar import reader
from webhook.fields.workload import WorkloadField
from webhook.fields.workload_paths import Locate
from webhook.pods.pod_view import PodView
from webhook.policy.combine import Leaf
from webhook.policy.row import Field


class InheritedField(WorkloadField):
    """A field of pods that those without it take from the workload: judged there, written in pods.

    It is judged also while every pod has a value of its own: the next one may have none. Only what
    an operator has filled in means nothing then.
    """

    __slots__ = ("of_pod",)

    def __init__(self, field: Field, leaf: Leaf, places: Locate, server_default: Any) -> None:
        super().__init__(field, leaf, places, places, server_default)
        self.of_pod = reader(field.at)

    def counting(self, views: Sequence[PodView], ev: Evaluation, document: Any) -> list[Place]:
        """Return the places whose value counts; pods that are not here are thought to take it."""
        places = [each for each in self.look(ev, document) if each.value is not None]
        if not views or any(self.of_pod(view.spec) is None for view in views):
            return places
        return [each for each in places if self.is_said(ev, each)]

    def intent(self, views: Sequence[PodView], ev: Evaluation) -> None:
        """Prohibitions, while the value means something."""
        if self.counting(views, ev, ev.request.object):
            super().intent(views, ev)

    def fill(self, views: Sequence[PodView], ev: Evaluation) -> None:
        """Nothing is written beside the pods."""

    def final(self, views: Sequence[PodView], ev: Evaluation) -> None:
        """Final rules on what is there."""
        if not self.rules.final:
            return
        now = [ev.as_it_stands(view) for view in views]
        for place in self.counting(now, ev, ev.draft.document):
            before = self.before(ev, place)
            unchanged = before is not None and before[1] == place.value
            self.rules.judge_final(ev, place.path, place.value, unchanged=unchanged)
