"""Tells what no definition covers: kinds without one, and containers outside known pod locations."""

from __future__ import annotations

from collections.abc import Sequence

from webhook.core.catalog import Catalog
from webhook.core.decision import Warning
from webhook.core.pointer import read
from webhook.core.request import Request
from webhook.core.workload.coverage import pod_like, uncovered
from webhook.core.workload.evaluation import Evaluation
from webhook.core.workload.locating.location import LocationError, PodLocation


def unknown_kind(request: Request, catalog: Catalog) -> tuple[Warning, ...]:
    """A kind without a definition that seems to hold pods is told, never silently ungoverned.

    A version without one is told of every object, since other versions of the kind are governed.
    """
    group = f".{request.group}" if request.group else ""
    named = f"{request.kind}{group}/{request.version}"
    defined = catalog.definitions.get((request.group, request.kind), ())
    if defined:
        known = ", ".join(sorted({version for each in defined for version in each.versions}))
        return (Warning("unknown-version", "", (), (named, f"known are {known}")),)
    try:
        if not pod_like(request.object):
            return ()
    except LocationError:
        pass  # too deep or too large to tell: say that it is not judged
    return (Warning("unknown-kind", "", (), (named,)),)


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
