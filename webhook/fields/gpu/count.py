"""compute.gpuDevicesRequest: GPUs of a pod in every form, and checks that all GPU fields share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

from webhook.evaluation.installation import InstallationConfig
from webhook.evaluation.state import Evaluation, ratchets
from webhook.fields.gpu.annotations import (
    CONTAINER_NAME,
    DEVICES,
    FRACTION,
    MEMORY,
    annotation_path,
    annotations_of,
)
from webhook.fields.gpu.defaults import COUNT, GPU_MEMORY, PORTION, WHOLE_NAME, Choice, GpuDefaults
from webhook.fields.gpu.parts import requests
from webhook.fields.gpu.use import MIG, PARTS, WHOLE, GpuCounter, GpuNames, GpuUse, resource_paths
from webhook.fields.handler import MAIN, FieldSource, FieldValue, PodField, PodHandler
from webhook.fields.scalar import rules_of
from webhook.objects.path import Path
from webhook.pods.pod_view import PodView
from webhook.policy.combine import Constraint, Effective, Leaf
from webhook.policy.row import GPU, Field
from webhook.policy.rules.rule_type import RuleType

EXCLUSIVE: Final = (FRACTION, MEMORY, WHOLE, MIG)
SCHEDULERS: Final = ("runai-scheduler", "kai-scheduler")
TOLD_BY: Final = {FRACTION: PORTION, MEMORY: GPU_MEMORY}


class GpuField(PodField):
    """A field of GPUs. Contradicting forms are refused whatever the policy is."""

    __slots__ = ("at", "counter", "defaults")

    def __init__(
        self, row: Field, leaf: Leaf, config: InstallationConfig, effective: Effective
    ) -> None:
        super().__init__(row, rules_of(row, leaf))
        # Contradicting forms of GPUs are refused whatever the rules are.
        self.phases = replace(self.phases, final=True)
        self.at = row.at
        self.defaults = GpuDefaults(effective, config)
        if row.path in self.defaults.rules:
            self.defaults.rules[row.path] = self.rules
        self.counter: GpuCounter = self.defaults.counter

    def all_defaults(self) -> GpuDefaults:
        """Return the defaults of all GPU fields, with this one's current default."""
        return self.defaults.with_own(self.row.path, self.rules)

    def use(self, view: PodView, ev: Evaluation) -> GpuUse:
        """What the pod asks for in every form."""
        return self.counter.use(view, ev)

    def before(self, view: PodView, ev: Evaluation) -> GpuUse | None:
        """The same before the update."""
        return self.use(view.old, ev) if view.old is not None else None

    def now(self, view: PodView, ev: Evaluation) -> PodView:
        """Return the pod in the current copy."""
        return ev.current_pod(view) if ev.draft.changed else view

    def refuse_unread(self, view: PodView, ev: Evaluation, use: GpuUse) -> bool:
        """Report unreadable amounts, except those from before the update."""
        before = self.before(view, ev)
        tolerant = all(ratchets(each) for each, _ in self.rules.final)
        refused = use.newly_unread(before if tolerant else None)
        for each in refused:
            self.rules.refuse_invalid(ev, each.path, each.native)
        return bool(refused)

    def place(self, view: PodView, ev: Evaluation) -> Path:
        """Return the path to report: the container with GPUs, the pod's claims, or the main container."""
        return self.place_of(view, self.counter.names_in(ev))

    def place_of(self, view: PodView, names: GpuNames) -> Path:
        """Return the path to report, with these names of GPUs."""
        paths = resource_paths(view, names)
        if paths:
            return paths[0][0]
        if view.spec.get("resourceClaims"):
            return (*view.spec_path, "resourceClaims")
        if view.location.shared:
            return view.location.shared[0].path
        at = ("resources", "limits", WHOLE_NAME)
        return (*view.main.path, *at) if view.main is not None else view.spec_path

    @abstractmethod
    def check_intent(self, view: PodView, ev: Evaluation) -> None:
        """Check prohibitions on the user's object."""

    def check_final(self, view: PodView, ev: Evaluation) -> None:
        """Check the result: rules, forms that exclude each other, parts that no scheduler supports."""
        use = self.use(view, ev)
        self.check_forms(view, ev, use)
        self.warn_of_inert_request(view, ev, use)
        self.check_rules(view, ev, use)

    @abstractmethod
    def check_rules(self, view: PodView, ev: Evaluation, use: GpuUse) -> None:
        """The final rules of this field."""

    def check_forms(self, view: PodView, ev: Evaluation, use: GpuUse) -> None:
        """Report parts with whole devices, or shares with memory, which the scheduler would reject."""
        if len(use.forms) < 2:
            return
        used = [form for form in EXCLUSIVE if form in use.forms]
        if len(used) < 2 or used == [WHOLE, MIG]:
            return
        before, path = self.before(view, ev), self.place(view, ev)
        if before is not None and before.forms == use.forms:
            return
        if ("two-gpu-forms", ev.report(path)) in ev.reported:
            return
        rules = (*self.rules.prohibitions, *(each for each, _ in self.rules.final))
        source = next((each.source for each in rules), None)
        shown = ", ".join(used)
        ev.violate(COUNT, path, shown, None, None, reason="two-gpu-forms", source=source)

    def warn_of_inert_request(self, view: PodView, ev: Evaluation, use: GpuUse) -> None:
        """Report a part of a GPU with a scheduler that does not know the annotation."""
        parts = [form for form in PARTS if form in use.forms]
        if not parts or view.spec.get("schedulerName") in SCHEDULERS:
            return
        for form in parts:
            asked = requests(view, form, self.defaults.unit)
            path = asked[0].path if asked else annotation_path(view, form)
            ev.warn("inert-annotation", TOLD_BY[form], path, " or ".join(SCHEDULERS))

    def violate_form(
        self, view: PodView, ev: Evaluation, use: GpuUse, before: GpuUse | None
    ) -> None:
        """Report GPUs in another form if the default has this field's form and is locked."""
        preferred = self.all_defaults().prefer()
        default = self.rules.default
        if preferred is None or default is None or preferred.owner != self.row.path:
            return
        for each in self.rules.prohibitions:
            if not each.type.fixes_default or (use.like(before) and ratchets(each)):
                continue
            forms = use.show() if use.unbounded_source else ", ".join(sorted(use.forms))
            allowed = self.rules.show(default.value)
            ev.violate(self.row.path, self.path_of_form(view, ev), forms, allowed, each)

    def path_of_form(self, view: PodView, ev: Evaluation) -> Path:
        """Return the first path of the form in use."""
        for form in PARTS:
            for each in requests(view, form, self.defaults.unit):
                return each.path
        return self.place(view, ev)

    def write_devices(self, view: PodView, ev: Evaluation, choice: Choice, name: str) -> None:
        """Write limit and request for this number of devices on the main container."""
        main = view.main
        path = (*main.path, "resources", "limits", name) if main is not None else ()
        if main is None or not ev.can_write(path):
            return
        text = str(choice.devices)
        ev.write(self.row.path, path, text, choice.why, choice.source)
        path = (*main.path, "resources", "requests", name)
        ev.write(self.row.path, path, text, choice.why, choice.source)

    def annotate(self, view: PodView, ev: Evaluation, key: str, text: str, choice: Choice) -> None:
        """Write an annotation of the pod. Warn if the kind has no path for one."""
        path = annotation_path(view, key)
        if view.location.metadata_path is None:
            ev.warn("unmapped-default", self.row.path, path)
        elif ev.can_write(path):
            ev.write(self.row.path, path, text, choice.why, choice.source)

    def name_container(self, view: PodView, ev: Evaluation, choice: Choice) -> None:
        """Write which container has the part. Without a name the first one would get it."""
        if len(view.containers) < 2 or view.main is None:
            return
        if not annotations_of(view).get(CONTAINER_NAME) and view.location.metadata_path:
            self.annotate(view, ev, CONTAINER_NAME, view.main.name, choice)


