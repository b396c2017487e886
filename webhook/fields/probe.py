"""Fields of the readiness probe of the main container."""

from __future__ import annotations

from typing import Any

from webhook.evaluation.state import Evaluation, view_before
from webhook.fields.container import ContainerField, ServerDefault
from webhook.fields.scalar import Before, reader
from webhook.pods.pod_view import Container, PodView, mapping
from webhook.policy.combine import Effective, Leaf
from webhook.policy.row import Field

HANDLERS = ("httpGet", "exec", "tcpSocket", "grpc")
PORT = "probes.readiness.handler.httpGet.port"


class ProbeField(ContainerField):
    """One number or part of the readiness probe; a named port counts as its number.

    A probe without a handler is invalid, so one is made only where the policy has a default port:
    that row comes first in the table, and the others find its handler in the copy.
    """

    __slots__ = ("makes_probe",)

    def __init__(
        self, field: Field, leaf: Leaf, server_default: ServerDefault | None, effective: Effective
    ) -> None:
        super().__init__(field, leaf, server_default)
        port = effective.get(PORT)
        self.makes_probe = port is not None and port.default is not None
        if field.path == PORT:
            self.get = numbered_port

    def before(self, view: PodView, container: Container) -> Before:
        """The same before the update, a named port by its number."""
        found = view_before(view, container, self.at)
        old = view.old_container(container)
        return None if found is None or old is None else (found[0], self.get(old.body))

    def fill_container(self, view: PodView, container: Container, ev: Evaluation) -> None:
        """Set the value where the copy has a handler that takes it, or where the port makes one."""
        if self.has_room(container, ev):
            super().fill_container(view, container, ev)

    def has_room(self, container: Container, ev: Evaluation) -> bool:
        """Whether the value makes sense in the probe as it stands in the copy."""
        path = (*container.path, self.at[0])
        probe = mapping(ev.now(path), path)
        handlers = [name for name in HANDLERS if probe.get(name) is not None]
        if self.field.path == PORT and not handlers:
            return self.makes_probe
        return "httpGet" in handlers if "httpGet" in self.at else bool(handlers)

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
