"""Finds what an update changes. Values that it leaves alone are never violations (semantics §6)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from webhook.catalog.plan import Plan
from webhook.decision.fill import completed_before
from webhook.decision.immutable import find_immutable_paths
from webhook.evaluation.request import Request
from webhook.evaluation.state import Evaluation
from webhook.objects.path import Path, read
from webhook.pods.members_read import members_read
from webhook.pods.pod_view import Container, PodView

STEERING = frozenset({"podgate.dev/exclude", "podgate.dev/main-container"})


def is_unchanged(request: Request, plan: Plan) -> bool:
    """Return whether an update changes nothing that podgate reads.

    With `existing: strict` any change counts. The match conditions of the webhook registration
    filter by the same rule (webhook/controller/match_conditions.py).
    """
    if request.object != request.old and (body_changed(request) or beside_changed(request, plan)):
        return False
    within = request.within
    if within is None:
        return True
    strictly = plan.strict and body_changed(request.outermost)
    return not strictly and within.pod_sets == within.old_pod_sets


def beside_changed(request: Request, plan: Plan) -> bool:
    """Return whether metadata or status differs where rules, steering or the definition read it."""
    new, old = request.object, request.old
    read_beside = {("metadata", "labels"), ("metadata", "annotations")}
    return any(
        (read(new, path) or {}) != (read(old, path) or {})
        for path in (
            (key, member) if member else (key,)
            for key, member in read_beside | members_read(plan.definition)
        )
    )


def compare_with_before(
    ev: Evaluation, plan: Plan, views: Sequence[PodView], before: Sequence[PodView]
) -> None:
    """Set on `ev` which pods an update leaves alone, and whether it changes what the plan reads."""
    request, references, pods = ev.request, ev.references, ev.pods
    definition = ev.definition_before
    for view in views:
        if has_new_role(plan, view):
            view.old = None
    ev.immutable = find_immutable_paths(request, ev.definition, request.object)
    ev.complete = lambda: completed_before(request, plan, definition, references, pods)
    ev.steered = steering_changed(ev, plan.config.node_pool_labels)
    ev.as_before = frozenset(view.spec_path for view in views if is_unchanged_pod(ev, view))
    ev.differs = differs(ev, plan, views, before)


def has_new_role(plan: Plan, view: PodView) -> bool:
    """Return whether a pod location has a new role with different rules.

    Its unchanged values count as new then, because they make other pods, such as a leader's.
    """
    if view.old is None:
        return False
    location, roles = view.location, view.old.location.roles
    if set(location.roles) <= set(roles):
        return False
    component = location.component
    return plan.effective(component, location.roles) != plan.effective(component, roles)


def differs(
    ev: Evaluation, plan: Plan, views: Sequence[PodView], before: Sequence[PodView]
) -> bool:
    """Return whether the update changes a value that the plan reads. Otherwise the object passes."""
    if len(views) != len(before) or len(ev.as_before) != len(views) or ev.steered:
        return True
    everything = {*plan.workload.intent, *plan.workload.fill, *plan.workload.final}
    return any(
        read_locations(field.compared_values(ev, ev.request.object, views))
        != read_locations(field.compared_values(ev, ev.old, before))
        for field in everything
    )


def read_locations(values: Iterable[Any]) -> list[tuple[str, Any]]:
    """Return keys and values, sorted, so that a move within the object makes no difference."""
    return sorted(((each.key, each.value) for each in values), key=str)


def body_changed(request: Request) -> bool:
    """Return whether anything but metadata and status differs."""
    new, old = request.object, request.old
    keys = {*new, *old} - {"metadata", "status"}
    return any(new.get(key) != old.get(key) for key in keys)


def is_unchanged_pod(ev: Evaluation, view: PodView) -> bool:
    """Return whether nothing that the plan reads of this pod differs from before the update."""
    if view.old is None or ev.steered:
        return False
    old = view.old
    return (
        view.spec == old.spec
        and view.metadata.get("labels") == old.metadata.get("labels")
        and view.metadata.get("annotations") == old.metadata.get("annotations")
        and [body for _, body in view.location.extra] == [body for _, body in old.location.extra]
        and [body for _, body in view.claims] == [body for _, body in old.claims]
        and view.location.shared == old.location.shared
        and replaced_values(view) == replaced_values(old)
        and name_of(view.main) == name_of(old.main)
    )


def replaced_values(view: PodView) -> list[tuple[Path, Any]]:
    """Return values that the object sets and overrides itself: not in the pod, but evaluated."""
    fragments = view.location.fragments
    return [(at, value) for at, _, value in fragments.overridden] if fragments is not None else []


def name_of(container: Container | None) -> str:
    """Return the name of a main container, which a path outside the pod may choose; "" for none."""
    return "" if container is None else container.name


def steering_changed(ev: Evaluation, pool_labels: Iterable[str]) -> bool:
    """Return whether metadata of the workload that changes its pods differs from before."""
    profile = ev.definition.profile
    for key, known in (
        ("annotations", STEERING | profile.steering.annotations),
        ("labels", profile.steering.labels.union(pool_labels)),
    ):
        now = read(ev.request.object, ("metadata", key)) or {}
        before = read(ev.old, ("metadata", key)) or {}
        if now == before or not isinstance(now, dict) or not isinstance(before, dict):
            continue
        if any(now.get(name) != before.get(name) for name in known):
            return True
    return False
