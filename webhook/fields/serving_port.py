"""Fields of the first port of a main container."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from webhook.evaluation.state import Evaluation, view_before
from webhook.fields.scalar import Before, ScalarRules, rules_of
from webhook.objects.path import Path
from webhook.pods.pod_view import Container, MalformedPod, PodView, sequence
from webhook.policy.combine import Leaf
from webhook.policy.row import Field

NAME = "name"
PROTOCOLS = ("http1", "h2c")
HTTP = "http1"


class ServingPortField:
    """The number, or the protocol, of ports[0] of the main container; a port without name is http.

    `mains` are the components whose pods carry it, or the one that stands in for them.
    """

    __slots__ = ("at", "field", "key", "mains", "rules")

    def __init__(self, field: Field, leaf: Leaf, mains: frozenset[str]) -> None:
        self.field = field
        self.rules: ScalarRules = rules_of(field, leaf)
        self.key = str(field.at[0])
        self.at: Path = ("ports", 0, self.key)
        self.mains = mains

    def carried(self, view: PodView) -> bool:
        """Whether these pods serve: a stand-in does while it has the roles of another component."""
        return view.location.component in self.mains or len(view.location.roles) > 1

    def bound(self, view: PodView) -> Iterable[Container]:
        """The main container, and the one that would be it without the user's choice."""
        if not self.carried(view):
            return ()
        return (each for each in view.containers if view.may_be_main(each.path))

    def read(self, container: Container) -> Any:
        """What the user said: the number; a name only where it is one of a protocol."""
        native = first_port(container).get(self.key)
        if self.key == NAME and native not in PROTOCOLS:
            return None
        return None if native == "" else native

    def effective(self, container: Container) -> Any:
        """The same with what an absent name means."""
        native = self.read(container)
        return HTTP if native is None and self.key == NAME else native

    def before(self, view: PodView, container: Container) -> Before:
        """The same place before the update."""
        return view_before(view, container, self.at)

    def intent(self, view: PodView, ev: Evaluation) -> None:
        """Prohibitions on what the user said."""
        for container in self.bound(view):
            native = self.read(container)
            if native is not None:
                path = (*container.path, *self.at)
                before = self.before(view, container)
                self.rules.judge_intent(ev, path, native, before, None)

    def fill(self, view: PodView, ev: Evaluation) -> None:
        """Write the default into the first port; a port is made for a number, not for a name."""
        default = self.rules.default
        if default is None or view.main is None or not self.carried(view):
            return
        first_port(view.main)
        path = (*view.main.path, *self.at)
        port = ev.now(path[:-1])
        if port is None and self.key == NAME:
            return
        present = port.get(self.key) if isinstance(port, dict) else None
        before = self.before(view, view.main)
        wanted = self.rules.wanted(ev, path, present or None, None, before)
        if wanted is None or not ev.can_write(path):
            return
        kept, value = wanted
        if kept == "default":
            value = self.rules.codec.write(default.value, default.raw)
        if port is None:
            ev.draft.set(path[:-2], [{}])
        ev.write(self.field.path, path, value, kept, default.source)

    def final(self, view: PodView, ev: Evaluation) -> None:
        """Final rules on the effective value; `required` on the main container."""
        for container in self.bound(view):
            native = self.effective(container)
            old = view.old_container(container)
            same = old is not None and self.effective_before(old) == native
            path = (*container.path, *self.at)
            if native is not None:
                self.rules.judge_final(ev, path, native, unchanged=same)
            elif container is view.main:
                self.rules.judge_required(ev, path, unchanged=same)

    def effective_before(self, container: Container) -> Any:
        """The effective value before the update; an unreadable one excuses nothing."""
        try:
            return self.effective(container)
        except MalformedPod:
            return self

    def current(self, view: PodView, ev: Evaluation) -> Any:
        """The native value that the main container has now; None when unset."""
        if view.main is None or not self.carried(view):
            return None
        return ev.now((*view.main.path, *self.at))


def first_port(container: Container) -> dict[str, Any]:
    """The first port of a container, {} without one; raises MalformedPod."""
    path = (*container.path, "ports")
    ports = sequence(container.body.get("ports"), path)
    if not ports or ports[0] is None:
        return {}
    if not isinstance(ports[0], dict):
        raise MalformedPod((*path, 0), "a port", ports[0])
    return ports[0]
