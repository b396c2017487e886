"""Itemized fields: canAdd, locked, default and imposed items, attribute rules and defaults."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from webhook.core.injected import is_injected
from webhook.core.pointer import ABSENT, Path, read
from webhook.core.policy.combine import Constraint, EffectiveItem, Leaf
from webhook.core.policy.model import Default
from webhook.core.policy.row import Attribute, Field, Items
from webhook.core.workload.bindings.attribute_values import Unreadable, written
from webhook.core.workload.bindings.computed import scaled
from webhook.core.workload.bindings.ports import PortStore
from webhook.core.workload.bindings.room import has_room
from webhook.core.workload.bindings.scalar import INVALID, ScalarRules
from webhook.core.workload.bindings.stores import Addition, NativeItem, Store
from webhook.core.workload.bindings.volumes import VolumeStore, dns_label
from webhook.core.workload.evaluation import Evaluation, ratchets
from webhook.core.workload.podspec import PodView
from webhook.core.workload.secret_places import is_secret_place

EXCLUDE_ANNOTATION: Path = ("metadata", "annotations", "podgate.dev/exclude")
EXCLUDE = "exclude"


class AttributeRules:
    """The rules and the default of one attribute leaf."""

    __slots__ = ("attribute", "rules")

    def __init__(self, field: Field, attribute: Attribute, leaf: Leaf) -> None:
        self.attribute = attribute
        name = f"{field.path}.{attribute.name}"
        array = attribute.value == "array"
        codec = attribute.reading()
        self.rules = ScalarRules(name, leaf, codec, array=array, secret=field.secret)

    def read(self, value: Any) -> Any:
        """The comparable value of one that a store hands over; INVALID when it is none."""
        if isinstance(value, Unreadable):
            return INVALID
        known = self.attribute.codec is not None or isinstance(value, tuple)
        return value if known else self.rules.read(value)

    def show_at(self, path: Path, value: Any) -> str | None:
        """A value that a store hands over as text; None where it may not be shown."""
        if isinstance(value, Unreadable):
            hidden = self.rules.secret or is_secret_place(path)
            return None if hidden else str(value.raw)[:80]
        return self.rules.show_at(path, value)


def native_name(store: Store, name: Any) -> Any:
    """The name that a policy item has in a native object; None where it cannot have one there."""
    if isinstance(store, VolumeStore):
        return dns_label(str(name))
    return store.native_name(name) if isinstance(store, PortStore) else name


class ItemsField:
    """One itemized field of a pod, with the effective items and rules of one component.

    `attributes` are those that native objects carry; that rules on others hold nowhere is told when
    the policy loads. Those on `exclude`, the `exclusion`, bind the annotation that leaves items out.
    """

    __slots__ = (
        "attributes",
        "bound",
        "called",
        "can_add",
        "closed",
        "completions",
        "exclusion",
        "field",
        "guarded",
        "items",
        "leaf",
        "locked",
        "locks",
        "row",
        "store",
    )

    def __init__(
        self, field: Field, leaf: Leaf, attribute_leaves: Mapping[str, Leaf], store: Store
    ) -> None:
        assert field.items is not None
        self.field = field
        self.row: Items = field.items
        self.leaf = leaf
        self.store = store
        self.items = leaf.items
        self.can_add = leaf.of("canAdd")
        self.locked = leaf.of("locked")
        ruled = [
            AttributeRules(field, attribute, attribute_leaves[attribute.name])
            for attribute in self.row.attributes
            if attribute.name in attribute_leaves
        ]
        self.attributes = [each for each in ruled if each.attribute.native]
        self.exclusion = [
            rule
            for each in ruled
            if each.attribute.name == EXCLUDE
            for rule in each.rules.prohibitions
        ]
        self.completions = {item.key: self.complete(item) for item in self.items}
        self.called = {item.key: self.find_name(item) for item in self.items}
        self.locks = {item.key: self.find_lock(item) for item in self.items}
        self.guarded = [item for item in self.items if self.locks[item.key][1]]
        self.closed = any(each.rules.prohibitions for each in self.attributes)
        # Whether items of the result have rules on their attributes.
        self.bound = any(each.rules.final or each.rules.required for each in self.attributes)

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

    def completed(self, item: EffectiveItem) -> Mapping[str, Default]:
        """The item's attributes, those it leaves open from the attribute defaults."""
        return self.completions[item.key]

    def complete(self, item: EffectiveItem) -> Mapping[str, Default]:
        """What `completed` gives, worked out once."""
        result = {
            each.attribute.name: Default(each.rules.default.value, each.rules.default.raw)
            for each in self.attributes
            if each.rules.default is not None and each.attribute.native
        }
        result.update(item.attributes)
        for each in self.attributes:
            if each.attribute.name not in item.attributes:
                self.compute(each, result)
        return self.store.meant(result) if isinstance(self.store, VolumeStore) else result

    def compute(self, each: AttributeRules, result: dict[str, Default]) -> None:
        """Put in an attribute's default that follows another attribute of the same item."""
        for constraint in each.rules.computed:
            name = constraint.argument.field.removeprefix(f"{self.field.path}.")
            source = self.row.attribute(name)
            if source is not None and name in result:
                factor = constraint.argument.factor
                value = scaled(result[name].value, source, each.attribute, factor)
                result[each.attribute.name] = Default(value, None)

    @property
    def adds_containers(self) -> bool:
        """Whether an item that is written brings a container along."""
        return isinstance(self.store, VolumeStore) and self.store.adds_containers

    def same(self, item: EffectiveItem, native: NativeItem) -> bool:
        """Whether a native item has the identity of a policy item: key, else a fallback."""
        name, stated = self.called[item.key]
        volumes = isinstance(self.store, VolumeStore)
        # A volume without its mounts is known by its name alone: its other identity may be where it
        # was mounted.
        known = stated or (volumes and not native.owners)
        if known and name is not None and native.has("name" if volumes else self.row.key, name):
            return True
        if isinstance(self.store, PortStore) and not self.store.is_tcp(native):
            return False
        fallbacks = self.row.fallbacks
        return bool(fallbacks) and any(self.same_by(names, item, native) for names in fallbacks)

    def find_name(self, item: EffectiveItem) -> tuple[Any, bool]:
        """What an item is called in a native object, and whether it is known by that name.

        An imposed item is known by its asset's name, which is not among its attributes.
        """
        named = item.attributes.get(self.row.key)
        name = named.value if named is not None else item.key
        known = named is not None or item.imposed
        return None if name is None else native_name(self.store, name), known

    def same_by(self, names: tuple[str, ...], item: EffectiveItem, native: NativeItem) -> bool:
        """Whether one fallback identity is complete on both sides and equal."""
        for name in names:
            attribute = self.row.attribute(name)
            assert attribute is not None
            absent = None if attribute.absent is ABSENT else attribute.absent
            held = self.completed(item).get(name)
            wanted = held.value if held is not None else absent
            seen = native.values.get(name, ())
            if wanted is None and not seen and self.row.store == "tolerations":
                continue
            if wanted is None or wanted not in (seen or (absent,)):
                return False
        return True

    def lock_of(self, item: EffectiveItem) -> tuple[Constraint | None, bool]:
        """The constraint that locks an item (None for an imposed one), and whether it is locked."""
        return self.locks[item.key]

    def find_lock(self, item: EffectiveItem) -> tuple[Constraint | None, bool]:
        """What `lock_of` gives, worked out once."""
        for each in self.locked:
            if item.key in each.argument or (item.asset_id and item.asset_id in each.argument):
                return each, True
        return None, item.imposed

    def excluded(self, view: PodView, ev: Evaluation) -> frozenset[str]:
        """Item keys that the workload's annotation takes out here."""
        if not ev.excluded:
            return frozenset()
        levels = (*(f"{role}:" for role in view.location.roles), f"{view.location.component}:", "")
        keys = [ev.excluded.get(f"{level}{self.field.path}", frozenset()) for level in levels]
        return frozenset().union(*keys)

    def old_items(self, view: PodView) -> list[NativeItem]:
        """The items of the same pod before the update."""
        return self.store.read(view.old) if view.old is not None else []

    def unchanged(
        self, view: PodView, ev: Evaluation, native: NativeItem, before: list[NativeItem]
    ) -> bool:
        """Whether the item stood there before the update just so, or as we have completed it."""
        if not before or not any(each.key == native.key for each in before):
            return False
        if any(each.like(native) for each in before):
            return True
        completed = ev.completed(view)
        if completed is None:
            return False
        return any(each.like(native) for each in self.store.read(completed))

    def intent(self, view: PodView, ev: Evaluation) -> None:
        """canAdd, locked, and prohibitions on attributes, on the items as the user gave them."""
        closed, locked = self.closed, self.guarded
        self.judge_exclusion(view, ev)
        if not self.can_add and not closed and not locked:
            return
        natives, before = self.store.read(view), self.old_items(view)
        if self.can_add:
            self.judge_additions(view, ev, natives, before)
        for item in locked:
            self.judge_locked(view, ev, item, natives, before)
        if closed:
            for native in natives:
                self.judge_attribute_edits(view, ev, native, before)

    def judge_exclusion(self, view: PodView, ev: Evaluation) -> None:
        """Prohibitions on `exclude`: no default item may be taken out by the annotation."""
        if not ev.excluded:
            return
        for each in self.exclusion:
            if ratchets(each) and self.excluded_before(view, ev):
                continue
            for item in self.items:
                if item.key in self.excluded(view, ev):
                    name = f"{self.field.path}.{EXCLUDE}"
                    ev.violate(name, EXCLUDE_ANNOTATION, "true", "false", each, key=item.key)

    def is_brought(self, native: NativeItem, view: PodView, ev: Evaluation) -> bool:
        """Whether Kubernetes put an item there, or who may by the installation's own list."""
        if is_injected(self.row.store, native, view, ev.request):
            return True
        if ev.injected.items and ev.injected.has_item(self.field.path, native.key, native.raw):
            return True
        if not ev.injected.containers or len(native.owners) != 1:
            return False
        return any(
            (each.list, each.name) == native.owners[0]
            and ev.injected.has_container(each.body, view)
            for each in view.everyone
        )

    def judge_additions(
        self, view: PodView, ev: Evaluation, natives: list[NativeItem], before: list[NativeItem]
    ) -> None:
        """canAdd: false: only items whose key is among the default or imposed items."""
        for native in natives:
            if self.store.belongs_elsewhere(native):
                continue
            if any(self.same(item, native) for item in self.items):
                continue
            if self.is_brought(native, view, ev):
                continue
            old = self.unchanged(view, ev, native, before)
            for each in self.can_add:
                if not (old and ratchets(each)) and self.reaches(each, native, view):
                    allowed = ", ".join(item.key for item in self.items) or "none"
                    told = native.told
                    ev.violate(self.field.path, native.path, told, allowed, each, key=told)
        if self.row.store == "environment":
            self.judge_env_from(view, ev)

    def reaches(self, each: Constraint, native: NativeItem, view: PodView) -> bool:
        """Whether a prohibition on a container field reaches this item's container."""
        if self.field.binding.value != "B1":
            return True
        if each.policy.containers == "main" and not view.may_be_main(native.path):
            return False
        lists = (*view.spec_path, "initContainers"), (*view.spec_path, "ephemeralContainers")
        return not any(native.path[: len(path)] == path for path in lists)

    def binds(self, each: Constraint, native: NativeItem, view: PodView) -> bool:
        """Whether a prohibition on an attribute reaches this item; volumes are the whole pod's."""
        return not isinstance(self.store, PortStore) or self.reaches(each, native, view)

    def judge_env_from(self, view: PodView, ev: Evaluation) -> None:
        """envFrom brings variables that admission cannot see: an addition under canAdd: false."""
        for container in view.containers:
            if not container.body.get("envFrom"):
                continue
            old = view.old_container(container)
            same = old is not None and old.body.get("envFrom") == container.body["envFrom"]
            for each in self.can_add:
                spared = each.policy.containers == "main" and not view.may_be_main(container.path)
                if not (same and ratchets(each)) and not spared:
                    path = (*container.path, "envFrom")
                    ev.violate(self.field.path, path, "envFrom", None, each, key="envFrom")

    def judge_locked(
        self,
        view: PodView,
        ev: Evaluation,
        item: EffectiveItem,
        natives: list[NativeItem],
        before: list[NativeItem],
    ) -> None:
        """The user may not change, exclude, shadow or rename a locked item."""
        constraint, _ = self.lock_of(item)
        tolerant = self.tolerates(item, constraint)
        if item.key in self.excluded(view, ev) and not (
            tolerant and self.excluded_before(view, ev)
        ):
            self.refuse_locked(ev, item, constraint, EXCLUDE_ANNOTATION, "excluded")
        for native in natives:
            if not self.same(item, native):
                continue
            if tolerant and self.unchanged(view, ev, native, before):
                continue
            difference = self.difference(item, native, ev)
            if difference:
                place = native.at.get(difference, ())
                self.refuse_locked(
                    ev, item, constraint, place[0] if place else native.path, difference
                )
            elif isinstance(self.store, VolumeStore):
                self.judge_shadow(view, ev, item, constraint, native)

    def excluded_before(self, view: PodView, ev: Evaluation) -> bool:
        """Whether a pod that was there has been left out of an item by the same annotation."""
        now = read(ev.request.object, EXCLUDE_ANNOTATION)
        return view.old is not None and read(ev.old, EXCLUDE_ANNOTATION) == now

    def tolerates(self, item: EffectiveItem, constraint: Constraint | None) -> bool:
        """Whether the policy that locks an item tolerates what was there before the update."""
        return item.tolerates_existing if constraint is None else ratchets(constraint)

    def judge_shadow(
        self,
        view: PodView,
        ev: Evaluation,
        item: EffectiveItem,
        constraint: Constraint | None,
        native: NativeItem,
    ) -> None:
        """Another mount may not lie above or below a locked one."""
        assert isinstance(self.store, VolumeStore)
        mount_path = self.completed(item).get(self.store.mounted_at)
        if mount_path is None:
            return
        shadow = self.store.shadows(view, native, str(mount_path.value))
        if shadow is not None:
            self.refuse_locked(ev, item, constraint, shadow, "shadowed by another mount")

    def judge_presence(
        self, view: PodView, ev: Evaluation, natives: list[NativeItem], before: list[NativeItem]
    ) -> None:
        """In the final object a locked item is there, in the main container where it has one."""
        if not self.guarded:
            return
        if view.main is None and self.field.binding.value == "B1":
            return
        if self.row.store == "labels" and view.location.metadata_path is None:
            return
        told = {
            each.key
            for each in ev.findings.violations
            if each.field == self.field.path and each.reason == "name-clash"
        }
        known = view.main is None or view.old_container(view.main) is not None
        for item in self.guarded:
            if item.key in told or self.is_present(item, view, natives):
                continue
            constraint, _ = self.lock_of(item)
            if not has_room(self.row.store, view):
                origin = constraint.source if constraint else item.source
                lacking = ev.lacking(view.spec_path)
                ev.warn("unmapped-rule", self.field.path, lacking, ev.request.kind, source=origin)
                continue
            lacked = view.old is not None and known and not self.is_present(item, view.old, before)
            if not (lacked and self.tolerates(item, constraint)):
                main = view.main.path if view.main is not None else view.spec_path
                self.refuse_locked(ev, item, constraint, main, "missing")

    def is_present(self, item: EffectiveItem, view: PodView, natives: list[NativeItem]) -> bool:
        """Whether an item is among these, in the main container if there is one."""
        return any(
            (native.in_main or view.main is None) and self.same(item, native) for native in natives
        )

    def completes(self, ev: Evaluation, native: NativeItem, name: str) -> bool:
        """Whether this pass gives an item's open attribute the value of the policy's item."""
        return (
            ev.writes
            and self.row.attribute_defaults
            and not native.values.get(name)
            and any(ev.now(place) is None for place in native.at.get(name, ()))
        )

    def difference(self, item: EffectiveItem, native: NativeItem, ev: Evaluation) -> str:
        """The first attribute in which a native item differs in meaning; "" when none does."""
        if native.tampered:
            return native.tampered
        wanted = self.completed(item)
        for attribute in self.row.attributes:
            if not attribute.native or (
                attribute.name == self.row.key and attribute.name not in wanted
            ):
                continue
            if attribute.name == self.row.key and not native.values.get(attribute.name):
                # Known by its other identity; it has no name of its own.
                continue
            if attribute.name in native.unseen or self.completes(ev, native, attribute.name):
                continue
            unmounted = isinstance(self.store, VolumeStore) and not native.owners
            if unmounted and self.is_of_mounts(attribute):
                # A re-apply can drop the mounts alone; the missing mount is judged by itself.
                continue
            absent = None if attribute.absent is ABSENT else attribute.absent
            expected = wanted[attribute.name].value if attribute.name in wanted else absent
            if attribute.name == "name" and expected is not None:
                expected = native_name(self.store, expected)
                if expected is None:
                    continue
            seen = native.values.get(attribute.name, ()) or (absent,)
            if any(value != expected for value in seen):
                return attribute.name
        return "value" if "other" in native.values else ""

    def is_of_mounts(self, attribute: Attribute) -> bool:
        """Whether an attribute is one of a volume's mounts."""
        at = getattr(self.store, "mounted_at", "")
        return attribute.at[0] == "mount" or attribute.name == at

    def refuse_locked(
        self,
        ev: Evaluation,
        item: EffectiveItem,
        constraint: Constraint | None,
        path: Path,
        what: str,
    ) -> None:
        """Record a locked item that was touched: `what` says what was done to it."""
        ev.violate(
            self.field.path,
            path,
            what,
            None,
            constraint,
            reason="locked",
            source=item.source,
            key=item.key,
        )

    def judge_attribute_edits(
        self, view: PodView, ev: Evaluation, native: NativeItem, before: list[NativeItem]
    ) -> None:
        """canEdit and blocked on attributes: against the same-key item, else the default."""
        item = next((each for each in self.items if self.same(each, native)), None)
        if self.is_brought(native, view, ev):
            return
        old = self.unchanged(view, ev, native, before)
        for each in self.attributes:
            name = each.attribute.name
            default = self.attribute_default(item, each)
            if name in native.unseen:
                continue
            for position, value in enumerate(native.values.get(name, ())):
                if value == each.attribute.absent and not self.stated(
                    ev, native, name, position, default
                ):
                    continue
                for constraint in each.rules.prohibitions:
                    repeats = default is not None and value == default.value
                    if repeats and (
                        constraint.rule == "canEdit"
                        or ev.final_object
                        or not self.shown(ev, native, name, position)
                    ):
                        continue
                    if (old and ratchets(constraint)) or not self.binds(constraint, native, view):
                        continue
                    self.refuse_attribute(ev, each, native, position, value, constraint, default)

    def attribute_default(self, item: EffectiveItem | None, each: AttributeRules) -> Default | None:
        """What an attribute is compared with under a prohibition."""
        if item is not None and each.attribute.name in item.attributes:
            return item.attributes[each.attribute.name]
        default = each.rules.default
        return Default(default.value, default.raw) if default is not None else None

    def shown(self, ev: Evaluation, native: NativeItem, name: str, position: int) -> bool:
        """Whether the user is shown to have written an attribute's value, or might have."""
        places = native.at.get(name, ())
        return position >= len(places) or ev.intent.shown(places[position])

    def stated(
        self,
        ev: Evaluation,
        native: NativeItem,
        name: str,
        position: int,
        default: Default | None,
    ) -> bool:
        """Whether somebody stated an attribute's value that is also what its absence means."""
        places = native.at.get(name, ())
        if position >= len(places) or ev.now(places[position]) is None:
            return False
        if isinstance(self.store, VolumeStore):
            if name in self.store.implied:
                return default is not None
            if name in self.store.server_filled:
                written_over = ev.final_object and default is not None
                return written_over or ev.intent.stated(places[position])
        return True

    def refuse_attribute(
        self,
        ev: Evaluation,
        each: AttributeRules,
        native: NativeItem,
        position: int,
        value: Any,
        constraint: Constraint,
        default: Default | None,
    ) -> None:
        """Record an attribute that may not be set so."""
        places = native.at.get(each.attribute.name, ())
        path = places[position] if position < len(places) else native.path
        allowed = each.rules.show(default.value) if default is not None else None
        shown = each.show_at(path, value)
        ev.violate(each.rules.name, path, shown, allowed, constraint, key=native.told)

    def fill(self, view: PodView, ev: Evaluation) -> None:
        """Write missing default and imposed items, then the attributes that items leave open."""
        if not self.items and not any(each.rules.default for each in self.attributes):
            return
        natives, before = self.store.read(view), self.old_items(view)
        left_out = self.excluded(view, ev)
        if left_out:
            self.tell_unknown(view, ev, left_out)
        for item in self.items:
            locked = self.lock_of(item)[1]
            if item.key in left_out and not locked:
                continue
            held = [native for native in natives if self.same(item, native)]
            if held and isinstance(self.store, VolumeStore):
                self.store.mend(view, ev, self.field, item, held[0], self.why(item))
            if held and any(native.in_main for native in held):
                continue
            if held and isinstance(self.store, VolumeStore):
                self.mount_again(view, ev, item, held[0], before, locked=locked)
                continue
            if held and not locked:
                continue
            if not locked and self.restored(view, ev, item, before):
                continue
            self.store.add(view, ev, self.addition(item))
        if natives and self.row.attribute_defaults:
            self.fill_attributes(view, ev, natives)

    def tell_unknown(self, view: PodView, ev: Evaluation, left_out: frozenset[str]) -> None:
        """Keys in the exclude annotation that no item goes by; those there are tell what to write."""
        known = [item.key for item in self.items]
        if not left_out <= set(known):
            listed = f"there is {', '.join(known)}" if known else "there is none"
            ev.warn("unknown-exclude", self.field.path, view.location.place, listed)

    def addition(self, item: EffectiveItem) -> Addition:
        """The item as it is to be written."""
        return Addition(self.field, item, self.completed(item), self.why(item))

    def why(self, item: EffectiveItem) -> str:
        """Why an item is written."""
        return "imposed asset" if item.imposed else "default item"

    def mount_again(
        self,
        view: PodView,
        ev: Evaluation,
        item: EffectiveItem,
        native: NativeItem,
        before: list[NativeItem],
        *,
        locked: bool,
    ) -> None:
        """A volume is there without its mount, which a re-apply of the containers alone drops."""
        assert isinstance(self.store, VolumeStore)
        if locked:
            self.store.add_mount(view, ev, self.addition(item), native.key)
            return
        old = next((each for each in before if each.key == native.key and each.in_main), None)
        if old is not None and not ev.intent.shown_before(old.path):
            self.store.restore_mounts(view, ev, self.field, old)

    def restored(
        self, view: PodView, ev: Evaluation, item: EffectiveItem, before: list[NativeItem]
    ) -> bool:
        """Whether a default item that the update dropped came back as it was before."""
        if not before:
            return False
        old = next((each for each in before if self.same(item, each)), None)
        if old is None or ev.intent.shown_before(old.path) or not self.passes(item, old):
            return False
        return self.store.restore(view, ev, self.field, old)

    def passes(self, item: EffectiveItem, native: NativeItem) -> bool:
        """Whether an old item passes today's rules on its attributes."""
        for each in self.attributes:
            name = each.attribute.name
            default = self.attribute_default(item, each)
            for value in native.values.get(name, ()):
                if each.rules.prohibitions and (default is None or value != default.value):
                    return False
                if each.rules.final and each.read(value) is INVALID:
                    return False
                if not all(holds(value, rule.argument) for rule, holds in each.rules.final):
                    return False
        return True

    def fill_attributes(self, view: PodView, ev: Evaluation, natives: list[NativeItem]) -> None:
        """Complete the user's items: from the same-key default item, then attribute defaults."""
        for native in natives:
            item = next((each for each in self.items if self.same(each, native)), None)
            if self.is_brought(native, view, ev):
                continue
            wanted = (
                self.completed(item)
                if item is not None
                else {
                    each.attribute.name: Default(each.rules.default.value, each.rules.default.raw)
                    for each in self.attributes
                    if each.rules.default is not None
                }
            )
            for name, default in wanted.items():
                self.fill_attribute(ev, native, name, default, item)

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
        natives, before = self.store.read(view), self.old_items(view)
        if not ev.judges_intent:
            for item in self.guarded:
                self.judge_locked(view, ev, item, natives, before)
        self.judge_presence(view, ev, natives, before)
        for native in natives if bound else ():
            if self.is_brought(native, view, ev):
                continue
            unchanged = self.unchanged(view, ev, native, before)
            for each in self.attributes:
                self.judge_attribute(ev, each, native, unchanged=unchanged)

    def judge_attribute(
        self, ev: Evaluation, each: AttributeRules, native: NativeItem, *, unchanged: bool
    ) -> None:
        """Final rules on one attribute of one item."""
        name = each.attribute.name
        absent = None if each.attribute.absent is ABSENT else each.attribute.absent
        seen = native.values.get(name, ())
        places = native.at.get(name, ())
        if name in native.unseen:
            return
        if not seen:
            if absent is None:
                path = places[0] if places else native.path
                each.rules.judge_required(ev, path, unchanged=unchanged, key=native.told)
                return
            seen = (absent,)
        for position, value in enumerate(seen):
            path = places[position] if position < len(places) else native.path
            comparable = each.read(value)
            if comparable is INVALID:
                if not unchanged:
                    raw = value.raw if isinstance(value, Unreadable) else value
                    each.rules.refuse_invalid(ev, path, raw)
                continue
            each.rules.judge_value(ev, path, comparable, unchanged=unchanged, key=native.told)
