"""What fields of one form of GPUs have in common: values that a pod states at several places."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from webhook.evaluation.installation import Vocabulary
from webhook.evaluation.state import Evaluation, ratchets
from webhook.fields.gpu.annotations import FRACTION, annotation_path
from webhook.fields.gpu.count import GpuField
from webhook.fields.gpu.parts import Found
from webhook.fields.gpu.use import GpuUse
from webhook.fields.replicas import closer
from webhook.fields.scalar import INVALID
from webhook.objects import quantity
from webhook.objects.path import Path
from webhook.pods.pod_view import PodView
from webhook.policy.combine import Effective, Leaf
from webhook.policy.row import Field


class GpuFormField(GpuField):
    """A field of one form of GPUs, or of the form itself."""

    __slots__ = ("effective", "words")

    def __init__(self, field: Field, leaf: Leaf, words: Vocabulary, effective: Effective) -> None:
        super().__init__(field, leaf, words, effective)
        self.words = words
        self.effective = effective

    @abstractmethod
    def asked(self, view: PodView, ev: Evaluation, use: GpuUse) -> list[Found]:
        """What the pod states of this field."""

    def unset(self, view: PodView) -> Path:
        """Where a default would go."""
        return annotation_path(view, FRACTION)

    def rounded(self, found: list[Found], unit: int) -> list[Found]:
        """Amounts of which the default is one that was rounded up to whole units, as the default.

        Else our own writing of 4G, as 3815 MiB, would differ from what is fixed.
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

    def asked_before(self, view: PodView, ev: Evaluation) -> dict[str, Found]:
        """What the pod stated before the update, by key."""
        before = self.before(view, ev)
        if view.old is None or before is None:
            return {}
        return {each.key: each for each in self.asked(view.old, ev, before)}

    def intent(self, view: PodView, ev: Evaluation) -> None:
        """canEdit and blocked on what is stated; a fixed form refuses every other."""
        if not self.rules.prohibitions:
            return
        use, before = self.use(view, ev), self.before(view, ev)
        found, old = self.asked(view, ev, use), self.asked_before(view, ev)
        for each in found:
            known = old.get(each.key)
            was = (known.path, known.native) if known is not None else None
            self.rules.judge_intent(ev, each.path, each.native, was, None)
        if not found and not use.none:
            self.violate_form(view, ev, use, before)

    def judge(self, view: PodView, ev: Evaluation, use: GpuUse) -> None:
        """Final rules on what is stated; required where nothing is."""
        found, old = self.asked(view, ev, use), self.asked_before(view, ev)
        if not found:
            self.rules.judge_required(ev, self.unset(view), unchanged=bool(view.old) and not old)
        for each in found:
            self.judge_one(ev, each, old.get(each.key))

    def judge_one(self, ev: Evaluation, each: Found, old: Found | None) -> None:
        """One stated value; no further from a rule than before passes."""
        rules, value = self.rules, self.rules.read(each.native)
        if value is INVALID:
            if old is None or old.native != each.native:
                self.refuse_unreadable(ev, each)
            return
        was: Any = rules.read(old.native) if old is not None else INVALID
        for rule, holds in rules.final:
            if holds(value, rule.argument):
                continue
            if was is not INVALID and ratchets(rule) and closer(rule.rule, value, was):
                continue
            argument = rules.show_argument(rule)
            ev.violate(self.field.path, each.path, rules.show(value), argument, rule)

    def refuse_unreadable(self, ev: Evaluation, each: Found) -> None:
        """What an annotation or a variable holds is not printed, only what is wanted instead."""
        rules = self.rules
        sources = [rule.source for rule, _ in rules.final]
        if rules.default is not None:
            sources.append(rules.default.source)
        ev.violate(
            self.field.path,
            each.path,
            None,
            self.wanted(),
            None,
            reason="invalid-value",
            source=next(iter(sources), None),
            key=each.key,
        )

    def wanted(self) -> str:
        """What an author is asked to write."""
        return "text"

    def read(self, view: PodView) -> tuple[Path, Any]:
        """The first place that states a value with the value, else where a default would go."""
        found = self.stated_values(view)
        return (found[0].path, found[0].native) if found else (self.unset(view), None)

    def stated_values(self, view: PodView) -> list[Found]:
        """What the pod states of this field by itself."""
        return []

    def current(self, view: PodView, ev: Evaluation) -> Any:
        """The value in the copy, in the field's notation; None when unset."""
        now = self.now(view, ev)
        found = self.asked(now, ev, self.use(now, ev))
        return found[0].native if found else None
