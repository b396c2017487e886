"""Finds how a native item differs from the item of a policy."""

from __future__ import annotations

from webhook.evaluation.state import Evaluation
from webhook.fields.items.policy_items import PolicyItems, native_name
from webhook.fields.storage.volumes import VolumeStore
from webhook.fields.store import NativeItem
from webhook.objects.path import ABSENT
from webhook.policy.combine import EffectiveItem
from webhook.policy.row import Attribute


def difference(policy: PolicyItems, item: EffectiveItem, native: NativeItem, ev: Evaluation) -> str:
    """Return the first attribute whose meaning differs, "" if none does."""
    if native.tampered:
        return native.tampered
    wanted = policy.complete_item(item)
    for attribute in policy.schema.attributes:
        if not attribute.native or (
            attribute.name == policy.schema.key and attribute.name not in wanted
        ):
            continue
        if attribute.name == policy.schema.key and not native.values.get(attribute.name):
            # Identified by its other identity, because it has no name.
            continue
        if attribute.name in native.unresolved or policy.completes(ev, native, attribute.name):
            continue
        unmounted = isinstance(policy.store, VolumeStore) and not native.owners
        if unmounted and is_of_mounts(policy, attribute):
            # A re-apply can drop only the mounts; a missing mount is checked separately.
            continue
        absent = None if attribute.absent is ABSENT else attribute.absent
        expected = wanted[attribute.name].value if attribute.name in wanted else absent
        if attribute.name == "name" and expected is not None:
            expected = native_name(policy.store, expected)
            if expected is None:
                continue
        found_values = native.values.get(attribute.name, ()) or (absent,)
        if any(value != expected for value in found_values):
            return attribute.name
    return "value" if "other" in native.values else ""


def is_of_mounts(policy: PolicyItems, attribute: Attribute) -> bool:
    """Return whether an attribute belongs to a volume's mounts."""
    store = policy.store
    at = store.mounted_at if isinstance(store, VolumeStore) else ""
    return attribute.at[0] == "mount" or attribute.name == at
