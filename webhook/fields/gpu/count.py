"""compute.gpuDevicesRequest: GPUs of a pod in every form; and what all fields of GPUs judge alike."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Final

from webhook.evaluation.installation import Vocabulary
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
from webhook.fields.gpu.use import MIG, PARTS, WHOLE, GpuCounter, GpuUse, resource_places
from webhook.fields.scalar import ScalarRules, rules_of
from webhook.objects.path import Path, real
from webhook.pods.pod_view import PodView
from webhook.policy.combine import Constraint, Effective, Leaf
from webhook.policy.row import Field

EXCLUSIVE: Final = (FRACTION, MEMORY, WHOLE, MIG)
SCHEDULERS: Final = ("runai-scheduler", "kai-scheduler")
TOLD_BY: Final = {FRACTION: PORTION, MEMORY: GPU_MEMORY}


class GpuField(ABC):
    """A field of GPUs. Whatever a policy says of GPUs, contradictions of forms are refused."""

    __slots__ = ("at", "counter", "defaults", "field", "rules")

    def __init__(self, field: Field, leaf: Leaf, words: Vocabulary, effective: Effective) -> None:
        self.field = field
        self.rules: ScalarRules = rules_of(field, leaf)
        self.at = field.at
        self.defaults = GpuDefaults(effective, words)
        if field.path in self.defaults.rules:
            self.defaults.rules[field.path] = self.rules
        self.counter: GpuCounter = self.defaults.counter

    def all_defaults(self) -> GpuDefaults:
        """The defaults of all fields of GPUs, this one's as it stands now."""
        return self.defaults.with_own(self.field.path, self.rules)

    def use(self, view: PodView, ev: Evaluation) -> GpuUse:
        """What the pod asks for in every form."""
        return self.counter.use(view, ev)

    def before(self, view: PodView, ev: Evaluation) -> GpuUse | None:
        """The same before the update."""
        return self.use(view.old, ev) if view.old is not None else None

    def now(self, view: PodView, ev: Evaluation) -> PodView:
        """The pod as it stands in the copy."""
        return ev.as_it_stands(view) if ev.draft.changed else view

    def refuse_unread(self, view: PodView, ev: Evaluation, use: GpuUse) -> bool:
        """Refuse amounts that cannot be read; those that were there before the update may stay."""
        before = self.before(view, ev)
        tolerant = all(ratchets(each) for each, _ in self.rules.final)
        refused = use.newly_unread(before if tolerant else None)
        for each in refused:
            self.rules.refuse_invalid(ev, each.path, each.native)
        return bool(refused)

    def place(self, view: PodView) -> Path:
        """Where the total is told: the container with GPUs, the pod's claims, the main container."""
        places = resource_places(view, self.counter.names)
        if places:
            return places[0][0]
        if view.spec.get("resourceClaims"):
            return (*view.spec_path, "resourceClaims")
        if view.location.shared:
            return view.location.shared[0].path
        at = ("resources", "limits", WHOLE_NAME)
        return (*view.main.path, *at) if view.main is not None else view.spec_path

    @abstractmethod
    def intent(self, view: PodView, ev: Evaluation) -> None:
        """Prohibitions on what the user wrote."""

    def final(self, view: PodView, ev: Evaluation) -> None:
        """Rules on the result, forms that exclude each other, parts that nobody hands out."""
        use = self.use(view, ev)
        self.judge_forms(view, ev, use)
        self.tell_inert(view, ev, use)
        self.judge(view, ev, use)

    @abstractmethod
    def judge(self, view: PodView, ev: Evaluation, use: GpuUse) -> None:
        """The final rules of this field."""

    def judge_forms(self, view: PodView, ev: Evaluation, use: GpuUse) -> None:
        """Parts beside whole devices, or shares beside memory, are refused by the scheduler later."""
        if len(use.forms) < 2:
            return
        used = [form for form in EXCLUSIVE if form in use.forms]
        if len(used) < 2 or used == [WHOLE, MIG]:
            return
        before, path = self.before(view, ev), self.place(view)
        if before is not None and before.forms == use.forms:
            return
        if ("two-gpu-forms", real(path)) in ev.told:
            return
        rules = (*self.rules.prohibitions, *(each for each, _ in self.rules.final))
        source = next((each.source for each in rules), None)
        shown = ", ".join(used)
        ev.violate(COUNT, path, shown, None, None, reason="two-gpu-forms", source=source)

    def tell_inert(self, view: PodView, ev: Evaluation, use: GpuUse) -> None:
        """A part of a GPU comes from certain schedulers only; others do not know the annotation."""
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
        """The default is the form of this field and fixed: GPUs in another one are refused."""
        preferred = self.all_defaults().preferred()
        default = self.rules.default
        if preferred is None or default is None or preferred.owner != self.field.path:
            return
        for each in self.rules.prohibitions:
            if each.rule != "canEdit" or (use.like(before) and ratchets(each)):
                continue
            forms = use.shown() if use.unbounded else ", ".join(sorted(use.forms))
            allowed = self.rules.show(default.value)
            ev.violate(self.field.path, self.place_of_form(view), forms, allowed, each)

    def place_of_form(self, view: PodView) -> Path:
        """Where the form in use begins."""
        for form in PARTS:
            for each in requests(view, form, self.defaults.unit):
                return each.path
        return self.place(view)

    def write_devices(self, view: PodView, ev: Evaluation, choice: Choice, name: str) -> None:
        """Limit and request of so many devices on the main container."""
        main = view.main
        path = (*main.path, "resources", "limits", name) if main is not None else ()
        if main is None or not ev.can_write(path):
            return
        text = str(choice.devices)
        ev.write(self.field.path, path, text, choice.why, choice.source)
        path = (*main.path, "resources", "requests", name)
        ev.write(self.field.path, path, text, choice.why, choice.source)

    def annotate(self, view: PodView, ev: Evaluation, key: str, text: str, choice: Choice) -> None:
        """An annotation of the pod; told where the kind has no place for one."""
        path = annotation_path(view, key)
        if view.location.metadata_path is None:
            ev.warn("unmapped-default", self.field.path, path)
        elif ev.can_write(path):
            ev.write(self.field.path, path, text, choice.why, choice.source)

    def name_container(self, view: PodView, ev: Evaluation, choice: Choice) -> None:
        """Which of several containers has the part: without a name the first one would."""
        if len(view.containers) < 2 or view.main is None:
            return
        if not annotations_of(view).get(CONTAINER_NAME) and view.location.metadata_path:
            self.annotate(view, ev, CONTAINER_NAME, view.main.name, choice)


