"""Itemized fields: canAdd, locked, default and imposed items, attribute rules and defaults."""

from __future__ import annotations

from webhook.evaluation.state import Evaluation
from webhook.fields.items.additions import judge_additions
from webhook.fields.items.attributes import written
from webhook.fields.items.defaults import (
    addition,
    mount_again,
    open_attributes,
    restored,
    tell_unknown,
    why,
)
from webhook.fields.items.edits import judge_attribute_edits, judge_exclusion
from webhook.fields.items.locks import judge_locked, judge_presence
from webhook.fields.items.policy_items import PolicyItems
from webhook.fields.items.scope import Reading
from webhook.fields.storage.volumes import VolumeStore
from webhook.fields.stores.environment import NativeItem
from webhook.objects.path import Path
from webhook.pods.pod_view import PodView
from webhook.policy.combine import EffectiveItem
from webhook.policy.policy import Default


class ItemsField(PolicyItems):
    """One itemized field of a pod, with the effective items and rules of one component."""

    __slots__ = ()

    @property
    def judges_intent(self) -> bool:
        """Whether there is anything to judge before defaults."""
        imposed = any(item.imposed for item in self.items)
        return bool(self.can_add or self.locked or self.closed or self.exclusion or imposed)

    @property
    def fills(self) -> bool:
        """Whether there is anything to write."""
        return bool(self.items) or any(each.rules.default for each in self.attributes)

    @property
    def judges_final(self) -> bool:
        """Whether there is anything to judge on the result."""
        return self.bound or bool(self.guarded)

    @property
    def is_fixed(self) -> bool:
        """Whether a default is written that nobody may change; locked items are judged as such."""
        return False

    @property
    def fixes_attributes(self) -> bool:
        """Whether a default of an attribute is written that nobody may change."""
        return any(
            each.rule == "canEdit" for one in self.attributes for each in one.rules.prohibitions
        )

    @property
    def adds_containers(self) -> bool:
        """Whether an item that is written brings a container along."""
        return isinstance(self.store, VolumeStore) and self.store.adds_containers

    def intent(self, view: PodView, ev: Evaluation) -> None:
        """canAdd, locked, and prohibitions on attributes, on the items as the user gave them."""
        closed, locked = self.closed, self.guarded
        judge_exclusion(self, view, ev)
        if not self.can_add and not closed and not locked:
            return
        reading = Reading(self, view, ev)
        if self.can_add:
            judge_additions(self, view, ev, reading)
        for item in locked:
            judge_locked(self, view, ev, item, reading)
        if closed:
            for native in reading.natives:
                judge_attribute_edits(self, view, ev, native, reading)

    def intent_of_locks(self, view: PodView, ev: Evaluation) -> None:
        """Locked items alone: nobody may have changed or shadowed them."""
        if self.guarded:
            reading = Reading(self, view, ev)
            for item in self.guarded:
                judge_locked(self, view, ev, item, reading)

    def final_of_locks(self, view: PodView, ev: Evaluation) -> None:
        """Locked items alone: they must be present."""
        if self.guarded:
            judge_presence(self, view, ev, Reading(self, view, ev))

    def fill(self, view: PodView, ev: Evaluation) -> None:
        """Write missing default and imposed items, then the attributes that items leave open."""
        if not self.items and not any(each.rules.default for each in self.attributes):
            return
        reading = Reading(self, view, ev)
        for item, locked in self.written_items(view, ev, reading.excluded):
            held = reading.held(item)
            if held and isinstance(self.store, VolumeStore):
                self.store.mend(view, ev, self.field, item, held[0], why(item))
            if held and any(native.in_main for native in held):
                continue
            if held and isinstance(self.store, VolumeStore):
                mount_again(self, view, ev, item, held[0], reading, locked=locked)
                continue
            if held and not locked:
                continue
            if not locked and restored(self, view, ev, item, reading):
                continue
            self.store.add(view, ev, addition(self, item))
        if reading.natives and self.row.attribute_defaults:
            for native, known, name, default in open_attributes(self, reading):
                if self.fills_in(ev, known, name):
                    self.fill_attribute(ev, native, name, default, known)

    def written_items(
        self, view: PodView, ev: Evaluation, left_out: frozenset[str]
    ) -> list[tuple[EffectiveItem, bool]]:
        """The items to write where they are missing, each with whether it is locked."""
        if left_out:
            tell_unknown(self, view, ev, left_out)
        optional = not ev.writes_needed_only or self.is_fixed
        found = ((item, self.lock_of(item)[1]) for item in self.items)
        return [
            (item, locked)
            for item, locked in found
            if locked or (optional and item.key not in left_out)
        ]

    def fills_in(self, ev: Evaluation, item: EffectiveItem | None, name: str) -> bool:
        """Whether an attribute that a user's item leaves open is written.

        Where only what is needed is written, an item may be refused without it.
        """
        locked = item is not None and self.lock_of(item)[1]
        return (
            not ev.writes_needed_only
            or locked
            or any(
                each.rules.required
                or any(rule.rule == "canEdit" for rule in each.rules.prohibitions)
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
        """Write one attribute where the item leaves it open."""
        attribute = self.row.attribute(name)
        if attribute is None or not attribute.native or default.value == attribute.absent:
            return
        value = written(attribute, default.value, default.raw)
        for place in native.at.get(name, ()):
            if self.is_open(ev, native, name, place) and ev.can_write(place):
                rules = next((e.rules for e in self.attributes if e.attribute.name == name), None)
                source = item.source if item is not None else None
                if source is None and rules is not None and rules.default is not None:
                    source = rules.default.source
                ev.write(f"{self.field.path}.{name}", place, value, "attribute default", source)

    def is_open(self, ev: Evaluation, native: NativeItem, name: str, place: Path) -> bool:
        """Whether nobody gave an attribute a value: none is there, or the API server's."""
        if ev.now(place) is None:
            return True
        if not isinstance(self.store, VolumeStore) or name not in self.store.server_filled:
            return False
        attribute = self.row.attribute(name)
        assert attribute is not None
        filled = native.values.get(name, ()) in ((), (attribute.absent,))
        return filled and not ev.updating and not ev.intent.stated(place)

    def final(self, view: PodView, ev: Evaluation) -> None:
        """Attribute rules on every item of the result, and locked items that are not among them."""
        bound = self.bound
        if not bound and not self.guarded:
            return
        reading = Reading(self, view, ev)
        if not ev.judges_intent:
            for item in self.guarded:
                judge_locked(self, view, ev, item, reading)
        judge_presence(self, view, ev, reading)
        for native in reading.natives if bound else ():
            if reading.is_brought(native):
                continue
            unchanged = reading.stood_before(native)
            for each in self.attributes:
                each.judge(ev, native, unchanged=unchanged)
