"""What a pod asks for in all: the scheduler's sum over containers, sidecars and init containers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from webhook.core import quantity
from webhook.core.workload.podspec import Container, PodView

Amount = Callable[[Container], int]


def effective_total(view: PodView, amount: Amount) -> int:
    """max(ordinary + sidecars, the largest init container + sidecars started before it)."""
    if len(view.everyone) == 1:
        return amount(view.everyone[0])
    ordinary = sum([amount(each) for each in view.containers])
    if view.everyone is view.containers:
        return ordinary
    sidecars = peak = 0
    for each in view.everyone:
        if each.list != "initContainers":
            continue
        if each.sidecar:
            sidecars += amount(each)
        else:
            peak = max(peak, amount(each) + sidecars)
    return max(ordinary + sidecars, peak)


def amount_of(body: Any, part: str, resource: str) -> int:
    """One container's (or pod's) amount in nano units; 0 when absent, unreadable or negative."""
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
    """The pod's effective total of one resource: the larger of the pod level and the sum.

    `main` stands for the amount of the main container.
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
