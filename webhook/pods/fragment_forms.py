"""The forms in which objects state pieces of pods: each put into a pod, with its place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from webhook.objects import quantity
from webhook.objects.path import ABSENT, Path, display, read
from webhook.pods.assemblers.flux_operator import put_label_values, put_mounts, put_name
from webhook.pods.assemblers.spark import memory_of
from webhook.pods.container_fragments import (
    put_amounts,
    put_base,
    put_mark,
    put_over,
    put_shared,
    put_steps,
    put_workspaces,
)
from webhook.pods.fragments import CONTAINER, Piece, Pieces, joined_image, mapping, put
from webhook.pods.patch_fragments import put_overrides, put_text

CONTAINER_KEYS: Final = ("name", "command", "args", "env", "workingDir")
SPEC: Final[Path] = ("spec",)
VOLUMES: Final[Path] = ("spec", "volumes")
SHARED_MEMORY: Final = "/dev/shm"  # noqa: S108 - a mount path in somebody's pod
Put = Callable[[Pieces, Any, Path, Path, Any], None]


def put_same(parts: Pieces, pod: Any, at: Path, place: Path, value: Any) -> None:
    """A piece as it is."""
    parts.add(at, place, given=value is not None)
    if value is None:
        return
    if at == CONTAINER and isinstance(value, dict):
        pod["spec"]["containers"][0] = {**pod["spec"]["containers"][0], **value}
    elif at == CONTAINER[:2] and isinstance(value, list):
        pod["spec"]["containers"] = value
    else:
        put(pod, at, value)


def put_read_only(parts: Pieces, pod: Any, at: Path, place: Path, value: Any) -> None:
    """A piece as it is, which stays as it is; a pod spec may leave its containers out."""
    if value is None:
        return
    if len(at) == 1 and not isinstance(value, dict):
        parts.refuse(place, "a map", value)
        return
    parts.add(at, place, "readOnly", given=True)
    put(pod, at, {"containers": [], **value} if at == SPEC else value)


def put_image(parts: Pieces, pod: Any, at: Path, place: Path, value: Any) -> None:
    """An image of repository and tag."""
    parts.add(at, place, "image", given=value is not None)
    if (image := joined_image(value)) is not None:
        put(pod, at, image)


def put_names(parts: Pieces, pod: Any, at: Path, place: Path, value: Any) -> None:
    """Names for references."""
    parts.add(at, place, "names", given=value is not None)
    if isinstance(value, list):
        put(pod, at, [{"name": each} if isinstance(each, str) else each for each in value])
    elif value is not None:
        put(pod, at, value)


def put_container(parts: Pieces, pod: Any, at: Path, place: Path, value: Any) -> None:
    """A container whose image is in two parts."""
    image = value.get("image") if isinstance(value, dict) else None
    parts.add(at, place, "told")
    for key in CONTAINER_KEYS:
        parts.add((*at, key), (*place, key))
    if not isinstance(value, dict):
        if value is not None:
            put(pod, at, value)
        return
    body = {key: held for key, held in value.items() if key != "image"}
    if isinstance(image, dict):
        parts.add((*at, "image"), (*place, "image"), "image")
        parts.add((*at, "imagePullPolicy"), (*place, "image", "pullPolicy"))
        if image.get("pullPolicy"):
            body["imagePullPolicy"] = image["pullPolicy"]
        image = joined_image(image)
    put(pod, at, body if image is None else {**body, "image": image})


def put_containers(parts: Pieces, pod: Any, at: Path, place: Path, value: Any) -> None:
    """Further containers."""
    if not isinstance(value, list):
        if value is not None:
            put_same(parts, pod, at, place, value)
        return
    for index, each in enumerate(value):
        held = pod["spec"].setdefault(at[-1], [])  # one of its own after each `put`
        here = (*at, len(held))
        held.append({})
        put_container(parts, pod, here, (*place, index), each)


def add_volume(parts: Pieces, pod: Any, place: Path, volume: dict[str, Any]) -> None:
    """A volume that the operator makes of a value."""
    held = pod["spec"].setdefault("volumes", [])
    parts.add((*VOLUMES, len(held)), place, "told")
    held.append(volume)


def put_host_path(parts: Pieces, pod: Any, at: Path, place: Path, value: Any) -> None:
    """A directory of the node."""
    if value not in (None, ""):
        source = {"path": value} if isinstance(value, str) else value
        add_volume(parts, pod, place, {"name": str(place[-1]), "hostPath": source})


def put_claim(parts: Pieces, pod: Any, at: Path, place: Path, value: Any) -> None:
    """A claim, by name."""
    if isinstance(value, dict) and value:
        source = {"claimName": value.get("name") or ""}
        volume = {"name": str(place[-1]), "persistentVolumeClaim": source}
        add_volume(parts, pod, place, volume)


def put_empty_dir(parts: Pieces, pod: Any, at: Path, place: Path, value: Any) -> None:
    """Scratch space."""
    if isinstance(value, dict):
        add_volume(parts, pod, place, {"name": str(place[-1]), "emptyDir": value})


def put_memory(parts: Pieces, pod: Any, at: Path, place: Path, value: Any) -> None:
    """Shared memory of a given size."""
    if value is None:
        return
    source = {"medium": "Memory", "sizeLimit": value}
    add_volume(parts, pod, place, {"name": "dshm", "emptyDir": source})
    mount = {"name": "dshm", "mountPath": SHARED_MEMORY}
    pod["spec"]["containers"][0].setdefault("volumeMounts", []).append(mount)
    parts.add((*CONTAINER, "volumeMounts"), place, "told")


def put_also(parts: Pieces, pod: Any, at: Path, place: Path, value: Any) -> None:
    """Containers as they are; the first takes the place that no other piece has filled.

    Where a kind states its main container field by field there is one, with none of them set too.
    """
    if value is None:
        return
    several = isinstance(value, list)
    found = pod["spec"].get(at[-1])
    held = found if isinstance(found, list) else []
    kept = held if parts.states_main() else [each for each in held if each != {}]
    for index, each in enumerate(value if several else [value]):
        parts.add((*at, len(kept)), (*place, index) if several else place, given=True)
        kept.append(each)
    pod["spec"][at[-1]] = kept


def put_items(parts: Pieces, pod: Any, at: Path, place: Path, value: Any) -> None:
    """Items of a list that several places add to."""
    held = found if isinstance(found := read(pod, at), list) else []
    if isinstance(value, list):
        for index in range(len(value)):
            parts.add((*at, len(held) + index), (*place, index), "readOnly")
        put(pod, at, [*held, *value])
    elif value is not None:
        put_same(parts, pod, at, place, value)


def put_more(parts: Pieces, pod: Any, at: Path, place: Path, value: Any) -> None:
    """Items of a list that several places add to, the last of which takes defaults."""
    found = read(pod, at)
    held = found if isinstance(found, list) else []
    if value is not None and not isinstance(value, list):
        put_same(parts, pod, at, place, value)
        return
    parts.pieces.append(Piece(at, place, "same", value is not None, len(held)))
    if value is not None:
        put(pod, at, [*held, *value])


def put_variables(parts: Pieces, pod: Any, at: Path, place: Path, value: Any) -> None:
    """Environment variables of a map; references are kept as what they are."""
    held = found if isinstance(found := read(pod, at), list) else []
    for name, each in value.items() if isinstance(value, dict) else ():
        parts.add((*at, len(held)), (*place, name), "told")
        source = (
            {"valueFrom": {"secretKeyRef": each}} if isinstance(each, dict) else {"value": each}
        )
        held = [*held, {"name": name, **source}]
    if held:
        put(pod, at, held)


def put_device(parts: Pieces, pod: Any, at: Path, place: Path, value: Any) -> None:
    """A device plugin's resource, by name and number."""
    name = value.get("name") if isinstance(value, dict) else None
    if isinstance(name, str) and name:
        put_resource(parts, pod, ("limits", name), (*place, "quantity"), value.get("quantity"))