class GpuDevicesField(GpuField):
    """The GPU count of a pod. Every rule applies to the pod's total over all forms."""

    __slots__ = ()

    def names_gpus(self, view: PodView, ev: Evaluation) -> bool:
        """Return whether the user names a GPU resource, even with 0."""
        return self.counter.names_gpus(view, ev)

    def check_intent(self, view: PodView, ev: Evaluation) -> None:
        """Check canEdit and blocked on the pod's total."""
        rules = self.rules
        use = self.use(view, ev)
        if use.none and not self.names_gpus(view, ev):
            return
        same = use.like(self.before(view, ev))
        equal = self.is_default(use)
        for each in rules.prohibitions:
            repeated = equal and (
                each.type.fixes_default
                or ev.final_object
                or not ev.intent.is_written_by_user(self.place(view, ev))
            )
            if repeated or (same and ratchets(each)):
                continue
            shows = rules.default is not None and each.type.fixes_default
            allowed = rules.show(rules.default.value) if shows and rules.default else None
            ev.violate(self.row.path, self.place(view, ev), use.show(), allowed, each)

    def is_default(self, use: GpuUse) -> bool:
        """Return whether the pod requests the same as the defaults.

        A default is whole devices unless another field's default gives it a form. The same number
        in another form is another choice.
        """
        default = self.rules.default
        if default is None or use.unbounded_source:
            return False
        if use.forms <= {WHOLE} and use.count == default.value:
            return True
        preferred = self.all_defaults().prefer()
        return (
            preferred is not None
            and preferred.owner != COUNT
            and use.forms == {preferred.form}
            and use.count == preferred.devices
        )

    def fill(self, view: PodView, ev: Evaluation) -> None:
        """Write whole devices if no other form is requested or preferred, else how many share."""
        choice = self.all_defaults().choice(view, ev)
        if choice is None or view.main is None:
            return
        if choice.owner == COUNT:
            self.write_devices(view, ev, choice, WHOLE_NAME)
        elif choice.form in PARTS and choice.devices > 1:
            self.annotate(view, ev, DEVICES, str(choice.devices), choice)
        if choice.dropped:
            ev.warn("one-gpu-only", COUNT, annotation_path(view, choice.form))

    def check_rules(self, view: PodView, ev: Evaluation, use: GpuUse) -> None:
        """Check min, max, step and required on the pod's total."""
        rules, before = self.rules, self.before(view, ev)
        if use.none and not self.names_gpus(view, ev):
            unchanged = before is not None and not before.forms
            rules.check_required(ev, self.place(view, ev), unchanged=unchanged)
            return
        if self.refuse_unread(view, ev, use):
            return
        for each, holds in rules.final:
            if use.unbounded_source:
                self.check_unbounded(view, ev, each, use, before)
            elif not holds(use.count, each.argument):
                if before is not None and ratchets(each) and no_further(each.type, use, before):
                    continue
                allowed = rules.show_argument(each)
                ev.violate(self.row.path, self.place(view, ev), use.show(), allowed, each)

    def check_unbounded(
        self,
        view: PodView,
        ev: Evaluation,
        each: Constraint,
        use: GpuUse,
        before: GpuUse | None,
    ) -> None:
        """Report that an uncountable amount breaks any maximum."""
        if not each.type.is_maximum or (
            before and ratchets(each) and no_further(each.type, use, before)
        ):
            return
        ev.violate(
            self.row.path,
            self.place(view, ev),
            use.show(),
            self.rules.show_argument(each),
            each,
            reason="unbounded",
            key=use.unbounded_source,
        )

    def read(self, view: PodView, ev: Evaluation) -> Iterator[FieldValue]:
        """The pod's total over all forms."""
        use, path = self.use(view, ev), self.place(view, ev)
        if use.forms or use.unbounded_source or self.names_gpus(view, ev):
            value = use.show() if use.unbounded_source else use.count
            yield FieldValue(path, value, "total of the pod", derived=True)
        else:
            yield FieldValue(path, None)

    def current(self, view: PodView, ev: Evaluation) -> Any:
        """Return the pod's current total, None if nothing is requested or the total is unbounded."""
        now = self.now(view, ev)
        use = self.use(now, ev)
        if use.unbounded_source or (use.none and not self.names_gpus(now, ev)):
            return None
        return use.count


def no_further(rule: RuleType, use: GpuUse, before: GpuUse) -> bool:
    """Return whether an update makes the total no worse."""
    if rule.is_maximum:
        # An unbounded source counts as unchanged. The countable rest may not grow.
        return use.is_no_more(before)
    return not before.unbounded_source and rule.is_no_further(use.count, before.count)


class GpuHandler(PodHandler):
    """The number of GPUs of a pod, over all forms."""

    name = GPU

    def compile(self, source: FieldSource) -> GpuDevicesField:
        """The field, with the names of resources and device classes from the settings."""
        return GpuDevicesField(source.row, source.leaf, source.config, source.effective)

    def pod_paths(self, row: Field) -> Sequence[Path]:
        """Where a pod template has the field."""
        return [(*MAIN, "resources")]
