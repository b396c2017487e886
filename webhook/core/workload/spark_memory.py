"""The memory that Spark asks Kubernetes for, from the settings of a SparkApplication."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any, Final

UNITS: Final = {"": 2**20, "b": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40, "p": 2**50}
LEAST_OVERHEAD: Final = 384 * 2**20
OVERHEAD: Final = {"Java": Fraction(1, 10), "Scala": Fraction(1, 10)}
OTHER_OVERHEAD: Final = Fraction(4, 10)
SIZE: Final = re.compile(r"(\d+)([bkmgtp]?)b?")
FACTOR: Final = re.compile(r"\d{1,4}(\.\d{1,9})?")
LONGEST: Final = 20


def memory_of(spec: Any, role: str) -> str | int | None:
    """The pod's memory in bytes for `driver` or `executor`, None where Spark's default holds.

    `spec` is an application's spec. A limit or a size that is no size of Java is given as written.
    """
    held = spec.get(role) if isinstance(spec, dict) else None
    if not isinstance(held, dict):
        return None
    if held.get("memoryLimit") is not None:
        memory: str | int | None = held["memoryLimit"]
        return memory
    written = held.get("memory")
    heap = java_size(written)
    if heap is None:
        return written if isinstance(written, (str, int)) else None
    overhead = java_size(held.get("memoryOverhead"))
    return str(heap + (overhead if overhead is not None else overhead_of(spec, heap)))


def java_size(text: Any) -> int | None:
    """Bytes of a size as Java options have it: `512m`, `4g`, MiB without a unit."""
    if not isinstance(text, str) or len(text) > LONGEST:
        return None
    found = SIZE.fullmatch(text.strip().lower())
    return int(found[1]) * UNITS[found[2]] if found else None


def overhead_of(spec: dict[str, Any], heap: int) -> int:
    """What Spark adds to the heap where the object names no overhead."""
    factor = spec.get("memoryOverheadFactor")
    if isinstance(factor, str) and FACTOR.fullmatch(factor):
        share = Fraction(factor)
    else:
        # A server of Spark Connect has no type: it is a program for the JVM.
        kind = spec.get("type", "Java")
        share = OVERHEAD.get(kind, OTHER_OVERHEAD) if isinstance(kind, str) else OTHER_OVERHEAD
    return max(int(heap * share), LEAST_OVERHEAD)
