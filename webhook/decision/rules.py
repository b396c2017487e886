"""Applies rules to the pods and the workload: to the user's object, then to the result."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from webhook.catalog.plan import Plan
from webhook.evaluation.state import Evaluation
from webhook.fields.steps import Steps
from webhook.fields.value_conflicts import check_conflicts, pairs_written
from webhook.pods.pod_view import PodView


class EvaluatedPod(NamedTuple):
    """A pod with the steps of its component. `as_before` pods occur only with `existing: strict`."""

    view: PodView
    steps: Steps[PodView]
    as_before: bool


def find_evaluated_pods(ev: Evaluation, plan: Plan, views: Sequence[PodView]) -> list[EvaluatedPod]:
    """Return the pods that are new or changed, and that have steps."""
    pods: list[EvaluatedPod] = []
    for view in views:
        as_before = view.spec_path in ev.as_before
        if not as_before or plan.strict:
            steps = plan.pod(view.location.component, view.location.roles)
            if not steps.empty:
                pods.append(EvaluatedPod(view, steps, as_before))
    return pods


def check_intent(
    ev: Evaluation, plan: Plan, pods: Sequence[EvaluatedPod], views: Sequence[PodView]
) -> None:
    """Check what the user set, added or changed, on the object as it was sent."""
    go_on = ev.request.go_on
    for view, steps, _ in pods:
        for field in steps.intent:
            go_on()
            field.check_intent(view, ev)
    for whole in plan.workload.intent:
        go_on()
        whole.check_intent(views, ev)


def check_final(
    ev: Evaluation, plan: Plan, pods: Sequence[EvaluatedPod], views: Sequence[PodView]
) -> None:
    """Check the result: the copy with defaults, or the object if nothing was written."""
    pairs, go_on = pairs_written(ev), ev.request.go_on
    for view, steps, _ in pods:
        if steps.final or ev.draft.changed:
            current = ev.current_pod(view) if ev.draft.changed else view
            for field in steps.final:
                go_on()
                field.check_final(current, ev)
            check_conflicts(current, ev, pairs)
    for whole in plan.workload.final:
        go_on()
        whole.check_final(views, ev)


def check_child(ev: Evaluation, pods: Sequence[EvaluatedPod]) -> None:
    """Check the rules that apply to children of controllers. Writes nothing."""
    for view, steps, _ in pods:
        for field in steps.intent:
            if field.on_children:
                field.check_intent(view, ev)
        for field in steps.final:
            if field.on_children:
                field.check_final(view, ev)
