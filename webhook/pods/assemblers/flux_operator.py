"""Pods of MiniClusters of the Flux operator, which has container types of its own.

mounts       a map of volumes, {path, hostPath, claimName, …}, for mounts of a container and volumes
name         a name for an item {name}, behind those that are there
labelValues  a map of node labels to values, for a node affinity that is required
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from webhook.objects.path import Path, read
from webhook.pods.assemble import Assembler
from webhook.pods.fragments import FragmentForm, PodBuilder, put

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


def put_mounts(builder: PodBuilder, pod: Any, at: Path, path: Path, value: Any) -> None:
    """Volumes by name as one container mounts them; where several sources stand, all are there."""
    if value is not None and not isinstance(value, dict):
        builder.refuse(path, "a map of volumes by name", value)
        return
    for name, body in (value or {}).items():
        if not isinstance(body, dict):
            builder.refuse((*path, name), "a volume", body)
            continue
        for own, (word, source) in SOURCES.items():
            if body.get(own):
                add(builder, pod, VOLUMES, (*path, name), {"name": name, word: source(body)})
        read_only = {"readOnly": True} if body.get("readOnly") else {}
        mount = {"name": name, "mountPath": body.get("path") or "", **read_only}
        add(builder, pod, at, (*path, name), mount)


def put_name(builder: PodBuilder, pod: Any, at: Path, path: Path, value: Any) -> None:
    """One name for an item {name} of a list."""
    if value not in (None, ""):
        add(builder, pod, at, path, {"name": value})


def put_label_values(builder: PodBuilder, pod: Any, at: Path, path: Path, value: Any) -> None:
    """Values by node label, one of which a node must have of each."""
    if value is not None and not isinstance(value, dict):
        builder.refuse(path, "a map of values by label", value)
    elif value:
        wanted = [
            {"key": label, "operator": "In", "values": values}
            for label, values in sorted(value.items())
        ]
        builder.add(at, path, "told", given=True)
        put(pod, at, {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": wanted}]}})


def add(builder: PodBuilder, pod: Any, at: Path, path: Path, item: dict[str, Any]) -> None:
    """An item behind those of a list, if it is not among them; it can be read only."""
    found = read(pod, at)
    existing = found if isinstance(found, list) else []
    if item not in existing:
        builder.add((*at, len(existing)), path, "told", given=True)
        put(pod, at, [*existing, item])


class FluxAssembler(Assembler):
    """Assembles the one pod of a MiniCluster."""

    def own_forms(self) -> Mapping[str, FragmentForm]:
        return {
            "mounts": FragmentForm(put_mounts),
            "name": FragmentForm(put_name, behind=True),
            "labelValues": FragmentForm(put_label_values),
        }
