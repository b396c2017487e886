"""Tells which native items a rule does not reach: brought by others, as before, in other containers."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

from webhook.evaluation.injected import is_injected
from webhook.evaluation.state import Evaluation
from webhook.fields.exclude import excluded_before
from webhook.fields.items.policy_items import PolicyItems
from webhook.fields.stores.environment import NativeItem
from webhook.fields.stores.ports import PortStore
from webhook.objects.lookup import Lookup
from webhook.pods.pod_view import PodView
from webhook.policy.combine import Constraint, EffectiveItem


class Reading:
    """The items of one field in one pod, read once, and what every one of them is asked.

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
        self.excluded = policy.excluded(view, ev)
        self.known: Lookup[NativeItem] | None = None
        self.ran: Lookup[NativeItem] | None = None
        self.meant: dict[str, list[NativeItem]] | None = None
        self.meant_before: dict[str, list[NativeItem]] | None = None

    def held(self, item: EffectiveItem) -> Sequence[NativeItem]:
        """The items of the pod that are this one of the policy."""
        if self.meant is None:
            self.meant = self.grouped(self.natives)
        return self.meant.get(item.key, ())

    def held_before(self, item: EffectiveItem) -> Sequence[NativeItem]:
        """The items before the update that are this one of the policy."""
        if self.meant_before is None:
            self.meant_before = self.grouped(self.before)
        return self.meant_before.get(item.key, ())

    def grouped(self, natives: Sequence[NativeItem]) -> dict[str, list[NativeItem]]:
        """Native items by the key of the policy's."""
        found: dict[str, list[NativeItem]] = {}
        for native in natives:
            for each in self.policy.find(native):
                found.setdefault(each.key, []).append(native)
        return found

    def is_brought(self, native: NativeItem) -> bool:
        """Whether Kubernetes put an item there, or who may by the installation's own list."""
        policy, view, ev = self.policy, self.view, self.ev
        if is_injected(policy.row.store, native, view, ev.request):
            return True
        if ev.injected.items and ev.injected.has_item(policy.field.path, native.key, native.raw):
            return True
        if not ev.injected.containers or len(native.owners) != 1:
            return False
        return native.owners[0] in view.once("injected", self.injected_containers)

    def injected_containers(self) -> frozenset[tuple[str, str]]:
        """List and name of the containers that others add by the installation's own list."""
        has = self.ev.injected.has_container
        view = self.view
        return frozenset((each.list, each.name) for each in view.everyone if has(each.body, view))

    def stood_before(self, native: NativeItem) -> bool:
        """Whether the item stood there before the update just so, or as we have completed it."""
        if not self.before:
            return False
        if native.key not in self.before_by_key():
            return False
        if self.known is not None and self.known.has(native.key, native):
            return True
        if self.ran is None:
            completed = self.ev.completed(self.view)
            self.ran = lookup(self.policy.store.read(completed) if completed is not None else ())
        return self.ran.has(native.key, native)

    def before_by_key(self) -> Mapping[Hashable, Sequence[NativeItem]]:
        """The items before the update, by their keys."""
        if self.known is None:
            self.known = lookup(self.before)
        return self.known.by_key

    def excluded_before(self) -> bool:
        """Whether a pod that was there before the update has had the same annotation."""
        return excluded_before(self.view, self.ev)


def lookup(items: Sequence[NativeItem]) -> Lookup[NativeItem]:
    """Items by key and content."""
    return Lookup(items, lambda each: each.key, NativeItem.like, NativeItem.content)


def reaches(policy: PolicyItems, each: Constraint, native: NativeItem, view: PodView) -> bool:
    """Whether a prohibition on a container field reaches this item's container."""
    if policy.field.binding.value != "B1":
        return True
    if each.policy.containers == "main" and not view.may_be_main(native.path):
        return False
    lists = (*view.spec_path, "initContainers"), (*view.spec_path, "ephemeralContainers")
    return not any(native.path[: len(path)] == path for path in lists)


def binds(policy: PolicyItems, each: Constraint, native: NativeItem, view: PodView) -> bool:
    """Whether a prohibition on an attribute reaches this item; volumes are the whole pod's."""
    return not isinstance(policy.store, PortStore) or reaches(policy, each, native, view)
