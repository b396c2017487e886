"""security.hostPorts: whether any port of a container is one of the node."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import Any

from webhook.evaluation.container_changes import has_guarded_change
from webhook.evaluation.state import Evaluation
from webhook.fields.handler import MAIN, FieldSource, FieldValue, PodField, PodHandler
from webhook.fields.scalar import rules_of
from webhook.objects.lookup import frozen
from webhook.objects.path import Path, read
from webhook.pods.pod_view import Container, MalformedPod, PodView, mapping, sequence
from webhook.policy.combine import Leaf
from webhook.policy.row import HOST_PORTS, Field


def host_ports(container: Container) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Yield every host port of a container with its path. Raises MalformedPod."""
    path = (*container.path, "ports")
    for index, entry in enumerate(sequence(container.body.get("ports"), path)):
        port = mapping(entry, (*path, index))
        if port.get("hostPort") not in (None, 0, "", "0"):
            yield (*path, index, "hostPort"), port


Port = tuple[str, Hashable, Hashable]


def port_of(port: dict[str, Any]) -> Port:
    """Return what identifies a host port: its number, protocol and address."""
    protocol, address = port.get("protocol") or "TCP", port.get("hostIP") or ""
    return str(port.get("hostPort")), frozen(protocol), frozen(address)


class HostPortsField(PodField):
    """Whether host ports are used. Each host port counts as `true`."""

    __slots__ = ()

    def __init__(self, row: Field, leaf: Leaf) -> None:
        super().__init__(row, rules_of(row, leaf))

    def check_intent(self, view: PodView, ev: Evaluation) -> None:
        """Check prohibitions on every host port that the user requests."""
        if not self.rules.prohibitions:
            return
        for container in view.everyone:
            held: frozenset[Port] | None = None
            for path, port in host_ports(container):
                if not self.is_the_servers(view, ev, path, port):
                    held = self.before(view, ev, container) if held is None else held
                    before = (path, True) if port_of(port) in held else None
                    self.rules.check_intent(ev, path, True, before, None)
            for place, listed in view.overridden(("ports",), container):
                same = ev.updating and read(ev.old, place) == listed
                replaced = Container(container.list, container.name, place[:-1], {"ports": listed})
                for path, _ in host_ports(replaced):
                    self.rules.check_intent(ev, path, True, (path, True) if same else None, None)

    def is_the_servers(
        self, view: PodView, ev: Evaluation, path: Path, port: dict[str, Any]
    ) -> bool:
        """Return whether the server copied the host port: in Pods on the host network."""
        is_pod = ev.request.kind == "Pod" and not ev.request.group
        same = port.get("hostPort") == port.get("containerPort")
        return (
            is_pod
            and same
            and view.spec.get("hostNetwork") is True
            and not ev.intent.is_written(path)
        )

    def before(self, view: PodView, ev: Evaluation, container: Container) -> frozenset[Port]:
        """Return the container's host ports before the update, if it is the same container."""
        old = view.old_container(container)
        if old is None or has_guarded_change(ev, view, container, old):
            return frozenset()
        try:
            return frozenset(port_of(each) for _, each in host_ports(old))
        except MalformedPod:
            return frozenset()

    def fill(self, view: PodView, ev: Evaluation) -> None:
        """Write nothing: the default does not contain a port number."""

    def check_final(self, view: PodView, ev: Evaluation) -> None:
        """Do nothing: without host ports the value is false, so there is always a value."""

    def read(self, view: PodView, ev: Evaluation) -> Iterator[FieldValue]:
        """Yield every host port of the containers."""
        for each in view.everyone:
            for path, _ in host_ports(each):
                yield FieldValue(path, True, each.name, derived=True)
        yield FieldValue(view.spec_path, None)

    def current(self, view: PodView, ev: Evaluation) -> Any:
        """Return True if a container has a host port, else None."""
        return True if any(True for each in view.everyone for _ in host_ports(each)) else None


class HostPortsHandler(PodHandler):
    """Ports of the node that containers take."""

    name = HOST_PORTS

    def compile(self, source: FieldSource) -> HostPortsField:
        """The field, which every port of the node makes true."""
        return HostPortsField(source.row, source.leaf)

    def pod_paths(self, row: Field) -> Sequence[Path]:
        """Where a pod template has the field."""
        return [(*MAIN, "ports")]
