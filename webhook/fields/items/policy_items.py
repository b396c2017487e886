"""The items and rules of one itemized field, and which native items they mean."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from itertools import product
from math import prod
from typing import Any

from webhook.evaluation.state import Evaluation
from webhook.fields.computed import scaled
from webhook.fields.items.attribute_rules import AttributeRules
from webhook.fields.items.attributes import Unreadable
from webhook.fields.storage.volumes import VolumeStore, dns_label
from webhook.fields.stores.environment import NativeItem, Store
from webhook.fields.stores.ports import PortStore
from webhook.objects.lookup import FEW, frozen
from webhook.objects.path import ABSENT
from webhook.pods.pod_view import PodView
from webhook.policy.combine import Constraint, EffectiveItem, Leaf
from webhook.policy.policy import Default
from webhook.policy.row import Field, Items

EXCLUDE = "exclude"


def native_name(store: Store, name: Any) -> Any:
    """The name that a policy item has in a native object; None where it cannot have one there."""
    if isinstance(store, VolumeStore):
        return dns_label(str(name))
    return store.native_name(name) if isinstance(store, PortStore) else name


def identity(names: tuple[str, ...], values: Iterable[Any]) -> Hashable:
    """By what an item is looked up: the values of these attributes; its name under none."""
    return names, tuple(map(frozen, values))


def readable(values: tuple[Any, ...] | None) -> tuple[Any, ...]:
    """The values that a policy's item can have too."""
    return tuple(each for each in values or () if not isinstance(each, Unreadable))


class PolicyItems:
    """One itemized field of a pod, with the effective items and rules of one component.

    `attributes` are those that native objects carry; that rules on others hold nowhere is told when
    the policy loads. Those on `exclude`, the `exclusion`, bind the annotation that leaves items out.
    """

    __slots__ = (
        "attributes",
        "bound",
        "by_identity",
        "called",
        "can_add",
        "closed",
        "completions",
        "exclusion",
        "field",
        "guarded",
        "items",
        "leaf",
        "listed",
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
        self.listed = ", ".join(item.key for item in self.items) or "none"
        self.by_identity = self.index() if len(self.items) > FEW else {}
        # Whether items of the result have rules on their attributes.
        self.bound = any(each.rules.final or each.rules.required for each in self.attributes)

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

    def find(self, native: NativeItem) -> list[EffectiveItem]:
        """The items of the policy that a native item is, in their order."""
        items: Iterable[EffectiveItem] = self.items
        if len(self.items) > FEW:
            items = self.candidates(native)
        return [item for item in items if self.same(item, native)]

    def candidates(self, native: NativeItem) -> Iterable[EffectiveItem]:
        """The items that it may be: those of its name, and those with one of its identities."""
        named = native.values.get("name" if isinstance(self.store, VolumeStore) else self.row.key)
        asked = [identity((), (name,)) for name in named or ()]
        for names in self.row.fallbacks:
            held = [readable(native.values.get(name)) or (self.absent(name),) for name in names]
            if prod(map(len, held)) > len(self.items):
                return self.items
            asked += [identity(names, values) for values in product(*held)]
        found = {at for each in asked for at in self.by_identity.get(each, ())}
        return [self.items[at] for at in sorted(found)]

    def index(self) -> dict[Hashable, list[int]]:
        """Where items stand by what they are known by: their name, and each of their identities."""
        found: dict[Hashable, list[int]] = {}
        for at, item in enumerate(self.items):
            keys = [identity((), (self.called[item.key][0],))]
            for names in self.row.fallbacks:
                given = ((name, self.completed(item).get(name)) for name in names)
                values = (each.value if each else self.absent(name) for name, each in given)
                keys.append(identity(names, values))
            for key in keys:
                found.setdefault(key, []).append(at)
        return found

    def absent(self, name: str) -> Any:
        """What an attribute means that is not there; None for nothing."""
        attribute = self.row.attribute(name)
        assert attribute is not None
        return None if attribute.absent is ABSENT else attribute.absent

    def identity_of(self, native: NativeItem) -> str:
        """What a volume or port is whatever its name: its last identity, parts joined with +.

        "" where the name is all, and where it is only known by where it is mounted.
        """
        if not isinstance(self.store, (VolumeStore, PortStore)) or not self.row.fallbacks:
            return ""
        parts = []
        for name in self.row.fallbacks[-1]:
            attribute, values = self.row.attribute(name), native.values.get(name, ())
            if attribute is None or attribute.at[:1] == ("mount",) or len(values) != 1:
                return ""
            parts.append(str(*values))
        return "+".join(parts)

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
            absent = self.absent(name)
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
        return ev.excluded_at(tuple(f"{level}{self.field.path}" for level in levels))

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

    def completes(self, ev: Evaluation, native: NativeItem, name: str) -> bool:
        """Whether this pass gives an item's open attribute the value of the policy's item."""
        return (
            ev.writes
            and self.row.attribute_defaults
            and not native.values.get(name)
            and any(ev.now(place) is None for place in native.at.get(name, ()))
        )
