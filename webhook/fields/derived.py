"""Fields whose value follows from the workload's kind: evaluated, never written."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from webhook.evaluation.state import Evaluation, ratchets
from webhook.fields import handler
from webhook.fields.handler import FieldValue, WorkloadField
from webhook.fields.notation import PathValue
from webhook.fields.scalar import rules_of
from webhook.objects.path import Path
from webhook.pods.pod_view import PodView
from webhook.policy.combine import Leaf
from webhook.policy.row import Field

KIND: Path = ("kind",)


class DerivedField(WorkloadField):
    """A field whose value the kind determines. `value` is in the field's own form."""

    __slots__ = ("native", "value")

    def __init__(self, row: Field, leaf: Leaf, text: str) -> None:
        super().__init__(row, rules_of(row, leaf))
        self.value = self.rules.codec.parse(text, None)
        self.native = self.rules.codec.write(self.value, None)

    def check_intent(self, views: Sequence[PodView], ev: Evaluation) -> None:
        """Report a locked default that the kind contradicts. Users cannot set such a value."""
        default = self.rules.default
        if default is None or default.value == self.value:
            return
        for each in self.rules.prohibitions:
            if each.type.fixes_default and not (ev.updating and ratchets(each)):
                shown, fixed = self.rules.show(self.value), self.rules.show(default.value)
                ev.violate(self.row.path, KIND, shown, fixed, each)

    def fill(self, views: Sequence[PodView], ev: Evaluation) -> None:
        """Write nothing. Warn of a default that differs from the kind's value."""
        default = self.rules.default
        if default is not None and default.value != self.value:
            ev.warn("forbidden-default", self.row.path, (), ev.request.kind)

    def check_final(self, views: Sequence[PodView], ev: Evaluation) -> None:
        """Check final rules on the kind's value, which is always present."""
        self.rules.check_value(ev, KIND, self.value, unchanged=ev.updating)

    def read(self, views: Sequence[PodView], ev: Evaluation) -> Iterable[FieldValue]:
        """The kind's value."""
        return [FieldValue((), self.native, note="follows from the kind", origin=handler.KIND)]

    def current(self, views: Any, ev: Evaluation) -> Any:
        """The kind's value."""
        return self.native

    def compared_values(
        self, ev: Evaluation, document: Any, views: Sequence[PodView]
    ) -> list[PathValue]:
        """Return nothing: no document is read."""
        return []
