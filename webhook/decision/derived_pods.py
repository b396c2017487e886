"""Evaluates pods of controller-made objects: only the fields that injected content can abuse."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from webhook.catalog.plan import Plan
from webhook.decision.missing_defaults import check_missing
from webhook.decision.pods import views_of
from webhook.evaluation.outcome import Violation
from webhook.evaluation.references import References
from webhook.evaluation.request import Request
from webhook.evaluation.state import Evaluation
from webhook.fields.gpu.use import sees_devices
from webhook.fields.host_ports import host_ports
from webhook.fields.steps import Steps
from webhook.interface.injected_items import Injected
from webhook.jq.external import Facts
from webhook.pods.definition import Definition
from webhook.pods.pod_view import Container, MalformedPod, PodView, main_container
from webhook.policy.row import AMOUNT, Binding, Field


def is_evaluated(row: Field) -> bool:
    """Return whether all rules of a field apply: safety, images and devices, not cpu and memory."""
    if row.binding in (Binding.REQUEST, Binding.CONFIG):
        return True
    devices = row.binding is Binding.AMOUNT and row.shape != AMOUNT
    return row.safety or row.binding is Binding.SAFETY or devices


class DerivedPods:
    """The pods of one object that a controller made, or of its owner, ready to be evaluated.

    Raises LocationError or MalformedPod if the pods cannot be located. Containers that `injected`
    allows are left out, so no rule and no total counts them.
    """

    __slots__ = ("before", "definition", "ev", "views")

    def __init__(
        self,
        request: Request,
        references: References,
        definition: Definition,
        injected: Injected,
        facts: Facts | None,
    ) -> None:
        self.definition = definition
        self.ev = Evaluation(request, references, definition, injected, facts=facts)
        views, _ = views_of(self.ev)
        self.views = [without_excused(view, injected) for view in views]

    @property
    def document(self) -> Any:
        """The object that the pods are in."""
        return self.ev.request.object

    @property
    def unmapped_fields(self) -> frozenset[str]:
        """The evaluated fields that the object has no path for."""
        warned = self.ev.findings.warnings
        return frozenset(each.field for each in warned if each.reason == "unmapped-rule")

    def violations(self, plan: Plan, steps: Steps[PodView], view: PodView) -> tuple[Violation, ...]:
        """Return the violations of one pod by the rules of one component. Raises MalformedPod."""
        if view.old is not None and view.old.spec == view.spec:
            return ()
        try:
            return self.evaluate(steps, view)
        except MalformedPod as error:
            error.path = self.ev.report(error.path)
            raise

    def evaluate(self, steps: Steps[PodView], view: PodView) -> tuple[Violation, ...]:
        """Return the violations of a pod that is new or changed."""
        findings = self.ev.findings
        findings.violations.clear()
        self.ev.reported.clear()
        for field in steps.intent:
            self.ev.request.go_on()
            if is_evaluated(field.row) or field.row.section == "storage":
                field.check_intent(view, self.ev)
            else:
                field.check_locked_intent(view, self.ev)
        for field in steps.final:
            self.ev.request.go_on()
            if is_evaluated(field.row):
                field.check_final(view, self.ev)
            else:
                field.check_locked_final(view, self.ev)
        if view.old is None:
            missing = [(each, view) for each in steps.locked if each.row.safety]
            check_missing(self.ev, missing, self.ev.advice_on_missing())
        return tuple(dict.fromkeys(findings.violations))


def without_excused(view: PodView, injected: Injected) -> PodView:
    """Return the pod without the containers that the settings or a profile allow as injected."""
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
    """Return whether a container takes ports or devices of its node, which lists do not compare."""
    return sees_devices(container) or any(True for _ in host_ports(container))


def with_main(view: PodView, names: Sequence[str]) -> PodView:
    """Return the pod with the first of its containers in `names` as the main container."""
    for name in names:
        for each in view.containers:
            if each.name == name and each is not view.main:
                return replace(view, main=each)
    return view
