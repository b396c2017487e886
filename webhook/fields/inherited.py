"""Fields that pods without their own value inherit from the workload."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from webhook.evaluation.state import Evaluation
from webhook.fields.handler import FieldSource, WorkloadHandler
from webhook.fields.notation import PathValue
from webhook.fields.scalar import reader
from webhook.fields.workload import WorkloadScalarField
from webhook.fields.workload_paths import Locate, find_shadow_default, locate_paths
from webhook.pods.pod_view import PodView
from webhook.policy.combine import Leaf
from webhook.policy.row import POD, Field


class InheritedField(WorkloadScalarField):
    """A field that pods inherit from the workload: checked there, written in pods.

    It is also checked while every pod has its own value, because the next pod may have none. But
    then a value that an operator filled in does not count.
    """

    __slots__ = ("of_pod",)

    def __init__(self, row: Field, leaf: Leaf, path_values: Locate, server_default: Any) -> None:
        super().__init__(row, leaf, path_values, path_values, server_default)
        self.of_pod = reader(row.at)

    def counting(self, views: Sequence[PodView], ev: Evaluation, document: Any) -> list[PathValue]:
        """Return the paths whose value counts. Pods that are not in the object may inherit it."""
        path_values = [each for each in self.look(ev, document) if each.value is not None]
        if not views or any(self.of_pod(view.spec) is None for view in views):
            return path_values
        return [each for each in path_values if self.is_set(ev, each)]

    def check_intent(self, views: Sequence[PodView], ev: Evaluation) -> None:
        """Check prohibitions if the value has an effect."""
        if self.counting(views, ev, ev.request.object):
            super().check_intent(views, ev)

    def fill(self, views: Sequence[PodView], ev: Evaluation) -> None:
        """Write nothing outside the pods."""

    def check_final(self, views: Sequence[PodView], ev: Evaluation) -> None:
        """Check final rules on the values."""
        if not self.rules.final:
            return
        now = [ev.current_pod(view) for view in views]
        for path_value in self.counting(now, ev, ev.draft.document):
            before = self.before(ev, path_value)
            unchanged = before is not None and before[1] == path_value.value
            self.rules.check_final(ev, path_value.path, path_value.value, unchanged=unchanged)


class InheritedHandler(WorkloadHandler):
    """Fields of pods that the kind also has for all of its pods."""

    name = POD

    def compile(self, source: FieldSource) -> InheritedField | None:
        """Return the field outside the pods, None if the kind has it only in pods."""
        field_paths = source.definition.profile.fields.get(source.row.path)
        if field_paths is None:
            return None
        filled = find_shadow_default(source.definition, source.server, field_paths)
        path_values = locate_paths(field_paths, source.definition.profile)
        return InheritedField(source.row, source.leaf, path_values, filled)
