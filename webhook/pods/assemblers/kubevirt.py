"""Pods of KubeVirt's machines: devices by name, the guest's memory, sidecars in an annotation.

text     a list of containers as JSON text, behind those that are there; read only
devices  a list of {deviceName}, one unit each, for limits of the first container
amount   an amount that holds where the pod states none; read only
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from webhook.interface.pod_keys import CONTAINER_KEYS, FOLDED_CONTAINER_KEYS
from webhook.objects import quantity
from webhook.objects.path import ABSENT, Path, display, read
from webhook.pods.assemble import Assembler
from webhook.pods.fragments import (
    CONTAINER,
    FragmentForm,
    PodBuilder,
    decode_text,
    put,
    put_resource,
)

MEMBERS: Final = CONTAINER_KEYS | {"image"}
FOLDED_MEMBERS: Final = FOLDED_CONTAINER_KEYS | {"image"}


def put_text(builder: PodBuilder, pod: Any, at: Path, path: Path, value: Any) -> None:
    """Containers in JSON text, named after their places where they have no name."""
    found = decode_text(value)
    if value is not None and not (isinstance(found, list) and all(map(plainly_spelled, found))):
        builder.refuse(path, "a list of containers as JSON text, keys spelled as in a pod", value)
        return
    for index, each in enumerate(found or ()):
        existing = read(pod, at)
        before = existing if isinstance(existing, list) else []
        builder.add((*at, len(before)), path, "told", given=True)
        put(pod, at, [*before, {"name": f"{display(path)}[{index}]", **each}])


def plainly_spelled(container: Any) -> bool:
    """Whether a container in text is a map whose keys a reader that ignores case takes alike."""
    return isinstance(container, dict) and not any(
        key not in MEMBERS and key.casefold() in FOLDED_MEMBERS for key in container
    )


def put_devices(builder: PodBuilder, pod: Any, at: Path, path: Path, value: Any) -> None:
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
        put_resource(builder, pod, ("limits", name), path, amount)
    if value is not None and not isinstance(value, list):
        builder.refuse(path, "a list of devices", value)


def put_amount(builder: PodBuilder, pod: Any, at: Path, path: Path, value: Any) -> None:
    """An amount of the first container that holds where none is stated."""
    if read(pod, at) in (ABSENT, None):
        section, name = at[-2:]
        put_resource(builder, pod, (str(section), str(name)), path, value)


class KubeVirtAssembler(Assembler):
    """Assembles the pod that runs a machine."""

    def own_forms(self) -> Mapping[str, FragmentForm]:
        return {
            "text": FragmentForm(put_text, behind=True, read_only=True),
            "devices": FragmentForm(put_devices, behind=True, read_only=True),
            "amount": FragmentForm(put_amount, behind=True, read_only=True),
        }
