"""The base of fields of one GPU form: values that a pod sets at several paths."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any

from webhook.evaluation.installation import InstallationConfig
from webhook.evaluation.state import Evaluation, ratchets
from webhook.fields.gpu.annotations import FRACTION, annotation_path
from webhook.fields.gpu.count import GpuField
from webhook.fields.gpu.parts import UNREADABLE, GpuAmount
from webhook.fields.gpu.use import GpuUse
from webhook.fields.handler import FieldValue
from webhook.fields.scalar import INVALID
from webhook.objects import quantity
from webhook.objects.path import Path
from webhook.pods.pod_view import PodView
from webhook.policy.combine import Effective, Leaf
from webhook.policy.row import Field


class GpuFormField(GpuField):
    """A field of one form of GPUs, or of the form itself."""

    __slots__ = ("config", "effective")

    def __init__(
        self, row: Field, leaf: Leaf, config: InstallationConfig, effective: Effective
    ) -> None:
        super().__init__(row, leaf, config, effective)
        self.config = config
        self.effective = effective

    @abstractmethod
    def find_values(self, view: PodView, ev: Evaluation, use: GpuUse) -> list[GpuAmount]:
        """What the pod states of this field."""

    def unset(self, view: PodView) -> Path:
        """Return the path for a default."""
        return annotation_path(view, FRACTION)

    def round_amounts(self, found: list[GpuAmount], unit: int) -> list[GpuAmount]:
        """Return amounts in which a default that was rounded up to whole units counts as the default.

        Otherwise podgate's own 3815 MiB for a default of 4G would differ from the locked value.
        """
        default = self.rules.default
        if default is None:
            return found
        value = -(-default.value // unit) * unit
        same = quantity.render(default.value)
        return [
            each._replace(native=same) if self.rules.read(each.native) == value else each
            for each in found
        ]

    def asked_before(self, view: PodView, ev: Evaluation) -> dict[str, GpuAmount]:
        """Return the values before the update, by key."""
        before = self.before(view, ev)
        if view.old is None or before is None:
            return {}
        return {each.key: each for each in self.find_values(view.old, ev, before)}

    def check_intent(self, view: PodView, ev: Evaluation) -> None:
        """Check canEdit and blocked on the values. A locked form refuses every other."""
        if not self.rules.prohibitions:
            return
        use, before = self.use(view, ev), self.before(view, ev)
        found, old = self.find_values(view, ev, use), self.asked_before(view, ev)
        for each in found:
            known = old.get(each.key)
            was = (known.path, known.native) if known is not None else None
            self.rules.check_intent(ev, each.path, each.native, was, None)
        if not found and not use.none:
            self.violate_form(view, ev, use, before)

    def check_rules(self, view: PodView, ev: Evaluation, use: GpuUse) -> None:
        """Check final rules on the values, and required if there is none."""
        found, old = self.find_values(view, ev, use), self.asked_before(view, ev)
        if not found:
            self.rules.check_required(ev, self.unset(view), unchanged=bool(view.old) and not old)
        for each in found:
            self.check_value(ev, each, old.get(each.key))

    def check_value(self, ev: Evaluation, each: GpuAmount, old: GpuAmount | None) -> None:
        """Check one value. One that is no worse than before passes."""
        rules, value = self.rules, self.rules.read(each.native)
        if value is INVALID:
            if old is None or old.native != each.native:
                self.refuse_unreadable(ev, each)
            return
        was: Any = rules.read(old.native) if old is not None else INVALID
        for rule, holds in rules.final:
            if holds(value, rule.argument):
                continue
            if was is not INVALID and ratchets(rule) and rule.type.is_no_further(value, was):
                continue
            argument = rules.show_argument(rule)
            ev.violate(self.row.path, each.path, rules.show(value), argument, rule)

    def refuse_unreadable(self, ev: Evaluation, each: GpuAmount) -> None:
        """Report without the value of an annotation or variable, only with the allowed form."""
        rules = self.rules
        sources = [rule.source for rule, _ in rules.final]
        if rules.default is not None:
            sources.append(rules.default.source)
        ev.violate(
            self.row.path,
            each.path,
            None,
            self.expected_form(),
            None,
            reason="invalid-value",
            source=next(iter(sources), None),
            key=each.key,
        )

    def expected_form(self) -> str:
        """Return the expected form, for messages."""
        return "text"

    def stated_values(self, view: PodView) -> list[GpuAmount]:
        """Return the values that the pod itself sets for this field."""
        return []

    def read(self, view: PodView, ev: Evaluation) -> Iterator[FieldValue]:
        """Yield every amount of this form in the pod. Unreadable ones are never shown."""
        found, note = self.stated_values(view), ""
        if not found and (self.rules.final or self.rules.prohibitions):
            # Rules apply to the value that another form results in.
            found = self.find_values(view, ev, self.use(view, ev))
            note = "what another form of GPUs amounts to"
        for each in found:
            hidden = each.native == UNREADABLE
            note_shown = "cannot be read" if hidden else note
            yield FieldValue(each.path, each.native, note=note_shown, derived=True, hidden=hidden)
        if not found:
            yield FieldValue(self.unset(view), None)

    def current(self, view: PodView, ev: Evaluation) -> Any:
        """Return the value in the copy, in the field's notation, None if unset."""
        now = self.now(view, ev)
        found = self.find_values(now, ev, self.use(now, ev))
        return found[0].native if found else None
