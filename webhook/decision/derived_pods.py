"""Evaluates the pods of what a controller made verbatim: only fields that injected content can abuse."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from webhook.catalog.plan import Plan
from webhook.decision.missing_defaults import judge_missing
from webhook.decision.pods import views_of
from webhook.evaluation.outcome import Violation
from webhook.evaluation.references import References
from webhook.evaluation.request import Request
from webhook.evaluation.state import Evaluation
from webhook.fields.gpu.use import sees_devices
from webhook.fields.host_ports import host_ports
from webhook.fields.items.field import ItemsField
from webhook.fields.steps import Steps
from webhook.interface.injected_items import Injected
from webhook.pods.definition import Definition
from webhook.pods.pod_view import Container, PodView, main_container
from webhook.policy.row import AMOUNT, Binding, Field


def is_evaluated(row: Field) -> bool:
    """Whether all rules of a field apply: safety, images and devices, but not cpu and memory."""
    devices = row.binding is Binding.AMOUNT and row.shape != AMOUNT
    return row.safety or row.binding is Binding.SAFETY or devices


class DerivedPods:
    """The pods of one object that a controller made, or of its owner, ready to be evaluated.

    Raises LocationError or MalformedPod when they cannot be located. Containers that `injected`
    lists excuse are not there, so that no rule and no total sees them.
    """

    __slots__ = ("before", "definition", "ev", "views")

    def __init__(
        self,
        request: Request,
        references: References,
        definition: Definition,
        injected: Injected,
    ) -> None:
        self.definition = definition
        self.ev = Evaluation(request, references, definition, injected)
        views, _ = views_of(self.ev)
        self.views = [without_excused(view, injected) for view in views]

    @property
    def document(self) -> Any:
        """The object that the pods are in."""
        return self.ev.request.object

    @property
    def unmapped(self) -> frozenset[str]:
        """The fields that the object has no place for, of those that were evaluated."""
        warned = self.ev.findings.warnings
        return frozenset(each.field for each in warned if each.reason == "unmapped-rule")

    def violations(self, plan: Plan, steps: Steps, view: PodView) -> tuple[Violation, ...]:
        """What one pod violates by the rules of one component."""
        if view.old is not None and view.old.spec == view.spec:
            return ()
        findings = self.ev.findings
        findings.violations.clear()
        self.ev.told.clear()
        for binding in steps.intent:
            self.ev.request.go_on()
            if is_evaluated(binding.field) or binding.field.section == "storage":
                binding.intent(view, self.ev)
            elif isinstance(binding, ItemsField):
                binding.intent_of_locks(view, self.ev)
        for binding in steps.final:
            self.ev.request.go_on()
            if is_evaluated(binding.field):
                binding.final(view, self.ev)
            elif isinstance(binding, ItemsField):
                binding.final_of_locks(view, self.ev)
        if view.old is None:
            missing = [(each, view) for each in steps.fixed if each.field.safety]
            judge_missing(self.ev, missing, self.ev.advice_on_missing())
        return tuple(dict.fromkeys(findings.violations))


def without_excused(view: PodView, injected: Injected) -> PodView:
    """The pod without containers that an installation's list or a profile excuses."""
    if not injected.containers:
        return view
    kept = [
        each
        for each in view.everyone
        if asks_of_node(each) or not injected.excuses(each.body, view)
    ]
    if len(kept) == len(view.everyone):
        return view
    places = {each.path for each in kept}
    ordinary = [each for each in view.containers if each.path in places]
    main = view.main
    if main is not None and main.path not in places:
        main = main_container(view.location, view.metadata, ordinary)
    found = replace(view, containers=ordinary, everyone=kept, main=main)
    if view.old is not None:
        found.old = without_excused(view.old, injected)
    return found


def asks_of_node(container: Container) -> bool:
    """Whether a container takes ports or devices of its node by what lists do not compare."""
    return sees_devices(container) or any(True for _ in host_ports(container))


def with_main(view: PodView, names: Sequence[str]) -> PodView:
    """The pod with that of its containers as the main one which its owner has as such."""
    for name in names:
        for each in view.containers:
            if each.name == name and each is not view.main:
                return replace(view, main=each)
    return view
