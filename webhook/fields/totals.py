"""Calculates what a pod requests: the scheduler's sum over containers, sidecars, init containers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from webhook.objects import quantity
from webhook.pods.pod_view import Container, PodView

Amount = Callable[[Container], int]


def effective_total(view: PodView, amount: Amount) -> int:
    """The total of a pod's containers."""
    everyone = view.everyone
    return amount(everyone[0]) if len(everyone) == 1 else total_of(everyone, amount)


def total_of(containers: Sequence[Container], amount: Amount) -> int:
    """Return max(ordinary + sidecars, the largest init container + sidecars started before it)."""
    ordinary = sidecars = peak = 0
    for each in containers:
        if each.list == "ephemeralContainers":
            continue
        if each.list != "initContainers":
            ordinary += amount(each)
            continue
        if each.sidecar:
            sidecars += amount(each)
        else:
            peak = max(peak, amount(each) + sidecars)
    return max(ordinary + sidecars, peak)


def amount_of(body: Any, part: str, resource: str) -> int:
    """Return a container's or pod's amount in nano units, 0 if absent, unreadable or negative."""
    resources = body.get("resources")
    held = resources.get(part) if isinstance(resources, dict) else None
    native = held.get(resource) if isinstance(held, dict) else None
    if native is None:
        return 0
    try:
        return max(quantity.parse(native), 0)
    except ValueError:
        return 0


def pod_total(view: PodView, part: str, resource: str, main: int | None = None) -> int:
    """Return the pod's effective total of one resource: the larger of pod level and sum.

    `main` replaces the amount of the main container.
    """

    def amount(each: Container) -> int:
        return (
            main if main is not None and each is view.main else amount_of(each.body, part, resource)
        )

    total = effective_total(view, amount)
    spec = view.spec
    if "overhead" in spec and isinstance(spec["overhead"], dict):
        total += amount_of({"resources": {"o": spec["overhead"]}}, "o", resource)
    return max(total, amount_of(spec, part, resource)) if "resources" in spec else total
