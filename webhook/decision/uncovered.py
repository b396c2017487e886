"""Tells what no definition covers: kinds without one, and containers outside known pod locations."""

from __future__ import annotations

from collections.abc import Sequence

from webhook.catalog.catalog import Catalog
from webhook.decision.podless import KINDS_WITHOUT_PODS
from webhook.evaluation.outcome import NO_PODS, UNKNOWN_KIND, UNKNOWN_VERSION, Allowed, Warning
from webhook.evaluation.request import Request
from webhook.evaluation.state import Evaluation
from webhook.objects.path import read
from webhook.pods.coverage import pod_like, uncovered
from webhook.pods.location import LocationError, PodLocation


def undefined(request: Request, catalog: Catalog) -> Allowed:
    """An object that no definition covers passes, with the reason why it is not evaluated.

    A kind that seems to hold pods gets a warning. A version without a definition always does, since
    other versions of the kind are governed.
    """
    group = f".{request.group}" if request.group else ""
    named = f"{request.kind}{group}/{request.version}"
    defined = catalog.definitions.get((request.group, request.kind), ())
    if defined:
        known = ", ".join(sorted({version for each in defined for version in each.versions}))
        told = Warning(UNKNOWN_VERSION, "", (), (named, f"known are {known}"))
        return Allowed(request.object, warnings=(told,), not_evaluated=UNKNOWN_VERSION)
    if seems_to_hold_pods(request):
        told = Warning(UNKNOWN_KIND, "", (), (named,))
        return Allowed(request.object, warnings=(told,), not_evaluated=UNKNOWN_KIND)
    podless = (request.group, request.kind) in KINDS_WITHOUT_PODS
    return Allowed(request.object, not_evaluated=NO_PODS if podless else UNKNOWN_KIND)


def seems_to_hold_pods(request: Request) -> bool:
    """Whether something in the object looks like a pod, or it is too deep or too large to search."""
    try:
        return pod_like(request.object)
    except LocationError:
        return True


def judge_coverage(ev: Evaluation, locations: Sequence[PodLocation]) -> None:
    """Containers outside every known pod location are a way round policy."""
    definition = ev.definition
    for path, what in uncovered(ev.request.object, locations, definition):
        if ev.updating and read(ev.old, path) == read(ev.request.object, path):
            continue
        if definition.profile.uncovered == "warn":
            ev.warn("uncovered", "", path, what, ev.request.kind)
        else:
            ev.violate("", path, what, None, None, reason="uncovered", key=ev.request.kind)
