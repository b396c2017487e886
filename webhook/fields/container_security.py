"""Container fields with their own logic: privileged, escalation, seccomp, AppArmor, tty."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from webhook.evaluation.state import Evaluation
from webhook.fields.container import ContainerField, ServerDefault
from webhook.fields.gpu.annotations import annotation_path, annotations_of
from webhook.fields.handler import FieldValue
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
APPARMOR_ANNOTATION = "container.apparmor.security.beta.kubernetes.io/"
ANNOTATED_TYPES = {"runtime/default": "RuntimeDefault", "unconfined": "Unconfined"}
LOCALHOST = "localhost/"
read_profile = reader((CONTEXT, "seccompProfile"))


def added_capabilities(context: Any) -> set[str]:
    """Return the canonical names of the capabilities that a container adds."""
    held = context.get("capabilities") if isinstance(context, dict) else None
    names = held.get("add") if isinstance(held, dict) else None
    listed = names if isinstance(names, list) else []
    return {capability(name) for name in listed if isinstance(name, str)}


class PrivilegedField(ContainerField):
    """privileged: the Linux field, and Windows host processes, which are equivalent."""

    __slots__ = ()

    def effective(self, view: PodView, container: Container) -> Any:
        """Return True for a Windows host process, which has no other value."""
        value = self.get(container.body)
        if value is None and is_host_process(view, container):
            return True
        return self.absent if value is None else value

    def check_intent(self, view: PodView, ev: Evaluation) -> None:
        """Check prohibitions on the field, and on every path that makes host processes."""
        super().check_intent(view, ev)
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
            changed = any(self.is_touched(view, one, ev) for one in users)
            before = None if held is None or changed else (held.path, True)
            self.rules.check_intent(ev, each.path, True, before, None)


def key_of(process: HostProcess) -> tuple[str, str] | None:
    """Return what an update knows a host process by: the list and name of its container."""
    each = process.container
    return None if each is None else (each.list, each.name)


class EscalationField(ContainerField):
    """allowPrivilegeEscalation: false is not written where the API server refuses it."""

    __slots__ = ()

    def put(self, ev: Evaluation, path: Path, native: Any, server: Any, before: Before) -> None:
        """Write the default unless another value of the container needs escalation."""
        why = self.needs_escalation(ev.now(path[:-1]))
        if why and native is None:
            ev.warn("forbidden-default", self.row.path, path, why)
            return
        super().put(ev, path, native, server, before)

    def needs_escalation(self, context: Any) -> str:
        """Return what the API server refuses together with a default of false, "" for nothing."""
        default = self.rules.default
        if default is None or default.value is True or not isinstance(context, dict):
            return ""
        if context.get("privileged") is True:
            return "privileged: true"
        return "SYS_ADMIN" if "SYS_ADMIN" in added_capabilities(context) else ""

    def is_set(self, view: PodView, container: Container) -> bool:
        """Return whether a value is set, or the server would refuse the default."""
        needed = self.needs_escalation(container.body.get(CONTEXT))
        return bool(needed) or super().is_set(view, container)


class SeccompField(ContainerField):
    """The pod's seccomp profile, filled in per container once a container has one of its own."""

    __slots__ = ()

    def goes_to_pod(self, view: PodView) -> bool:
        """Return whether no container has its own profile, or the pod already has one."""
        begun = read_profile(view.spec) is not None
        alone = all(self.get(each.body) is None for each in view.everyone)
        return super().goes_to_pod(view) and (begun or alone)