class GpuDevicesField(GpuField):
    """The GPU count of a pod; every rule looks at the pod's total over all forms."""

    __slots__ = ()

    def stated(self, view: PodView) -> bool:
        """Whether the user names a GPU resource at all, if only with 0."""
        return self.counter.stated(view)

    def shown(self, use: GpuUse) -> str:
        """The total for people."""
        return use.shown()

    def intent(self, view: PodView, ev: Evaluation) -> None:
        """canEdit and blocked compare the pod's total."""
        rules = self.rules
        use = self.use(view, ev)
        if use.none and not self.stated(view):
            return
        same = use.like(self.before(view, ev))
        equal = self.is_default(use)
        for each in rules.prohibitions:
            repeated = equal and (
                each.rule == "canEdit" or ev.final_object or not ev.intent.shown(self.place(view))
            )
            if repeated or (same and ratchets(each)):
                continue
            shows = rules.default is not None and each.rule == "canEdit"
            allowed = rules.show(rules.default.value) if shows and rules.default else None
            ev.violate(self.field.path, self.place(view), use.shown(), allowed, each)

    def is_default(self, use: GpuUse) -> bool:
        """Whether the pod asks for what the defaults come to.

        A default is whole devices unless another field's default gives it a form: as many in
        another form are another choice.
        """
        default = self.rules.default
        if default is None or use.unbounded:
            return False
        if use.forms <= {WHOLE} and use.count == default.value:
            return True
        preferred = self.all_defaults().preferred()
        return (
            preferred is not None
            and preferred.owner != COUNT
            and use.forms == {preferred.form}
            and use.count == preferred.devices
        )

    def fill(self, view: PodView, ev: Evaluation) -> None:
        """Whole devices where no other form is asked for or preferred, else how many share."""
        choice = self.all_defaults().choice(view, ev)
        if choice is None or view.main is None:
            return
        if choice.owner == COUNT:
            self.write_devices(view, ev, choice, WHOLE_NAME)
        elif choice.form in PARTS and choice.devices > 1:
            self.annotate(view, ev, DEVICES, str(choice.devices), choice)
        if choice.dropped:
            ev.warn("one-gpu-only", COUNT, annotation_path(view, choice.form))

    def judge(self, view: PodView, ev: Evaluation, use: GpuUse) -> None:
        """min, max, step and required on the pod's total."""
        rules, before = self.rules, self.before(view, ev)
        if use.none and not self.stated(view):
            unchanged = before is not None and not before.forms
            rules.judge_required(ev, self.place(view), unchanged=unchanged)
            return
        if self.refuse_unread(view, ev, use):
            return
        for each, holds in rules.final:
            if use.unbounded:
                self.judge_unbounded(view, ev, each, use, before)
            elif not holds(use.count, each.argument):
                if before is not None and ratchets(each) and no_further(each.rule, use, before):
                    continue
                allowed = rules.show_argument(each)
                ev.violate(self.field.path, self.place(view), use.shown(), allowed, each)

    def judge_unbounded(
        self,
        view: PodView,
        ev: Evaluation,
        each: Constraint,
        use: GpuUse,
        before: GpuUse | None,
    ) -> None:
        """What cannot be counted breaks any maximum."""
        if each.rule != "max" or (before and ratchets(each) and no_further("max", use, before)):
            return
        ev.violate(
            self.field.path,
            self.place(view),
            use.shown(),
            self.rules.show_argument(each),
            each,
            reason="unbounded",
            key=use.unbounded,
        )

    def current(self, view: PodView, ev: Evaluation) -> Any:
        """The pod's total now; None when nothing is asked for, or when it has no bound."""
        now = self.now(view, ev)
        use = self.use(now, ev)
        if use.unbounded or (use.none and not self.stated(now)):
            return None
        return use.count


def no_further(rule: str, use: GpuUse, before: GpuUse) -> bool:
    """Whether an update does not move the total further from the rule."""
    if rule == "max":
        # What has no bound is as much as it was; what is beside it may not grow.
        return use.is_no_more(before)
    if before.unbounded:
        return False
    if rule == "min":
        return use.count >= before.count
    return use.count == before.count
