"""security.hostPorts: whether any port of a container is one of the node."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any

from webhook.evaluation.container_changes import guarded_parts_changed
from webhook.evaluation.state import Evaluation
from webhook.fields.scalar import ScalarRules, rules_of
from webhook.objects.lookup import frozen
from webhook.objects.path import Path, read
from webhook.pods.pod_view import Container, MalformedPod, PodView, mapping, sequence
from webhook.policy.combine import Leaf
from webhook.policy.row import Field


def host_ports(container: Container) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Every port of a container that is one of the node, with its place; MalformedPod for junk."""
    path = (*container.path, "ports")
    for index, entry in enumerate(sequence(container.body.get("ports"), path)):
        port = mapping(entry, (*path, index))
        if port.get("hostPort") not in (None, 0, "", "0"):
            yield (*path, index, "hostPort"), port


Port = tuple[str, Hashable, Hashable]


def port_of(port: dict[str, Any]) -> Port:
    """What makes a port the same one: its number on the node, its protocol and its address."""
    protocol, address = port.get("protocol") or "TCP", port.get("hostIP") or ""
    return str(port.get("hostPort")), frozen(protocol), frozen(address)


class HostPortsField:
    """Whether ports of the node are used; each port that is one counts as `true`."""

    __slots__ = ("field", "rules")

    def __init__(self, field: Field, leaf: Leaf) -> None:
        self.field = field
        self.rules: ScalarRules = rules_of(field, leaf)

    def intent(self, view: PodView, ev: Evaluation) -> None:
        """Prohibitions on every port of the node that the user asks for."""
        if not self.rules.prohibitions:
            return
        for container in view.everyone:
            held: frozenset[Port] | None = None
            for path, port in host_ports(container):
                if not self.is_the_servers(view, ev, path, port):
                    held = self.before(view, ev, container) if held is None else held
                    before = (path, True) if port_of(port) in held else None
                    self.rules.judge_intent(ev, path, True, before, None)
            for place, listed in view.overridden(("ports",), container):
                same = ev.updating and read(ev.old, place) == listed
                replaced = Container(container.list, container.name, place[:-1], {"ports": listed})
                for path, _ in host_ports(replaced):
                    self.rules.judge_intent(ev, path, True, (path, True) if same else None, None)

    def is_the_servers(
        self, view: PodView, ev: Evaluation, path: Path, port: dict[str, Any]
    ) -> bool:
        """Whether the server copied it: in Pods that share the network of their node."""
        is_pod = ev.request.kind == "Pod" and not ev.request.group
        same = port.get("hostPort") == port.get("containerPort")
        return (
            is_pod and same and view.spec.get("hostNetwork") is True and not ev.intent.stated(path)
        )

    def before(self, view: PodView, ev: Evaluation, container: Container) -> frozenset[Port]:
        """The container's ports before the update, while it is what it was."""
        old = view.old_container(container)
        if old is None or guarded_parts_changed(ev, view, container, old):
            return frozenset()
        try:
            return frozenset(port_of(each) for _, each in host_ports(old))
        except MalformedPod:
            return frozenset()

    def fill(self, view: PodView, ev: Evaluation) -> None:
        """Nothing: which port it should be is not said."""

    def final(self, view: PodView, ev: Evaluation) -> None:
        """Nothing: no port of the node means false, so there is always a value."""

    def current(self, view: PodView, ev: Evaluation) -> Any:
        """True where a container has a port of the node, else None."""
        return True if any(True for each in view.everyone for _ in host_ports(each)) else None
