"""Fields of claims, claim templates, device classes and ComputeDomains."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from webhook.devices.claim_view import EXACT, read_claim
from webhook.devices.kinds import CLAIM, CLASS, DOMAIN, KINDS, TEMPLATE
from webhook.evaluation.state import Evaluation, ratchets
from webhook.fields.devices.values import Claim, DeviceValue, native_of, read_values
from webhook.fields.handler import (
    MAPPED,
    UNMAPPED,
    FieldSource,
    FieldValue,
    Support,
    WorkloadField,
    WorkloadHandler,
)
from webhook.fields.notation import PathValue
from webhook.fields.scalar import ScalarRules, rules_of
from webhook.objects.path import ABSENT, Path
from webhook.pods.definition import Definition
from webhook.pods.pod_view import PodView
from webhook.policy.combine import Leaf
from webhook.policy.row import DEVICE, DEVICE_LIST, Binding, Field

FILLED_BY_SERVER = {
    "devices.count": 1,
    "devices.allocationMode": EXACT,
    "devices.computeDomain.numNodes": 0,
    "devices.computeDomain.allocationMode": "Single",
}
"""What the API server, or the CRD, fills in where nothing is set."""
OF_CLAIMS = (CLAIM, TEMPLATE)


class ListRules(ScalarRules):
    """The rules of a field of lists, each of whose elements is a value by itself."""

    def equals_default(self, native: Any) -> bool:
        """Return whether every element is among those of the default."""
        return self.default is not None and set(native) <= set(self.default.value)


class DeviceField(WorkloadField):
    """A field of an object with devices. Rules apply to each of its values."""

    __slots__ = ("kind",)

    def __init__(self, row: Field, leaf: Leaf, kind: str) -> None:
        rules = rules_of(row, leaf)
        if row.shape == DEVICE_LIST:
            rules = ListRules(row.path, leaf, row.reading(), array=True, secret=row.secret)
        super().__init__(row, rules)
        self.kind = kind

    def look(self, ev: Evaluation, document: Any) -> list[DeviceValue]:
        """Return the values of a document."""
        if self.kind == DOMAIN:
            return [DeviceValue(self.row.at, native_of(document, self.row.at))]
        return read_values(self.row, claim_of(self.kind, document))

    def compared_values(
        self, ev: Evaluation, document: Any, views: Sequence[PodView]
    ) -> list[PathValue]:
        """Return everything that is read of a document."""
        return [PathValue(*each[:3]) for each in self.look(ev, document)]

    def before(self, ev: Evaluation) -> list[tuple[str, Any]]:
        """Return the values before an update, each with what it was of."""
        if ev.old is None:
            return []
        return [(each.key, each.value) for each in self.look(ev, ev.old)]

    def check_intent(self, views: Sequence[PodView], ev: Evaluation) -> None:
        """Check prohibitions on each value that the object itself sets."""
        before, server_default = self.before(ev), FILLED_BY_SERVER.get(self.row.path)
        for each in self.look(ev, ev.request.object):
            if each.value is None or each.device_class or self.is_absence(each.value):
                continue
            old = (each.path, each.value) if (each.key, each.value) in before else None
            self.rules.check_intent(ev, each.path, each.value, old, server_default)

    def is_absence(self, native: Any) -> bool:
        """Return whether a value is a switch that is off, as it is without the value."""
        default = self.rules.default
        wants = default is not None and default.value is True
        return self.row.absent is False and native is False and not wants

    def fill(self, views: Sequence[PodView], ev: Evaluation) -> None:
        """Write the default at each path that is unset."""
        default = self.rules.default
        if default is None or ev.updating:
            return
        native = self.rules.codec.write(default.value, default.raw)
        server_default = FILLED_BY_SERVER.get(self.row.path)
        for each in self.look(ev, ev.draft.document):
            if not each.writable or each.value == native or not ev.can_write(each.path):
                continue
            if self.rules.choose_value(ev, each.path, each.value, server_default, None):
                ev.write(self.row.path, each.path, native, "default", default.source)

    def check_final(self, views: Sequence[PodView], ev: Evaluation) -> None:
        """Check final rules on each value of the result, and `required` where one is missing."""
        before = self.before(ev)
        for each in self.look(ev, ev.draft.document):
            unchanged = (each.key, each.value) in before
            if each.unbounded:
                self.refuse_unbounded(ev, each, unchanged=unchanged)
            elif each.value is not None:
                fix = f"The device class {each.device_class} sets it." if each.device_class else ""
                self.rules.check_final(ev, each.path, each.value, unchanged=unchanged, fix=fix)
            else:
                self.check_absent(ev, each, unchanged=unchanged)

    def check_absent(self, ev: Evaluation, found: DeviceValue, *, unchanged: bool) -> None:
        """Check what an absent value means, and that the value is there if it is required."""
        absent = self.row.absent
        if absent is not ABSENT:
            self.rules.check_value(ev, found.path, absent, unchanged=unchanged)
        if found.needed and (absent is ABSENT or self.row.explicit):
            self.rules.check_required(ev, found.path, unchanged=unchanged, key=found.key)

    def refuse_unbounded(self, ev: Evaluation, found: DeviceValue, *, unchanged: bool) -> None:
        """Report a number without a bound as breaking each maximum."""
        for each, _ in self.rules.final:
            if each.type.is_maximum and not (unchanged and ratchets(each)):
                ev.violate(
                    self.row.path,
                    found.path,
                    f"no bound ({found.unbounded})",
                    self.rules.show_argument(each),
                    each,
                    reason="unbounded",
                    key=found.unbounded,
                )

    def read(self, views: Sequence[PodView], ev: Evaluation) -> Iterator[FieldValue]:
        """Yield the values of the draft."""
        for each in self.look(ev, ev.draft.document):
            note = f"of the device class {each.device_class}" if each.device_class else None
            if each.unbounded:
                value = f"no bound ({each.unbounded})"
                yield FieldValue(each.path, value, each.key, derived=True)
            else:
                yield FieldValue(each.path, each.value, each.key, note, bool(each.device_class))

    def current(self, views: Any, ev: Evaluation) -> Any:
        """Return the first value of the draft, from which another default is computed."""
        found = (each.value for each in self.look(ev, ev.draft.document))
        return next((each for each in found if each is not None), None)


def claim_of(kind: str, document: Any) -> Claim:
    """Return the claim of a claim or template, with what its values depend on."""
    path: Path = ("spec", "spec") if kind == TEMPLATE else ("spec",)
    return Claim(read_claim(native_of(document, path), path))


class DeviceHandler(WorkloadHandler):
    """Values of claims, templates, device classes and ComputeDomains."""

    name = DEVICE
    of_devices = True
    feeds_defaults = True

    def compile(self, source: FieldSource) -> DeviceField | None:
        """Compile the field, None if the kind does not have it."""
        kind = source.definition.interface.kind
        if not carries(source.row, source.definition):
            return None
        return DeviceField(source.row, source.leaf, kind)

    def support(self, row: Field, definition: Definition, component: str) -> Support:
        """Return whether a kind has the field."""
        kind = definition.interface.kind
        return (MAPPED, "") if carries(row, definition) else (UNMAPPED, f"{kind} does not have it")


class DeviceListHandler(DeviceHandler):
    """Lists of what claims and templates name."""

    name = DEVICE_LIST


NOT_OF_CLASSES = frozenset({"devices.configKinds"})
NOT_OF_CLAIMS = frozenset({"devices.forms", "devices.perPod", "devices.computeDomain.numNodes"})
MODE_OF_DOMAIN = "devices.computeDomain.allocationMode"


def carries(row: Field, definition: Definition) -> bool:
    """Return whether objects of a kind with devices have a field. Other kinds have none."""
    group, kind = definition.interface.group, definition.interface.kind
    if (group, kind) not in KINDS:
        return False
    if kind == DOMAIN:
        return row.binding is Binding.DOMAIN
    if kind == CLASS:
        return row.binding is Binding.CONFIG and row.path not in NOT_OF_CLASSES
    return kind in OF_CLAIMS and row.path not in NOT_OF_CLAIMS
