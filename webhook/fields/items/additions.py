"""Judges items that may not be added: `canAdd: false`."""

from __future__ import annotations

from webhook.evaluation.state import Evaluation, ratchets
from webhook.fields.items.policy_items import PolicyItems
from webhook.fields.items.scope import Reading, reaches
from webhook.pods.pod_view import PodView


def judge_additions(policy: PolicyItems, view: PodView, ev: Evaluation, reading: Reading) -> None:
    """canAdd: false: only items whose key is among the default or imposed items."""
    for native in reading.natives:
        if policy.store.belongs_elsewhere(native):
            continue
        if policy.find(native) or reading.is_brought(native):
            continue
        if not ev.set_by_user(native.path, native.raw, None):
            continue
        old = reading.stood_before(native)
        for each in policy.can_add:
            if not (old and ratchets(each)) and reaches(policy, each, native, view):
                told, identity = native.told, policy.identity_of(native)
                ev.violate(
                    policy.field.path,
                    native.path,
                    told,
                    policy.listed,
                    each,
                    key=told,
                    identity=identity,
                )
    if policy.row.store == "environment":
        judge_env_from(policy, view, ev)


def judge_env_from(policy: PolicyItems, view: PodView, ev: Evaluation) -> None:
    """envFrom brings variables that admission cannot see: an addition under canAdd: false."""
    for container in view.containers:
        if not container.body.get("envFrom"):
            continue
        old = view.old_container(container)
        same = old is not None and old.body.get("envFrom") == container.body["envFrom"]
        for each in policy.can_add:
            spared = each.policy.containers == "main" and not view.may_be_main(container.path)
            if not (same and ratchets(each)) and not spared:
                path = (*container.path, "envFrom")
                ev.violate(policy.field.path, path, "envFrom", None, each, key="envFrom")
