"""Fields of the readiness probe of the main container."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from webhook.evaluation.state import Evaluation, view_before
from webhook.fields.container import ContainerField, ServerDefault, main_first
from webhook.fields.handler import FieldSource, FieldValue, PodHandler, container_paths
from webhook.fields.scalar import Before, reader
from webhook.objects.path import Path
from webhook.pods.pod_view import Container, PodView, mapping
from webhook.policy.combine import Effective, Leaf
from webhook.policy.row import PROBE, Field

HANDLERS = ("httpGet", "exec", "tcpSocket", "grpc")
PORT = "probes.readiness.handler.httpGet.port"


class ProbeField(ContainerField):
    """One number or member of the readiness probe. A named port counts as its number.

    A probe without a handler is invalid, so podgate creates one only if the policy has a default
    port. That row comes first in the table, and the others find its handler in the copy.
    """

    __slots__ = ("makes_probe",)

    def __init__(
        self, row: Field, leaf: Leaf, server_default: ServerDefault | None, effective: Effective
    ) -> None:
        super().__init__(row, leaf, server_default)
        port = effective.get(PORT)
        self.makes_probe = port is not None and port.default is not None
        if row.path == PORT:
            self.get = numbered_port

    def before(self, view: PodView, container: Container) -> Before:
        """Return the value before the update, a named port as its number."""
        found = view_before(view, container, self.at)
        old = view.old_container(container)
        return None if found is None or old is None else (found[0], self.get(old.body))

    def fill_container(self, view: PodView, container: Container, ev: Evaluation) -> None:
        """Set the value if the copy has a handler for it, or if the port creates one."""
        if self.has_room(container, ev):
            super().fill_container(view, container, ev)

    def has_room(self, container: Container, ev: Evaluation) -> bool:
        """Return whether the value is valid in the current probe."""
        path = (*container.path, self.at[0])
        probe = mapping(ev.now(path), path)
        handlers = [name for name in HANDLERS if probe.get(name) is not None]
        if self.row.path == PORT and not handlers:
            return self.makes_probe
        return "httpGet" in handlers if "httpGet" in self.at else bool(handlers)

    def read(self, view: PodView, ev: Evaluation) -> Iterator[FieldValue]:
        """Each container's value; a port by name as its number."""
        for each in main_first(view, view.containers):
            yield FieldValue((*each.path, *self.at), self.get(each.body), each.name, derived=True)

    def current(self, view: PodView, ev: Evaluation) -> Any:
        """The native value that the main container has now; None when unset."""
        return None if view.main is None else self.get(ev.now(view.main.path) or {})


read_port = reader(("readinessProbe", "httpGet", "port"))


def numbered_port(body: dict[str, Any]) -> Any:
    """The port of a container's HTTP readiness probe; a name that no port has stays a name."""
    port = read_port(body)
    if not isinstance(port, str):
        return port
    ports = body.get("ports")
    for each in ports if isinstance(ports, list) else ():
        if isinstance(each, dict) and each.get("name") == port:
            return each.get("containerPort")
    return port


class ProbeHandler(PodHandler):
    """Numbers and handlers of readiness probes."""

    name = PROBE

    def compile(self, source: FieldSource) -> ProbeField:
        """The field at its path in the probe, with the default of the API server."""
        server = source.server.container(source.row.at)
        return ProbeField(source.row, source.leaf, server, source.effective)

    def pod_paths(self, row: Field) -> Sequence[Path]:
        """Where a pod template has the field."""
        return container_paths(row)
