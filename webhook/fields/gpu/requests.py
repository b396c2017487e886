"""compute.gpuPortionRequest and gpuMemoryRequest: a part of a GPU, asked for by annotation."""

from __future__ import annotations

from typing import Any

from webhook.evaluation.installation import Vocabulary
from webhook.evaluation.state import Evaluation, ratchets
from webhook.fields.gpu.annotations import FRACTION, MEMORY, annotation_path
from webhook.fields.gpu.defaults import COUNT, WHOLE_NAME, Choice
from webhook.fields.gpu.form_field import GpuFormField
from webhook.fields.gpu.limits import judge_order
from webhook.fields.gpu.parts import UNITS, Found, requests
from webhook.fields.gpu.use import CLAIM, WHOLE, GpuUse
from webhook.fields.scalar import INVALID
from webhook.objects import quantity
from webhook.objects.path import Path
from webhook.pods.pod_view import PodView
from webhook.policy.combine import Constraint, Effective, Leaf
from webhook.policy.row import Field


class PartField(GpuFormField):
    """A request of a part of a GPU: a share of it, or memory."""

    __slots__ = ("form",)

    def __init__(self, field: Field, leaf: Leaf, words: Vocabulary, effective: Effective) -> None:
        super().__init__(field, leaf, words, effective)
        self.form = FRACTION if field.at[0] == "portion" else MEMORY

    def stated_values(self, view: PodView) -> list[Found]:
        """The annotations that ask for it."""
        return requests(view, self.form, self.defaults.unit)

    def asked(self, view: PodView, ev: Evaluation, use: GpuUse) -> list[Found]:
        """The annotations that ask for it."""
        found = self.stated_values(view)
        return found if self.form == FRACTION else self.rounded(found, UNITS[self.defaults.unit])

    def unset(self, view: PodView) -> Path:
        """Where a default would go."""
        return annotation_path(view, self.form)

    def judge_one(self, ev: Evaluation, each: Found, old: Found | None) -> None:
        """As for others; what the scheduler would refuse is refused here where no rule does."""
        known = len(ev.findings.violations)
        super().judge_one(ev, each, old)
        value = self.rules.read(each.native)
        if value is INVALID or (old is not None and old.native == each.native):
            return
        possible = 0 < value < quantity.NANO if self.form == FRACTION else value > 0
        if not possible and len(ev.findings.violations) == known:
            self.refuse_impossible(ev, each.path, self.rules.show(value))

    def refuse_impossible(self, ev: Evaluation, path: Path, shown: str | None) -> None:
        """A share that is none, or no memory at all."""
        ev.violate(self.field.path, path, shown, self.wanted(), None, reason="invalid-value")

    def wanted(self) -> str:
        """What an author is asked to write."""
        if self.form == FRACTION:
            return "a share above 0 and below 1"
        return f"a whole number of {self.defaults.unit} above 0"

    def judge(self, view: PodView, ev: Evaluation, use: GpuUse) -> None:
        """Final rules, and a limit that is below the request."""
        super().judge(view, ev, use)
        judge_order(view, ev, self.form, self.defaults.unit)

    def fill(self, view: PodView, ev: Evaluation) -> None:
        """Write the part, or the whole devices that it comes to, where no form is in use."""
        choice = self.all_defaults().choice(view, ev)
        if choice is None or choice.owner != self.field.path or choice.value is None:
            return
        if choice.form == WHOLE:
            self.write_whole(view, ev, choice)
            return
        if choice.value < 0:
            shown = self.rules.show(choice.value)
            self.refuse_impossible(ev, annotation_path(view, self.form), shown)
            return
        self.annotate(view, ev, self.form, self.text(choice.value), choice)
        self.name_container(view, ev, choice)

    def write_whole(self, view: PodView, ev: Evaluation, choice: Choice) -> None:
        """A share of 1 or more is whole devices, never one and a half."""
        default = self.rules.default
        if default is not None and default.value % quantity.NANO:
            shown = self.rules.show(default.value)
            self.refuse_impossible(ev, annotation_path(view, self.form), shown)
            return
        self.write_devices(view, ev, choice, WHOLE_NAME)

    def text(self, value: Any) -> str:
        """A share as a decimal, memory in the installation's unit, rounded up."""
        if self.form == FRACTION:
            return self.rules.show(value) or ""
        return str(-(-value // UNITS[self.defaults.unit]))


class PortionField(PartField):
    """compute.gpuPortionRequest: whole devices are shares too, where nothing else is said of them."""

    __slots__ = ()

    def asked(self, view: PodView, ev: Evaluation, use: GpuUse) -> list[Found]:
        """The annotations, else whole devices as their number."""
        found = super().asked(view, ev, use)
        if found or not use.forms or not use.forms <= {WHOLE, CLAIM} or use.unbounded:
            return found
        return [Found(self.place(view), str(use.count), WHOLE)]

    def intent(self, view: PodView, ev: Evaluation) -> None:
        """A prohibition of shares speaks of whole devices only where the default is a share."""
        use = self.use(view, ev)
        preferred = self.all_defaults().preferred()
        fixed = preferred is not None and preferred.owner == self.field.path
        if fixed or super().asked(view, ev, use):
            super().intent(view, ev)

    def judge(self, view: PodView, ev: Evaluation, use: GpuUse) -> None:
        """Bounds of the number of devices, where there are any, speak for whole devices."""
        held = self.effective.get(COUNT)
        counted = held is not None and any(
            each.rule in ("min", "max", "step") for each in held.constraints
        )
        whole = not self.stated_values(view)
        if whole and counted and not use.none and use.forms <= {WHOLE, CLAIM}:
            return
        if whole and self.refuse_unread(view, ev, use):
            return
        if whole and use.unbounded:
            self.judge_unbounded(view, ev, use)
            return
        super().judge(view, ev, use)

    def judge_unbounded(self, view: PodView, ev: Evaluation, use: GpuUse) -> None:
        """What cannot be counted breaks any maximum."""
        before = self.before(view, ev)
        for each, _ in self.rules.final:
            if each.rule != "max" or (before and use.is_no_more(before) and ratchets(each)):
                continue
            self.violate_unbounded(view, ev, each, use)

    def violate_unbounded(
        self, view: PodView, ev: Evaluation, each: Constraint, use: GpuUse
    ) -> None:
        """Record a request without a bound."""
        path, allowed = self.place(view), self.rules.show_argument(each)
        key = use.unbounded
        ev.violate(self.field.path, path, use.shown(), allowed, each, reason="unbounded", key=key)

    def judge_one(self, ev: Evaluation, each: Found, old: Found | None) -> None:
        """A number of whole devices is no share that a scheduler could refuse."""
        if each.key == WHOLE:
            GpuFormField.judge_one(self, ev, each, old)
        else:
            super().judge_one(ev, each, old)
