"""Ports of ordinary containers as items."""

from __future__ import annotations

import re
from typing import Any, Final

from webhook.documents.problem import Source
from webhook.evaluation.state import Evaluation
from webhook.fields.store import Addition, NativeItem
from webhook.objects.path import Path
from webhook.pods.pod_view import Container, MalformedPod, PodView, mapping, sequence
from webhook.policy.row import Field

TCP: Final = "TCP"
PORT_NAME: Final = re.compile(r"(?=.{1,15}\Z)(?=.*[a-z])[a-z0-9]+(-[a-z0-9]+)*")


class PortStore:
    """Ports by name, else by number; of another protocol the same number is another port.

    `serving` are components whose main containers have the port of the service, which is the place
    of another field.
    """

    def __init__(self, serving: frozenset[str] = frozenset()) -> None:
        self.serving = serving

    def native_name(self, name: Any) -> str | None:
        """The name as Kubernetes allows it for a port; None for one that it would refuse."""
        return name if isinstance(name, str) and PORT_NAME.fullmatch(name) else None

    def is_tcp(self, item: NativeItem) -> bool:
        """Whether the port has the protocol that a policy's ports have."""
        return (item.raw.get("protocol") or TCP) == TCP

    def read(self, view: PodView) -> list[NativeItem]:
        """Every port of every ordinary container, in order."""
        found = []
        for container in view.containers:
            path = (*container.path, "ports")
            for index, entry in enumerate(sequence(container.body.get("ports"), path)):
                found.append(self.item(view, container, (*path, index), entry))
        return found

    def item(self, view: PodView, container: Container, path: Path, entry: Any) -> NativeItem:
        """One port; MalformedPod without a number or with a name that is no text."""
        body = mapping(entry, path)
        number, name = body.get("containerPort"), body.get("name")
        if not isinstance(number, int) or isinstance(number, bool):
            raise MalformedPod((*path, "containerPort"), "a port number", number)
        if name is not None and not isinstance(name, str):
            raise MalformedPod((*path, "name"), "text", name)
        values: dict[str, tuple[Any, ...]] = {"container": (number,)}
        if name:
            values["name"] = (name,)
        return NativeItem(
            name or str(number),
            values,
            path,
            body,
            {"container": ((*path, "containerPort"),)},
            in_main=container is view.main,
            tampered=self.find_tampering(view, body),
            owners=((container.list, container.name),),
            elsewhere=container is view.main and view.location.component in self.serving,
        )

    def find_tampering(self, view: PodView, body: dict[str, Any]) -> str:
        """What makes a port another one than a policy can ask for; "" for nothing.

        The API server gives ports of the node's network the same number there.
        """
        if (body.get("protocol") or TCP) != TCP:
            return "protocol"
        if body.get("hostIP"):
            return "hostIP"
        own = view.spec.get("hostNetwork") is True and body.get("hostPort") == body["containerPort"]
        return "hostPort" if body.get("hostPort") and not own else ""

    def add(self, view: PodView, ev: Evaluation, new: Addition) -> None:
        """Append the port to the main container; a service has one port there, and has it."""
        if view.main is None or "container" not in new.attributes:
            return
        if view.location.component in self.serving and view.main.body.get("ports"):
            ev.warn("forbidden-default", new.row.path, (*view.main.path, "ports"), ev.request.kind)
            return
        entry: dict[str, Any] = {
            "containerPort": new.attributes["container"].value,
            "protocol": TCP,
        }
        name = self.native_name(new.attributes["name"].value) if "name" in new.attributes else None
        if name is not None:
            entry["name"] = name
        self.put(view.main, ev, new.row, entry, new.why, new.item.source)

    def restore(self, view: PodView, ev: Evaluation, row: Field, item: NativeItem) -> bool:
        """Append the old port to the main container, where it was."""
        if view.main is None or not item.in_main:
            return False
        self.put(view.main, ev, row, item.raw, "kept", None)
        return True

    def put(
        self,
        main: Container,
        ev: Evaluation,
        row: Field,
        entry: dict[str, Any],
        why: str,
        source: Source | None,
    ) -> None:
        """Append one port."""
        path = (*main.path, "ports")
        if ev.can_write(path):
            index = len(ev.now(path) or [])
            ev.append(path, entry)
            ev.note_item(row, (*path, index), entry, why, source)

    def belongs_elsewhere(self, item: NativeItem) -> bool:
        """Return whether it is the port of the service, which belongs to servingPort."""
        return item.elsewhere
