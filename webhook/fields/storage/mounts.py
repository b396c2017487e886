"""Mounts of volumes in all containers of a pod, and paths as runtimes resolve them."""

from __future__ import annotations

import posixpath
import re
from typing import Any

from webhook.objects.path import Path
from webhook.pods.pod_view import Container, PodView, mapping, sequence

Mount = tuple[Container, Path, dict[str, Any]]
"""A mount: its container, its path and its body."""

MOUNTS, DEVICES = "volumeMounts", "volumeDevices"


def dns_label(name: str) -> str:
    """A policy item's name as a volume name: a DNS label of at most 63 characters."""
    label = re.sub(r"[^a-z0-9-]+", "-", name.lower()).strip("-")[:63].strip("-")
    return label or "volume"


def mounts_of(view: PodView, part: str = MOUNTS) -> dict[str, list[Mount]]:
    """Every mount of every container by volume name; `part` may ask for raw devices."""
    found: dict[str, list[Mount]] = {}
    for container in view.everyone:
        held = container.body.get(part)
        if not held:
            continue
        path = (*container.path, part)
        for index, entry in enumerate(sequence(held, path)):
            body = mapping(entry, (*path, index))
            found.setdefault(str(body.get("name")), []).append((container, (*path, index), body))
    return found


def clean_path(path: Any) -> str:
    """A mount path as runtimes resolve it: absolute, without doubled slashes, `.` and `..`."""
    return posixpath.normpath(f"/{str(path).lstrip('/')}")


def covers(path: str, other: str) -> bool:
    """Whether one mount path lies at, above or below another."""
    one, two = clean_path(path).rstrip("/") + "/", clean_path(other).rstrip("/") + "/"
    return one.startswith(two) or two.startswith(one)
