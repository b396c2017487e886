"""Fields of a container: B1 on the main one, B2 on every one, overlays of pod and container."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from webhook.evaluation.container_changes import guarded_parts_changed
from webhook.evaluation.state import Evaluation, is_held, view_before
from webhook.fields.scalar import Before, ScalarRules, reader, rules_of
from webhook.objects.path import Path
from webhook.pods.pod_view import Container, PodView
from webhook.policy.combine import Leaf
from webhook.policy.row import Binding, Field

ServerDefault = Callable[[dict[str, Any]], Any]


UNCOMPLETED = "Write it; ephemeral containers are not completed."
TELLING = ("security.privileged", "security.runAsUid")  # also where no value is


class ContainerField:
    """One scalar field that lands on containers (and, for overlay fields, on the pod).

    `at_pod` says whether defaults of overlay fields go to the pod; some kinds take them in
    containers only.
    """

    __slots__ = (
        "absent",
        "all_lists",
        "asks_in_writing",
        "at",
        "at_pod",
        "every",
        "field",
        "get",
        "pod_at",
        "pod_get",
        "replaces",
        "rules",
        "server_default",
        "silent",
    )

    def __init__(
        self,
        field: Field,
        leaf: Leaf,
        server_default: ServerDefault | None,
        *,
        at_pod: bool = True,
    ) -> None:
        self.field = field
        self.rules: ScalarRules = rules_of(field, leaf)
        self.at, self.pod_at = field.at, field.pod_at
        self.get = reader(field.at)
        self.pod_get = reader(field.pod_at) if field.pod_at else None
        self.all_lists = field.binding is Binding.SAFETY
        self.absent = field.absent if isinstance(field.absent, bool | str) else None
        self.server_default = server_default
        self.at_pod = field.writes == "pod" and at_pod
        self.every = field.writes in ("every", "pod")
        self.replaces = field.writes != "absent-main"
        self.asks_in_writing = field.explicit and bool(self.rules.required)
        # Whether nothing is to be said of a value that is nowhere.
        self.silent = self.absent is None and field.path not in TELLING
        self.silent = self.silent and not self.rules.required

    def bound(self, view: PodView, ev: Evaluation) -> Iterable[Container]:
        """The containers that rules look at: every list for safety fields, else ordinary ones."""
        found = view.everyone if self.all_lists else view.containers
        if not ev.injected.containers:
            return found
        return [each for each in found if not ev.injected.has_container(each.body, view)]

    def effective(self, view: PodView, container: Container) -> Any:
        """Container value, else the pod's, else what the API means by absent; None for unset."""
        value = self.get(container.body)
        if value is None and self.pod_get is not None:
            value = self.pod_get(view.spec)
        if value is None and (self.field.windows or not view.windows):
            return self.absent
        return value

    def before(self, view: PodView, container: Container) -> Before:
        """The same place before the update; safety fields only while the container is the same."""
        return view_before(view, container, self.at)

    def filled_in(self, view: PodView, container: Container, native: Any) -> Any:
        """What the server fills in there, or has, which it does not change with the image."""
        if self.server_default is None:
            return None
        old = view.old_container(container)
        if old is not None and native is not None and self.get(old.body) == native:
            filled = self.server_default(old.body)
            if filled == native:
                return filled
        return self.server_default(container.body)

    def touched(self, view: PodView, container: Container, ev: Evaluation) -> bool:
        """Whether the ratchet is off for this container: new, or changed in what it may do."""
        old = view.old_container(container)
        return old is None or (self.all_lists and guarded_parts_changed(ev, view, container, old))

    def intent(self, view: PodView, ev: Evaluation) -> None:
        """Prohibitions on every container that has a value, and on the pod's value."""
        if not self.rules.prohibitions:
            return
        self.judge_overridden(view, ev, intent=True)
        if self.pod_get is not None:
            self.intent_of_pod(view, ev)
        for container in self.bound(view, ev):
            native = self.get(container.body)
            if native is None:
                self.judge_uncompleted(view, container, ev)
                continue
            before = self.before(view, container)
            if before is not None and before[1] == native and self.touched(view, container, ev):
                before = None
            server = self.filled_in(view, container, native)
            spares = not self.all_lists and not view.may_be_main(container.path)
            path = (*container.path, *self.at)
            self.rules.judge_intent(ev, path, native, before, server, spares_sidecars=spares)

    def judge_uncompleted(self, view: PodView, container: Container, ev: Evaluation) -> None:
        """A fixed default that a new ephemeral container lacks: nothing is ever written there."""
        default = self.rules.default
        if container.list != "ephemeralContainers" or not self.all_lists or not self.every:
            return
        if default is None or view.old_container(container) is not None:
            return
        value = self.effective(view, container)
        if (value is not None and self.rules.equals_default(value)) or (
            view.windows and not self.field.windows
        ):
            return
        meant = None if value is None else self.rules.show_native(value)
        allowed = self.rules.show(default.value)
        for each in self.rules.prohibitions:
            if each.rule == "canEdit":
                path = (*container.path, *self.at)
                ev.violate(self.field.path, path, meant, allowed, each, fix=UNCOMPLETED)

    def intent_of_pod(self, view: PodView, ev: Evaluation) -> None:
        """Prohibitions on the value that all containers inherit."""
        assert self.pod_get is not None
        native = self.pod_get(view.spec)
        if native is None:
            return
        before = self.pod_before(view)
        if before is not None and before[1] == native and self.inherited_anew(view, ev):
            before = None
        self.rules.judge_intent(ev, (*view.spec_path, *self.pod_at), native, before, None)

    def judge_overridden(self, view: PodView, ev: Evaluation, *, intent: bool) -> None:
        """Evaluate what an object in pieces sets for the pod or a container and itself replaces."""
        if view.location.parts is None:
            return
        if self.pod_at:
            self.rules.judge_overridden(ev, view, self.pod_at, intent=intent)
        for container in view.everyone if self.all_lists else ():
            self.rules.judge_overridden(ev, view, self.at, container, intent=intent)

    def inherited_anew(self, view: PodView, ev: Evaluation) -> bool:
        """Whether a container that is new, or may do something else now, takes the pod's value."""
        return self.all_lists and any(
            self.get(each.body) is None and self.touched(view, each, ev)
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
        if not self.field.windows and view.windows:
            ev.warn("forbidden-default", self.field.path, view.spec_path, "Windows")
            return
        if self.pod_get is not None and self.pod_get(view.spec) is not None:
            return
        if self.goes_to_pod(view):
            self.put(ev, (*view.spec_path, *self.pod_at), None, None, self.pod_before(view))
            return
        for container in self.writable(view):
            self.fill_container(view, container, ev)

    def goes_to_pod(self, view: PodView) -> bool:
        """Whether the default is written once, at the pod, where some container takes it."""
        return self.at_pod and not view.overrides(self.get)

    def writable(self, view: PodView) -> Iterable[Container]:
        """Where a default goes: never into ephemeral containers."""
        if self.every:
            return [each for each in view.everyone if each.list != "ephemeralContainers"]
        return [view.main] if view.main is not None else []

    def fill_container(self, view: PodView, container: Container, ev: Evaluation) -> None:
        """Set one container's value where it is unset."""
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
        """Write the old value or today's default at one place, where it may land."""
        wanted = self.rules.wanted(ev, path, native, server, before)
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
        ev.write(self.field.path, path, value, kept, source, secret=self.field.secret)

    def final(self, view: PodView, ev: Evaluation) -> None:
        """min, max, step, options and required: safety on every container, else on the main one.

        Values of the container that is the main one without the user's choice are judged too, and
        the pod's value where no container takes it: one that is added later does.
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
            self.judge_overridden(view, ev, intent=False)
        if not is_taken:
            before = self.pod_before(view)
            path = (*view.spec_path, *self.pod_at)
            unchanged = before is not None and before[1] == inherited
            self.rules.judge_final(ev, path, inherited, unchanged=unchanged)

    def place(self, view: PodView, container: Container) -> Path:
        """Where a container's value is told: at the pod's, where the object has no other."""
        path = (*container.path, *self.at)
        if self.pod_at and not is_held(path):
            return (*view.spec_path, *self.pod_at)
        return path

    def final_of(self, view: PodView, container: Container, ev: Evaluation) -> None:
        """Final rules on the effective value of one container."""
        value = self.effective(view, container)
        path = self.place(view, container)
        if value is not None and self.rules.final:
            unchanged = self.unchanged(view, container, value, ev)
            self.rules.judge_final(ev, path, value, unchanged=unchanged)
        if view.windows and not self.field.windows:
            return
        if value is not None and (not self.asks_in_writing or self.is_set(view, container)):
            return
        if self.rules.required and (self.every or container is view.main):
            unchanged = self.unchanged(view, container, value, ev)
            self.rules.judge_required(ev, path, unchanged=unchanged)
        elif self.field.path == "security.runAsUid" and self.demands_minimum():
            ev.warn("image-decides", self.field.path, path)

    def is_set(self, view: PodView, container: Container) -> bool:
        """Whether the container, or the pod for it, states a value.

        Defaults are never written into ephemeral containers: one that absence amounts to counts.
        """
        default = self.rules.default
        if container.list == "ephemeralContainers" and default is not None:
            return bool(default.value == self.absent)
        inherited = self.pod_get(view.spec) if self.pod_get is not None else None
        return self.get(container.body) is not None or inherited is not None

    def demands_minimum(self) -> bool:
        """Whether a `min` stands here, which an image with its own user can undercut."""
        return any(each.rule == "min" for each, _ in self.rules.final)

    def unchanged(self, view: PodView, container: Container, value: Any, ev: Evaluation) -> bool:
        """Whether the effective value and all that guards it are as before the update."""
        old = view.old_container(container)
        if view.old is None or old is None or self.effective(view.old, old) != value:
            return False
        if self.is_set(view.old, old) and not self.is_set(view, container):
            return False
        return not self.touched(view, container, ev)

    def current(self, view: PodView, ev: Evaluation) -> Any:
        """The native value that the main container has now; None when unset."""
        if view.main is None:
            return None
        value = ev.now((*view.main.path, *self.at))
        return ev.now((*view.spec_path, *self.pod_at)) if value is None and self.pod_at else value
