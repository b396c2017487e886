"""Finds native items that a rule does not apply to: injected, unchanged, or in other containers."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

from webhook.evaluation.injected import is_injected
from webhook.evaluation.state import Evaluation
from webhook.fields.exclude import excluded_before
from webhook.fields.items.policy_items import PolicyItems
from webhook.fields.store import NativeItem
from webhook.fields.stores.ports import PortStore
from webhook.objects.lookup import Lookup
from webhook.pods.pod_view import PodView
from webhook.policy.combine import Constraint, EffectiveItem


class Reading:
    """The items of one field in one pod, read once, with lookups.

    Users decide how many items there are, so each question is answered by a lookup.
    """

    __slots__ = (
        "before",
        "ev",
        "excluded",
        "known",
        "meant",
        "meant_before",
        "natives",
        "policy",
        "ran",
        "view",
    )

    def __init__(self, policy: PolicyItems, view: PodView, ev: Evaluation) -> None:
        self.policy = policy
        self.view = view
        self.ev = ev
        self.natives = policy.store.read(view)
        self.before = policy.store.read(view.old) if view.old is not None else []
        self.excluded = policy.excluded_keys(view, ev)
        self.known: Lookup[NativeItem] | None = None
        self.ran: Lookup[NativeItem] | None = None
        self.meant: dict[str, list[NativeItem]] | None = None
        self.meant_before: dict[str, list[NativeItem]] | None = None

    def matching_items(self, item: EffectiveItem) -> Sequence[NativeItem]:
        """Return the items of the pod that match this item of the policy."""
        if self.meant is None:
            self.meant = self.group_items(self.natives)
        return self.meant.get(item.key, ())

    def find_before(self, item: EffectiveItem) -> Sequence[NativeItem]:
        """Return the items before the update that match this item of the policy."""
        if self.meant_before is None:
            self.meant_before = self.group_items(self.before)
        return self.meant_before.get(item.key, ())

    def group_items(self, natives: Sequence[NativeItem]) -> dict[str, list[NativeItem]]:
        """Return native items by the key of the policy's items."""
        found: dict[str, list[NativeItem]] = {}
        for native in natives:
            for each in self.policy.find(native):
                found.setdefault(each.key, []).append(native)
        return found

    def is_injected_item(self, native: NativeItem) -> bool:
        """Return whether Kubernetes added an item, or a sender that the installation's list allows."""
        policy, view, ev = self.policy, self.view, self.ev
        if is_injected(policy.schema.store, native, view, ev.request):
            return True
        if ev.injected.items and ev.injected.has_item(policy.row.path, native.key, native.raw):
            return True
        if not ev.injected.containers or len(native.owners) != 1:
            return False
        return native.owners[0] in view.once("injected", self.injected_containers)

    def injected_containers(self) -> frozenset[tuple[str, str]]:
        """Return list and name of the containers that the installation's list allows as injected."""
        has = self.ev.injected.has_container
        view = self.view
        return frozenset((each.list, each.name) for each in view.everyone if has(each.body, view))

    def existed_before(self, native: NativeItem) -> bool:
        """Return whether the item existed before the update, unchanged or with podgate's defaults."""
        if not self.before:
            return False
        if native.key not in self.before_by_key():
            return False
        if self.known is not None and self.known.has(native.key, native):
            return True
        if self.ran is None:
            completed = self.ev.complete_old(self.view)
            self.ran = lookup(self.policy.store.read(completed) if completed is not None else ())
        return self.ran.has(native.key, native)

    def before_by_key(self) -> Mapping[Hashable, Sequence[NativeItem]]:
        """Return the items before the update by their keys."""
        if self.known is None:
            self.known = lookup(self.before)
        return self.known.by_key

    def excluded_before(self) -> bool:
        """Return whether the annotation was the same before the update of an existing pod."""
        return excluded_before(self.view, self.ev)


def lookup(items: Sequence[NativeItem]) -> Lookup[NativeItem]:
    """Items by key and content."""
    return Lookup(items, lambda each: each.key, NativeItem.like, NativeItem.content)


def applies_to(policy: PolicyItems, each: Constraint, native: NativeItem, view: PodView) -> bool:
    """Return whether a prohibition on a container field applies to this item's container."""
    if policy.row.binding.value != "B1":
        return True
    if each.policy.containers == "main" and not view.may_be_main(native.path):
        return False
    lists = (*view.spec_path, "initContainers"), (*view.spec_path, "ephemeralContainers")
    return not any(native.path[: len(path)] == path for path in lists)


def binds(policy: PolicyItems, each: Constraint, native: NativeItem, view: PodView) -> bool:
    """Return whether a prohibition on an attribute applies to this item. Volumes belong to the pod."""
    return not isinstance(policy.store, PortStore) or applies_to(policy, each, native, view)
