"""total.gpuDevices: GPUs of the whole workload, replicas times the GPUs of a pod, summed."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

from webhook.evaluation.state import Evaluation, ratchets
from webhook.fields.gpu.use import GpuCounter, Unread, new_among
from webhook.fields.notation import Place
from webhook.fields.replicas import closer
from webhook.fields.scalar import ScalarRules, rules_of
from webhook.objects.path import Path
from webhook.pods.locate import locate
from webhook.pods.location import LocationError
from webhook.pods.pod_view import MalformedPod, PodView, pod_view
from webhook.pods.replicas import UNLIMITED, Scale
from webhook.policy.combine import Constraint, Leaf
from webhook.policy.row import Field

KEY = "total"


class Total:
    """The GPUs of a workload: a certain count, and the names of what has no bound, by pod and source.

    `unread` are the amounts of its pods that cannot be read, by pod and amount.
    """

    __slots__ = ("count", "sources", "unread")

    def __init__(self) -> None:
        self.count = 0
        self.sources: dict[Hashable, str] = {}
        self.unread: dict[str, Unread] = {}

    @property
    def unbounded(self) -> str:
        """The name of the first source without a bound; "" for none."""
        return next(iter(self.sources.values()), "")

    def shown(self) -> str:
        """The total for people."""
        return f"no bound ({self.unbounded})" if self.unbounded else str(self.count)


class TotalGpusField:
    """The GPUs of all pods that a workload may come to; never written."""

    __slots__ = ("counter", "field", "rules")

    def __init__(
        self, field: Field, leaf: Leaf, names: tuple[str, ...], classes: tuple[str, ...]
    ) -> None:
        self.field = field
        self.rules: ScalarRules = rules_of(field, leaf)
        self.counter = GpuCounter(names, classes)

    def seen(self, ev: Evaluation, document: Any, views: Sequence[PodView]) -> list[Place]:
        """The total of a document."""
        total = self.total(ev, document, views)
        # The number of pods counts even where nobody can read what one of them asks for.
        unread = [(key, each.native) for key, each in total.unread.items()]
        return [Place((), (unread, sorted(map(str, total.sources)), total.count), KEY)]

    def total(self, ev: Evaluation, document: Any, views: Iterable[PodView]) -> Total:
        """The sum over pods of what one asks for times how many of it there may be."""
        total, sums, around = Total(), sums_of(ev.scales(document)), stated_around(ev, document)
        shared: dict[Path, int] = {}
        held = {(view.location.component, view.location.instance) for view in views}
        for view in views:
            use = self.counter.use(view, ev)
            if use.none:
                continue
            location = view.location
            number = self.replicas(ev, view, sums, held)
            places = {location.place, location.spec_path}
            number = max(number, min(sum(around.get(each, 0) for each in places), UNLIMITED))
            where = f"{location.component}/{location.instance}"
            total.unread |= {f"{where}/{key}": each for key, each in use.unread.items()}
            if number or use.unread:
                total.sources |= {(where, key): name for key, name in use.sources.items()}
            if number >= UNLIMITED and use.count:
                name = view.location.instance or view.location.component
                total.sources[where, "replicas"] = f"replicas of {name}"
            if use.unread:
                total.count += max(number, 1) * use.count
            else:
                total.count += number * (use.count - sum(use.shared.values()))
                for path, count in use.shared.items():
                    # As often as there are pods of the component that has most of them.
                    shared[path] = max(shared.get(path, 0), number * count)
        total.count += sum(shared.values())
        return total

    def replicas(
        self, ev: Evaluation, view: PodView, sums: Sums, held: set[tuple[str, str]]
    ) -> int:
        """How many pods of one place there may be; 1 where nobody knows.

        A template that stands in for a component without pods of its own counts for both.
        """
        instance = view.location.instance
        profile = ev.definition.profile.component(view.location.component)
        found = number_of(sums, profile.scale.pods_of or view.location.component, instance)
        if profile.stands_in_for and (profile.stands_in_for, instance) not in held:
            found += number_of(sums, profile.stands_in_for, instance)
        return found

    def intent(self, views: Sequence[PodView], ev: Evaluation) -> None:
        """No intent rules exist for it."""

    def fill(self, views: Sequence[PodView], ev: Evaluation) -> None:
        """Nothing is ever written."""

    def final(self, views: Sequence[PodView], ev: Evaluation) -> None:
        """min and max on the total of the result; no further from the rule than before passes."""
        if not self.rules.final:
            return
        document = ev.draft.document
        now = [ev.as_it_stands(view) for view in views] if ev.draft.changed else views
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
            if before is not None and ratchets(each) and passes(each.rule, total, before):
                continue
            path = views[0].spec_path if len(views) == 1 else ()
            ev.violate(
                self.field.path,
                path,
                total.shown(),
                self.rules.show_argument(each),
                each,
                reason="unbounded" if total.unbounded else "",
                key=total.unbounded or KEY,
            )

    def before(self, ev: Evaluation) -> Total | None:
        """The total of the old object, components that are gone included."""
        if ev.old is None:
            return None
        try:
            views = [pod_view(location) for location in locate(ev.definition, ev.old)]
            return self.total(ev, ev.old, views)
        except (LocationError, MalformedPod):
            return None

    def current(self, views: Any, ev: Evaluation) -> Any:
        """Nothing is computed from it."""
        return None


def stated_around(ev: Evaluation, document: Any) -> Mapping[Path, int]:
    """The numbers of pods that the object around a wrapped one states, by their places."""
    within = ev.request.within
    found: dict[Path, int] = {}
    if within is not None:
        for path, number in within.old_pod_sets if document is ev.old else within.pod_sets:
            found[path] = found.get(path, 0) + number
    return found


def breaks(each: Constraint, holds: Any, total: Total) -> bool:
    """Whether a total breaks a rule; one without a bound breaks every maximum."""
    if total.unbounded:
        return each.rule == "max"
    return not holds(total.count, each.argument)


def passes(rule: str, total: Total, before: Total) -> bool:
    """Whether a total is no further from the rule than the old one."""
    if rule != "max" and before.unbounded:
        return False
    # What has no bound is as much as it was; what is beside it may not grow.
    return (
        total.sources.keys() <= before.sources.keys()
        and total.unread.keys() == before.unread.keys()
        and closer(rule, total.count, before.count)
    )


Sums = Mapping[tuple[str, str | None], int]


def number_of(sums: Sums, component: str, instance: str) -> int:
    """The most pods of one instance: its own scale, else that of the whole component, else 1."""
    found = sums.get((component, instance.casefold()))
    if found is None:
        found = sums.get((component, None))
    return 1 if found is None else min(found, UNLIMITED)


def sums_of(scales: Iterable[Scale]) -> Sums:
    """The most pods by component and instance, and of each component in all under None."""
    found: dict[tuple[str, str | None], int] = {}
    for each in scales:
        most = 1 if each.most is None else max(each.most, 0)
        for instance in (each.instance.casefold(), None):
            key = each.component, instance
            found[key] = found.get(key, 0) + most
    return found
