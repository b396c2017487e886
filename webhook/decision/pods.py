"""Views of the pods of an object, each with the same pod before the update at its side."""

from __future__ import annotations

from typing import Any, Final

from webhook.evaluation.state import Evaluation
from webhook.objects.draft import PatchError
from webhook.pods.definition import Definition
from webhook.pods.locate import locate
from webhook.pods.location import LocationError
from webhook.pods.pod_view import MalformedPod, PodView, pod_view

MOST_CONTAINERS: Final = 5000
MOST_ENTRIES: Final = 20_000
TOO_MANY: Final = (
    f"more than {MOST_ENTRIES} entries in the lists and maps of its pods, a volume counting six"
)
VOLUME_COUNTS: Final = 6
"""A volume is read for every type of volume."""
FIELDS: Final = 64
"""A map of more keys than any type of Kubernetes has fields is filled by its user."""
LABELS: Final = ("labels", "annotations")
AMOUNTS: Final = ("limits", "requests")
FREE_LABELS: Final = 16
FREE_RESOURCES: Final = 8
RESOURCE_COUNTS: Final = 4
"""A name of a resource is read for GPUs of every form. Those that every pod has count nothing."""


def views_of(ev: Evaluation) -> tuple[list[PodView], list[PodView]]:
    """The pods of the object, and those of the old one; raises LocationError, MalformedPod."""
    request, definition = ev.request, ev.definition
    before = []
    if ev.updating:
        before = views_before(definition, request.old, is_counted=not request.is_small)
    old = {(view.location.component, view.location.instance): view for view in before}
    views = [
        pod_view(location, old.get((location.component, location.instance)))
        for location in locate(definition, request.object)
    ]
    if sum(len(view.everyone) for view in views) > MOST_CONTAINERS:
        text = f"more than {MOST_CONTAINERS} containers; one object may have as many"
        raise LocationError((), "too-many-containers", text)
    if not request.is_small and sum(map(entries, views)) > MOST_ENTRIES:
        raise LocationError((), "too-many-entries", TOO_MANY)
    return views, list(old.values())


def entries(view: PodView) -> int:
    """Return how many entries the lists and maps of a pod have, at any depth and weighted."""
    spec, volumes = view.spec, view.spec.get("volumes")
    listed = len(volumes) if volumes.__class__ is list else 0
    count = VOLUME_COUNTS * len(view.claims) + (VOLUME_COUNTS - 1) * listed
    count += beyond(view.metadata, LABELS, FREE_LABELS)
    for body in (spec, *(each.body for each in view.everyone)):
        resources = body.get("resources")
        if resources.__class__ is dict:
            count += RESOURCE_COUNTS * beyond(resources, AMOUNTS, FREE_RESOURCES)
    left: list[Any] = [spec, *(body for _, body in view.location.extra)]
    for node in left:  # it grows meanwhile
        size = len(node)
        if node.__class__ is list:
            count += size
            left += [each for each in node if each.__class__ is dict or each.__class__ is list]
        else:
            count += size - FIELDS if size > FIELDS else 0
            left += [
                each for each in node.values() if each.__class__ is dict or each.__class__ is list
            ]
    return count


def beyond(parent: dict[str, Any], keys: tuple[str, ...], free: int) -> int:
    """Return how many entries some maps have, without the first of each that are `free`."""
    maps = (parent.get(key) for key in keys)
    return sum(max(0, len(each) - free) for each in maps if each.__class__ is dict)


def views_before(definition: Definition, old: Any, *, is_counted: bool = True) -> list[PodView]:
    """The pods of the old object; what cannot be read, or is beyond the budget, excuses nothing."""
    try:
        found = [pod_view(location) for location in locate(definition, old)]
    except (LocationError, MalformedPod):
        return []
    return [] if is_counted and sum(map(entries, found)) > MOST_ENTRIES else found


def refuse_unreadable(ev: Evaluation, error: LocationError | MalformedPod | PatchError) -> None:
    """An object whose pods cannot be told is refused: it would go round every policy."""
    reason = error.reason if isinstance(error, LocationError) else "wrong-type"
    ev.violate("", error.path, None, str(error), None, reason=reason)
