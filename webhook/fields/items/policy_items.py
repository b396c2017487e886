"""The items and rules of one field with items, and the native items that match them."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from itertools import product
from math import prod
from typing import Any

from webhook.evaluation.state import Evaluation
from webhook.fields.computed import scale
from webhook.fields.handler import PodField
from webhook.fields.items.attribute_rules import AttributeRules
from webhook.fields.items.attributes import Unreadable
from webhook.fields.storage.volumes import VolumeStore, dns_label
from webhook.fields.store import NativeItem, Store
from webhook.fields.stores.ports import PortStore
from webhook.objects.lookup import FEW, frozen
from webhook.objects.path import ABSENT
from webhook.pods.pod_view import PodView
from webhook.policy.combine import Constraint, EffectiveItem, Leaf
from webhook.policy.policy import Default
from webhook.policy.row import Field, Items
from webhook.policy.rules.prohibitions import CanAdd, Locked

EXCLUDE = "exclude"


def native_name(store: Store, name: Any) -> Any:
    """Return the name of a policy item in a native object, None if it cannot have one there."""
    if isinstance(store, VolumeStore):
        return dns_label(str(name))
    return store.native_name(name) if isinstance(store, PortStore) else name


def identity(names: tuple[str, ...], values: Iterable[Any]) -> Hashable:
    """Return the lookup key of an item: the values of these attributes, its name without any."""
    return names, tuple(map(frozen, values))


def readable(values: tuple[Any, ...] | None) -> tuple[Any, ...]:
    """Return the attributes that a policy's item can also have."""
    return tuple(each for each in values or () if not isinstance(each, Unreadable))