def put_quantities(parts: Pieces, pod: Any, at: Path, place: Path, value: Any) -> None:
    """Processor and memory, for requests and limits alike."""
    for name, each in value.items() if isinstance(value, dict) else ():
        for part in ("requests", "limits"):
            put_resource(parts, pod, (part, name), (*place, name), each)


def put_resource(parts: Pieces, pod: Any, at: tuple[str, str], place: Path, value: Any) -> None:
    """One amount of the first container, which can be read only."""
    if value is None or not isinstance(pod["spec"]["containers"][0], dict):
        return
    container = pod["spec"]["containers"][0]
    resources = mapping(container.get("resources"))
    container["resources"] = {**resources, at[0]: {**mapping(resources.get(at[0])), at[1]: value}}
    parts.add((*CONTAINER, "resources", *at), place, "told", given=True)


def put_spark(role: str) -> Put:
    """The memory of one role of a Spark application."""

    def put_memory_of(parts: Pieces, pod: Any, at: Path, place: Path, value: Any) -> None:
        amount = memory_of(value, role)
        for part in ("requests", "limits") if amount is not None else ():
            put_resource(parts, pod, (part, "memory"), (*place, role, "memory"), amount)

    return put_memory_of


def put_item(parts: Pieces, pod: Any, at: Path, place: Path, value: Any) -> None:
    """An item of a list, whose keys are stated by other parts.

    A container is told from others of the list, and found again after an update, by its name: one
    that nobody names is named after its place.
    """
    parts.add(at, place, "told")
    if at[:-1] == CONTAINER[:2]:
        put(pod, (*at, "name"), display(place))


