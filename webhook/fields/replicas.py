"""scale.replicas: the most pods that each instance of a component may come to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from webhook.evaluation.state import Evaluation, ratchets
from webhook.fields.notation import Place
from webhook.fields.scalar import INVALID, ScalarRules, rules_of
from webhook.fields.workload_paths import Locate
from webhook.pods.pod_view import PodView
from webhook.pods.replicas import UNLIMITED
from webhook.policy.combine import Leaf
from webhook.policy.row import Field

NO_BOUND = "unlimited"
UNSTATED = "Set it to at most {}; absent or 0 means no limit."
OPENED = "Choose another value, with which the object sets a number of at most {}."


class ScaleField:
    """scale.replicas: the replicas of each instance of one component; never written."""

    __slots__ = ("component", "field", "read_scales", "roles", "rules")

    def __init__(
        self, field: Field, leaf: Leaf, read_scales: Locate, component: str, roles: Any
    ) -> None:
        self.field = field
        self.rules: ScalarRules = rules_of(field, leaf)
        self.read_scales = read_scales
        self.component = component
        self.roles = roles

    def seen(self, ev: Evaluation, document: Any, views: Sequence[PodView]) -> list[Place]:
        """Everything that is read of a document."""
        return list(self.read_scales(ev, document))

    def intent(self, views: Sequence[PodView], ev: Evaluation) -> None:
        """No intent rules exist for it."""

    def fill(self, views: Sequence[PodView], ev: Evaluation) -> None:
        """Nothing is ever written."""

    def final(self, views: Sequence[PodView], ev: Evaluation) -> None:
        """min, max and step on the larger of replicas and an autoscaler's maximum."""
        old = self.read_scales(ev, ev.old) if ev.old else ()
        before = {place.key: place.value for place in old}
        for place in self.read_scales(ev, ev.draft.document):
            if place.value is None:
                continue
            value = self.rules.read(place.value)
            if value is INVALID:
                self.rules.refuse_invalid(ev, place.path, place.value)
                continue
            self.judge(ev, place, value, before.get(place.key))

    def judge(self, ev: Evaluation, place: Place, value: int, old: Any) -> None:
        """One instance; an update passes while it does not move further from the rule."""
        for each, holds in self.rules.final:
            if holds(value, each.argument):
                continue
            if isinstance(old, int) and ratchets(each) and closer(each.rule, value, old):
                continue
            shown, allowed = self.rules.show(value), self.rules.show_argument(each)
            fix = ""
            if value >= UNLIMITED:
                shown, fix = NO_BOUND, how_to_bound(ev, place).format(allowed)
            ev.violate(self.field.path, place.path, shown, allowed, each, key=place.key, fix=fix)

    def current(self, views: Any, ev: Evaluation) -> Any:
        """Nothing is computed from it."""
        return None


def how_to_bound(ev: Evaluation, place: Place) -> str:
    """What to write at the place that leaves the number open; "" where it states the number."""
    stated = ev.now(place.path)
    if isinstance(stated, str):
        return OPENED
    return "" if stated else UNSTATED


def closer(rule: str, value: int, old: int) -> bool:
    """Whether a value is no further from the rule than the old one."""
    if rule == "max":
        return value <= old
    if rule == "min":
        return value >= old
    return value == old
