"""devices.perPod: the devices of a pod, over its claims and its extended resources with a class."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from webhook.evaluation.installation import InstallationConfig
from webhook.evaluation.state import Evaluation, ratchets
from webhook.fields.devices.pod_claims import CLAIM_UNKNOWN, claims_of
from webhook.fields.devices.pod_fields import CLAIMS, RESOURCES
from webhook.fields.gpu.count import no_further
from webhook.fields.gpu.use import DeviceCounter, GpuUse, resource_paths
from webhook.fields.handler import UNMAPPED, FieldSource, FieldValue, PodField, PodHandler, Support
from webhook.fields.scalar import rules_of
from webhook.objects.path import Path
from webhook.pods.definition import Definition
from webhook.pods.pod_view import PodView
from webhook.policy.combine import Leaf
from webhook.policy.row import DEVICE_SUM, Field

PER_POD = "devices.perPod"


class PodDeviceSumField(PodField):
    """The number of devices of a pod. Never written."""

    __slots__ = ("counter",)

    def __init__(self, row: Field, leaf: Leaf, config: InstallationConfig) -> None:
        super().__init__(row, rules_of(row, leaf))
        self.counter = DeviceCounter(config)

    def check_intent(self, view: PodView, ev: Evaluation) -> None:
        """Do nothing: there are no intent rules for it."""

    def fill(self, view: PodView, ev: Evaluation) -> None:
        """Write nothing."""

    def place(self, view: PodView, ev: Evaluation) -> Path:
        """Return the path to report: that of the only claim or resource, or of all claims."""
        claims = claims_of(view, ev)
        paths = resource_paths(view, self.counter.names_in(ev))
        if not claims and paths:
            return paths[0][0]
        return claims[0].path if len(claims) == 1 else (*view.spec_path, "resourceClaims")

    def check_final(self, view: PodView, ev: Evaluation) -> None:
        """Check bounds. A number without a bound breaks each maximum."""
        use = self.counter.use(view, ev)
        before = self.counter.use(view.old, ev) if view.old is not None else None
        if use.none:
            return
        for each, holds in self.rules.final:
            breaks = not holds(use.count, each.argument)
            if use.unbounded_source:
                breaks = each.type.is_maximum
            if breaks and not (before and ratchets(each) and no_further(each.type, use, before)):
                ev.violate(
                    self.row.path,
                    self.place(view, ev),
                    use.show(),
                    self.rules.show_argument(each),
                    each,
                    reason=reason_of(use),
                    key=use.unbounded_source,
                )

    def read(self, view: PodView, ev: Evaluation) -> Iterator[FieldValue]:
        """Yield the number of devices of the pod, nothing for a pod that asks for none."""
        use = self.counter.use(view, ev)
        if use.none:
            return
        value = use.show() if use.unbounded_source else use.count
        yield FieldValue(self.place(view, ev), value, "total of the pod", derived=True)


def reason_of(use: GpuUse) -> str:
    """Return why a number breaks a rule if that is not the rule itself."""
    if next(iter(use.sources), None) in use.unknown:
        return CLAIM_UNKNOWN
    return "unbounded" if use.sources else ""


class PodDeviceSumHandler(PodHandler):
    """The number of devices of a pod."""

    name = DEVICE_SUM
    feeds_defaults = False

    def compile(self, source: FieldSource) -> PodDeviceSumField | None:
        """Compile the field, None if pods do not have it."""
        if source.row.path != PER_POD:
            return None
        return PodDeviceSumField(source.row, source.leaf, source.config)

    def support(self, row: Field, definition: Definition, component: str) -> Support:
        """Return whether a kind has the field in its pods."""
        if row.path != PER_POD:
            return UNMAPPED, "only objects with devices have it"
        return super().support(row, definition, component)

    def pod_paths(self, row: Field) -> Sequence[Path]:
        """Where a pod template has the field."""
        return [CLAIMS, RESOURCES]
