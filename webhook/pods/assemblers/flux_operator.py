"""Forms of kinds with container types of their own: volumes where they are mounted, names, labels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from webhook.objects.path import Path, read
from webhook.pods.fragments import Pieces, put

VOLUMES: Final[Path] = ("spec", "volumes")
REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"


def claim(body: dict[str, Any]) -> dict[str, Any]:
    """A claim that is there."""
    return {"claimName": body["claimName"]}


def config_map(body: dict[str, Any]) -> dict[str, Any]:
    """A ConfigMap, or some keys of it by path."""
    items = body.get("items")
    keys = items.items() if isinstance(items, dict) else ()
    listed = {"items": [{"key": key, "path": path} for key, path in keys]} if keys else {}
    return {"name": body["configMapName"], **listed}


def empty_dir(body: dict[str, Any]) -> dict[str, Any]:
    """Scratch space."""
    named = {"medium": "emptyDirMedium", "sizeLimit": "emptyDirSizeLimit"}
    return {key: body[own] for key, own in named.items() if body.get(own)}


def csi(body: dict[str, Any]) -> dict[str, Any]:
    """A volume of a driver."""
    attributes = body.get("csiDriverAttributes")
    more = {"volumeAttributes": attributes} if attributes else {}
    return {"driver": body["csiDriver"], **more}


SOURCES: Final[dict[str, tuple[str, Callable[[dict[str, Any]], dict[str, Any]]]]] = {
    "hostPath": ("hostPath", lambda body: {"path": body["hostPath"]}),
    "claimName": ("persistentVolumeClaim", claim),
    "secretName": ("secret", lambda body: {"secretName": body["secretName"]}),
    "configMapName": ("configMap", config_map),
    "emptyDir": ("emptyDir", empty_dir),
    "csiDriver": ("csi", csi),
}
"""The keys that name a volume's source, with the pod's own word and its body."""


def put_mounts(parts: Pieces, pod: Any, at: Path, place: Path, value: Any) -> None:
    """Volumes by name as one container mounts them; where several sources stand, all are there."""
    if value is not None and not isinstance(value, dict):
        parts.refuse(place, "a map of volumes by name", value)
        return
    for name, body in (value or {}).items():
        if not isinstance(body, dict):
            parts.refuse((*place, name), "a volume", body)
            continue
        for own, (word, source) in SOURCES.items():
            if body.get(own):
                add(parts, pod, VOLUMES, (*place, name), {"name": name, word: source(body)})
        read_only = {"readOnly": True} if body.get("readOnly") else {}
        mount = {"name": name, "mountPath": body.get("path") or "", **read_only}
        add(parts, pod, at, (*place, name), mount)


def put_name(parts: Pieces, pod: Any, at: Path, place: Path, value: Any) -> None:
    """One name for an item {name} of a list."""
    if value not in (None, ""):
        add(parts, pod, at, place, {"name": value})


def put_label_values(parts: Pieces, pod: Any, at: Path, place: Path, value: Any) -> None:
    """Values by node label, one of which a node must have of each."""
    if value is not None and not isinstance(value, dict):
        parts.refuse(place, "a map of values by label", value)
    elif value:
        wanted = [
            {"key": label, "operator": "In", "values": values}
            for label, values in sorted(value.items())
        ]
        parts.add(at, place, "told", given=True)
        put(pod, at, {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": wanted}]}})


def add(parts: Pieces, pod: Any, at: Path, place: Path, item: dict[str, Any]) -> None:
    """An item behind those of a list, if it is not among them; it can be read only."""
    found = read(pod, at)
    held = found if isinstance(found, list) else []
    if item not in held:
        parts.add((*at, len(held)), place, "told", given=True)
        put(pod, at, [*held, item])
