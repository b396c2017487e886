"""Finds what a pod gains of what its owner violates too: mounts, containers, images, devices."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from typing import Any, Final

from webhook.decision.comparison import Seen
from webhook.decision.derived_pods import DerivedPods
from webhook.evaluation.container_changes import COMMANDS
from webhook.evaluation.installation import Vocabulary
from webhook.fields.extended_resources import ExtendedStore
from webhook.fields.gpu.use import counter_of
from webhook.fields.host_ports import Port, port_of
from webhook.fields.storage.mounts import DEVICES, MOUNTS
from webhook.objects.draft import same
from webhook.objects.path import ABSENT, read
from webhook.pods.pod_view import CONTAINER_LISTS, PodView
from webhook.policy.row import GPU, GPU_FORM, HOST_PORTS, Binding, Field
from webhook.policy.table import TABLE

Pod = tuple[DerivedPods, PodView]
"""A pod with the object that it is in."""
READ_ONLY: Final = ("readOnly", "recursiveReadOnly")
RUN: Final = (("command",), ("args",), ("workingDir",), ("restartPolicy",), *COMMANDS)
"""What a container runs of its image."""
VERBATIM: Final = ("", "apps", "batch")
"""The groups of Kubernetes' own kinds. Their controllers leave commands as the owner has them;
others, such as KubeRay's, write their own."""


class Gains:
    """Compares parts of two pods that a violation of both is not at, but that decide how far it goes.

    Containers of the settings' list, or of the profile's, are compared by that list alone.
    """

    __slots__ = (
        "added",
        "made",
        "more",
        "of_added",
        "origin",
        "otherwise",
        "ports",
        "wider",
        "words",
    )

    def __init__(self, made: Pod, origin: Pod, words: Vocabulary) -> None:
        self.made, self.origin, self.words = made, origin, words
        view, theirs = made[1], origin[1]
        is_listed = made[0].ev.injected.has_container
        compared = [each for each in view.everyone if not is_listed(each.body, view)]
        pairs = [(each, theirs.container_like(each)) for each in compared]
        self.added = [each for each, own in pairs if own is None]
        claimed = {str(body.get("mountPath")) for _, body in theirs.claims}
        self.wider = frozenset(
            name
            for each, own in pairs
            for name in wider_mounts(each.body, None if own is None else own.body, claimed)
        )
        group = origin[0].definition.interface.group
        parts = (("image",), *(RUN if group in VERBATIM else ()))
        self.otherwise = frozenset(
            (each.list, each.name)
            for each, own in pairs
            if own is not None
            and any(not same(read(each.body, at), read(own.body, at)) for at in parts)
        )
        self.of_added: dict[str, bool] = {}
        self.more: frozenset[str] | None = None
        self.ports: frozenset[tuple[str, str, Port]] | None = None

    def has(self, each: Seen) -> bool:
        """Whether a pod goes further with a violation that its owner has too."""
        field = each.violation.field
        if not field:
            return False
        row = TABLE.owner(field)
        if row.shape in (GPU, GPU_FORM):
            return self.has_gpus(each)
        if row.binding is Binding.AMOUNT and row.items is not None:
            return self.has_devices(each)
        if row.shape == HOST_PORTS:
            return self.has_port(each)
        place = each.place
        if place[:2] == ("spec", "volumes"):
            return len(place) > 2 and place[2] in self.wider
        if row.section != "security":
            return False
        if place[0] == "spec":
            return bool(row.pod_at) and self.is_inherited_anew(row)
        return place[0] in CONTAINER_LISTS and place[:2] in self.otherwise

    def is_inherited_anew(self, row: Field) -> bool:
        """Whether a container that the owner does not have takes a value of the pod."""
        found = self.of_added.get(row.path)
        if found is None:
            taken = (read(each.body, row.at) for each in self.added)
            found = self.of_added[row.path] = any(value in (ABSENT, None) for value in taken)
        return found

    def has_gpus(self, each: Seen) -> bool:
        """Whether a pod asks for more GPUs, or for others without a bound."""
        if each.violation.rule == "min":
            return False
        counter = counter_of(self.words)
        use, own = (counter.use(view, pods.ev) for pods, view in (self.made, self.origin))
        return not use.is_no_more(own)

    def has_port(self, each: Seen) -> bool:
        """Whether a port of the node is open at other addresses, or for another protocol."""
        if self.ports is None:
            self.ports = frozenset(
                (one.list, one.name, port_of(port))
                for one in self.origin[1].everyone
                for port in one.body.get("ports") or ()
                if isinstance(port, dict)
            )
        port = read(self.made[0].document, each.violation.path[:-1])
        return isinstance(port, dict) and (*each.place[:2], port_of(port)) not in self.ports

    def has_devices(self, each: Seen) -> bool:
        """Whether a pod asks for more of an extended resource."""
        if self.more is None:
            store = ExtendedStore(self.words)
            own = store.devices(self.origin[1])
            self.more = frozenset(
                name
                for name, held in store.devices(self.made[1]).items()
                if name not in own or not held.is_no_more(own[name])
            )
        name = each.violation.key or next((step for step in each.place[::-1] if step), "")
        return each.violation.rule != "min" and name in self.more


def wider_mounts(
    body: Mapping[str, Any], own: Mapping[str, Any] | None, claimed: Container[str]
) -> Iterator[str]:
    """The volumes that a container mounts elsewhere than the owner's does, or with more rights.

    The owner's controller mounts claims at the paths that they state: `claimed`.
    """
    known = {} if own is None else {mount_path(each): each for each in mounts_of(own)}
    for mount in mounts_of(body):
        path = mount_path(mount)
        before = known.get(path)
        if before is None and own is not None and path[1] in claimed:
            continue
        if before is None or not is_no_wider(mount, before):
            yield str(mount.get("name"))


def mounts_of(body: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The mounts and raw devices of a container; owners may have anything in their place."""
    for part in (MOUNTS, DEVICES):
        held = body.get(part)
        yield from (each for each in held or () if isinstance(each, dict))


def mount_path(mount: Mapping[str, Any]) -> tuple[str, str]:
    """The path of a mount or of a raw device, with which of them it is."""
    key = "mountPath" if "mountPath" in mount else "devicePath"
    return key, str(mount.get(key))


def is_no_wider(mount: Mapping[str, Any], own: Mapping[str, Any]) -> bool:
    """Whether a mount is another one but for being read-only where the other may not be."""
    mine, theirs = (
        {key: value for key, value in each.items() if key not in READ_ONLY} for each in (mount, own)
    )
    return same(mine, theirs) and read_only(mount) >= read_only(own)


def read_only(mount: Mapping[str, Any]) -> int:
    """How far a mount is read-only: not, at its top, or with the mounts below."""
    if mount.get("readOnly") is not True:
        return 0
    return {"IfPossible": 2, "Enabled": 3}.get(str(mount.get("recursiveReadOnly")), 1)
