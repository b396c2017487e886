"""TABLE of natural ranges: which numbers a field can hold at all, whatever rules a policy has."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from webhook.objects.quantity import NANO
from webhook.policy import values
from webhook.policy.leaves import LeafType

NUMERIC = frozenset({"integer", "number", "quantity"})
IN_NANO = frozenset({"number", "quantity"})
HIGHEST_ID = 2**31 - 1
HOUR = 3600


@dataclass(frozen=True, slots=True)
class Range:
    """`holds` judges a value in whole units of the field; `wanted` says what to write."""

    holds: Callable[[Fraction], bool]
    wanted: str


def between(low: int, high: int) -> Range:
    """Whole numbers and fractions from `low` to `high`, both allowed."""
    return Range(lambda value: low <= value <= high, f"a number from {low} to {high}")


def part_or_whole(value: Fraction) -> bool:
    """A part of one device, or a number of whole ones."""
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
        part_or_whole, "a number above 0 and at most 1, or a whole one"
    ),
    "compute.gpuPortionLimit": Range(
        lambda value: 0 < value <= 1, "a number above 0 and at most 1"
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
"""Other numbers, ports, seconds and amounts among them, are never negative."""


def is_numeric(leaf: LeafType) -> bool:
    """Whether values of a leaf are numbers, amounts typed as text included."""
    return leaf.value in NUMERIC or leaf.codec is values.AMOUNT_TEXT


def fault(leaf: LeafType, value: Any) -> str:
    """What is to be written where a comparable value is none that the leaf can hold; else empty."""
    if not is_numeric(leaf) or isinstance(value, bool) or not isinstance(value, int | Fraction):
        return ""
    in_nano = leaf.value in IN_NANO or leaf.codec is values.AMOUNT_TEXT
    plain = Fraction(value) / NANO if in_nano else Fraction(value)
    natural = TABLE.get(leaf.path, NOT_NEGATIVE)
    return "" if natural.holds(plain) else natural.wanted
