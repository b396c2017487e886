"""Derives from the field table the pairs of defaults that must be in order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from webhook.policy.row import Binding, Field
from webhook.policy.table import TABLE


@dataclass(frozen=True, slots=True)
class Pair:
    """Two fields whose values must be in order, and the reason of the problem if they are not."""

    low: str
    high: str
    reason: str


def amounts(low: Field, high: Field) -> bool:
    """Whether two rows are the request and the limit of one amount, by path or by name."""
    if low.value != high.value or {low.binding, high.binding} != {Binding.AMOUNT}:
        return False
    by_name = low.path.endswith("Request") and high.path == f"{low.path[:-7]}Limit"
    differing = [pair for pair in zip(low.at, high.at, strict=False) if pair[0] != pair[1]]
    by_place = len(low.at) == len(high.at) and differing == [("requests", "limits")]
    return by_name or by_place


def bounds(low: Field, high: Field) -> bool:
    """Whether two rows are the smallest and largest number of the same thing, by name."""
    before, dot, last = low.path.rpartition(".")
    ordered = "min" in high.legal_rules and low.value == high.value
    return ordered and last.startswith("min") and high.path == f"{before}{dot}max{last[3:]}"


UNBOUNDED_AT_ZERO = frozenset({"autoscaling.maxReplicas", "autoscaling.concurrencyHardLimit"})
"""Fields in which 0 means no limit, so that it exceeds every maximum."""


def derive() -> Iterator[Pair]:
    """Return every pair of the table."""
    for low in TABLE.fields.values():
        for high in TABLE.fields.values():
            if amounts(low, high):
                yield Pair(low.path, high.path, "request-above-limit")
            elif bounds(low, high):
                yield Pair(low.path, high.path, "min-default-above-max-default")


PAIRS = tuple(derive())
