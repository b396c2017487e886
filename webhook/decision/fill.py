"""Writes defaults and imposed assets into the pods and the workload."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from webhook.catalog.plan import Plan
from webhook.decision.devices import complete_devices, is_of_devices
from webhook.decision.immutable import find_immutable_paths, restore_immutable
from webhook.decision.pods import views_before
from webhook.decision.rules import EvaluatedPod
from webhook.evaluation.references import References
from webhook.evaluation.request import Request, RequestClass, Stage
from webhook.evaluation.state import Evaluation, Views
from webhook.fields.exclude import excluded_items
from webhook.fields.steps import Steps
from webhook.objects.draft import PatchError
from webhook.pods.definition import Definition
from webhook.pods.location import FragmentPods
from webhook.pods.pod_view import MalformedPod, PodView, as_written


def fill(
    ev: Evaluation, plan: Plan, pods: Sequence[EvaluatedPod], views: Sequence[PodView]
) -> None:
    """Write defaults and imposed assets. A pod that an update leaves alone gets none."""
    restored = frozenset(restore_immutable(ev))
    for view, steps, as_before in pods:
        path = view.spec_path
        is_restored = (
            any(path[:size] in restored for size in range(len(path) + 1)) if restored else False
        )
        if not as_before and not is_restored:
            fill_pod(ev, steps, view)
    if ev.differs:
        workload = plan.workload
        for whole in workload.needed if ev.writes_needed_only else workload.fill:
            ev.request.go_on()
            whole.fill(views, ev)
    if is_of_devices(ev.request):
        complete_devices(ev, plan.config.devices)


def fill_pod(ev: Evaluation, steps: Steps[PodView], view: PodView) -> None:
    """Write the defaults of one pod. Containers that a default adds get the other defaults too."""
    fields = iter(steps.needed if ev.writes_needed_only else steps.fill)
    # Items that were written for another pod may be fragments of this one too.
    fresh = as_written(view, ev.draft.document, ev.pods) if ev.draft.changed else view
    for field in fields:
        ev.request.go_on()
        field.fill(fresh if field.shares_fragments else view, ev)
        if field.order:
            break  # fields that add containers come first
        if ev.draft.changed:
            view = fresh = ev.current_pod(view)
    for field in fields:
        ev.request.go_on()
        field.fill(fresh if field.shares_fragments else view, ev)


def completed_before(
    request: Request,
    plan: Plan,
    definition: Definition,
    references: References,
    pods: FragmentPods,
) -> Views:
    """Return the pods of the old object with podgate's defaults, by component and instance.

    `definition` locates the pods in the old object. The result is empty if they cannot be filled.
    """
    request_class = (
        RequestClass.OWNED if request.request_class is RequestClass.OWNED else RequestClass.FULL
    )
    again = replace(
        request, object=request.old, stage=Stage.MUTATE, request_class=request_class, raw=None
    )
    ev = Evaluation(again, references, definition, plan.config.injected, pods)
    views = [replace(view, old=view) for view in views_before(definition, request.old, pods)]
    ev.immutable = find_immutable_paths(request, definition, request.old)
    ev.excluded = excluded_items(ev)
    try:
        for view in views:
            fill_pod(ev, plan.pod(view.location.component, view.location.roles), view)
        return {
            (view.location.component, view.location.instance): ev.current_pod(view)
            for view in views
        }
    except (MalformedPod, PatchError):
        return {}
