"""Counts the devices that a claim takes."""

from __future__ import annotations

from collections.abc import Callable

from webhook.devices.claim_view import ClaimView, DeviceRequest


def count_devices(view: ClaimView, wanted: Callable[[str], bool]) -> tuple[int, bool]:
    """Return the devices of the wanted classes, and True if their number has no bound.

    Of alternatives the largest counts. A request without a bound counts as one device at least.
    """
    counts = [count_request(each, wanted) for each in view.requests]
    return sum(count for count, _ in counts), any(unbounded for _, unbounded in counts)


def count_request(request: DeviceRequest, wanted: Callable[[str], bool]) -> tuple[int, bool]:
    """Return the same of one request."""
    counts = [
        each.count
        for each in request.options
        if not each.admin_access and wanted(each.device_class)
    ]
    known = [1 if each is None else each for each in counts]
    return max([0, *known]), None in counts
