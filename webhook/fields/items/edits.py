"""Checks items that users may not add, exclude or edit."""

from __future__ import annotations

from typing import Any

from webhook.evaluation.state import Evaluation, ratchets
from webhook.fields.exclude import ANNOTATION, excluded_before
from webhook.fields.items.attribute_rules import AttributeRules
from webhook.fields.items.policy_items import EXCLUDE, PolicyItems
from webhook.fields.items.scope import Reading, applies_to, binds
from webhook.fields.storage.volumes import VolumeStore
from webhook.fields.store import NativeItem
from webhook.pods.pod_view import PodView
from webhook.policy.combine import Constraint
from webhook.policy.policy import Default


def check_additions(policy: PolicyItems, view: PodView, ev: Evaluation, reading: Reading) -> None:
    """Check canAdd: false. Only items whose key is among the default or imposed items pass."""
    for native in reading.natives:
        if policy.store.belongs_elsewhere(native):
            continue
        if policy.find(native) or reading.is_injected_item(native):
            continue
        if not ev.set_by_user(native.path, native.raw, None):
            continue
        old = reading.existed_before(native)
        for each in policy.can_add:
            if not (old and ratchets(each)) and applies_to(policy, each, native, view):
                shown, identity = native.shown_key, policy.identity_of(native)
                ev.violate(
                    policy.row.path,
                    native.path,
                    shown,
                    policy.listed,
                    each,
                    key=shown,
                    identity=identity,
                )
    if policy.schema.store == "environment":
        check_env_from(policy, view, ev)


def check_env_from(policy: PolicyItems, view: PodView, ev: Evaluation) -> None:
    """Check envFrom, which adds variables that admission cannot see, under canAdd: false."""
    for container in view.containers:
        if not container.body.get("envFrom"):
            continue
        old = view.old_container(container)
        same = old is not None and old.body.get("envFrom") == container.body["envFrom"]
        for each in policy.can_add:
            spared = each.policy.containers == "main" and not view.may_be_main(container.path)
            if not (same and ratchets(each)) and not spared:
                path = (*container.path, "envFrom")
                ev.violate(policy.row.path, path, "envFrom", None, each, key="envFrom")


def check_exclusion(policy: PolicyItems, view: PodView, ev: Evaluation) -> None:
    """Check prohibitions on `exclude`: the annotation may not remove a default item."""
    if not ev.excluded or not policy.exclusion:
        return
    excluded = policy.excluded_keys(view, ev)
    for each in policy.exclusion:
        if ratchets(each) and excluded_before(view, ev):
            continue
        for item in policy.items:
            if item.key in excluded:
                name = f"{policy.row.path}.{EXCLUDE}"
                ev.violate(name, ANNOTATION, "true", "false", each, key=item.key)


def check_attribute_edits(
    policy: PolicyItems, view: PodView, ev: Evaluation, native: NativeItem, reading: Reading
) -> None:
    """Check canEdit and blocked on attributes, against the same-key item, else the default."""
    if reading.is_injected_item(native):
        return
    item = next(iter(policy.find(native)), None)
    old = reading.existed_before(native)
    for each in policy.attributes:
        name = each.attribute.name
        default = policy.attribute_default(item, each)
        if name in native.unresolved:
            continue
        for position, value in enumerate(native.values.get(name, ())):
            if value == each.attribute.absent and not is_written(
                policy, ev, native, name, position, default
            ):
                continue
            for constraint in each.rules.prohibitions:
                repeats = default is not None and value == default.value
                if repeats and (
                    constraint.type.fixes_default
                    or ev.final_object
                    or not policy.is_written_by_user(ev, native, name, position)
                ):
                    continue
                if (old and ratchets(constraint)) or not binds(policy, constraint, native, view):
                    continue
                refuse_attribute(policy, ev, each, native, position, value, constraint, default)


def is_written(
    policy: PolicyItems,
    ev: Evaluation,
    native: NativeItem,
    name: str,
    position: int,
    default: Default | None,
) -> bool:
    """Return whether a user set an attribute to the value that its absence also means."""
    paths = native.at.get(name, ())
    if position >= len(paths) or ev.now(paths[position]) is None:
        return False
    if isinstance(policy.store, VolumeStore):
        if name in policy.store.implied:
            return default is not None
        if name in policy.store.server_filled:
            written_over = ev.final_object and default is not None
            return written_over or ev.intent.is_written(paths[position])
    return True


def refuse_attribute(
    policy: PolicyItems,
    ev: Evaluation,
    each: AttributeRules,
    native: NativeItem,
    position: int,
    value: Any,
    constraint: Constraint,
    default: Default | None,
) -> None:
    """Report an attribute that may not be set."""
    paths = native.at.get(each.attribute.name, ())
    path = paths[position] if position < len(paths) else native.path
    allowed = each.rules.show(default.value) if default is not None else None
    shown = each.show_at(path, value)
    ev.violate(each.rules.name, path, shown, allowed, constraint, key=native.shown_key)
