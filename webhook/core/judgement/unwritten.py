"""Judges a fixed default that the final object lacks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from webhook.core.judgement.rules import JudgedPod
from webhook.core.plan import Plan
from webhook.core.pointer import ABSENT, read
from webhook.core.request import Treatment
from webhook.core.workload.evaluation import Evaluation
from webhook.core.workload.podspec import PodView

UNWRITTEN = "Send the object again; the policy fills it in."


def must_be_complete(ev: Evaluation) -> bool:
    """Whether locked defaults must already be present. The validating pass cannot add them.

    An update by a person may not take them away from what a controller owns: the controller may
    have made it before there was a policy, and nobody sends it again.
    """
    return ev.final_object and (not ev.updating or ev.request.treatment is Treatment.OWNED)


def judge_unwritten(
    ev: Evaluation,
    plan: Plan,
    pods: Sequence[JudgedPod],
    views: Sequence[PodView],
) -> None:
    """A fixed default that the final object lacks: the mutating pass was skipped, or undone.

    What an update leaves as it was is fine; what it takes away is not.
    """
    todo: list[tuple[Any, Any]] = [
        (binding, view)
        for view, steps, as_before in pods
        if not as_before
        for binding in steps.fixed
    ]
    todo += [(binding, views) for binding in plan.workload.fixed]
    judge_missing(ev, todo, UNWRITTEN)


def judge_missing(ev: Evaluation, todo: Sequence[tuple[Any, Any]], fix: str) -> None:
    """The fixed defaults of these bindings, each with its pod or pods, that the object lacks."""
    if not todo:
        return
    scratch = Evaluation(ev.request, ev.references, ev.definition, ev.injected)
    scratch.write_all()
    scratch.immutable = ev.immutable
    for binding, subject in todo:
        ev.request.go_on()
        known = len(scratch.findings.changes)
        binding.fill(subject, scratch)
        rules = [each for each in binding.rules.prohibitions if each.rule == "canEdit"]
        for change in scratch.findings.changes[known:]:
            present = read(ev.request.object, change.path)
            absent = present is ABSENT or present is None
            taken = change.why == "kept" or not ev.updating
            # The server's value in a final object is judged as an edit already.
            if taken and (absent or not ev.final_object):
                value = None if absent else binding.rules.show_native_at(change.path, present)
                allowed = None if change.secret else binding.rules.show_native(change.value)
                ev.violate(change.field, change.path, value, allowed, rules[0], fix=fix)
