"""Fields of claims, claim templates, device classes and ComputeDomains."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from webhook.devices.claim_view import ALL, EXACT, items
from webhook.devices.config_schemas import CHANNEL_CONFIG, leaves_of
from webhook.devices.kinds import CLASS, DOMAIN
from webhook.documents.problem import Source
from webhook.evaluation.state import Evaluation, ratchets
from webhook.fields.devices.carriers import carries, claim_of, support_of
from webhook.fields.devices.config_defaults import config_for, defaults_of_configs, find_leaves
from webhook.fields.devices.readers import read_values
from webhook.fields.devices.settings import APPENDED, find_unconfigured
from webhook.fields.devices.values import DeviceValue, native_of
from webhook.fields.handler import (
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
from webhook.policy.row import DEVICE, DEVICE_LIST, Binding, Field

MOST_CONFIGS: Final = 32
"""The API server's limit for the configurations of a claim."""
FILLED_BY_SERVER = {
    "devices.count": 1,
    "devices.allocationMode": EXACT,
    "devices.computeDomain.numNodes": 0,
    "devices.computeDomain.allocationMode": "Single",
}
"""What the API server, or the CRD, fills in where nothing is set."""
MODE: Final[Path] = ("allocationMode",)
FIX_OF_CLASS: Final = "Device class {} has the configuration: write one for the request."


class ListRules(ScalarRules):
    """The rules of a field of lists, each of whose elements is a value by itself."""

    def equals_default(self, native: Any) -> bool:
        """Return whether every element is among those of the default."""
        return self.default is not None and set(native) <= set(self.default.value)


