"""Fields of the first port of a main container."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from webhook.evaluation.state import Evaluation, view_before
from webhook.fields.container import main_first
from webhook.fields.handler import (
    MAPPED,
    UNMAPPED,
    FieldSource,
    FieldValue,
    PodField,
    PodHandler,
    Support,
)
from webhook.fields.scalar import Before, rules_of
from webhook.objects.path import Path
from webhook.pods.definition import Definition
from webhook.pods.pod_view import Container, MalformedPod, PodView, sequence
from webhook.policy.combine import Leaf
from webhook.policy.row import SERVING_PORT, Field

NAME = "name"
PROTOCOLS = ("http1", "h2c")
HTTP = "http1"


class ServingPortField(PodField):
    """The number or protocol of ports[0] of the main container. A port without a name is http.

    `mains` are the components whose pods have it, or the component that replaces them.
    """

    __slots__ = ("at", "key", "mains")

    def __init__(self, row: Field, leaf: Leaf, mains: frozenset[str]) -> None:
        super().__init__(row, rules_of(row, leaf))
        self.key = str(row.at[0])
        self.at: Path = ("ports", 0, self.key)
        self.mains = mains

    def serves(self, view: PodView) -> bool:
        """Return whether these pods serve. A replacement serves while it has another component's roles."""
        return view.location.component in self.mains or len(view.location.roles) > 1

    def bound(self, view: PodView) -> Iterable[Container]:
        """Return the main container, and the one without the user's choice."""
        if not self.serves(view):
            return ()
        return (each for each in view.containers if view.may_be_main(each.path))

    def user_value(self, container: Container) -> Any:
        """Return the user's value: the number, or the name if it is a protocol's."""
        native = first_port(container).get(self.key)
        if self.key == NAME and native not in PROTOCOLS:
            return None
        return None if native == "" else native

    def effective(self, container: Container) -> Any:
        """Return the value, or the meaning of an absent name."""
        native = self.user_value(container)
        return HTTP if native is None and self.key == NAME else native

    def before(self, view: PodView, container: Container) -> Before:
        """Return the value before the update."""
        return view_before(view, container, self.at)

    def check_intent(self, view: PodView, ev: Evaluation) -> None:
        """Check prohibitions on the user's value."""
        for container in self.bound(view):
            native = self.user_value(container)
            if native is not None:
                path = (*container.path, *self.at)
                before = self.before(view, container)
                self.rules.check_intent(ev, path, native, before, None)

    def fill(self, view: PodView, ev: Evaluation) -> None:
        """Write the default into the first port. A port is created for a number, not for a name."""
        default = self.rules.default
        if default is None or view.main is None or not self.serves(view):
            return
        first_port(view.main)
        path = (*view.main.path, *self.at)
        port = ev.now(path[:-1])
        if port is None and self.key == NAME:
            return
        present = port.get(self.key) if isinstance(port, dict) else None
        before = self.before(view, view.main)
        wanted = self.rules.choose_value(ev, path, present or None, None, before)
        if wanted is None or not ev.can_write(path):
            return
        kept, value = wanted
        if kept == "default":
            value = self.rules.codec.write(default.value, default.raw)
        if port is None:
            ev.assign(path[:-2], [{}])
        ev.write(self.row.path, path, value, kept, default.source)

    def check_final(self, view: PodView, ev: Evaluation) -> None:
        """Check final rules on the effective value, and `required` on the main container."""
        for container in self.bound(view):
            native = self.effective(container)
            old = view.old_container(container)
            same = old is not None and self.effective_before(old) == native
            path = (*container.path, *self.at)
            if native is not None:
                self.rules.check_final(ev, path, native, unchanged=same)
            elif container is view.main:
                self.rules.check_required(ev, path, unchanged=same)

    def effective_before(self, container: Container) -> Any:
        """Return the effective value before the update. An unreadable one excuses nothing."""
        try:
            return self.effective(container)
        except MalformedPod:
            return self

    def read(self, view: PodView, ev: Evaluation) -> Iterator[FieldValue]:
        """The first port of the main container."""
        for each in main_first(view, self.bound(view)):
            native, absent, note = self.user_value(each), self.effective(each), None
            value = self.rules.read(native) if isinstance(native, str) else native
            if native is None and absent is not None:
                note = f"without a name it is {self.rules.read(absent)}"
            path = (*each.path, *self.at)
            yield FieldValue(path, value, each.name, note=note, derived=True)

    def current(self, view: PodView, ev: Evaluation) -> Any:
        """The native value that the main container has now; None when unset."""
        if view.main is None or not self.serves(view):
            return None
        return ev.now((*view.main.path, *self.at))


def first_port(container: Container) -> dict[str, Any]:
    """Return the first port of a container, {} without one. Raises MalformedPod."""
    path = (*container.path, "ports")
    ports = sequence(container.body.get("ports"), path)
    if not ports or ports[0] is None:
        return {}
    if not isinstance(ports[0], dict):
        raise MalformedPod((*path, 0), "a port", ports[0])
    return ports[0]


class ServingPortHandler(PodHandler):
    """The port of the service in main containers."""

    name = SERVING_PORT

    def compile(self, source: FieldSource) -> ServingPortField | None:
        """Compile the field, None for components whose pods do not serve."""
        profile = source.definition.profile
        held = profile.fields.get(source.row.path)
        mains = held.main_port if held is not None else ()
        if not {source.component, profile.component(source.component).stands_in_for} & set(mains):
            return None
        return ServingPortField(source.row, source.leaf, frozenset(mains))

    def is_in_pods(self, row: Field, definition: Definition) -> bool:
        """Return whether main containers have it. Otherwise the object has it elsewhere, or not at all."""
        held = definition.profile.fields.get(row.path)
        return held is not None and bool(held.main_port)

    def support(self, row: Field, definition: Definition, component: str) -> Support:
        """Return whether the component serves, or replaces a component that does."""
        mains = definition.profile.fields[row.path].main_port
        serving = {component, definition.profile.component(component).stands_in_for} & set(mains)
        return (MAPPED, "") if serving else (UNMAPPED, f"pods of {component} do not serve")
