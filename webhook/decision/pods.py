"""Reads the pods of an object, each with the same pod before the update."""

from __future__ import annotations

from typing import Any, Final

from webhook.evaluation.state import Evaluation
from webhook.objects.draft import PatchError
from webhook.pods.definition import Definition
from webhook.pods.locate import locate
from webhook.pods.location import FragmentPods, LocationError
from webhook.pods.pod_view import MalformedPod, PodView, pod_view

MOST_CONTAINERS: Final = 5000
MOST_ENTRIES: Final = 20_000
TOO_MANY: Final = (
    f"more than {MOST_ENTRIES} entries in the lists and maps of its pods, a volume counting six, a"
    " device claim twelve"
)
VOLUME_COUNTS: Final = 6
"""A volume is read for every type of volume."""
CLAIM_COUNTS: Final = 12
"""A device claim is read for every field of devices."""
FIELDS: Final = 64
"""A map with more keys than a Kubernetes type has fields has keys that users choose."""
LABELS: Final = ("labels", "annotations")
AMOUNTS: Final = ("limits", "requests")
FREE_LABELS: Final = 16
FREE_RESOURCES: Final = 8
RESOURCE_COUNTS: Final = 4
"""Each resource name is read for every GPU form. The first FREE_RESOURCES of a list do not count."""


def views_of(ev: Evaluation) -> tuple[list[PodView], list[PodView]]:
    """Return the pods of the object and of the old one. Raises LocationError and MalformedPod."""
    request = ev.request
    before = []
    if ev.updating:
        counted = not request.is_small
        before = views_before(ev.definition_before, request.old, ev.pods, is_counted=counted)
    old = {(view.location.component, view.location.instance): view for view in before}
    views = [
        pod_view(location, old.get((location.component, location.instance)))
        for location in locate(ev.definition, request.object, ev.pods)
    ]
    if sum(len(view.everyone) for view in views) > MOST_CONTAINERS:
        text = f"more than {MOST_CONTAINERS} containers; one object may have as many"
        raise LocationError((), "too-many-containers", text)
    if not request.is_small and sum(map(entries, views)) > MOST_ENTRIES:
        raise LocationError((), "too-many-entries", TOO_MANY)
    return views, list(old.values())


def entries(view: PodView) -> int:
    """Return the weighted number of entries in the lists and maps of a pod, at any depth."""
    spec, volumes = view.spec, view.spec.get("volumes")
    listed = len(volumes) if volumes.__class__ is list else 0
    count = VOLUME_COUNTS * len(view.claims) + (VOLUME_COUNTS - 1) * listed
    claims = spec.get("resourceClaims")
    if claims or view.location.shared:
        named = len(claims) if claims.__class__ is list else 0
        count += CLAIM_COUNTS * len(view.location.shared) + (CLAIM_COUNTS - 1) * named
    count += beyond(view.metadata, LABELS, FREE_LABELS)
    for body in (spec, *(each.body for each in view.everyone)):
        resources = body.get("resources")
        if resources.__class__ is dict:
            count += RESOURCE_COUNTS * beyond(resources, AMOUNTS, FREE_RESOURCES)
    left: list[Any] = [spec, *(body for _, body in view.location.extra)]
    for node in left:  # the loop appends to the list
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
    """Return the number of entries in maps beyond the first `free` entries of each."""
    maps = (parent.get(key) for key in keys)
    return sum(max(0, len(each) - free) for each in maps if each.__class__ is dict)


def views_before(
    definition: Definition, old: Any, pods: FragmentPods, *, is_counted: bool = True
) -> list[PodView]:
    """Return the pods of the old object, none if they cannot be read or exceed the budget."""
    try:
        found = [pod_view(location) for location in locate(definition, old, pods)]
    except (LocationError, MalformedPod):
        return []
    return [] if is_counted and sum(map(entries, found)) > MOST_ENTRIES else found


def refuse_unreadable(ev: Evaluation, error: LocationError | MalformedPod | PatchError) -> None:
    """Report an object whose pods cannot be read: it would bypass every policy."""
    error.path = ev.report(error.path)
    reason = error.reason if isinstance(error, LocationError) else "wrong-type"
    ev.violate("", error.path, None, str(error), None, reason=reason)
