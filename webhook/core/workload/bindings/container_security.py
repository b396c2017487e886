"""Container fields with a way of their own to be written: escalation, seccomp, a terminal."""

from __future__ import annotations

from typing import Any

from webhook.core.pointer import Path
from webhook.core.policy.combine import Leaf
from webhook.core.policy.row import Field
from webhook.core.policy.values import capability
from webhook.core.workload.bindings.containers import ContainerField, ServerDefault
from webhook.core.workload.bindings.scalar import Before, reader
from webhook.core.workload.evaluation import Evaluation
from webhook.core.workload.podspec import Container, PodView

CONTEXT = "securityContext"
STDIN = ("stdin",)
read_profile = reader((CONTEXT, "seccompProfile"))


def added_capabilities(context: Any) -> set[str]:
    """The canonical names of the capabilities that a container's security context adds."""
    held = context.get("capabilities") if isinstance(context, dict) else None
    names = held.get("add") if isinstance(held, dict) else None
    listed = names if isinstance(names, list) else []
    return {capability(name) for name in listed if isinstance(name, str)}


class EscalationField(ContainerField):
    """allowPrivilegeEscalation: false is not written where the API server refuses it."""

    __slots__ = ()

    def put(self, ev: Evaluation, path: Path, native: Any, server: Any, before: Before) -> None:
        """Write the default unless what the container has by now needs escalation."""
        context = ev.now(path[:-1])
        why = ""
        if isinstance(context, dict) and context.get("privileged") is True:
            why = "privileged: true"
        elif "SYS_ADMIN" in added_capabilities(context):
            why = "SYS_ADMIN"
        if why and native is None:
            ev.warn("forbidden-default", self.field.path, path, why)
            return
        super().put(ev, path, native, server, before)


class SeccompField(ContainerField):
    """The pod's seccomp profile, filled in per container once a container has one of its own."""

    __slots__ = ()

    def goes_to_pod(self, view: PodView) -> bool:
        """Whether no container has a profile of its own, or the pod has begun one."""
        begun = read_profile(view.spec) is not None
        return self.at_pod and (begun or all(self.get(each.body) is None for each in view.everyone))


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