class AppArmorField(ContainerField):
    """Type or localhost profile of AppArmor, which an old annotation may set for each container.

    The API server copies the annotation of a Pod into the field of the container. The annotation
    applies to a container without the field, whatever the pod has.
    """

    __slots__ = ()

    def annotated(self, view: PodView, container: Container) -> tuple[Path, Any] | None:
        """Return the annotation of a container with its value for this field."""
        key = f"{APPARMOR_ANNOTATION}{container.name}"
        text = annotations_of(view).get(key)
        value = None if text is None or text == "" else profile_of(text).get(self.at[-1])
        return None if value is None else (annotation_path(view, key), value)

    def effective(self, view: PodView, container: Container) -> Any:
        """Return the container's field, else its annotation, else the pod's value."""
        found = self.annotated(view, container)
        if found is not None and self.get(container.body) is None:
            return found[1]
        return super().effective(view, container)

    def place(self, view: PodView, container: Container) -> Path:
        """Return the path to report for a container's value: its annotation's path if that applies."""
        found = self.annotated(view, container)
        if found is not None and self.get(container.body) is None:
            return found[0]
        return super().place(view, container)

    def annotated_before(self, view: PodView, container: Container, ev: Evaluation) -> Before:
        """Return the annotation before the update, if the container may do the same as then."""
        old = view.old_container(container)
        if view.old is None or old is None or self.is_touched(view, container, ev):
            return None
        return self.annotated(view.old, old)

    def check_intent(self, view: PodView, ev: Evaluation) -> None:
        """Prohibitions on fields and annotations."""
        super().check_intent(view, ev)
        for each in self.bound(view, ev) if self.rules.prohibitions else ():
            found = self.annotated(view, each)
            if found is not None:
                before = self.annotated_before(view, each, ev)
                self.rules.check_intent(ev, *found, before, None)

    def check_final(self, view: PodView, ev: Evaluation) -> None:
        """Final rules on fields and annotations, and on a pod's field that annotations override."""
        super().check_final(view, ev)
        if not self.rules.final:
            return
        everyone = [(each, self.annotated(view, each)) for each in self.bound(view, ev)]
        for each, found in everyone:
            if found is not None:
                before = self.annotated_before(view, each, ev)
                unchanged = before is not None and before[1] == found[1]
                self.rules.check_final(ev, *found, unchanged=unchanged)
        path, value = (*view.spec_path, *self.pod_at), reader(self.pod_at)(view.spec)
        taken = any(found is None and self.get(each.body) is None for each, found in everyone)
        if value is not None and not taken:
            of_pod = self.pod_before(view)
            unchanged = of_pod is not None and of_pod[1] == value
            self.rules.check_final(ev, path, value, unchanged=unchanged)

    def fill_container(self, view: PodView, container: Container, ev: Evaluation) -> None:
        """Write nothing that would contradict an annotation."""
        if f"{APPARMOR_ANNOTATION}{container.name}" not in annotations_of(view):
            super().fill_container(view, container, ev)

    def put(self, ev: Evaluation, path: Path, native: Any, server: Any, before: Before) -> None:
        """Write the default. A localhost profile needs the type Localhost."""
        if self.at[-1] == "type" or ev.now((*path[:-1], "type")) == "Localhost":
            super().put(ev, path, native, server, before)

    def read(self, view: PodView, ev: Evaluation) -> Iterator[FieldValue]:
        """The fields, then annotations."""
        yield from super().read(view, ev)
        for each in view.everyone:
            found = self.annotated(view, each)
            if found is not None:
                yield FieldValue(*found, each.name, derived=True)


def profile_of(text: Any) -> dict[Any, Any]:
    """Return the profile of an annotation in the field's form, an unknown one as its type."""
    name = str(text)
    if name.startswith(LOCALHOST):
        return {"type": "Localhost", "localhostProfile": name.removeprefix(LOCALHOST)}
    return {"type": ANNOTATED_TYPES.get(name, name)}


class TerminalField(ContainerField):
    """tty: a terminal needs standard input, which is opened with it."""

    __slots__ = ("opens_stdin",)

    def __init__(
        self, row: Field, leaf: Leaf, server_default: ServerDefault | None, stdin: Leaf | None
    ) -> None:
        super().__init__(row, leaf, server_default)
        # A default of one field does not allow another field that the policy forbids.
        self.opens_stdin = stdin is None or not any(each.prohibits for each in stdin.constraints)

    def fill_container(self, view: PodView, container: Container, ev: Evaluation) -> None:
        """Set tty if unset, and stdin with it unless it is set."""
        changes = len(ev.findings.changes)
        super().fill_container(view, container, ev)
        path = (*container.path, *STDIN)
        default = self.rules.default
        if len(ev.findings.changes) == changes or not self.opens_stdin:
            return
        if ev.now((*container.path, *self.at)) is True and ev.now(path) is None:
            source = default.source if default is not None else None
            ev.write(self.row.path, path, True, "default", source)
