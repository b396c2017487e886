"""Finds how a pod goes further than its owner in a violation that both have.

It compares mounts, containers, images and devices.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from typing import Any, Final

from webhook.decision.comparison import ComparableViolation
from webhook.decision.derived_pods import DerivedPods
from webhook.evaluation.container_changes import COMMANDS
from webhook.evaluation.installation import InstallationConfig
from webhook.evaluation.outcome import Violation
from webhook.fields.extended_resources import ExtendedStore
from webhook.fields.gpu.use import DeviceCounter, counter_of
from webhook.fields.host_ports import Port, port_of
from webhook.fields.storage.mounts import DEVICES, MOUNTS
from webhook.objects.draft import same
from webhook.objects.path import ABSENT, read
from webhook.pods.pod_view import CONTAINER_LISTS, PodView
from webhook.policy.row import DEVICE_SUM, GPU, GPU_FORM, HOST_PORTS, Binding, Field
from webhook.policy.table import TABLE

Pod = tuple[DerivedPods, PodView]
"""A pod with the object that it is in."""
READ_ONLY: Final = ("readOnly", "recursiveReadOnly")
RUN: Final = (("command",), ("args",), ("workingDir",), ("restartPolicy",), *COMMANDS)
"""Paths of a container that decide what it runs from its image."""
VERBATIM: Final = ("", "apps", "batch")
"""The groups of Kubernetes' own kinds. Their controllers copy commands from the owner. Others, such
as KubeRay's, write their own."""


class Gains:
    """Compares values of two pods that decide how far a violation of both goes.

    Containers that the settings or the profile list as injected are compared only by that list.
    """

    __slots__ = (
        "added",
        "config",
        "made",
        "more",
        "of_added",
        "origin",
        "otherwise",
        "ports",
        "wider",
    )

    def __init__(self, made: Pod, origin: Pod, config: InstallationConfig) -> None:
        self.made, self.origin, self.config = made, origin, config
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
        compared_paths = (("image",), *(RUN if group in VERBATIM else ()))
        self.otherwise = frozenset(
            (each.list, each.name)
            for each, own in pairs
            if own is not None
            and any(not same(read(each.body, at), read(own.body, at)) for at in compared_paths)
        )
        self.of_added: dict[str, bool] = {}
        self.more: frozenset[str] | None = None
        self.ports: frozenset[tuple[str, str, Port]] | None = None

    def has(self, each: ComparableViolation) -> bool:
        """Return whether the pod goes further in this violation than its owner."""
        field = each.violation.field
        if not field:
            return False
        row = TABLE.owner(field)
        if row.shape in (GPU, GPU_FORM):
            return self.has_more(each, counter_of(self.config))
        if row.shape == DEVICE_SUM:
            return self.has_more(each, DeviceCounter(self.config))
        if row.binding is Binding.AMOUNT and row.items is not None:
            return self.has_devices(each)
        if row.shape == HOST_PORTS:
            return self.has_port(each)
        pod_path = each.pod_path
        if pod_path[:2] == ("spec", "volumes"):
            return len(pod_path) > 2 and pod_path[2] in self.wider
        if row.section != "security":
            return False
        if pod_path[0] == "spec":
            return bool(row.pod_at) and self.is_inherited_anew(row)
        return pod_path[0] in CONTAINER_LISTS and pod_path[:2] in self.otherwise

    def is_inherited_anew(self, row: Field) -> bool:
        """Return whether a container that the owner does not have inherits a value of the pod."""
        found = self.of_added.get(row.path)
        if found is None:
            taken = (read(each.body, row.at) for each in self.added)
            found = self.of_added[row.path] = any(value in (ABSENT, None) for value in taken)
        return found

    def has_more(self, each: ComparableViolation, counter: DeviceCounter) -> bool:
        """Return whether a pod requests more GPUs or devices, or other unbounded ones."""
        if is_of_minimum(each.violation):
            return False
        use, own = (counter.use(view, pods.ev) for pods, view in (self.made, self.origin))
        return not use.is_no_more(own)

    def has_port(self, each: ComparableViolation) -> bool:
        """Return whether a host port is open at other addresses, or for another protocol."""
        if self.ports is None:
            self.ports = frozenset(
                (one.list, one.name, port_of(port))
                for one in self.origin[1].everyone
                for port in one.body.get("ports") or ()
                if isinstance(port, dict)
            )
        port = read(self.made[0].document, each.violation.path[:-1])
        return isinstance(port, dict) and (*each.pod_path[:2], port_of(port)) not in self.ports

    def has_devices(self, each: ComparableViolation) -> bool:
        """Return whether a pod requests more of an extended resource."""
        if self.more is None:
            store = ExtendedStore(self.config)
            own = store.devices(self.origin[1])
            self.more = frozenset(
                name
                for name, use in store.devices(self.made[1]).items()
                if name not in own or not use.is_no_more(own[name])
            )
        name = each.violation.key or next((step for step in each.pod_path[::-1] if step), "")
        return not is_of_minimum(each.violation) and name in self.more


def is_of_minimum(violation: Violation) -> bool:
    """Return whether a value is too small, which is no gain."""
    rule = violation.rule_type
    return rule is not None and rule.is_minimum


def wider_mounts(
    body: Mapping[str, Any], own: Mapping[str, Any] | None, claimed: Container[str]
) -> Iterator[str]:
    """Yield the volumes that a container mounts at other paths or with more rights than the owner's.

    The owner's controller mounts claim templates at the paths in `claimed`.
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
    """Yield the mounts and raw devices of a container. Entries of a wrong type are skipped."""
    for key in (MOUNTS, DEVICES):
        mounts = body.get(key)
        yield from (each for each in mounts or () if isinstance(each, dict))


def mount_path(mount: Mapping[str, Any]) -> tuple[str, str]:
    """Return the key of a mount's or a raw device's path, and the path."""
    key = "mountPath" if "mountPath" in mount else "devicePath"
    return key, str(mount.get(key))


def is_no_wider(mount: Mapping[str, Any], own: Mapping[str, Any]) -> bool:
    """Return whether a mount equals the owner's, and is at least as read-only."""
    mine, theirs = (
        {key: value for key, value in each.items() if key not in READ_ONLY} for each in (mount, own)
    )
    return same(mine, theirs) and read_only(mount) >= read_only(own)


def read_only(mount: Mapping[str, Any]) -> int:
    """Rate how read-only a mount is: 0 not at all, 1 without submounts, 2 and 3 with them."""
    if mount.get("readOnly") is not True:
        return 0
    return {"IfPossible": 2, "Enabled": 3}.get(str(mount.get("recursiveReadOnly")), 1)
