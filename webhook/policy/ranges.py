"""TABLE of natural ranges: the numbers that a field can have, whatever the rules of a policy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from webhook.objects.quantity import NANO
from webhook.policy import values
from webhook.policy.leaves import LeafType

IN_NANO = frozenset({"number", "quantity"})
HIGHEST_ID = 2**31 - 1
HOUR = 3600


@dataclass(frozen=True, slots=True)
class Range:
    """`contains` checks a value in whole units of the field. `wanted` is what to write.

    `highest` is the largest value that the field can have, None without a limit.
    """

    contains: Callable[[Fraction], bool]
    wanted: str
    highest: int | None = None


def between(low: int, high: int) -> Range:
    """Return the range from `low` to `high`, both included, with fractions."""
    return Range(lambda value: low <= value <= high, f"a number from {low} to {high}", high)


def is_fraction_or_whole(value: Fraction) -> bool:
    """Whether a value is a fraction of one device, or a number of whole devices."""
    return value > 0 and (value <= 1 or value.denominator == 1)


NOT_NEGATIVE = Range(lambda value: value >= 0, "a number from 0")
FROM_ONE = Range(lambda value: value >= 1, "a number from 1")
ABOVE_ZERO = Range(lambda value: value > 0, "an amount above 0")
PORT = between(1, 65535)
USER_ID = between(0, HIGHEST_ID)
WHOLE = Range(
    lambda value: value >= 0 and value.denominator == 1, "a whole number of devices from 0"
)
PROBE = "probes.readiness"

TABLE: dict[str, Range] = {
    f"{PROBE}.handler.httpGet.port": PORT,
    f"{PROBE}.periodSeconds": FROM_ONE,
    f"{PROBE}.timeoutSeconds": FROM_ONE,
    f"{PROBE}.successThreshold": FROM_ONE,
    f"{PROBE}.failureThreshold": FROM_ONE,
    "ports.container": PORT,
    "ports.external": PORT,
    "exposedUrls.container": PORT,
    "servingPort.container": PORT,
    "servingPort.port": PORT,
    "servingPort.grpcPort": PORT,
    "servingPort.metricsPort": PORT,
    "tolerations.seconds": FROM_ONE,
    "slotsPerWorker": FROM_ONE,
    "security.runAsUid": USER_ID,
    "security.runAsGid": USER_ID,
    "compute.gpuPortionRequest": Range(
        is_fraction_or_whole, "a number above 0 and at most 1, or a whole one"
    ),
    "compute.gpuPortionLimit": Range(
        lambda value: 0 < value <= 1, "a number above 0 and at most 1", highest=1
    ),
    "compute.gpuMemoryRequest": ABOVE_ZERO,
    "compute.gpuMemoryLimit": ABOVE_ZERO,
    "compute.extendedResources.quantity": WHOLE,
    "storage.pvc.claimInfo.size": ABOVE_ZERO,
    "modelStore.pvc.claimInfo.size": ABOVE_ZERO,
    "autoscaling.activationReplicas": FROM_ONE,
    "autoscaling.metricThreshold": FROM_ONE,
    "autoscaling.metricThresholdPercentage": between(1, 100),
    "autoscaling.scaleToZeroRetentionSeconds": between(0, HOUR),
    "autoscaling.scaleDownDelaySeconds": between(0, HOUR),
    "autoscaling.scaleWindowSeconds": between(0, HOUR),
}
"""All other numbers must not be negative."""


def is_numeric(leaf: LeafType) -> bool:
    """Whether values of a leaf are numbers, including amounts typed as strings."""
    return leaf.value in values.NUMERIC or leaf.codec is values.AMOUNT_TEXT


def fault(leaf: LeafType, value: Any) -> str:
    """Return what to write instead of a comparable value outside the leaf's range, else ""."""
    if not is_number(leaf, value):
        return ""
    natural = TABLE.get(leaf.path, NOT_NEGATIVE)
    return "" if natural.contains(in_units(leaf, value)) else natural.wanted


def bound_beyond(leaf: LeafType, bound: Any) -> str:
    """Return what to write instead of a bound below or above all values of a leaf, else ""."""
    if not is_number(leaf, bound):
        return ""
    natural, plain = TABLE.get(leaf.path, NOT_NEGATIVE), in_units(leaf, bound)
    is_above = natural.highest is not None and plain > natural.highest
    return natural.wanted if plain < 0 or is_above else ""


def is_number(leaf: LeafType, value: Any) -> bool:
    """Whether a value of a leaf is a number; an unlimited amount is none."""
    return is_numeric(leaf) and not isinstance(value, bool) and isinstance(value, int | Fraction)


def in_units(leaf: LeafType, value: int | Fraction) -> Fraction:
    """Return a comparable value in whole units of its leaf."""
    in_nano = leaf.value in IN_NANO or leaf.codec is values.AMOUNT_TEXT
    return Fraction(value) / NANO if in_nano else Fraction(value)
