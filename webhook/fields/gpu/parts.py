"""Reads parts of GPUs from a pod: shares and memory, requests and limits, with their paths."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from webhook.fields.gpu.annotations import (
    CONTAINER_NAME,
    FRACTION,
    FRACTION_LIMIT,
    LIMIT_VARIABLE,
    MEMORY_LIMIT,
    PER_CONTAINER,
    annotation_path,
    annotations_of,
)
from webhook.fields.gpu.use import PARTS
from webhook.objects import quantity
from webhook.objects.path import Path
from webhook.pods.pod_view import Container, PodView, may_name

UNREADABLE: Final = "(not shown)"
SUFFIXES: Final = {"MiB": "Mi", "MB": "M"}
UNITS: Final = {"MiB": quantity.UNITS["Mi"], "MB": quantity.UNITS["M"]}
WHOLE_NUMBER = re.compile(r"[+-]?[0-9]{1,18}", re.ASCII)
# A plain number below this is a share of a GPU, because a memory limit has more bytes.
FEWEST_BYTES: Final = 1000 * quantity.NANO


class GpuAmount(NamedTuple):
    """One amount in a pod, in the notation of its field.

    An unreadable one is UNREADABLE, because annotations and env are never printed. `key` identifies
    the path across an update.
    """

    path: Path
    native: Any
    key: str


def share(value: Any) -> str:
    """A share of a GPU as a decimal text."""
    try:
        quantity.parse_decimal(value)
    except ValueError:
        return UNREADABLE
    return str(value)


def memory(value: Any, unit: str) -> str:
    """A whole number of the installation's unit as a quantity."""
    text = str(value) if isinstance(value, str | int) and not isinstance(value, bool) else ""
    return f"{int(text)}{SUFFIXES[unit]}" if WHOLE_NUMBER.fullmatch(text) else UNREADABLE


def size(value: Any) -> str:
    """A quantity."""
    try:
        quantity.parse(value)
    except ValueError:
        return UNREADABLE
    return str(value)


def size_or_memory(value: Any, unit: str) -> str:
    """A quantity, or a whole number of the installation's unit."""
    found = memory(value, unit)
    return size(value) if found == UNREADABLE else found


def per_container(view: PodView, *, portion: bool, end: str) -> Iterator[tuple[str, Any]]:
    """Return the newer annotations of one kind that have a value, in order."""
    for key, value in annotations_of(view).items():
        match = PER_CONTAINER.fullmatch(key) if isinstance(key, str) else None
        if match is None or value in ("", None):
            continue
        if bool(match["form"]) is portion and match["end"] == end:
            yield key, value


def requests(view: PodView, form: str, unit: str) -> list[GpuAmount]:
    """Return the requests in one of the two forms, gpu-fraction or gpu-memory."""
    value = annotations_of(view).get(form)
    found = []
    if value not in ("", None):
        native = share(value) if form == FRACTION else memory(value, unit)
        found.append(GpuAmount(annotation_path(view, form), native, form))
    portion = form == FRACTION
    for key, value in per_container(view, portion=portion, end="request"):
        native = share(value) if portion else size(value)
        found.append(GpuAmount(annotation_path(view, key), native, key))
    return found


def limits(view: PodView, form: str, unit: str) -> list[GpuAmount]:
    """Return the limits in one of the two forms: variables of containers, then annotations."""
    portion = form == FRACTION
    found = [
        GpuAmount(path, native, key)
        for path, native, key in variables(view)
        if fits(native, portion)
    ]
    key = FRACTION_LIMIT if portion else MEMORY_LIMIT
    value = annotations_of(view).get(key)
    if value not in ("", None):
        native = share(value) if portion else size_or_memory(value, unit)
        found.append(GpuAmount(annotation_path(view, key), native, key))
    for key, value in per_container(view, portion=portion, end="limit"):
        native = share(value) if portion else size(value)
        found.append(GpuAmount(annotation_path(view, key), native, key))
    return found


def fits(native: str, portion: bool) -> bool:
    """Return whether a variable's value is in this form. An unreadable one is in both."""
    if native == UNREADABLE:
        return True
    try:
        is_share = quantity.parse_decimal(native) < FEWEST_BYTES
    except ValueError:
        is_share = False
    return is_share is portion


def variables(view: PodView) -> Iterator[GpuAmount]:
    """Yield the limits in variables of containers. A reference is unreadable."""
    for container in view.everyone:
        entries = container.body.get("env")
        if not may_name(entries, LIMIT_VARIABLE):
            continue
        for index, entry in enumerate(entries if isinstance(entries, list) else ()):
            if not isinstance(entry, dict) or entry.get("name") != LIMIT_VARIABLE:
                continue
            path = (*container.path, "env", index)
            key = f"{container.list}/{container.name}"
            if entry.get("valueFrom"):
                yield GpuAmount((*path, "valueFrom"), UNREADABLE, key)
            elif entry.get("value") not in ("", None):
                yield GpuAmount((*path, "value"), size(entry["value"]), key)


def gpu_container(view: PodView) -> Container | None:
    """Return the container with the part of a GPU: the named one, else the first, by default the main."""
    annotations = annotations_of(view)
    wanted = annotations.get(CONTAINER_NAME)
    for each in view.everyone:
        if wanted and each.name == wanted:
            return each
    if any(annotations.get(form) for form in PARTS):
        return next((each for each in view.containers if each.list == "containers"), view.main)
    return view.main
