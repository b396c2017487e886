"""Pods of NVIDIA's NIM and NeMo operators, whose kinds have volumes and containers of their own.

container   {name, image: {repository, tag, pullPolicy}, command, args, env, workingDir}
containers  a list of such, behind those that are there
hostPath    a directory of the node for a volume of that type
claim       {name} for a volume of a claim
emptyDir    a volume of that type
memory      the size of /dev/shm, for a volume in memory that is mounted there
quantities  {cpu, memory} for requests and limits of the first container
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from webhook.objects.path import Path
from webhook.pods.assemble import Assembler
from webhook.pods.fragment_forms import put_same
from webhook.pods.fragments import (
    CONTAINER,
    FragmentForm,
    PodBuilder,
    join_image,
    put,
    put_resource,
)

CONTAINER_KEYS: Final = ("name", "command", "args", "env", "workingDir")
VOLUMES: Final[Path] = ("spec", "volumes")
SHARED_MEMORY: Final = "/dev/shm"  # noqa: S108 - a mount path in somebody's pod


def put_container(builder: PodBuilder, pod: Any, at: Path, path: Path, value: Any) -> None:
    """A container whose image is in two parts."""
    image = value.get("image") if isinstance(value, dict) else None
    builder.add(at, path, "told")
    for key in CONTAINER_KEYS:
        builder.add((*at, key), (*path, key))
    if not isinstance(value, dict):
        if value is not None:
            put(pod, at, value)
        return
    body = {key: existing for key, existing in value.items() if key != "image"}
    if isinstance(image, dict):
        builder.add((*at, "image"), (*path, "image"), "image")
        builder.add((*at, "imagePullPolicy"), (*path, "image", "pullPolicy"))
        if image.get("pullPolicy"):
            body["imagePullPolicy"] = image["pullPolicy"]
        image = join_image(image)
    put(pod, at, body if image is None else {**body, "image": image})


def put_containers(builder: PodBuilder, pod: Any, at: Path, path: Path, value: Any) -> None:
    """Further containers."""
    if not isinstance(value, list):
        if value is not None:
            put_same(builder, pod, at, path, value)
        return
    for index, each in enumerate(value):
        existing = pod["spec"].setdefault(at[-1], [])  # one of its own after each `put`
        here = (*at, len(existing))
        existing.append({})
        put_container(builder, pod, here, (*path, index), each)


def add_volume(builder: PodBuilder, pod: Any, path: Path, volume: dict[str, Any]) -> None:
    """A volume that the operator makes of a value."""
    existing = pod["spec"].setdefault("volumes", [])
    builder.add((*VOLUMES, len(existing)), path, "told")
    existing.append(volume)


def put_host_path(builder: PodBuilder, pod: Any, at: Path, path: Path, value: Any) -> None:
    """A directory of the node."""
    if value not in (None, ""):
        source = {"path": value} if isinstance(value, str) else value
        add_volume(builder, pod, path, {"name": str(path[-1]), "hostPath": source})


def put_claim(builder: PodBuilder, pod: Any, at: Path, path: Path, value: Any) -> None:
    """A claim, by name."""
    if isinstance(value, dict) and value:
        source = {"claimName": value.get("name") or ""}
        volume = {"name": str(path[-1]), "persistentVolumeClaim": source}
        add_volume(builder, pod, path, volume)


def put_empty_dir(builder: PodBuilder, pod: Any, at: Path, path: Path, value: Any) -> None:
    """Scratch space."""
    if isinstance(value, dict):
        add_volume(builder, pod, path, {"name": str(path[-1]), "emptyDir": value})


def put_memory(builder: PodBuilder, pod: Any, at: Path, path: Path, value: Any) -> None:
    """Shared memory of a given size."""
    if value is None:
        return
    source = {"medium": "Memory", "sizeLimit": value}
    add_volume(builder, pod, path, {"name": "dshm", "emptyDir": source})
    mount = {"name": "dshm", "mountPath": SHARED_MEMORY}
    pod["spec"]["containers"][0].setdefault("volumeMounts", []).append(mount)
    builder.add((*CONTAINER, "volumeMounts"), path, "told")


def put_quantities(builder: PodBuilder, pod: Any, at: Path, path: Path, value: Any) -> None:
    """Processor and memory, for requests and limits alike."""
    for name, each in value.items() if isinstance(value, dict) else ():
        for section in ("requests", "limits"):
            put_resource(builder, pod, (section, name), (*path, name), each)


class NimAssembler(Assembler):
    """Assembles the pods of services, caches and NeMo's microservices."""

    def own_forms(self) -> Mapping[str, FragmentForm]:
        return {
            "container": FragmentForm(put_container),
            "containers": FragmentForm(put_containers, behind=True, empty=True),
            "hostPath": FragmentForm(put_host_path, read_only=True),
            "claim": FragmentForm(put_claim, read_only=True),
            "emptyDir": FragmentForm(put_empty_dir, read_only=True),
            "memory": FragmentForm(put_memory, read_only=True),
            "quantities": FragmentForm(put_quantities),
        }