class DeviceField(WorkloadField):
    """A field of an object with devices. Rules apply to each of its values."""

    __slots__ = ("config", "defaults", "kind")

    def __init__(self, source: FieldSource) -> None:
        row, leaf = source.row, source.leaf
        rules = rules_of(row, leaf)
        if row.shape == DEVICE_LIST:
            rules = ListRules(row.path, leaf, row.reading(), array=True, secret=row.secret)
        super().__init__(row, rules)
        self.kind = source.definition.interface.kind
        self.config = source.config
        in_configs = row.shape == DEVICE_LIST and row.binding is Binding.CONFIG
        self.defaults = defaults_of_configs(source.effective) if in_configs else {}

    @property
    def server_default(self) -> Any:
        """What the API server fills in. In configurations it fills in nothing."""
        in_claim = self.row.binding is Binding.DOMAIN and self.kind != DOMAIN
        return None if in_claim else FILLED_BY_SERVER.get(self.row.path)

    def look(self, ev: Evaluation, document: Any) -> list[DeviceValue]:
        """Return the values of a document."""
        if self.kind == DOMAIN:
            return [self.look_at_domain(document)]
        return read_values(self.row, claim_of(self.kind, document, ev, self.config))

    def look_at_domain(self, document: Any) -> DeviceValue:
        """Return the value of a ComputeDomain. Its mode came with that of channel configurations."""
        at = self.row.at
        modes = leaves_of(CHANNEL_CONFIG, self.config.devices.driver_version)
        writable = at[-1] != MODE[-1] or MODE in modes
        return DeviceValue(at, native_of(document, at), writable=writable)

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
        before = self.before(ev)
        for each in self.look(ev, ev.request.object):
            if each.value is None or each.device_class or self.is_absence(each.value):
                continue
            if self.is_default_config(ev, each):
                continue
            old = (each.path, each.value) if (each.key, each.value) in before else None
            lands = self.row.writes != "never" and each.writable
            self.rules.check_intent(
                ev, each.path, each.value, old, self.server_default, lands=lands
            )

    def is_absence(self, native: Any) -> bool:
        """Return whether a value is a switch that is off, as it is without the value."""
        default = self.rules.default
        wants = default is not None and default.value is True
        return self.row.absent is False and native is False and not wants

    def is_default_config(self, ev: Evaluation, found: DeviceValue) -> bool:
        """Return whether a value is that of a configuration with nothing but defaults.

        podgate may be asked again about the one that it appended. A prohibition of all values
        applies to a user's repetition of it.
        """
        if not self.defaults:
            return False
        path = (*found.path[: found.path.index("opaque")], "opaque", "parameters")
        leaves = find_leaves(native_of(ev.request.object, path))
        forbids = not all(each.type.fixes_default for each in self.rules.prohibitions)
        if forbids and not ev.final_object and ev.intent.is_written_by_user(found.path):
            return False
        return bool(leaves) and leaves.items() <= self.defaults.items()

    def fill(self, views: Sequence[PodView], ev: Evaluation) -> None:
        """Write the default at each path that is unset."""
        default = self.rules.default
        if default is None or ev.updating or self.row.writes == "never" or self.kind == CLASS:
            return
        if default.value == self.row.absent and not self.row.explicit:
            return
        native = self.rules.codec.write(default.value, default.raw)
        if self.row.binding is Binding.CONFIG and self.row.at in APPENDED:
            self.append_configs(ev, native, default.source)
        is_all = self.row.binding is Binding.REQUEST and native == ALL
        for each in self.look(ev, ev.draft.document):
            if not each.writable or each.value == native or not ev.can_write(each.path):
                continue
            wanted = self.rules.choose_value(ev, each.path, each.value, self.server_default, None)
            if wanted is not None and (not is_all or remove_count(ev, each.path)):
                ev.write(self.row.path, each.path, native, "default", default.source)

    def append_configs(self, ev: Evaluation, native: Any, source: Source | None) -> None:
        """Append a configuration for the requests of each type that have none."""
        claim = claim_of(self.kind, ev.draft.document, ev, self.config)
        names: dict[str, list[str]] = {}
        for kind, option in find_unconfigured(claim, self.row.at):
            if self.row.at in leaves_of(kind, self.config.devices.driver_version):
                names.setdefault(kind, []).append(option.name)
        path = (*claim.view.path, "devices", "config")
        for kind, requests in names.items():
            index = len(items(ev.now(path)))
            if index < MOST_CONFIGS and ev.can_write(path):
                entry = config_for(kind, requests, self.row.at, native)
                leaf = (*path, index, "opaque", "parameters", *self.row.at)
                ev.append(path, entry)
                ev.note_item(self.row, (*path, index), entry, "default", source)
                ev.note_item(self.row, leaf, native, "default", source)

    def check_final(self, views: Sequence[PodView], ev: Evaluation) -> None:
        """Check final rules on each value of the result, and `required` where one is missing."""
        before = self.before(ev)
        for each in self.look(ev, ev.draft.document):
            unchanged = (each.key, each.value) in before
            if each.unbounded:
                self.refuse_unbounded(ev, each, unchanged=unchanged)
            elif each.value is not None:
                fix = self.fix_of_class(each)
                self.rules.check_final(ev, each.path, each.value, unchanged=unchanged, fix=fix)
            else:
                self.check_absent(ev, each, unchanged=unchanged)

    def check_absent(self, ev: Evaluation, found: DeviceValue, *, unchanged: bool) -> None:
        """Check what an absent value means, and that the value is there if it is required."""
        absent = self.row.absent
        if absent is not ABSENT:
            self.rules.check_value(ev, found.path, absent, unchanged=unchanged)
        if found.needed and (absent is ABSENT or self.row.explicit):
            fix = self.fix_of_class(found)
            self.rules.check_required(ev, found.path, unchanged=unchanged, key=found.key, fix=fix)

    def fix_of_class(self, found: DeviceValue) -> str:
        """Return how to replace what the configuration of a class gives, "" for other values."""
        replaces = found.device_class and self.row.binding is not Binding.REQUEST
        return FIX_OF_CLASS.format(found.device_class) if replaces else ""

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
                    key=f"request {found.key}",
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


def remove_count(ev: Evaluation, mode: Path) -> bool:
    """Remove the count that a server filled in, which the mode All excludes, beside a mode.

    Return False for a count that the user chose.
    """
    path = (*mode[:-1], "count")
    count = ev.now(path)
    if count is not None and ev.set_by_user(path, count, FILLED_BY_SERVER["devices.count"]):
        return False
    ev.draft.remove(path)
    return True


class DeviceHandler(WorkloadHandler):
    """Values of claims, templates, device classes and ComputeDomains."""

    name = DEVICE
    of_devices = True
    feeds_defaults = True

    def compile(self, source: FieldSource) -> DeviceField | None:
        """Compile the field, None if the kind does not have it."""
        group, kind = source.definition.interface.group, source.definition.interface.kind
        return DeviceField(source) if carries(source.row, group, kind) else None

    def support(self, row: Field, definition: Definition, component: str) -> Support:
        """Return whether a kind has the field."""
        return support_of(row, definition)


class DeviceListHandler(DeviceHandler):
    """Lists of what claims and templates name."""

    name = DEVICE_LIST
