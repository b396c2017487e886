"""Writes default and imposed items, and unset attributes of items."""

from __future__ import annotations

from collections.abc import Iterator

from webhook.evaluation.state import Evaluation
from webhook.fields.items.policy_items import PolicyItems
from webhook.fields.items.scope import Reading
from webhook.fields.scalar import INVALID
from webhook.fields.storage.volumes import VolumeStore
from webhook.fields.store import Addition, NativeItem
from webhook.objects.path import ABSENT, read
from webhook.pods.pod_view import PodView
from webhook.policy.combine import EffectiveItem
from webhook.policy.policy import Default


def warn_of_unknown_items(
    policy: PolicyItems, view: PodView, ev: Evaluation, left_out: frozenset[str]
) -> None:
    """Warn of keys in the exclude annotation that match no item. The fix lists the existing keys."""
    known = [item.key for item in policy.items]
    if not left_out <= set(known):
        listed = f"known are {', '.join(known)}" if known else "the policy has none"
        ev.warn("unknown-exclude", policy.row.path, view.location.place, listed)


def addition(policy: PolicyItems, item: EffectiveItem) -> Addition:
    """Return the item to write."""
    return Addition(policy.row, item, policy.complete_item(item), why(item))


def why(item: EffectiveItem) -> str:
    """Return the reason for writing an item."""
    return "imposed asset" if item.imposed else "default item"


def mount_again(
    policy: PolicyItems,
    view: PodView,
    ev: Evaluation,
    item: EffectiveItem,
    native: NativeItem,
    reading: Reading,
    *,
    locked: bool,
) -> None:
    """Write the mount of an existing volume, which a re-apply of the containers alone drops.

    Pods that share a list of volumes each mount the volume that was written for the first of them.
    """
    assert isinstance(policy.store, VolumeStore)
    ours = read(ev.request.object, ev.report(native.path)) is ABSENT
    if locked or ours:
        policy.store.add_mount(view, ev, addition(policy, item), native.key)
        return
    known = reading.before_by_key().get(native.key, ())
    old = next((each for each in known if each.in_main), None)
    if old is not None and not ev.intent.was_written_by_user(old.path):
        policy.store.restore_mounts(view, ev, policy.row, old)


def is_restored(
    policy: PolicyItems,
    view: PodView,
    ev: Evaluation,
    item: EffectiveItem,
    reading: Reading,
) -> bool:
    """Restore a default item that the update dropped. Return whether it was restored."""
    old = next(iter(reading.find_before(item)), None)
    if old is None or ev.intent.was_written_by_user(old.path) or not passes(policy, item, old):
        return False
    return policy.store.restore(view, ev, policy.row, old)


def passes(policy: PolicyItems, item: EffectiveItem, native: NativeItem) -> bool:
    """Return whether an old item satisfies the current rules on its attributes."""
    for each in policy.attributes:
        name = each.attribute.name
        default = policy.attribute_default(item, each)
        for value in native.values.get(name, ()):
            if each.rules.prohibitions and (default is None or value != default.value):
                return False
            if each.rules.final and each.read(value) is INVALID:
                return False
            if not all(holds(value, rule.argument) for rule, holds in each.rules.final):
                return False
    return True


def open_attributes(
    policy: PolicyItems, reading: Reading
) -> Iterator[tuple[NativeItem, EffectiveItem | None, str, Default]]:
    """Return what completes the user's items: the same-key default item, else attribute defaults."""
    defaults = {
        each.attribute.name: Default(each.rules.default.value, each.rules.default.raw)
        for each in policy.attributes
        if each.rules.default is not None
    }
    for native in reading.natives:
        if reading.is_injected_item(native):
            continue
        item = next(iter(policy.find(native)), None)
        wanted = policy.complete_item(item) if item is not None else defaults
        for name, default in wanted.items():
            yield native, item, name, default
