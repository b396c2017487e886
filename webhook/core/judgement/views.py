"""Views of the pods of an object, each with the same pod before the update at its side."""

from __future__ import annotations

from typing import Any, Final

from webhook.core.patch import PatchError
from webhook.core.workload.definition import Definition
from webhook.core.workload.evaluation import Evaluation
from webhook.core.workload.locating.locate import locate
from webhook.core.workload.locating.location import LocationError
from webhook.core.workload.podspec import MalformedPod, PodView, pod_view

MOST_CONTAINERS: Final = 5000
MOST_ENTRIES: Final = 20_000
TOO_MANY: Final = (
    f"more than {MOST_ENTRIES} entries in the lists of its pods, a volume counting six"
)
VOLUMES: Final = {"volumes": 6, "volumeMounts": 1}
"""What an entry of a list counts; a volume is read for every type of volume, with its mounts."""


def views_of(ev: Evaluation) -> tuple[list[PodView], list[PodView]]:
    """The pods of the object, and those of the old one; raises LocationError, MalformedPod."""
    request, definition = ev.request, ev.definition
    before = views_before(definition, request.old) if ev.updating else []
    old = {(view.location.component, view.location.instance): view for view in before}
    views = [
        pod_view(location, old.get((location.component, location.instance)))
        for location in locate(definition, request.object)
    ]
    if sum(len(view.everyone) for view in views) > MOST_CONTAINERS:
        text = f"more than {MOST_CONTAINERS} containers; one object may have as many"
        raise LocationError((), "too-many-containers", text)
    if sum(map(entries, views)) > MOST_ENTRIES:
        raise LocationError((), "too-many-entries", TOO_MANY)
    return views, list(old.values())


def entries(view: PodView) -> int:
    """Return how many entries the lists of a pod and of its containers have, weighted."""
    found = 0
    for body in (view.spec, *[each.body for each in view.everyone]):
        for key, value in body.items():
            if value.__class__ is list:
                found += len(value) * VOLUMES.get(key, 1)
    return found


def views_before(definition: Definition, old: Any) -> list[PodView]:
    """The pods of the old object; what cannot be read excuses nothing."""
    try:
        return [pod_view(location) for location in locate(definition, old)]
    except (LocationError, MalformedPod):
        return []


def refuse_unreadable(ev: Evaluation, error: LocationError | MalformedPod | PatchError) -> None:
    """An object whose pods cannot be told is refused: it would go round every policy."""
    reason = error.reason if isinstance(error, LocationError) else "wrong-type"
    ev.violate("", error.path, None, str(error), None, reason=reason)
