"""compute.gpuPortionRequest and gpuMemoryRequest: a part of a GPU, requested by annotation."""

from __future__ import annotations

from typing import Any

from webhook.evaluation.installation import InstallationConfig
from webhook.evaluation.state import Evaluation, ratchets
from webhook.fields.gpu.annotations import FRACTION, MEMORY, annotation_path
from webhook.fields.gpu.defaults import COUNT, WHOLE_NAME, Choice
from webhook.fields.gpu.form_field import GpuFormField
from webhook.fields.gpu.limits import check_order
from webhook.fields.gpu.parts import UNITS, GpuAmount, requests
from webhook.fields.gpu.use import CLAIM, WHOLE, GpuUse
from webhook.fields.scalar import INVALID
from webhook.objects import quantity
from webhook.objects.path import Path
from webhook.pods.pod_view import PodView
from webhook.policy.combine import Constraint, Effective, Leaf
from webhook.policy.row import Field


class GpuPartField(GpuFormField):
    """A request of a part of a GPU: a share of it, or memory."""

    __slots__ = ("form",)

    def __init__(
        self, row: Field, leaf: Leaf, config: InstallationConfig, effective: Effective
    ) -> None:
        super().__init__(row, leaf, config, effective)
        self.form = FRACTION if row.at[0] == "portion" else MEMORY

    def stated_values(self, view: PodView) -> list[GpuAmount]:
        """The annotations that ask for it."""
        return requests(view, self.form, self.defaults.unit)

    def find_values(self, view: PodView, ev: Evaluation, use: GpuUse) -> list[GpuAmount]:
        """The annotations that ask for it."""
        found = self.stated_values(view)
        return (
            found if self.form == FRACTION else self.round_amounts(found, UNITS[self.defaults.unit])
        )

    def unset(self, view: PodView) -> Path:
        """Return the path for a default."""
        return annotation_path(view, self.form)

    def check_value(self, ev: Evaluation, each: GpuAmount, old: GpuAmount | None) -> None:
        """Check intent, and refuse what the scheduler would reject if no rule does."""
        known = len(ev.findings.violations)
        super().check_value(ev, each, old)
        value = self.rules.read(each.native)
        if value is INVALID or (old is not None and old.native == each.native):
            return
        possible = 0 < value < quantity.NANO if self.form == FRACTION else value > 0
        if not possible and len(ev.findings.violations) == known:
            self.refuse_impossible(ev, each.path, self.rules.show(value))

    def refuse_impossible(self, ev: Evaluation, path: Path, shown: str | None) -> None:
        """Report an invalid share, or no memory at all."""
        ev.violate(self.row.path, path, shown, self.expected_form(), None, reason="invalid-value")

    def expected_form(self) -> str:
        """Return the expected form, for messages."""
        if self.form == FRACTION:
            return "a share above 0 and below 1"
        return f"a whole number of {self.defaults.unit} above 0"

    def check_rules(self, view: PodView, ev: Evaluation, use: GpuUse) -> None:
        """Check final rules, and a limit below the request."""
        super().check_rules(view, ev, use)
        check_order(view, ev, self.form, self.defaults.unit)

    def fill(self, view: PodView, ev: Evaluation) -> None:
        """Write the part, or the equivalent whole devices, if no form is in use."""
        choice = self.all_defaults().choice(view, ev)
        if choice is None or choice.owner != self.row.path or choice.value is None:
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
        """Return a share of 1 or more as whole devices, never one and a half."""
        default = self.rules.default
        if default is not None and default.value % quantity.NANO:
            shown = self.rules.show(default.value)
            self.refuse_impossible(ev, annotation_path(view, self.form), shown)
            return
        self.write_devices(view, ev, choice, WHOLE_NAME)

    def text(self, value: Any) -> str:
        """Return a share as a decimal, memory in the installation's unit, rounded up."""
        if self.form == FRACTION:
            return self.rules.show(value) or ""
        return str(-(-value // UNITS[self.defaults.unit]))


class PortionField(GpuPartField):
    """compute.gpuPortionRequest: whole devices are shares too, unless other rules cover them."""

    __slots__ = ()

    def find_values(self, view: PodView, ev: Evaluation, use: GpuUse) -> list[GpuAmount]:
        """Return the annotations, else the number of whole devices."""
        found = super().find_values(view, ev, use)
        if found or not use.forms or not use.forms <= {WHOLE, CLAIM} or use.unbounded_source:
            return found
        return [GpuAmount(self.place(view, ev), str(use.count), WHOLE)]

    def check_intent(self, view: PodView, ev: Evaluation) -> None:
        """Return whether a prohibition of shares covers whole devices: only if the default is a share."""
        use = self.use(view, ev)
        preferred = self.all_defaults().prefer()
        fixed = preferred is not None and preferred.owner == self.row.path
        if fixed or super().find_values(view, ev, use):
            super().check_intent(view, ev)

    def check_rules(self, view: PodView, ev: Evaluation, use: GpuUse) -> None:
        """Return whether bounds on the number of devices cover whole devices."""
        held = self.effective.get(COUNT)
        counted = held is not None and any(each.type.form == "bound" for each in held.constraints)
        whole = not self.stated_values(view)
        if whole and counted and not use.none and use.forms <= {WHOLE, CLAIM}:
            return
        if whole and self.refuse_unread(view, ev, use):
            return
        if whole and use.unbounded_source:
            self.check_unbounded(view, ev, use)
            return
        super().check_rules(view, ev, use)

    def check_unbounded(self, view: PodView, ev: Evaluation, use: GpuUse) -> None:
        """What cannot be counted breaks any maximum."""
        before = self.before(view, ev)
        for each, _ in self.rules.final:
            if not each.type.is_maximum or (before and use.is_no_more(before) and ratchets(each)):
                continue
            self.violate_unbounded(view, ev, each, use)

    def violate_unbounded(
        self, view: PodView, ev: Evaluation, each: Constraint, use: GpuUse
    ) -> None:
        """Report an unbounded request."""
        path, allowed = self.place(view, ev), self.rules.show_argument(each)
        key = use.unbounded_source
        ev.violate(self.row.path, path, use.show(), allowed, each, reason="unbounded", key=key)

    def check_value(self, ev: Evaluation, each: GpuAmount, old: GpuAmount | None) -> None:
        """Do nothing for whole devices, which are no share that a scheduler could reject."""
        if each.key == WHOLE:
            GpuFormField.check_value(self, ev, each, old)
        else:
            super().check_value(ev, each, old)
