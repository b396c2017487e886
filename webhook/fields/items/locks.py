"""Judges locked items: untouched in what the user wrote, present in the result."""

from __future__ import annotations

from collections.abc import Sequence

from webhook.documents.texts import cut
from webhook.evaluation.state import Evaluation, ratchets
from webhook.fields.exclude import ANNOTATION
from webhook.fields.items.attributes import Unreadable
from webhook.fields.items.available_path import has_room
from webhook.fields.items.difference import difference
from webhook.fields.items.policy_items import PolicyItems
from webhook.fields.items.scope import Reading
from webhook.fields.secret_paths import is_secret_place
from webhook.fields.storage.volumes import VolumeStore
from webhook.fields.stores.environment import NativeItem
from webhook.objects.path import Path
from webhook.pods.pod_view import PodView
from webhook.policy.combine import Constraint, EffectiveItem
from webhook.policy.leaves import leaf_type


def judge_locked(
    policy: PolicyItems,
    view: PodView,
    ev: Evaluation,
    item: EffectiveItem,
    reading: Reading,
) -> None:
    """The user may not change, exclude, shadow or rename a locked item."""
    constraint, _ = policy.lock_of(item)
    tolerant = tolerates(item, constraint)
    if item.key in reading.excluded and not (tolerant and reading.excluded_before()):
        refuse_locked(policy, ev, item, constraint, ANNOTATION, "excluded")
    for native in reading.held(item):
        if tolerant and reading.stood_before(native):
            continue
        differing = difference(policy, item, native, ev)
        if differing:
            places = native.at.get(differing, ())
            path = places[0] if places else native.path
            fix = fix_of(policy, item, native, differing)
            refuse_locked(policy, ev, item, constraint, path, differing, fix)
        elif isinstance(policy.store, VolumeStore):
            judge_shadow(policy, view, ev, item, constraint, native)


def tolerates(item: EffectiveItem, constraint: Constraint | None) -> bool:
    """Whether the policy that locks an item tolerates what was there before the update."""
    return item.tolerates_existing if constraint is None else ratchets(constraint)


def judge_shadow(
    policy: PolicyItems,
    view: PodView,
    ev: Evaluation,
    item: EffectiveItem,
    constraint: Constraint | None,
    native: NativeItem,
) -> None:
    """Another mount may not lie above or below a locked one."""
    assert isinstance(policy.store, VolumeStore)
    mount_path = policy.completed(item).get(policy.store.mounted_at)
    if mount_path is None:
        return
    shadow = policy.store.shadows(view, native, str(mount_path.value))
    if shadow is not None:
        refuse_locked(policy, ev, item, constraint, shadow, "shadowed by another mount")


def judge_presence(policy: PolicyItems, view: PodView, ev: Evaluation, reading: Reading) -> None:
    """In the final object a locked item is there, in the main container where it has one."""
    if not policy.guarded:
        return
    if view.main is None and policy.field.binding.value == "B1":
        return
    if policy.row.store == "labels" and view.location.metadata_path is None:
        return
    known = view.main is None or view.old_container(view.main) is not None
    for item in policy.guarded:
        if ("name-clash", policy.field.path, item.key) in ev.told:
            continue
        if is_present(view, reading.held(item)):
            continue
        constraint, _ = policy.lock_of(item)
        if not has_room(policy.row.store, view):
            origin = constraint.source if constraint else item.source
            lacking = ev.lacking(view.spec_path)
            ev.warn("unmapped-rule", policy.field.path, lacking, ev.request.kind, source=origin)
            continue
        had = view.old is not None and is_present(view.old, reading.held_before(item))
        lacked = view.old is not None and known and not had
        if not (lacked and tolerates(item, constraint)):
            main = view.main.path if view.main is not None else view.spec_path
            fix = ev.advice_on_missing()
            refuse_locked(policy, ev, item, constraint, main, "missing", fix)


def is_present(view: PodView, natives: Sequence[NativeItem]) -> bool:
    """Whether an item is among these, in the main container if there is one."""
    return any(native.in_main or view.main is None for native in natives)


def refuse_locked(
    policy: PolicyItems,
    ev: Evaluation,
    item: EffectiveItem,
    constraint: Constraint | None,
    path: Path,
    what: str,
    fix: str = "",
) -> None:
    """Record a locked item that was touched: `what` says what was done to it."""
    ev.violate(
        policy.field.path,
        path,
        what,
        None,
        constraint,
        reason="locked",
        source=item.source,
        key=item.key,
        fix=fix,
    )


def fix_of(policy: PolicyItems, item: EffectiveItem, native: NativeItem, name: str) -> str:
    """What to write for an attribute that differs; "" where a value may not be shown."""
    attribute = policy.row.attribute(name)
    if (
        attribute is None
        or policy.field.secret
        or any(map(is_secret_place, native.at.get(name, ())))
    ):
        return ""
    leaf = leaf_type(f"{policy.field.path}.{name}")
    wanted = policy.completed(item).get(name)
    seen = [each for each in native.values.get(name, ()) if wanted is None or each != wanted.value]
    if leaf.secret or any(isinstance(each, Unreadable) for each in seen):
        return ""
    instead = f" instead of {cut(leaf.show(seen[0]))}" if seen else ""
    if wanted is None:
        return f"Remove {name}{f', which is {cut(leaf.show(seen[0]))}' if seen else ''}."
    return f"Set {name} to {cut(leaf.show(wanted.value))}{instead}, or remove the item; the policy adds it."
