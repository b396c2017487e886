"""Numbers of devices that a claim takes: of all types, and of GPUs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from webhook.devices.classes import DeviceClasses
from webhook.devices.counting import count_devices, count_request
from webhook.devices.kinds import CHANNEL_TYPES
from webhook.evaluation.installation import InstallationConfig
from webhook.evaluation.state import Evaluation
from webhook.fields.devices.carriers import carries, claim_of, support_of
from webhook.fields.devices.values import ALL_MATCHING, DeviceValue
from webhook.fields.handler import (
    COMPUTED,
    FieldSource,
    FieldValue,
    Support,
    WorkloadField,
    WorkloadHandler,
)
from webhook.fields.notation import PathValue
from webhook.fields.scalar import rules_of
from webhook.pods.definition import Definition
from webhook.pods.pod_view import PodView
from webhook.policy.combine import Constraint, Leaf
from webhook.policy.row import DEVICE_SUM, GPU, Field
from webhook.policy.rules.prohibitions import Blocked


class DeviceSumField(WorkloadField):
    """A number of devices of a claim. Never written."""

    __slots__ = ("config", "kind")

    def __init__(self, row: Field, leaf: Leaf, kind: str, config: InstallationConfig) -> None:
        constraints = tuple(each for each in leaf.constraints if bounds_claims(row, each))
        super().__init__(row, rules_of(row, replace(leaf, constraints=constraints, default=None)))
        self.kind = kind
        self.config = config

    def look(self, ev: Evaluation, document: Any) -> DeviceValue:
        """Return the number of devices, at the only request that takes some, or at all of them."""
        claim = claim_of(self.kind, document, ev, self.config)
        view, is_counted = claim.view, counted_classes(self.row, claim.classes)
        number, unbounded = count_devices(view, is_counted)
        taking = [each for each in view.requests if any(count_request(each, is_counted))]
        path, key = (*view.path, "devices", "requests"), "the requests"
        if len(taking) == 1:
            only, key = taking[0].options[0], f"request {taking[0].name}"
            at = (*only.path, "allocationMode" if unbounded else "count")
            path = taking[0].path if taking[0].listed else at
        return DeviceValue(path, number, key, unbounded=ALL_MATCHING if unbounded else "")

    def compared_values(
        self, ev: Evaluation, document: Any, views: Sequence[PodView]
    ) -> list[PathValue]:
        """Return everything that is read of a document."""
        found = self.look(ev, document)
        return [PathValue(found.path, (found.value, found.unbounded))]

    def check_intent(self, views: Sequence[PodView], ev: Evaluation) -> None:
        """Check that nothing is counted where that is forbidden."""
        found = self.look(ev, ev.request.object)
        for each in self.rules.prohibitions if found.value or found.unbounded else ():
            ev.violate(self.row.path, found.path, show_number(found), None, each)

    def fill(self, views: Sequence[PodView], ev: Evaluation) -> None:
        """Write nothing."""

    def check_final(self, views: Sequence[PodView], ev: Evaluation) -> None:
        """Check bounds. A number without a bound breaks each maximum."""
        found = self.look(ev, ev.draft.document)
        for each, holds in self.rules.final:
            unbounded = each.type.is_maximum and found.unbounded
            if unbounded or not holds(found.value, each.argument):
                ev.violate(
                    self.row.path,
                    found.path,
                    show_number(found),
                    self.rules.show_argument(each),
                    each,
                    reason="unbounded" if unbounded else "",
                    key=found.key if unbounded else "",
                )

    def read(self, views: Sequence[PodView], ev: Evaluation) -> Iterator[FieldValue]:
        """Yield the number of the draft, if a policy names the field."""
        if not self.rules.final and not self.rules.prohibitions:
            return
        found = self.look(ev, ev.draft.document)
        value = show_number(found) if found.unbounded else found.value
        yield FieldValue(found.path, value, derived=True, origin=COMPUTED)


def show_number(found: DeviceValue) -> str:
    """Return a number for messages, or why it has no bound."""
    return f"no bound ({found.unbounded})" if found.unbounded else str(found.value)


class DeviceSumHandler(WorkloadHandler):
    """The number of devices of a claim."""

    name = DEVICE_SUM
    of_devices = True

    def compile(self, source: FieldSource) -> DeviceSumField | None:
        """Compile the field, None if the kind does not have it."""
        group, kind = source.definition.interface.group, source.definition.interface.kind
        if not carries(source.row, group, kind):
            return None
        return DeviceSumField(source.row, source.leaf, kind, source.config)

    def support(self, row: Field, definition: Definition, component: str) -> Support:
        """Return whether a kind has the field."""
        return support_of(row, definition)


class ClaimGpusHandler(DeviceSumHandler):
    """The number of GPUs of a claim. What bounds the GPUs of a pod bounds them too."""

    name = GPU


def bounds_claims(row: Field, constraint: Constraint) -> bool:
    """Return whether a rule applies to one claim. What a pod must have is no matter of a claim."""
    of_claims = constraint.type.is_maximum or isinstance(constraint.type, Blocked)
    return row.shape == DEVICE_SUM or of_claims


def counted_classes(row: Field, classes: DeviceClasses) -> Callable[[str], bool]:
    """Return which classes a number counts: those of GPUs, or all but those of channels."""
    if row.shape == GPU:
        return classes.is_gpu
    return lambda name: not classes.types_of(name) <= CHANNEL_TYPES
