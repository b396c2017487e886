"""Itemized fields: canAdd, locked, default and imposed items, attribute rules and defaults."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from webhook.evaluation.state import Evaluation
from webhook.fields.handler import FieldValue, Phases
from webhook.fields.items.attributes import to_native
from webhook.fields.items.defaults import (
    addition,
    is_restored,
    mount_again,
    open_attributes,
    warn_of_unknown_items,
    why,
)
from webhook.fields.items.edits import check_additions, check_attribute_edits, check_exclusion
from webhook.fields.items.locks import check_locked, check_presence
from webhook.fields.items.policy_items import PolicyItems
from webhook.fields.items.scope import Reading
from webhook.fields.scalar import ScalarRules
from webhook.fields.storage.volumes import VolumeStore
from webhook.fields.store import NativeItem, Store
from webhook.objects.path import Path
from webhook.pods.pod_view import PodView
from webhook.policy.combine import EffectiveItem, Leaf
from webhook.policy.policy import Default
from webhook.policy.row import Field

LEFT_OUT: Final = "left out by the annotation podgate.dev/exclude"


class ItemsField(PolicyItems):
    """One itemized field of a pod, with the effective items and rules of one component."""

    __slots__ = ()

    def __init__(
        self, row: Field, leaf: Leaf, attribute_leaves: Mapping[str, Leaf], store: Store
    ) -> None:
        super().__init__(row, leaf, attribute_leaves, store)
        self.phases = self.find_phases()
        adds_containers = isinstance(store, VolumeStore) and store.adds_containers
        self.order = 0 if adds_containers else 1

    def find_phases(self) -> Phases:
        """Return the steps that items and their attributes need.

        Locked items are no locked default: they are checked as items. All items are `needed`: each
        decides what to write if only needed values are written.
        """
        imposed = any(item.imposed for item in self.items)
        intent = self.can_add or self.locked or self.closed or self.exclusion or imposed
        fixed = [rule for each in self.attributes for rule in each.rules.prohibitions]
        return Phases(
            intent=bool(intent),
            fill=bool(self.items) or any(each.rules.default for each in self.attributes),
            final=self.bound or bool(self.guarded),
            locked=self.is_fixed or any(each.type.fixes_default for each in fixed),
            needed=True,
        )

    @property
    def is_fixed(self) -> bool:
        """Return whether the items are written as a whole that nobody may change."""
        return False

    def rules_at(self, path: str) -> ScalarRules:
        """The rules of an attribute, else of the list as a whole."""
        for each in self.attributes:
            if path == f"{self.row.path}.{each.attribute.name}":
                return each.rules
        return self.rules

    def is_locked(self, key: str) -> bool:
        """Whether the item with this key must be present as the policy has it."""
        return any(item.key == key for item in self.guarded)

    def check_intent(self, view: PodView, ev: Evaluation) -> None:
        """Check canAdd, locked, and prohibitions on attributes, on the user's items."""
        closed, locked = self.closed, self.guarded
        check_exclusion(self, view, ev)
        if not self.can_add and not closed and not locked:
            return
        reading = Reading(self, view, ev)
        if self.can_add:
            check_additions(self, view, ev, reading)
        for item in locked:
            check_locked(self, view, ev, item, reading)
        if closed:
            for native in reading.natives:
                check_attribute_edits(self, view, ev, native, reading)

    def check_locked_intent(self, view: PodView, ev: Evaluation) -> None:
        """Check only locked items: nobody may have changed or shadowed them."""
        if self.guarded:
            reading = Reading(self, view, ev)
            for item in self.guarded:
                check_locked(self, view, ev, item, reading)

    def check_locked_final(self, view: PodView, ev: Evaluation) -> None:
        """Check only locked items: they must be present."""
        if self.guarded:
            check_presence(self, view, ev, Reading(self, view, ev))

    def fill(self, view: PodView, ev: Evaluation) -> None:
        """Write missing default and imposed items, then the unset attributes of items."""
        if not self.phases.fill:
            return
        reading = Reading(self, view, ev)
        for item, locked in self.written_items(view, ev, reading.excluded):
            held = reading.matching_items(item)
            if held and isinstance(self.store, VolumeStore):
                self.store.mend(view, ev, self.row, item, held[0], why(item))
            if held and any(native.in_main for native in held):
                continue
            if held and isinstance(self.store, VolumeStore):
                mount_again(self, view, ev, item, held[0], reading, locked=locked)
                continue
            if held and not locked:
                continue
            if not locked and is_restored(self, view, ev, item, reading):
                continue
            self.store.add(view, ev, addition(self, item))
        if reading.natives and self.schema.attribute_defaults:
            for native, known, name, default in open_attributes(self, reading):
                if self.fills_in(ev, known, name):
                    self.fill_attribute(ev, native, name, default, known)

    def written_items(
        self, view: PodView, ev: Evaluation, left_out: frozenset[str]
    ) -> list[tuple[EffectiveItem, bool]]:
        """Yield the items to write if they are missing, each with whether it is locked."""
        if left_out:
            warn_of_unknown_items(self, view, ev, left_out)
        optional = not ev.writes_needed_only or self.is_fixed
        found = ((item, self.lock_of(item)[1]) for item in self.items)
        return [
            (item, locked)
            for item, locked in found
            if locked or (optional and item.key not in left_out)
        ]

    def fills_in(self, ev: Evaluation, item: EffectiveItem | None, name: str) -> bool:
        """Return whether an attribute that a user's item leaves unset is written.

        If only needed values are written: whether the item may be refused without it.
        """
        locked = item is not None and self.lock_of(item)[1]
        return (
            not ev.writes_needed_only
            or locked
            or any(
                each.rules.required
                or any(rule.type.fixes_default for rule in each.rules.prohibitions)
                for each in self.attributes
                if each.attribute.name == name
            )
        )

    def fill_attribute(
        self,
        ev: Evaluation,
        native: NativeItem,
        name: str,
        default: Default,
        item: EffectiveItem | None,
    ) -> None:
        """Write one attribute that the item leaves unset."""
        attribute = self.schema.attribute(name)
        if attribute is None or not attribute.native or default.value == attribute.absent:
            return
        value = to_native(attribute, default.value, default.raw)
        for path in native.at.get(name, ()):
            if self.is_open(ev, native, name, path) and ev.can_write(path):
                rules = next((e.rules for e in self.attributes if e.attribute.name == name), None)
                source = item.source if item is not None else None
                if source is None and rules is not None and rules.default is not None:
                    source = rules.default.source
                ev.write(f"{self.row.path}.{name}", path, value, "attribute default", source)

    def is_open(self, ev: Evaluation, native: NativeItem, name: str, path: Path) -> bool:
        """Return whether an attribute has no value, or only the API server's."""
        if ev.now(path) is None:
            return True
        if not isinstance(self.store, VolumeStore) or name not in self.store.server_filled:
            return False
        attribute = self.schema.attribute(name)
        assert attribute is not None
        filled = native.values.get(name, ()) in ((), (attribute.absent,))
        return filled and not ev.updating and not ev.intent.is_written(path)

    def read(self, view: PodView, ev: Evaluation) -> Iterator[FieldValue]:
        """Yield every item in the object, then the policy's items that are missing."""
        natives = [each for each in self.store.read(view) if not self.store.belongs_elsewhere(each)]
        for each in natives:
            item = next((item.key for item in self.items if self.same(item, each)), "")
            path, key = each.path, each.shown_key
            yield FieldValue(path, each.raw, key, derived=True, native=each, item=item)
        left_out = self.excluded_keys(view, ev)
        for missing in self.items:
            if not any(self.same(missing, each) for each in natives):
                note = LEFT_OUT if missing.key in left_out else ""
                yield FieldValue(view.location.place, None, missing.key, note=note)

    def check_final(self, view: PodView, ev: Evaluation) -> None:
        """Check attribute rules on every item of the result, and locked items that are missing."""
        bound = self.bound
        if not bound and not self.guarded:
            return
        reading = Reading(self, view, ev)
        if not ev.checks_intent:
            for item in self.guarded:
                check_locked(self, view, ev, item, reading)
        check_presence(self, view, ev, reading)
        for native in reading.natives if bound else ():
            if reading.is_injected_item(native):
                continue
            unchanged = reading.existed_before(native)
            for each in self.attributes:
                each.check_item(ev, native, unchanged=unchanged)
