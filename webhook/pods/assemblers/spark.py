"""Pods of Spark applications, whose memory and devices Spark works out of the application's spec.

sparkDriver, sparkExecutor  the memory that Spark asks for; the value is the application's spec
device                      {name, quantity} for a limit of the first container
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, Final

from webhook.objects import quantity
from webhook.objects.path import Path
from webhook.pods.assemble import Assembler
from webhook.pods.fragments import FragmentForm, PodBuilder, Put, put_resource

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
    existing = spec.get(role) if isinstance(spec, dict) else None
    if not isinstance(existing, dict):
        return None
    if existing.get("memoryLimit") is not None:
        return existing["memoryLimit"]
    written = existing.get("memory")
    heap = java_size(written)
    if heap is None:
        return written
    stated = existing.get("memoryOverhead")
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


def put_memory(role: str) -> Put:
    """The memory of the driver or of an executor, as request and limit."""

    def put_memory_of(builder: PodBuilder, pod: Any, at: Path, path: Path, value: Any) -> None:
        amount = memory_of(value, role)
        for section in ("requests", "limits") if amount is not None else ():
            put_resource(builder, pod, (section, "memory"), (*path, role, "memory"), amount)

    return put_memory_of


def put_device(builder: PodBuilder, pod: Any, at: Path, path: Path, value: Any) -> None:
    """A device plugin's resource, by name and number."""
    name = value.get("name") if isinstance(value, dict) else None
    if isinstance(name, str) and name:
        put_resource(builder, pod, ("limits", name), (*path, "quantity"), value.get("quantity"))


class SparkAssembler(Assembler):
    """Assembles drivers and executors."""

    def own_forms(self) -> Mapping[str, FragmentForm]:
        return {
            "sparkDriver": FragmentForm(put_memory("driver"), around="driver"),
            "sparkExecutor": FragmentForm(put_memory("executor"), around="executor"),
            "device": FragmentForm(put_device),
        }
