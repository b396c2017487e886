"""The memory that Spark asks Kubernetes for, from the settings of a SparkApplication."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any, Final

from webhook.objects import quantity

UNITS: Final = {"": 2**20, "b": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40, "p": 2**50}
LEAST_OVERHEAD: Final = 384 * 2**20
OVERHEAD: Final = {"Java": Fraction(1, 10), "Scala": Fraction(1, 10)}
OTHER_OVERHEAD: Final = Fraction(4, 10)
SIZE: Final = re.compile(r"0*+([0-9]{0,20})([bkmgtp]?)b?")


def memory_of(spec: Any, role: str) -> Any:
    """The pod's memory in bytes for `driver` or `executor`, None where Spark's default holds.

    `spec` is an application's spec. A limit is given as written; so is the first of size, overhead
    and factor that cannot be read, for rules to refuse.
    """
    held = spec.get(role) if isinstance(spec, dict) else None
    if not isinstance(held, dict):
        return None
    if held.get("memoryLimit") is not None:
        return held["memoryLimit"]
    written = held.get("memory")
    heap = java_size(written)
    if heap is None:
        return written
    stated = held.get("memoryOverhead")
    overhead = java_size(stated) if stated is not None else overhead_of(spec, heap)
    if overhead is None:
        return stated if stated is not None else spec.get("memoryOverheadFactor")
    return str(heap + overhead)


def java_size(text: Any) -> int | None:
    """Bytes of a size as Java options have it: `512m`, `4g`, MiB without a unit."""
    found = SIZE.fullmatch(text.strip().lower()) if isinstance(text, str) else None
    if found is None or not text.strip()[0].isdigit():
        return None
    return int(found[1] or "0") * UNITS[found[2]]


def overhead_of(spec: dict[str, Any], heap: int) -> int | None:
    """What Spark adds to the heap where no overhead is named; None for an unreadable factor."""
    factor = spec.get("memoryOverheadFactor")
    if factor is not None:
        try:
            share = Fraction(quantity.parse_decimal(factor)) / quantity.NANO
        except ValueError:
            return None
    else:
        # A server of Spark Connect has no type: it is a program for the JVM.
        kind = spec.get("type", "Java")
        share = OVERHEAD.get(kind, OTHER_OVERHEAD) if isinstance(kind, str) else OTHER_OVERHEAD
    return max(int(heap * share), LEAST_OVERHEAD)
