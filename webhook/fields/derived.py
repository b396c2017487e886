"""Fields whose value follows from the workload's kind: judged, never written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from webhook.evaluation.state import Evaluation, ratchets
from webhook.fields.notation import Place
from webhook.fields.scalar import ScalarRules, rules_of
from webhook.objects.path import Path
from webhook.pods.pod_view import PodView
from webhook.policy.combine import Leaf
from webhook.policy.row import Field

KIND: Path = ("kind",)


class DerivedField:
    """A field that the kind itself answers; `value` is in the field's own form."""

    __slots__ = ("field", "native", "rules", "value")

    def __init__(self, field: Field, leaf: Leaf, text: str) -> None:
        self.field = field
        self.rules: ScalarRules = rules_of(field, leaf)
        self.value = self.rules.codec.parse(text, None)
        self.native = self.rules.codec.write(self.value, None)

    def intent(self, views: Sequence[PodView], ev: Evaluation) -> None:
        """A fixed default that the kind contradicts; nobody has set what follows from the kind."""
        default = self.rules.default
        if default is None or default.value == self.value:
            return
        for each in self.rules.prohibitions:
            if each.rule == "canEdit" and not (ev.updating and ratchets(each)):
                shown, fixed = self.rules.show(self.value), self.rules.show(default.value)
                ev.violate(self.field.path, KIND, shown, fixed, each)

    def fill(self, views: Sequence[PodView], ev: Evaluation) -> None:
        """Write nothing; another default than the kind's own value is told."""
        default = self.rules.default
        if default is not None and default.value != self.value:
            ev.warn("forbidden-default", self.field.path, (), ev.request.kind)

    def final(self, views: Sequence[PodView], ev: Evaluation) -> None:
        """Final rules on the kind's value, which is always there."""
        self.rules.judge_value(ev, KIND, self.value, unchanged=ev.updating)

    def current(self, views: Any, ev: Evaluation) -> Any:
        """The kind's value."""
        return self.native

    def seen(self, ev: Evaluation, document: Any, views: Sequence[PodView]) -> list[Place]:
        """Nothing is read of a document."""
        return []
