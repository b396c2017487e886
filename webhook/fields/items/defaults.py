"""Writes default and imposed items, and what items leave open."""

from __future__ import annotations

from collections.abc import Iterator

from webhook.evaluation.state import Evaluation
from webhook.fields.items.policy_items import PolicyItems
from webhook.fields.items.scope import Reading
from webhook.fields.scalar import INVALID
from webhook.fields.storage.volumes import VolumeStore
from webhook.fields.stores.environment import Addition, NativeItem
from webhook.objects.path import ABSENT, read, real
from webhook.pods.pod_view import PodView
from webhook.policy.combine import EffectiveItem
from webhook.policy.policy import Default


def tell_unknown(
    policy: PolicyItems, view: PodView, ev: Evaluation, left_out: frozenset[str]
) -> None:
    """Keys in the exclude annotation that no item goes by; those there are tell what to write."""
    known = [item.key for item in policy.items]
    if not left_out <= set(known):
        listed = f"known are {', '.join(known)}" if known else "the policy has none"
        ev.warn("unknown-exclude", policy.field.path, view.location.place, listed)


def addition(policy: PolicyItems, item: EffectiveItem) -> Addition:
    """The item as it is to be written."""
    return Addition(policy.field, item, policy.completed(item), why(item))


def why(item: EffectiveItem) -> str:
    """Why an item is written."""
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
    """A volume is there without its mount, which a re-apply of the containers alone drops.

    Pods that share a list of volumes each mount what was written for the first of them.
    """
    assert isinstance(policy.store, VolumeStore)
    ours = read(ev.request.object, real(native.path)) is ABSENT
    if locked or ours:
        policy.store.add_mount(view, ev, addition(policy, item), native.key)
        return
    known = reading.before_by_key().get(native.key, ())
    old = next((each for each in known if each.in_main), None)
    if old is not None and not ev.intent.shown_before(old.path):
        policy.store.restore_mounts(view, ev, policy.field, old)


def restored(
    policy: PolicyItems,
    view: PodView,
    ev: Evaluation,
    item: EffectiveItem,
    reading: Reading,
) -> bool:
    """Whether a default item that the update dropped came back as it was before."""
    old = next(iter(reading.held_before(item)), None)
    if old is None or ev.intent.shown_before(old.path) or not passes(policy, item, old):
        return False
    return policy.store.restore(view, ev, policy.field, old)


def passes(policy: PolicyItems, item: EffectiveItem, native: NativeItem) -> bool:
    """Whether an old item passes today's rules on its attributes."""
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
    """What completes the user's items: the same-key default item, else the attribute defaults."""
    defaults = {
        each.attribute.name: Default(each.rules.default.value, each.rules.default.raw)
        for each in policy.attributes
        if each.rules.default is not None
    }
    for native in reading.natives:
        if reading.is_brought(native):
            continue
        item = next(iter(policy.find(native)), None)
        wanted = policy.completed(item) if item is not None else defaults
        for name, default in wanted.items():
            yield native, item, name, default
