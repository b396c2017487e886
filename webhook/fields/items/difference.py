"""Tells in what a native item differs from the item of a policy."""

from __future__ import annotations

from webhook.evaluation.state import Evaluation
from webhook.fields.items.policy_items import PolicyItems, native_name
from webhook.fields.storage.volumes import VolumeStore
from webhook.fields.stores.environment import NativeItem
from webhook.objects.path import ABSENT
from webhook.policy.combine import EffectiveItem
from webhook.policy.row import Attribute


def difference(policy: PolicyItems, item: EffectiveItem, native: NativeItem, ev: Evaluation) -> str:
    """The first attribute in which a native item differs in meaning; "" when none does."""
    if native.tampered:
        return native.tampered
    wanted = policy.completed(item)
    for attribute in policy.row.attributes:
        if not attribute.native or (
            attribute.name == policy.row.key and attribute.name not in wanted
        ):
            continue
        if attribute.name == policy.row.key and not native.values.get(attribute.name):
            # Known by its other identity; it has no name of its own.
            continue
        if attribute.name in native.unseen or policy.completes(ev, native, attribute.name):
            continue
        unmounted = isinstance(policy.store, VolumeStore) and not native.owners
        if unmounted and is_of_mounts(policy, attribute):
            # A re-apply can drop the mounts alone; the missing mount is judged by itself.
            continue
        absent = None if attribute.absent is ABSENT else attribute.absent
        expected = wanted[attribute.name].value if attribute.name in wanted else absent
        if attribute.name == "name" and expected is not None:
            expected = native_name(policy.store, expected)
            if expected is None:
                continue
        seen = native.values.get(attribute.name, ()) or (absent,)
        if any(value != expected for value in seen):
            return attribute.name
    return "value" if "other" in native.values else ""


def is_of_mounts(policy: PolicyItems, attribute: Attribute) -> bool:
    """Whether an attribute is one of a volume's mounts."""
    at = getattr(policy.store, "mounted_at", "")
    return attribute.at[0] == "mount" or attribute.name == at
