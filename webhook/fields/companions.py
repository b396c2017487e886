"""Fields of the workload that go together: a metric with its target, a minimum with its maximum."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from webhook.documents.problem import Source
from webhook.evaluation.state import Evaluation
from webhook.fields.notation import Place
from webhook.fields.scalar import INVALID
from webhook.fields.workload import WorkloadField
from webhook.pods.pod_view import PodView
from webhook.policy.ordered_defaults import PAIRS, UNBOUNDED_AT_ZERO
from webhook.policy.row import Field

METRIC, THRESHOLD = "autoscaling.metric", "autoscaling.metricThreshold"
ORDERED = "min-default-above-max-default"
Bindings = dict[str, Any]


class TargetField(WorkloadField):
    """A metric or its target, which means something else beside another metric.

    `other` is the other one of the two. Both defaults are written, or neither is.
    """

    __slots__ = ("other",)

    def __init__(self, own: WorkloadField, other: WorkloadField) -> None:
        self.field, self.form, self.rules = own.field, own.form, own.rules
        self.places, self.write, self.server_default = own.places, own.write, own.server_default
        self.unlimited = own.unlimited
        self.other = other

    def fill(self, views: Sequence[PodView], ev: Evaluation) -> None:
        """Write the default where the other one goes with it."""
        if self.rules.default is None or self.fits(ev):
            super().fill(views, ev)
            return
        ev.warn("default-needs-other", self.field.path, (), self.other.field.path)

    def fits(self, ev: Evaluation) -> bool:
        """Whether the other one is the default's, or a metric for which this is the only target."""
        document = ev.request.object
        stated = [each.value for each in self.other.look(ev, document) if each.value is not None]
        if any(each.value is not None for each in self.look(ev, document)):
            return True  # the default is not written there
        rules = self.other.rules
        if not stated:
            return rules.default is not None and self.other.write is not None
        if rules.default is None:
            return self.field.path == THRESHOLD
        return all(rules.equals_default(each) for each in stated)


class OrderedFields:
    """A minimum and a maximum of one thing: the first may not be above the second."""

    __slots__ = ("field", "high", "low")

    def __init__(self, low: WorkloadField, high: WorkloadField) -> None:
        self.field: Field = high.field
        self.low, self.high = low, high

    def seen(self, ev: Evaluation, document: Any, views: Sequence[PodView]) -> list[Place]:
        """Everything that is read of a document."""
        return [*self.low.look(ev, document), *self.high.look(ev, document)]

    def final(self, views: Sequence[PodView], ev: Evaluation) -> None:
        """Refuse a maximum below the minimum beside it, unless both were there before."""
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
        """Whether a maximum is none."""
        return most == 0 and self.field.path in UNBOUNDED_AT_ZERO

    def refuse(self, ev: Evaluation, low: Place, high: Place) -> None:
        """Record the two values; at fault is the default if one of them was written."""
        names = self.high.field.path, self.low.field.path
        written = next((each for each in names if each in ev.written), "")
        shown = self.high.rules.show_native_at(high.path, high.value)
        least = self.low.rules.show_native_at(low.path, low.value)
        source = ev.written[written] if written else self.source()
        reason = "conflicting-default" if written else "bounds-disagree"
        allowed = f"{self.low.field.path} {least} or more"
        ev.violate(self.field.path, high.path, shown, allowed, None, reason=reason, source=source)

    def source(self) -> Source | None:
        """A policy that has rules or a default for one of them."""
        for rules in (self.high.rules, self.low.rules):
            for each in (*rules.prohibitions, *rules.required, *(one for one, _ in rules.final)):
                return each.source
            if rules.default is not None:
                return rules.default.source
        return None


def join_targets(bindings: Bindings, other: Callable[[str], Any]) -> None:
    """Let the default of a metric and of its target be written together or not at all."""
    pair = {path: bindings.get(path) or other(path) for path in (METRIC, THRESHOLD)}
    if not all(isinstance(each, WorkloadField) for each in pair.values()):
        return
    for path, beside in ((METRIC, THRESHOLD), (THRESHOLD, METRIC)):
        if path in bindings:
            bindings[path] = TargetField(pair[path], pair[beside])


def ordered(bindings: Bindings, other: Callable[[str], Any]) -> Iterator[OrderedFields]:
    """What compares a minimum with its maximum, where a policy speaks of one of them."""
    for pair in PAIRS:
        if pair.reason != ORDERED or not {pair.low, pair.high} & bindings.keys():
            continue
        low, high = (bindings.get(path) or other(path) for path in (pair.low, pair.high))
        if isinstance(low, WorkloadField) and isinstance(high, WorkloadField):
            yield OrderedFields(low, high)