class PolicyItems(PodField):
    """One field with items of a pod, with the effective items and rules of one component.

    `attributes` are those that native objects have. Loading the policy warns of rules on others.
    Rules on `exclude` (`exclusion`) apply to the annotation that excludes items.
    """

    shares_fragments = True

    __slots__ = (
        "attributes",
        "bound",
        "by_identity",
        "called",
        "can_add",
        "closed",
        "completions",
        "exclusion",
        "guarded",
        "items",
        "leaf",
        "listed",
        "locked",
        "locks",
        "schema",
        "store",
    )

    def __init__(
        self, row: Field, leaf: Leaf, attribute_leaves: Mapping[str, Leaf], store: Store
    ) -> None:
        assert row.items is not None
        super().__init__(row)
        self.schema: Items = row.items
        self.leaf = leaf
        self.store = store
        self.items = leaf.items
        self.can_add = leaf.of(CanAdd)
        self.locked = leaf.of(Locked)
        ruled = [
            AttributeRules(row, attribute, attribute_leaves[attribute.name])
            for attribute in self.schema.attributes
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
        self.listed = ", ".join(item.key for item in self.items) or "none"
        self.by_identity = self.index() if len(self.items) > FEW else {}
        # Whether items of the result have rules on their attributes.
        self.bound = any(each.rules.final or each.rules.required for each in self.attributes)

    def complete_item(self, item: EffectiveItem) -> Mapping[str, Default]:
        """Return the item's attributes, unset ones from the attribute defaults."""
        return self.completions[item.key]

    def complete(self, item: EffectiveItem) -> Mapping[str, Default]:
        """Return the completed attributes of an item, from a cache."""
        result = {
            each.attribute.name: Default(each.rules.default.value, each.rules.default.raw)
            for each in self.attributes
            if each.rules.default is not None and each.attribute.native
        }
        result.update(item.attributes)
        for each in self.attributes:
            if each.attribute.name not in item.attributes:
                self.compute(each, result)
        return (
            self.store.complete_attributes(result)
            if isinstance(self.store, VolumeStore)
            else result
        )

    def compute(self, each: AttributeRules, result: dict[str, Default]) -> None:
        """Add an attribute's default that follows another attribute of the same item."""
        for constraint in each.rules.computed:
            name = constraint.argument.field.removeprefix(f"{self.row.path}.")
            source = self.schema.attribute(name)
            if source is not None and name in result:
                factor = constraint.argument.factor
                value = scale(result[name].value, source, each.attribute, factor)
                result[each.attribute.name] = Default(value, None)

    def same(self, item: EffectiveItem, native: NativeItem) -> bool:
        """Return whether a native item has the identity of a policy item: its key, else a fallback."""
        name, stated = self.called[item.key]
        volumes = isinstance(self.store, VolumeStore)
        # A volume without its mounts is known by its name alone: its other identity may be where it
        # was mounted.
        known = stated or (volumes and not native.owners)
        if known and name is not None and native.has("name" if volumes else self.schema.key, name):
            return True
        if isinstance(self.store, PortStore) and not self.store.is_tcp(native):
            return False
        fallbacks = self.schema.fallbacks
        return bool(fallbacks) and any(self.same_by(names, item, native) for names in fallbacks)

    def find(self, native: NativeItem) -> list[EffectiveItem]:
        """Return the items of the policy that match a native item, in their order."""
        items: Iterable[EffectiveItem] = self.items
        if len(self.items) > FEW:
            items = self.candidates(native)
        return [item for item in items if self.same(item, native)]

    def candidates(self, native: NativeItem) -> Iterable[EffectiveItem]:
        """Return candidates: items with its name, and those with one of its identities."""
        named = native.values.get(
            "name" if isinstance(self.store, VolumeStore) else self.schema.key
        )
        asked = [identity((), (name,)) for name in named or ()]
        for names in self.schema.fallbacks:
            held = [readable(native.values.get(name)) or (self.absent(name),) for name in names]
            if prod(map(len, held)) > len(self.items):
                return self.items
            asked += [identity(names, values) for values in product(*held)]
        found = {at for each in asked for at in self.by_identity.get(each, ())}
        return [self.items[at] for at in sorted(found)]

    def index(self) -> dict[Hashable, list[int]]:
        """Return the indices of items by name, and by each of their identities."""
        found: dict[Hashable, list[int]] = {}
        for at, item in enumerate(self.items):
            keys = [identity((), (self.called[item.key][0],))]
            for names in self.schema.fallbacks:
                given = ((name, self.complete_item(item).get(name)) for name in names)
                values = (each.value if each else self.absent(name) for name, each in given)
                keys.append(identity(names, values))
            for key in keys:
                found.setdefault(key, []).append(at)
        return found

    def absent(self, name: str) -> Any:
        """Return the meaning of an absent attribute, None for nothing."""
        attribute = self.schema.attribute(name)
        assert attribute is not None
        return None if attribute.absent is ABSENT else attribute.absent

    def identity_of(self, native: NativeItem) -> str:
        """Return the identity of a volume or port without its name: the last identity, joined with +.

        "" if it has only a name, or only a mount path.
        """
        if not isinstance(self.store, (VolumeStore, PortStore)) or not self.schema.fallbacks:
            return ""
        parts = []
        for name in self.schema.fallbacks[-1]:
            attribute, values = self.schema.attribute(name), native.values.get(name, ())
            if attribute is None or attribute.at[:1] == ("mount",) or len(values) != 1:
                return ""
            parts.append(str(*values))
        return "+".join(parts)

    def find_name(self, item: EffectiveItem) -> tuple[Any, bool]:
        """Return the name of an item in a native object, and whether the name identifies it.

        An imposed item is identified by its asset's name, which is not among its attributes.
        """
        named = item.attributes.get(self.schema.key)
        name = named.value if named is not None else item.key
        known = named is not None or item.imposed
        return None if name is None else native_name(self.store, name), known

    def same_by(self, names: tuple[str, ...], item: EffectiveItem, native: NativeItem) -> bool:
        """Return whether one fallback identity is complete on both sides and equal."""
        for name in names:
            absent = self.absent(name)
            held = self.complete_item(item).get(name)
            wanted = held.value if held is not None else absent
            found_values = native.values.get(name, ())
            if wanted is None and not found_values and self.schema.store == "tolerations":
                continue
            if wanted is None or wanted not in (found_values or (absent,)):
                return False
        return True

    def lock_of(self, item: EffectiveItem) -> tuple[Constraint | None, bool]:
        """Return the constraint that locks an item (None for an imposed one), and whether it is locked."""
        return self.locks[item.key]

    def find_lock(self, item: EffectiveItem) -> tuple[Constraint | None, bool]:
        """Return the lock of an item, from a cache."""
        for each in self.locked:
            if item.key in each.argument or (item.asset_id and item.asset_id in each.argument):
                return each, True
        return None, item.imposed

    def excluded_keys(self, view: PodView, ev: Evaluation) -> frozenset[str]:
        """Return item keys that the workload's annotation excludes here."""
        if not ev.excluded:
            return frozenset()
        levels = (*(f"{role}:" for role in view.location.roles), f"{view.location.component}:", "")
        return ev.excluded_at(tuple(f"{level}{self.row.path}" for level in levels))

    def attribute_default(self, item: EffectiveItem | None, each: AttributeRules) -> Default | None:
        """Return the value that a prohibition compares an attribute with."""
        if item is not None and each.attribute.name in item.attributes:
            return item.attributes[each.attribute.name]
        default = each.rules.default
        return Default(default.value, default.raw) if default is not None else None

    def is_written_by_user(
        self, ev: Evaluation, native: NativeItem, name: str, position: int
    ) -> bool:
        """Return whether the user wrote an attribute's value, or may have."""
        paths = native.at.get(name, ())
        return position >= len(paths) or ev.intent.is_written_by_user(paths[position])

    def completes(self, ev: Evaluation, native: NativeItem, name: str) -> bool:
        """Return whether this pass sets an unset attribute of an item to the policy item's value."""
        return (
            ev.writes
            and self.schema.attribute_defaults
            and not native.values.get(name)
            and any(ev.now(path) is None for path in native.at.get(name, ()))
        )
