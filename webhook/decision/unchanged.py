"""Tells what an update changes; what it leaves as it was is never a violation (semantics §6)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from webhook.catalog.plan import Plan
from webhook.decision.fill import completed_before
from webhook.decision.immutable import immutable_places
from webhook.evaluation.request import Request
from webhook.evaluation.state import Evaluation
from webhook.objects.path import Path, read
from webhook.pods.members_read import members_read
from webhook.pods.pod_view import Container, PodView

STEERING = frozenset({"podgate.dev/exclude", "podgate.dev/main-container"})


def is_unchanged(request: Request, plan: Plan) -> bool:
    """Whether an update leaves everything that can be read; `existing: strict` looks at all sent.

    Match conditions say the same to the API server (webhook/controller/match_conditions.py).
    """
    if request.object != request.old and (body_changed(request) or beside_changed(request, plan)):
        return False
    within = request.within
    if within is None:
        return True
    strictly = plan.strict and body_changed(request.outermost)
    return not strictly and within.pod_sets == within.old_pod_sets


def beside_changed(request: Request, plan: Plan) -> bool:
    """Whether metadata or status differs where rules, steering or the definition read it."""
    new, old = request.object, request.old
    read_beside = {("metadata", "labels"), ("metadata", "annotations")}
    return any(
        (read(new, path) or {}) != (read(old, path) or {})
        for path in (
            (part, member) if member else (part,)
            for part, member in read_beside | members_read(plan.definition)
        )
    )


def compare_with_before(
    ev: Evaluation, plan: Plan, views: Sequence[PodView], before: Sequence[PodView]
) -> None:
    """Note on an update which pods it leaves alone, and whether it changes what the plan reads."""
    request, references = ev.request, ev.references
    for view in views:
        if plays_another_part(plan, view):
            view.old = None
    ev.immutable = immutable_places(request, ev.definition, request.object)
    ev.complete = lambda: completed_before(request, plan, references)
    ev.steered = steering_changed(ev, plan.vocabulary.node_pool_labels)
    ev.as_before = frozenset(view.spec_path for view in views if untouched(ev, view))
    ev.differs = differs(ev, plan, views, before)


def plays_another_part(plan: Plan, view: PodView) -> bool:
    """Whether a pod location has a role now that it had not, and that the policy sees otherwise.

    What nobody changed there is new all the same: it makes other pods, such as a leader's.
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
    """Whether the update changes any place that the plan reads; else the object passes untouched."""
    if len(views) != len(before) or len(ev.as_before) != len(views) or ev.steered:
        return True
    everything = {*plan.workload.intent, *plan.workload.fill, *plan.workload.final}
    return any(
        seen(binding.seen(ev, ev.request.object, views)) != seen(binding.seen(ev, ev.old, before))
        for binding in everything
    )


def seen(places: Iterable[Any]) -> list[tuple[str, Any]]:
    """What places say, wherever they are by now."""
    return sorted(((place.key, place.value) for place in places), key=str)


def body_changed(request: Request) -> bool:
    """Whether anything but metadata and status differs; `existing: strict` then judges it all."""
    new, old = request.object, request.old
    keys = {*new, *old} - {"metadata", "status"}
    return any(new.get(key) != old.get(key) for key in keys)


def untouched(ev: Evaluation, view: PodView) -> bool:
    """Whether nothing that the plan reads of this pod differs from before the update."""
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
    """What the object sets for the pod and itself replaces: it is not in the pod, but evaluated."""
    parts = view.location.parts
    return [(at, held) for at, _, held in parts.overridden] if parts is not None else []


def name_of(container: Container | None) -> str:
    """The name of a main container, which a place outside the pod may choose; "" for none."""
    return "" if container is None else container.name


def steering_changed(ev: Evaluation, pool_labels: Iterable[str]) -> bool:
    """Whether metadata of the workload that decides what its pods become differs from before."""
    profile = ev.definition.profile
    for part, known in (
        ("annotations", STEERING | profile.steering_annotations),
        ("labels", profile.steering_labels.union(pool_labels)),
    ):
        now = read(ev.request.object, ("metadata", part)) or {}
        before = read(ev.old, ("metadata", part)) or {}
        if now == before or not isinstance(now, dict) or not isinstance(before, dict):
            continue
        if any(now.get(name) != before.get(name) for name in known):
            return True
    return False
