"""Container fields with rules of their own: privileged, escalation, seccomp, a terminal."""

from __future__ import annotations

from typing import Any

from webhook.evaluation.state import Evaluation
from webhook.fields.container import ContainerField, ServerDefault
from webhook.fields.host_process import (
    HostProcess,
    host_processes,
    is_host_process,
    read_host_process,
)
from webhook.fields.scalar import Before, reader
from webhook.objects.path import Path
from webhook.pods.pod_view import Container, PodView
from webhook.policy.combine import Leaf
from webhook.policy.row import Field
from webhook.policy.values import capability

CONTEXT = "securityContext"
STDIN = ("stdin",)
read_profile = reader((CONTEXT, "seccompProfile"))


def added_capabilities(context: Any) -> set[str]:
    """The canonical names of the capabilities that a container's security context adds."""
    held = context.get("capabilities") if isinstance(context, dict) else None
    names = held.get("add") if isinstance(held, dict) else None
    listed = names if isinstance(names, list) else []
    return {capability(name) for name in listed if isinstance(name, str)}


class PrivilegedField(ContainerField):
    """privileged: the switch of Linux, and processes of a Windows node, which amount to it."""

    __slots__ = ()

    def effective(self, view: PodView, container: Container) -> Any:
        """True for a process of the node, which has no other value of its own."""
        value = self.get(container.body)
        if value is None and is_host_process(view, container):
            return True
        return self.absent if value is None else value

    def intent(self, view: PodView, ev: Evaluation) -> None:
        """Prohibitions on the switch, and on every path that makes processes of the node."""
        super().intent(view, ev)
        if not self.rules.prohibitions:
            return
        old = {} if view.old is None else {key_of(each): each for each in host_processes(view.old)}
        for each in host_processes(view):
            held = old.get(key_of(each))
            users = (
                [one for one in view.everyone if read_host_process(one.body) is None]
                if each.container is None
                else [each.container]
            )
            changed = any(self.touched(view, one, ev) for one in users)
            before = None if held is None or changed else (held.path, True)
            self.rules.judge_intent(ev, each.path, True, before, None)


def key_of(process: HostProcess) -> tuple[str, str] | None:
    """Return what an update knows a host process by: the list and name of its container."""
    each = process.container
    return None if each is None else (each.list, each.name)


class EscalationField(ContainerField):
    """allowPrivilegeEscalation: false is not written where the API server refuses it."""

    __slots__ = ()

    def put(self, ev: Evaluation, path: Path, native: Any, server: Any, before: Before) -> None:
        """Write the default unless what the container has by now needs escalation."""
        why = self.needs_escalation(ev.now(path[:-1]))
        if why and native is None:
            ev.warn("forbidden-default", self.field.path, path, why)
            return
        super().put(ev, path, native, server, before)

    def needs_escalation(self, context: Any) -> str:
        """What the API server refuses beside a default of false; "" for nothing."""
        default = self.rules.default
        if default is None or default.value is True or not isinstance(context, dict):
            return ""
        if context.get("privileged") is True:
            return "privileged: true"
        return "SYS_ADMIN" if "SYS_ADMIN" in added_capabilities(context) else ""

    def is_set(self, view: PodView, container: Container) -> bool:
        """Whether a value is stated, or the default is one that the server would refuse."""
        needed = self.needs_escalation(container.body.get(CONTEXT))
        return bool(needed) or super().is_set(view, container)


class SeccompField(ContainerField):
    """The pod's seccomp profile, filled in per container once a container has one of its own."""

    __slots__ = ()

    def goes_to_pod(self, view: PodView) -> bool:
        """Whether no container has a profile of its own, or the pod has begun one."""
        begun = read_profile(view.spec) is not None
        alone = all(self.get(each.body) is None for each in view.everyone)
        return super().goes_to_pod(view) and (begun or alone)


class TerminalField(ContainerField):
    """tty: a terminal is of use only with standard input, which is opened with it."""

    __slots__ = ("opens_stdin",)

    def __init__(
        self, field: Field, leaf: Leaf, server_default: ServerDefault | None, stdin: Leaf | None
    ) -> None:
        super().__init__(field, leaf, server_default)
        # A default of one field is no leave to set another that the policy forbids.
        self.opens_stdin = stdin is None or not any(each.prohibits for each in stdin.constraints)

    def fill_container(self, view: PodView, container: Container, ev: Evaluation) -> None:
        """Set tty where it is unset, and stdin with it unless somebody decided on that."""
        changes = len(ev.findings.changes)
        super().fill_container(view, container, ev)
        path = (*container.path, *STDIN)
        default = self.rules.default
        if len(ev.findings.changes) == changes or not self.opens_stdin:
            return
        if ev.now((*container.path, *self.at)) is True and ev.now(path) is None:
            source = default.source if default is not None else None
            ev.write(self.field.path, path, True, "default", source)
