"""Applies rules to the pods and the workload: to what the user wrote, and to the result."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from webhook.catalog.plan import Plan
from webhook.evaluation.state import Evaluation
from webhook.fields.steps import Steps
from webhook.fields.value_conflicts import judge_conflicts, pairs_written
from webhook.pods.pod_view import PodView
from webhook.policy.row import Binding, Field


class JudgedPod(NamedTuple):
    """A pod with the steps of its component; only `existing: strict` judges one `as_before`."""

    view: PodView
    steps: Steps
    as_before: bool


def judged_pods(ev: Evaluation, plan: Plan, views: Sequence[PodView]) -> list[JudgedPod]:
    """Every pod that is new or changed, and has something to judge or to write."""
    pods: list[JudgedPod] = []
    for view in views:
        as_before = view.spec_path in ev.as_before
        if not as_before or plan.strict:
            steps = plan.pod(view.location.component, view.location.roles)
            if not steps.empty:
                pods.append(JudgedPod(view, steps, as_before))
    return pods


def judge_intent(
    ev: Evaluation, plan: Plan, pods: Sequence[JudgedPod], views: Sequence[PodView]
) -> None:
    """What may not be set, added or changed, on the object as it came."""
    go_on = ev.request.go_on
    for view, steps, _ in pods:
        for binding in steps.intent:
            go_on()
            binding.intent(view, ev)
    for binding in plan.workload.intent:
        go_on()
        binding.intent(views, ev)


def judge_final(
    ev: Evaluation, plan: Plan, pods: Sequence[JudgedPod], views: Sequence[PodView]
) -> None:
    """What the result may hold: the copy with its defaults, or the object where none was written."""
    pairs, go_on = pairs_written(ev), ev.request.go_on
    for view, steps, _ in pods:
        if steps.final or ev.draft.changed:
            current = ev.as_it_stands(view) if ev.draft.changed else view
            for binding in steps.final:
                go_on()
                binding.final(current, ev)
            judge_conflicts(current, ev, pairs)
    for binding in plan.workload.final:
        go_on()
        binding.final(views, ev)


def judge_child(ev: Evaluation, pods: Sequence[JudgedPod]) -> None:
    """The rules that hold for what a controller made; nothing is written."""
    for view, steps, _ in pods:
        for binding in steps.intent:
            if binds_children(binding.field):
                binding.intent(view, ev)
        for binding in steps.final:
            if binds_children(binding.field):
                binding.final(view, ev)


def binds_children(row: Field) -> bool:
    """Whether a field's rules hold for what controllers make: safety, images, amounts."""
    return row.safety or row.binding in (Binding.SAFETY, Binding.AMOUNT)
