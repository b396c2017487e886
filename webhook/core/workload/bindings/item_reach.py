"""Tells which native items a rule does not reach: brought by others, as before, in other containers."""

from __future__ import annotations

from webhook.core.injected import is_injected
from webhook.core.policy.combine import Constraint
from webhook.core.workload.bindings.policy_items import PolicyItems
from webhook.core.workload.bindings.ports import PortStore
from webhook.core.workload.bindings.stores import NativeItem
from webhook.core.workload.evaluation import Evaluation
from webhook.core.workload.podspec import PodView


def is_brought(policy: PolicyItems, native: NativeItem, view: PodView, ev: Evaluation) -> bool:
    """Whether Kubernetes put an item there, or who may by the installation's own list."""
    if is_injected(policy.row.store, native, view, ev.request):
        return True
    if ev.injected.items and ev.injected.has_item(policy.field.path, native.key, native.raw):
        return True
    if not ev.injected.containers or len(native.owners) != 1:
        return False
    return any(
        (each.list, each.name) == native.owners[0] and ev.injected.has_container(each.body, view)
        for each in view.everyone
    )


def stood_before(
    policy: PolicyItems, view: PodView, ev: Evaluation, native: NativeItem, before: list[NativeItem]
) -> bool:
    """Whether the item stood there before the update just so, or as we have completed it."""
    if not before or not any(each.key == native.key for each in before):
        return False
    if any(each.like(native) for each in before):
        return True
    completed = ev.completed(view)
    if completed is None:
        return False
    return any(each.like(native) for each in policy.store.read(completed))


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
