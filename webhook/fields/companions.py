"""Fields of the workload that go together: a minimum with its maximum."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from typing import Any

from webhook.documents.problem import Source
from webhook.evaluation.state import Evaluation
from webhook.fields.handler import FieldSource, FieldValue, Phases, WorkloadField
from webhook.fields.notation import PathValue
from webhook.fields.scalar import INVALID
from webhook.fields.workload import WorkloadScalarField, scalar_field
from webhook.pods.pod_view import PodView
from webhook.policy.ordered_defaults import PAIRS, UNBOUNDED_AT_ZERO

ORDERED = "min-default-above-max-default"


class OrderedFields(WorkloadField):
    """A minimum and a maximum of one thing. The minimum may not exceed the maximum."""

    __slots__ = ("high", "low")

    def __init__(self, low: WorkloadScalarField, high: WorkloadScalarField) -> None:
        super().__init__(high.row)
        self.low, self.high = low, high
        self.phases = Phases(final=True)

    def compared_values(
        self, ev: Evaluation, document: Any, views: Sequence[PodView]
    ) -> list[PathValue]:
        """Everything that is read of a document."""
        return [*self.low.look(ev, document), *self.high.look(ev, document)]

    def read(self, views: Sequence[PodView], ev: Evaluation) -> Iterable[FieldValue]:
        """Return nothing: each of the two fields reads itself."""
        return ()

    def check_intent(self, views: Sequence[PodView], ev: Evaluation) -> None:
        """Do nothing: each of the two fields checks itself."""

    def fill(self, views: Sequence[PodView], ev: Evaluation) -> None:
        """Do nothing: each of the two fields writes itself."""

    def check_final(self, views: Sequence[PodView], ev: Evaluation) -> None:
        """Refuse a maximum below its minimum, unless both were there before."""
        document = ev.draft.document
        lows = {each.path[:-1]: each for each in self.low.look(ev, document)}
        for high in self.high.look(ev, document):
            low = lows.get(high.path[:-1])
            if low is None or low.value is None or high.value is None:
                continue
            most, least = self.high.rules.read(high.value), self.low.rules.read(low.value)
            if INVALID in (most, least) or least <= most or self.is_unbounded(most):
                continue
            before = self.low.before(ev, low), self.high.before(ev, high)
            if [each and each[1] for each in before] != [low.value, high.value]:
                self.refuse(ev, low, high)

    def is_unbounded(self, most: Any) -> bool:
        """Return whether a maximum means no limit."""
        return most == 0 and self.row.path in UNBOUNDED_AT_ZERO

    def refuse(self, ev: Evaluation, low: PathValue, high: PathValue) -> None:
        """Report the two values, as a fault of the default if podgate wrote one of them."""
        names = self.high.row.path, self.low.row.path
        written = next((each for each in names if each in ev.written), "")
        shown = self.high.rules.show_native_at(high.path, high.value)
        least = self.low.rules.show_native_at(low.path, low.value)
        source = ev.written[written] if written else self.source()
        reason = "conflicting-default" if written else "bounds-disagree"
        allowed = f"{self.low.row.path} {least} or more"
        ev.violate(self.row.path, high.path, shown, allowed, None, reason=reason, source=source)

    def source(self) -> Source | None:
        """Return the source of a policy with rules or a default for one of them."""
        for rules in (self.high.rules, self.low.rules):
            for each in (*rules.prohibitions, *rules.required, *(one for one, _ in rules.final)):
                return each.source
            if rules.default is not None:
                return rules.default.source
        return None


def ordered_fields(
    named: Container[str], source: Callable[[str], FieldSource]
) -> Iterator[OrderedFields]:
    """Return the comparisons of a minimum with its maximum, for fields that a policy names."""
    for pair in PAIRS:
        if pair.reason != ORDERED or not (pair.low in named or pair.high in named):
            continue
        low, high = scalar_field(source(pair.low)), scalar_field(source(pair.high))
        if low is not None and high is not None:
            yield OrderedFields(low, high)
