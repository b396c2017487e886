"""Checks locked items: unchanged in the user's object, present in the result."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from webhook.documents.texts import cut
from webhook.evaluation.state import Evaluation, ratchets
from webhook.fields.exclude import ANNOTATION
from webhook.fields.items.attributes import Unreadable
from webhook.fields.items.difference import difference
from webhook.fields.items.policy_items import PolicyItems
from webhook.fields.items.scope import Reading
from webhook.fields.secret_paths import is_secret_path
from webhook.fields.storage.volumes import VolumeStore
from webhook.fields.store import NativeItem
from webhook.objects.path import Path
from webhook.pods.pod_view import PodView
from webhook.policy.combine import Constraint, EffectiveItem
from webhook.policy.leaves import leaf_type

POD: Mapping[str, str] = {"tolerations": "tolerations", "pull-secrets": "imagePullSecrets"}
CONTAINER: Mapping[str, str] = {
    "environment": "env",
    "ports": "ports",
    "extended-resources": "resources",
}
METADATA = frozenset({"labels", "annotations"})


def has_room(store: str, view: PodView) -> bool:
    """Return whether the pod has paths for items of a store. Pods in fragments may lack them."""
    return view.location.fragments is None or all(
        view.at(path).exists for path in paths_of_store(store, view)
    )


def paths_of_store(store: str, view: PodView) -> Iterator[Path]:
    """Yield the lists and maps that an item is in. A volume is in two of them."""
    if store in METADATA:
        if view.location.metadata_path is not None:
            yield (*view.location.metadata_path, store)
        return
    if store in POD:
        yield (*view.spec_path, POD[store])
        return
    if store not in CONTAINER:
        yield (*view.spec_path, "volumes")
    if view.main is not None:
        yield (*view.main.path, CONTAINER.get(store, "volumeMounts"))


def check_locked(
    policy: PolicyItems,
    view: PodView,
    ev: Evaluation,
    item: EffectiveItem,
    reading: Reading,
) -> None:
    """Report a locked item that the user changed, excluded, shadowed or renamed."""
    constraint, _ = policy.lock_of(item)
    tolerant = tolerates(item, constraint)
    if item.key in reading.excluded and not (tolerant and reading.excluded_before()):
        refuse_locked(policy, ev, item, constraint, ANNOTATION, "excluded")
    for native in reading.matching_items(item):
        if tolerant and reading.existed_before(native):
            continue
        differing = difference(policy, item, native, ev)
        if differing:
            paths = native.at.get(differing, ())
            path = paths[0] if paths else native.path
            fix = fix_of(policy, item, native, differing)
            refuse_locked(policy, ev, item, constraint, path, differing, fix)
        elif isinstance(policy.store, VolumeStore):
            check_shadow(policy, view, ev, item, constraint, native)


def tolerates(item: EffectiveItem, constraint: Constraint | None) -> bool:
    """Return whether the policy that locks an item tolerates the state before the update."""
    return item.tolerates_existing if constraint is None else ratchets(constraint)


def check_shadow(
    policy: PolicyItems,
    view: PodView,
    ev: Evaluation,
    item: EffectiveItem,
    constraint: Constraint | None,
    native: NativeItem,
) -> None:
    """Report another mount above or below a locked one."""
    assert isinstance(policy.store, VolumeStore)
    mount_path = policy.complete_item(item).get(policy.store.mounted_at)
    if mount_path is None:
        return
    shadow = policy.store.shadows(view, native, str(mount_path.value))
    if shadow is not None:
        refuse_locked(policy, ev, item, constraint, shadow, "shadowed by another mount")


def check_presence(policy: PolicyItems, view: PodView, ev: Evaluation, reading: Reading) -> None:
    """Report a locked item that the final object lacks, in the main container if there is one."""
    if not policy.guarded:
        return
    if view.main is None and policy.row.binding.value == "B1":
        return
    if policy.schema.store == "labels" and view.location.metadata_path is None:
        return
    known = view.main is None or view.old_container(view.main) is not None
    for item in policy.guarded:
        if ("name-clash", policy.row.path, item.key) in ev.reported:
            continue
        if is_present(view, reading.matching_items(item)):
            continue
        constraint, _ = policy.lock_of(item)
        if not has_room(policy.schema.store, view):
            origin = constraint.source if constraint else item.source
            lacking = ev.lacking(view.spec_path)
            ev.warn("unmapped-rule", policy.row.path, lacking, ev.request.kind, source=origin)
            continue
        had = view.old is not None and is_present(view.old, reading.find_before(item))
        lacked = view.old is not None and known and not had
        if not (lacked and tolerates(item, constraint)):
            main = view.main.path if view.main is not None else view.spec_path
            fix = ev.advice_on_missing()
            refuse_locked(policy, ev, item, constraint, main, "missing", fix)


def is_present(view: PodView, natives: Sequence[NativeItem]) -> bool:
    """Return whether an item is among these, in the main container if there is one."""
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
    """Report a change of a locked item. `what` describes it."""
    ev.violate(
        policy.row.path,
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
    """Return the fix for an attribute that differs, "" if a value may not be shown."""
    attribute = policy.schema.attribute(name)
    if attribute is None or policy.row.secret or any(map(is_secret_path, native.at.get(name, ()))):
        return ""
    leaf = leaf_type(f"{policy.row.path}.{name}")
    wanted = policy.complete_item(item).get(name)
    found_values = [
        each for each in native.values.get(name, ()) if wanted is None or each != wanted.value
    ]
    if leaf.secret or any(isinstance(each, Unreadable) for each in found_values):
        return ""
    instead = f" instead of {cut(leaf.show(found_values[0]))}" if found_values else ""
    if wanted is None:
        return f"Remove {name}{f', which is {cut(leaf.show(found_values[0]))}' if found_values else ''}."
    return f"Set {name} to {cut(leaf.show(wanted.value))}{instead}, or remove the item; the policy adds it."
