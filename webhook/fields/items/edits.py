"""Judges prohibitions on attributes of items, `exclude` among them."""

from __future__ import annotations

from typing import Any

from webhook.evaluation.state import Evaluation, ratchets
from webhook.fields.exclude import ANNOTATION, excluded_before
from webhook.fields.items.attribute_rules import AttributeRules
from webhook.fields.items.policy_items import EXCLUDE, PolicyItems
from webhook.fields.items.scope import Reading, binds
from webhook.fields.storage.volumes import VolumeStore
from webhook.fields.stores.environment import NativeItem
from webhook.pods.pod_view import PodView
from webhook.policy.combine import Constraint
from webhook.policy.policy import Default


def judge_exclusion(policy: PolicyItems, view: PodView, ev: Evaluation) -> None:
    """Prohibitions on `exclude`: no default item may be taken out by the annotation."""
    if not ev.excluded or not policy.exclusion:
        return
    excluded = policy.excluded(view, ev)
    for each in policy.exclusion:
        if ratchets(each) and excluded_before(view, ev):
            continue
        for item in policy.items:
            if item.key in excluded:
                name = f"{policy.field.path}.{EXCLUDE}"
                ev.violate(name, ANNOTATION, "true", "false", each, key=item.key)


def judge_attribute_edits(
    policy: PolicyItems, view: PodView, ev: Evaluation, native: NativeItem, reading: Reading
) -> None:
    """canEdit and blocked on attributes: against the same-key item, else the default."""
    if reading.is_brought(native):
        return
    item = next(iter(policy.find(native)), None)
    old = reading.stood_before(native)
    for each in policy.attributes:
        name = each.attribute.name
        default = policy.attribute_default(item, each)
        if name in native.unseen:
            continue
        for position, value in enumerate(native.values.get(name, ())):
            if value == each.attribute.absent and not stated(
                policy, ev, native, name, position, default
            ):
                continue
            for constraint in each.rules.prohibitions:
                repeats = default is not None and value == default.value
                if repeats and (
                    constraint.rule == "canEdit"
                    or ev.final_object
                    or not policy.shown(ev, native, name, position)
                ):
                    continue
                if (old and ratchets(constraint)) or not binds(policy, constraint, native, view):
                    continue
                refuse_attribute(policy, ev, each, native, position, value, constraint, default)


def stated(
    policy: PolicyItems,
    ev: Evaluation,
    native: NativeItem,
    name: str,
    position: int,
    default: Default | None,
) -> bool:
    """Whether somebody stated an attribute's value that is also what its absence means."""
    places = native.at.get(name, ())
    if position >= len(places) or ev.now(places[position]) is None:
        return False
    if isinstance(policy.store, VolumeStore):
        if name in policy.store.implied:
            return default is not None
        if name in policy.store.server_filled:
            written_over = ev.final_object and default is not None
            return written_over or ev.intent.stated(places[position])
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
    """Record an attribute that may not be set so."""
    places = native.at.get(each.attribute.name, ())
    path = places[position] if position < len(places) else native.path
    allowed = each.rules.show(default.value) if default is not None else None
    shown = each.show_at(path, value)
    ev.violate(each.rules.name, path, shown, allowed, constraint, key=native.told)
