"""total.gpuDevices, total.devices: replicas times the devices of a pod, summed over the workload."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from webhook.evaluation.installation import InstallationConfig
from webhook.evaluation.state import Evaluation, ratchets
from webhook.fields.devices.pod_claims import CLAIM_UNKNOWN
from webhook.fields.gpu.use import DeviceCounter, GpuCounter, Unread, new_among
from webhook.fields.handler import COMPUTED, FieldSource, FieldValue, WorkloadField, WorkloadHandler
from webhook.fields.notation import PathValue
from webhook.fields.scalar import rules_of
from webhook.objects.path import Path
from webhook.pods.locate import locate
from webhook.pods.location import LocationError
from webhook.pods.pod_view import MalformedPod, PodView, pod_view
from webhook.pods.replicas import UNLIMITED, Scale
from webhook.policy.combine import Constraint, Leaf
from webhook.policy.row import TOTAL_GPUS, Field
from webhook.policy.rules.rule_type import RuleType

KEY = "total"
GPUS, DEVICES = "total.gpuDevices", "total.devices"
SUMMED = {
    GPUS: "replicas times the GPUs of a pod, summed",
    DEVICES: "replicas times the devices of a pod, summed",
}
COUNTERS: Mapping[str, type[DeviceCounter]] = {GPUS: GpuCounter, DEVICES: DeviceCounter}


class Total:
    """The devices of a workload: a count, and the names of unbounded sources, by pod and source.

    `unread` are the unreadable amounts of its pods, by pod and amount; `unknown` are the names of
    claims that nobody knows.
    """

    __slots__ = ("count", "sources", "unknown", "unread")

    def __init__(self) -> None:
        self.count = 0
        self.sources: dict[Hashable, str] = {}
        self.unknown: set[str] = set()
        self.unread: dict[str, Unread] = {}

    @property
    def unbounded_source(self) -> str:
        """The name of the first unbounded source, "" for none."""
        return next(iter(self.sources.values()), "")

    def show(self) -> str:
        """Return the total, for messages."""
        return f"no bound ({self.unbounded_source})" if self.unbounded_source else str(self.count)


class TotalGpusField(WorkloadField):
    """The devices of all pods that a workload may get. Never written."""

    __slots__ = ("counter",)

    def __init__(self, row: Field, leaf: Leaf, config: InstallationConfig) -> None:
        super().__init__(row, rules_of(row, leaf))
        self.counter = COUNTERS[row.path](config)

    def compared_values(
        self, ev: Evaluation, document: Any, views: Sequence[PodView]
    ) -> list[PathValue]:
        """Return the total of a document."""
        total = self.total(ev, document, views)
        # The number of pods counts even if the request of one pod is unreadable.
        unread = [(key, each.native) for key, each in total.unread.items()]
        return [PathValue((), (unread, sorted(map(str, total.sources)), total.count), KEY)]

    def total(self, ev: Evaluation, document: Any, views: Iterable[PodView]) -> Total:
        """Return the sum over pods of the request of one times their largest number."""
        total, sums, around = Total(), sums_of(ev.scales(document)), stated_around(ev, document)
        shared: dict[Hashable, int] = {}
        held = {(view.location.component, view.location.instance) for view in views}
        for view in views:
            use = self.counter.use(view, ev)
            if use.none:
                continue
            location = view.location
            number = self.replicas(ev, view, sums, held)
            path_values = {location.place, location.spec_path}
            number = max(number, min(sum(around.get(each, 0) for each in path_values), UNLIMITED))
            where = f"{location.component}/{location.instance}"
            if use.unread:
                total.unread |= {f"{where}/{key}": each for key, each in use.unread.items()}
                number = max(number, 1)
            # What all pods share is counted once, and is one source.
            once = 0
            for key, each in use.shared.items():
                # As often as the component with the most pods has them.
                times = min(number, 1) if each.once else number
                shared[key] = max(shared.get(key, 0), times * each.devices)
                once += each.devices if each.once else 0
            if number and use.sources:
                total.unknown |= {use.sources[key] for key in use.unknown}
                for key, name in use.sources.items():
                    is_one = key in use.shared and use.shared[key].once
                    total.sources["" if is_one else where, key] = name
            if number >= UNLIMITED and use.count > once:
                name = location.instance or location.component
                total.sources[where, "replicas"] = f"replicas of {name}"
            total.count += number * use.unshared
        total.count += sum(shared.values())
        return total

    def replicas(
        self, ev: Evaluation, view: PodView, sums: Sums, held: set[tuple[str, str]]
    ) -> int:
        """Return how many pods of one location there may be, 1 if unknown.

        A template that replaces a component without its own pods counts for both.
        """
        instance = view.location.instance
        profile = ev.definition.profile.component(view.location.component)
        found = number_of(sums, profile.scale.pods_of or view.location.component, instance)
        if profile.stands_in_for and (profile.stands_in_for, instance) not in held:
            found += number_of(sums, profile.stands_in_for, instance)
        return found

    def check_intent(self, views: Sequence[PodView], ev: Evaluation) -> None:
        """Do nothing: there are no intent rules for it."""

    def fill(self, views: Sequence[PodView], ev: Evaluation) -> None:
        """Nothing is ever written."""

    def check_final(self, views: Sequence[PodView], ev: Evaluation) -> None:
        """Check min and max on the total of the result. A total that gets no worse passes."""
        if not self.rules.final:
            return
        document = ev.draft.document
        now = [ev.current_pod(view) for view in views] if ev.draft.changed else views
        total = self.total(ev, document, now)
        broken = [each for each, holds in self.rules.final if breaks(each, holds, total)]
        before = self.before(ev) if broken or total.unread else None
        tolerant = all(ratchets(each) for each, _ in self.rules.final)
        refused = new_among(total.unread, before.unread if before and tolerant else {})
        for unread in refused:
            self.rules.refuse_invalid(ev, unread.path, unread.native)
        if refused:
            return
        for each in broken:
            if before is not None and ratchets(each) and passes(each.type, total, before):
                continue
            path = views[0].spec_path if len(views) == 1 else ()
            ev.violate(
                self.row.path,
                path,
                total.show(),
                self.rules.show_argument(each),
                each,
                reason=self.reason_of(total),
                key=total.unbounded_source or KEY,
            )

    def reason_of(self, total: Total) -> str:
        """Return why a total breaks a rule if that is not the rule itself."""
        if self.row.path == DEVICES and total.unbounded_source in total.unknown:
            return CLAIM_UNKNOWN
        return "unbounded" if total.unbounded_source else ""

    def before(self, ev: Evaluation) -> Total | None:
        """Return the total of the old object, including removed components."""
        if ev.old is None:
            return None
        try:
            views = [pod_view(location) for location in locate(ev.definition, ev.old, ev.pods)]
            return self.total(ev, ev.old, views)
        except (LocationError, MalformedPod):
            return None

    def read(self, views: Sequence[PodView], ev: Evaluation) -> Iterator[FieldValue]:
        """Yield the devices that all pods may get, if a policy names the field."""
        if self.rules.final or self.rules.required or self.rules.prohibitions:
            total = self.total(ev, ev.draft.document, views)
            value = total.show() if total.unbounded_source else total.count
            yield FieldValue((), value, note=SUMMED[self.row.path], origin=COMPUTED)

    def current(self, views: Any, ev: Evaluation) -> Any:
        """Nothing is computed from it."""
        return None


def stated_around(ev: Evaluation, document: Any) -> Mapping[Path, int]:
    """Return the numbers of pods that the outer object of a wrapped one sets, by path."""
    within = ev.request.within
    found: dict[Path, int] = {}
    if within is not None:
        for path, number in within.old_pod_sets if document is ev.old else within.pod_sets:
            found[path] = found.get(path, 0) + number
    return found


def breaks(each: Constraint, holds: Any, total: Total) -> bool:
    """Return whether a total breaks a rule. An unbounded one breaks every maximum."""
    if total.unbounded_source:
        return each.type.is_maximum
    return not holds(total.count, each.argument)


def passes(rule: RuleType, total: Total, before: Total) -> bool:
    """Return whether a total is no worse than the old one."""
    if not rule.is_maximum and before.unbounded_source:
        return False
    # An unbounded source counts as unchanged. The countable rest may not grow.
    return (
        total.sources.keys() <= before.sources.keys()
        and total.unread.keys() == before.unread.keys()
        and rule.is_no_further(total.count, before.count)
    )


Sums = Mapping[tuple[str, str | None], int]


def number_of(sums: Sums, component: str, instance: str) -> int:
    """Return the largest number of pods of one instance: its own scale, else the component's, else 1."""
    found = sums.get((component, instance.casefold()))
    if found is None:
        found = sums.get((component, None))
    return 1 if found is None else min(found, UNLIMITED)


def sums_of(scales: Iterable[Scale]) -> Sums:
    """Return the largest number of pods by component and instance, of whole components under None."""
    found: dict[tuple[str, str | None], int] = {}
    for each in scales:
        most = 1 if each.most is None else max(each.most, 0)
        for instance in (each.instance.casefold(), None):
            key = each.component, instance
            found[key] = found.get(key, 0) + most
    return found


class TotalGpusHandler(WorkloadHandler):
    """The devices of all pods that a workload may come to."""

    name = TOTAL_GPUS

    def compile(self, source: FieldSource) -> TotalGpusField:
        """The field, with the names of resources and device classes from the settings."""
        return TotalGpusField(source.row, source.leaf, source.config)