def put_told(parts: Pieces, pod: Any, at: Path, place: Path, value: Any) -> None:
    """The place that messages name for something of the pod."""
    parts.add(at, place, "told")


def put_devices(parts: Pieces, pod: Any, at: Path, place: Path, value: Any) -> None:
    """Devices by name, one unit each; what a map of limits says of them is added."""
    names = [
        name
        for each in (value if isinstance(value, list) else ())
        if isinstance(each, dict) and isinstance(name := each.get("deviceName"), str) and name
    ]
    for name in dict.fromkeys(names):
        before: Any = read(pod, (*CONTAINER, "resources", "limits", name))
        try:
            known = 0 if before in (ABSENT, None) else quantity.parse(before)
        except ValueError:
            continue  # What the map says cannot be read: rules refuse it.
        amount = -(-known // quantity.NANO) + names.count(name)
        put_resource(parts, pod, ("limits", name), place, amount)
    if value is not None and not isinstance(value, list):
        parts.refuse(place, "a list of devices", value)


def put_seen(parts: Pieces, pod: Any, at: Path, place: Path, value: Any) -> None:
    """A piece as it is, beside which none can be written."""
    if value is not None:
        parts.add(at, place, "told", given=True)
        put(pod, at, value)


def put_amount(parts: Pieces, pod: Any, at: Path, place: Path, value: Any) -> None:
    """An amount of the first container that holds where none is stated."""
    if read(pod, at) in (ABSENT, None):
        part, name = at[-2:]
        put_resource(parts, pod, (str(part), str(name)), place, value)


FORMS: Final[dict[str, Put]] = {
    "same": put_same,
    "image": put_image,
    "readOnly": put_read_only,
    "names": put_names,
    "container": put_container,
    "containers": put_containers,
    "hostPath": put_host_path,
    "claim": put_claim,
    "emptyDir": put_empty_dir,
    "memory": put_memory,
    "also": put_also,
    "items": put_items,
    "more": put_more,
    "variables": put_variables,
    "device": put_device,
    "quantities": put_quantities,
    "mark": put_mark,
    "steps": put_steps,
    "base": put_base,
    "over": put_over,
    "amounts": put_amounts,
    "shared": put_shared,
    "workspaces": put_workspaces,
    "sparkDriver": put_spark("driver"),
    "sparkExecutor": put_spark("executor"),
    "item": put_item,
    "overrides": put_overrides,
    "text": put_text,
    "devices": put_devices,
    "amount": put_amount,
    "mounts": put_mounts,
    "name": put_name,
    "labelValues": put_label_values,
    "seen": put_seen,
    "told": put_told,
}
