"""Writes defaults and imposed assets into the pods and the workload."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from webhook.catalog.plan import Plan
from webhook.decision.immutable import immutable_places, restore_immutable
from webhook.decision.pods import views_before
from webhook.decision.rules import JudgedPod
from webhook.evaluation.references import References
from webhook.evaluation.request import Request, Stage, Treatment
from webhook.evaluation.state import Evaluation, Views
from webhook.fields.exclude import excluded_items
from webhook.fields.items.policy_items import PolicyItems
from webhook.fields.steps import Steps
from webhook.jq.external import before_update
from webhook.objects.draft import PatchError
from webhook.pods.pod_view import MalformedPod, PodView, as_written


def fill(ev: Evaluation, plan: Plan, pods: Sequence[JudgedPod], views: Sequence[PodView]) -> None:
    """Defaults and imposed assets; a pod location equal to the old one gets no patch."""
    restored = frozenset(restore_immutable(ev))
    for view, steps, as_before in pods:
        path = view.spec_path
        held = any(path[:size] in restored for size in range(len(path) + 1)) if restored else False
        if not as_before and not held:
            fill_pod(ev, steps, view)
    if ev.differs:
        steps = plan.workload
        for binding in steps.needed if ev.writes_needed_only else steps.fill:
            ev.request.go_on()
            binding.fill(views, ev)


def fill_pod(ev: Evaluation, steps: Steps, view: PodView) -> None:
    """Defaults of one pod; the containers that some bring along get those of the others too."""
    bindings = iter(steps.needed if ev.writes_needed_only else steps.fill)
    # Items that were written for another pod may be fragments of this one too.
    fresh = as_written(view, ev.draft.document) if ev.draft.changed else view
    for binding in bindings:
        ev.request.go_on()
        binding.fill(fresh if isinstance(binding, PolicyItems) else view, ev)
        if not getattr(binding, "adds_containers", False):
            break  # those that bring containers come first
        if ev.draft.changed:
            view = fresh = ev.as_it_stands(view)
    for binding in bindings:
        ev.request.go_on()
        binding.fill(fresh if isinstance(binding, PolicyItems) else view, ev)


def completed_before(request: Request, plan: Plan, references: References) -> Views:
    """The pods of the old object as our own writing completes them where a pod is changed."""
    definition = plan.definition
    treatment = Treatment.OWNED if request.treatment is Treatment.OWNED else Treatment.FULL
    again = replace(request, object=request.old, stage=Stage.MUTATE, treatment=treatment, raw=None)
    ev = Evaluation(again, references, definition, plan.vocabulary.injected)
    views = [replace(view, old=view) for view in views_before(definition, request.old)]
    ev.immutable = immutable_places(request, definition, request.old)
    ev.excluded = excluded_items(ev)
    try:
        with before_update():
            for view in views:
                fill_pod(ev, plan.pod(view.location.component, view.location.roles), view)
            return {
                (view.location.component, view.location.instance): ev.as_it_stands(view)
                for view in views
            }
    except (MalformedPod, PatchError):
        return {}
