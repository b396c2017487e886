"""Fields of containers: B1 on the main one, B2 on every one, overlays of pod and container."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from webhook.evaluation.container_changes import has_guarded_change
from webhook.evaluation.state import Evaluation, view_before
from webhook.fields.handler import FieldValue, PodField
from webhook.fields.scalar import Before, reader, rules_of
from webhook.objects.path import Path, display
from webhook.pods.pod_view import Container, PodView
from webhook.policy.combine import Leaf
from webhook.policy.row import Binding, Field

ServerDefault = Callable[[dict[str, Any]], Any]


UNCOMPLETED = "Write it; ephemeral containers are not completed."
TELLING = ("security.privileged", "security.runAsUid")  # also where no value is


class ContainerField(PodField):
    """One scalar field of containers (and, for overlay fields, of the pod).

    `at_pod` says whether defaults of overlay fields go to the pod. Some kinds take them only in
    containers.
    """

    __slots__ = (
        "absent",
        "all_lists",
        "asks_in_writing",
        "at",
        "at_pod",
        "every",
        "get",
        "pod_at",
        "pod_get",
        "replaces",
        "server_default",
        "silent",
    )

    def __init__(
        self,
        row: Field,
        leaf: Leaf,
        server_default: ServerDefault | None,
        *,
        at_pod: bool = True,
    ) -> None:
        super().__init__(row, rules_of(row, leaf))
        self.at, self.pod_at = row.at, row.pod_at
        self.get = reader(row.at)
        self.pod_get = reader(row.pod_at) if row.pod_at else None
        self.all_lists = row.binding is Binding.SAFETY
        self.absent = row.absent if isinstance(row.absent, bool | str) else None
        self.server_default = server_default
        self.at_pod = row.writes == "pod" and at_pod
        self.every = row.writes in ("every", "pod")
        self.replaces = row.writes != "absent-main"
        self.asks_in_writing = row.explicit and bool(self.rules.required)
        # Whether an absent value needs no report.
        self.silent = self.absent is None and row.path not in TELLING
        self.silent = self.silent and not self.rules.required

    def bound(self, view: PodView, ev: Evaluation) -> Iterable[Container]:
        """Return the containers that rules apply to: all for safety fields, else ordinary ones."""
        found = view.everyone if self.all_lists else view.containers
        if not ev.injected.containers:
            return found
        return [each for each in found if not ev.injected.has_container(each.body, view)]

    def effective(self, view: PodView, container: Container) -> Any:
        """Return the container's value, else the pod's, else the API's meaning of absent, None for unset."""
        value = self.get(container.body)
        if value is None and self.pod_get is not None:
            value = self.pod_get(view.spec)
        if value is None and (self.row.windows or not view.windows):
            return self.absent
        return value

    def before(self, view: PodView, container: Container) -> Before:
        """Return the value before the update. For safety fields only if the container stays the same."""
        return view_before(view, container, self.at)

    def filled_in(self, view: PodView, container: Container, native: Any) -> Any:
        """Return the server's default for the path, which does not change with the image."""
        if self.server_default is None:
            return None
        old = view.old_container(container)
        if old is not None and native is not None and self.get(old.body) == native:
            filled = self.server_default(old.body)
            if filled == native:
                return filled
        return self.server_default(container.body)

    def is_touched(self, view: PodView, container: Container, ev: Evaluation) -> bool:
        """Return whether the container is new or may do something else, so that no old value is tolerated."""
        old = view.old_container(container)
        return old is None or (self.all_lists and has_guarded_change(ev, view, container, old))

    def check_intent(self, view: PodView, ev: Evaluation) -> None:
        """Check prohibitions on every container with a value, and on the pod's value."""
        if not self.rules.prohibitions:
            return
        self.check_overridden(view, ev, intent=True)
        if self.pod_get is not None:
            self.intent_of_pod(view, ev)
        for container in self.bound(view, ev):
            native = self.get(container.body)
            if native is None:
                self.check_uncompleted(view, container, ev)
                continue
            before = self.before(view, container)
            if before is not None and before[1] == native and self.is_touched(view, container, ev):
                before = None
            server = self.filled_in(view, container, native)
            spares = not self.all_lists and not view.may_be_main(container.path)
            path = (*container.path, *self.at)
            self.rules.check_intent(ev, path, native, before, server, spares_sidecars=spares)

    def check_uncompleted(self, view: PodView, container: Container, ev: Evaluation) -> None:
        """Report a locked default that a new ephemeral container lacks: podgate never writes there."""
        default = self.rules.default
        if container.list != "ephemeralContainers" or not self.all_lists or not self.every:
            return
        if default is None or view.old_container(container) is not None:
            return
        value = self.effective(view, container)
        if (value is not None and self.rules.equals_default(value)) or (
            view.windows and not self.row.windows
        ):
            return
        meant = None if value is None else self.rules.show_native(value)
        allowed = self.rules.show(default.value)
        for each in self.rules.prohibitions:
            if each.type.fixes_default:
                path = (*container.path, *self.at)
                ev.violate(self.row.path, path, meant, allowed, each, fix=UNCOMPLETED)

    def intent_of_pod(self, view: PodView, ev: Evaluation) -> None:
        """Check prohibitions on the value that all containers inherit."""
        assert self.pod_get is not None
        native = self.pod_get(view.spec)
        if native is None:
            return
        before = self.pod_before(view)
        if before is not None and before[1] == native and self.inherited_anew(view, ev):
            before = None
        self.rules.check_intent(ev, (*view.spec_path, *self.pod_at), native, before, None)

    def check_overridden(self, view: PodView, ev: Evaluation, *, intent: bool) -> None:
        """Check values of an object in fragments that the object itself overrides."""
        if view.location.fragments is None:
            return
        if self.pod_at:
            self.rules.check_overridden(ev, view, self.pod_at, intent=intent)
        for container in view.everyone if self.all_lists else ():
            self.rules.check_overridden(ev, view, self.at, container, intent=intent)

    def inherited_anew(self, view: PodView, ev: Evaluation) -> bool:
        """Return whether a new or changed container inherits the pod's value."""
        return self.all_lists and any(
            self.get(each.body) is None and self.is_touched(view, each, ev)
            for each in self.bound(view, ev)
        )

    def pod_before(self, view: PodView) -> Before:
        """The pod's own value before the update."""
        if view.old is None or self.pod_get is None:
            return None
        return ((*view.old.spec_path, *self.pod_at), self.pod_get(view.old.spec))

    def fill(self, view: PodView, ev: Evaluation) -> None:
        """Write the default: at the pod, in every container, or in the main one."""
        default = self.rules.default
        if default is None or (default.value == self.absent and not self.asks_in_writing):
            return
        if not self.row.windows and view.windows:
            ev.warn("forbidden-default", self.row.path, view.spec_path, "Windows")
            return
        if self.pod_get is not None and self.pod_get(view.spec) is not None:
            return
        if self.goes_to_pod(view):
            self.put(ev, (*view.spec_path, *self.pod_at), None, None, self.pod_before(view))
            return
        for container in self.writable(view):
            self.fill_container(view, container, ev)

    def goes_to_pod(self, view: PodView) -> bool:
        """Return whether the default is written once, at the pod, where some container inherits it."""
        return self.at_pod and not view.overrides(self.get)

    def writable(self, view: PodView) -> Iterable[Container]:
        """Return the containers that get a default, never ephemeral ones."""
        if self.every:
            return [each for each in view.everyone if each.list != "ephemeralContainers"]
        return [view.main] if view.main is not None else []

    def fill_container(self, view: PodView, container: Container, ev: Evaluation) -> None:
        """Set one container's value if it is unset."""
        native = self.get(container.body)
        path = container.path + self.at
        fixed = native is not None and (self.server_default is None or not self.replaces)
        if fixed and not ev.is_filled_in(path, native, None):
            return
        if view.old is None and native is None:
            self.put(ev, path, None, None, None)
            return
        server = self.filled_in(view, container, native)
        before = self.before(view, container)
        if before is not None and before[1] is None and self.pod_get is not None:
            before = self.pod_before(view)
        self.put(ev, path, native, server, before)

    def put(self, ev: Evaluation, path: Any, native: Any, server: Any, before: Before) -> None:
        """Write the old value or the current default at one path, if that is allowed."""
        wanted = self.rules.choose_value(ev, path, native, server, before)
        if wanted is None or not ev.can_write(path):
            return
        kept, value = wanted
        default = self.rules.default
        if kept == "default":
            assert default is not None
            value = self.rules.codec.write(default.value, default.raw)
        if value == native:
            return
        source = default.source if default is not None else None
        ev.write(self.row.path, path, value, kept, source, secret=self.row.secret)

    def check_final(self, view: PodView, ev: Evaluation) -> None:
        """Check min, max, step, options and required: safety on every container, else on the main one.

        The container that is the main one without the user's choice is checked too, and the pod's
        value if no container inherits it, because one that is added later would.
        """
        rules = self.rules
        if not rules.final and not rules.required:
            return
        containers = self.bound(view, ev) if self.all_lists else view.mains
        inherited = self.pod_get(view.spec) if self.pod_get is not None else None
        is_taken = inherited is None
        for container in containers:
            native = self.get(container.body)
            if native is None:
                native, is_taken = inherited, True
            if native is None and self.silent:
                continue
            if native is None or not rules.passes(native):
                self.final_of(view, container, ev)
        if rules.final:
            self.check_overridden(view, ev, intent=False)
        if not is_taken:
            before = self.pod_before(view)
            path = (*view.spec_path, *self.pod_at)
            unchanged = before is not None and before[1] == inherited
            self.rules.check_final(ev, path, inherited, unchanged=unchanged)

    def place(self, view: PodView, container: Container) -> Path:
        """Return the path to report for a container's value: the pod's if the object has no other."""
        path = (*container.path, *self.at)
        if self.pod_at and view.location.fragments is not None and not view.at(path).exists:
            return (*view.spec_path, *self.pod_at)
        return path

    def final_of(self, view: PodView, container: Container, ev: Evaluation) -> None:
        """Check final rules on the effective value of one container."""
        value = self.effective(view, container)
        path = self.place(view, container)
        if value is not None and self.rules.final:
            unchanged = self.is_unchanged(view, container, value, ev)
            fix = self.advise_on_inherited(view, container, path, ev)
            self.rules.check_final(ev, path, value, unchanged=unchanged, fix=fix)
        if view.windows and not self.row.windows:
            return
        if value is not None and (not self.asks_in_writing or self.is_set(view, container)):
            return
        if self.rules.required and (self.every or container is view.main):
            unchanged = self.is_unchanged(view, container, value, ev)
            self.rules.check_required(ev, path, unchanged=unchanged)
        elif self.row.path == "security.runAsUid" and self.demands_minimum():
            ev.warn("image-decides", self.row.path, path)

    def advise_on_inherited(
        self, view: PodView, container: Container, path: Path, ev: Evaluation
    ) -> str:
        """Return where to change a value that the container inherits from the pod, else "".

        The violation keeps the container's path: owner and child are compared by container.
        """
        is_own = self.get(container.body) is not None or path != (*container.path, *self.at)
        if is_own or self.pod_get is None or self.pod_get(view.spec) is None:
            return ""
        written = display(ev.report((*view.spec_path, *self.pod_at)))
        return f"The container inherits it from {written}: change it there."

    def is_set(self, view: PodView, container: Container) -> bool:
        """Return whether the container, or the pod for it, sets a value.

        Defaults are never written into ephemeral containers, so there the meaning of absence
        counts.
        """
        default = self.rules.default
        if container.list == "ephemeralContainers" and default is not None:
            return bool(default.value == self.absent)
        inherited = self.pod_get(view.spec) if self.pod_get is not None else None
        return self.get(container.body) is not None or inherited is not None

    def demands_minimum(self) -> bool:
        """Return whether there is a `min` that an image with its own user can undercut."""
        return any(each.type.is_minimum for each, _ in self.rules.final)

    def is_unchanged(self, view: PodView, container: Container, value: Any, ev: Evaluation) -> bool:
        """Return whether the effective value and all guarded fields are as before the update."""
        old = view.old_container(container)
        if view.old is None or old is None or self.effective(view.old, old) != value:
            return False
        if self.is_set(view.old, old) and not self.is_set(view, container):
            return False
        return not self.is_touched(view, container, ev)

    def read(self, view: PodView, ev: Evaluation) -> Iterator[FieldValue]:
        """Yield the pod's own value, then each container's, without repeating inherited ones."""
        if self.pod_get is not None:
            yield FieldValue((*view.spec_path, *self.pod_at), self.pod_get(view.spec), "the pod")
        everyone = self.all_lists or self.row.path == "image"
        for each in main_first(view, view.everyone if everyone else view.containers):
            value = self.get(each.body)
            note = (
                f"without a value it is {yaml_text(self.absent)}"
                if self.absent is not None
                else None
            )
            path = (*each.path, *self.at)
            yield FieldValue(path, value, each.name, note=note if value is None else None)

    def current(self, view: PodView, ev: Evaluation) -> Any:
        """The native value that the main container has now; None when unset."""
        if view.main is None:
            return None
        value = ev.now((*view.main.path, *self.at))
        return ev.now((*view.spec_path, *self.pod_at)) if value is None and self.pod_at else value


def main_first(view: PodView, containers: Iterable[Container]) -> list[Container]:
    """Return the containers in report order: the main one, then the others."""
    return sorted(containers, key=lambda each: each is not view.main)


def yaml_text(value: bool | str) -> str:
    """A value as YAML has it."""
    return str(value).lower() if isinstance(value, bool) else value
