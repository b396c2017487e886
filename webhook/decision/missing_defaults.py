"""Judges a fixed default that the final object lacks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from webhook.catalog.plan import Plan
from webhook.decision.rules import JudgedPod
from webhook.evaluation.intent import value_before
from webhook.evaluation.outcome import Change
from webhook.evaluation.state import Evaluation
from webhook.fields.items.field import ItemsField
from webhook.fields.scalar import ScalarRules
from webhook.jq.external import before_update
from webhook.objects.draft import same
from webhook.objects.lookup import ListKeys
from webhook.objects.path import ABSENT, Path, read, real
from webhook.pods.pod_view import PodView


def must_be_complete(ev: Evaluation) -> bool:
    """Whether locked defaults must be present by now.

    The validating pass cannot add them, and the mutating pass cannot add them below places that
    updates may not change.
    """
    return ev.final_object or (ev.writes and bool(ev.immutable))


def judge_unwritten(
    ev: Evaluation,
    plan: Plan,
    pods: Sequence[JudgedPod],
    views: Sequence[PodView],
) -> None:
    """Refuse a fixed default that the object lacks: the mutating pass was skipped or undone, or
    could not write it.

    An update may leave it away where the old object lacked it too, and may not remove it.
    """
    todo: list[tuple[Any, Any]] = [
        (binding, ev.as_it_stands(view))
        for view, steps, as_before in pods
        if not as_before
        for binding in steps.fixed
    ]
    if plan.workload.fixed:
        now = [ev.as_it_stands(view) for view in views]
        todo += [(binding, now) for binding in plan.workload.fixed]
    judge_missing(ev, todo, ev.advice_on_missing())


def judge_missing(ev: Evaluation, todo: Sequence[tuple[Any, Any]], fix: str) -> None:
    """The fixed defaults of these bindings, each with its pod or pods, that the object lacks."""
    if not todo:
        return
    document = ev.draft.document
    scratch = evaluation_of(ev, document, ev.old)
    for binding, subject in todo:
        ev.request.go_on()
        known = len(scratch.findings.changes)
        binding.fill(subject, scratch)
        changes = scratch.findings.changes[known:]
        if ev.updating and changes:
            changes = removed(ev, binding, subject, changes)
        for change in changes:
            rules = rules_of(binding, change)
            present = read(document, change.path)
            absent = present is ABSENT or present is None
            # The server's value in a final object is judged as an edit already.
            if rules is not None and (absent or not ev.final_object):
                refuse(ev, rules, change, None if absent else present, fix)


def rules_of(binding: Any, change: Change) -> ScalarRules | None:
    """Return the rules of the value that a change writes; None for an item, judged as locked."""
    if isinstance(binding, ItemsField):
        for each in binding.attributes:
            if change.field == f"{binding.field.path}.{each.attribute.name}":
                return each.rules
    found: ScalarRules | None = getattr(binding, "rules", None)
    return found


def refuse(ev: Evaluation, rules: ScalarRules, change: Change, present: Any, fix: str) -> None:
    """Record a missing default where a rule fixes it; `present` is what stands in its place."""
    rule = next((each for each in rules.prohibitions if each.rule == "canEdit"), None)
    if rule is not None:
        value = None if present is None else rules.show_native_at(change.path, present)
        allowed = None if change.secret else rules.show_native(change.value)
        ev.violate(change.field, change.path, value, allowed, rule, fix=fix)


def evaluation_of(ev: Evaluation, document: Any, old: Any) -> Evaluation:
    """An evaluation that may write all defaults into a document, to see which ones it lacks."""
    again = ev.request
    if document is not again.object or old is not again.old:
        again = replace(again, object=document, old=old)
    if document is ev.old:
        again = replace(again, operation="CREATE", raw=None)
    found = Evaluation(again, ev.references, ev.definition, ev.injected)
    found.write_all()
    return found


def removed(ev: Evaluation, binding: Any, subject: Any, changes: Sequence[Change]) -> list[Change]:
    """The missing defaults that the old object had, or that something new lacks."""
    document, lists = ev.draft.document, ListKeys()
    before = [value_before(ev.old, document, real(each.path), lists) for each in changes]
    if not isinstance(subject, PodView):
        return [each for each, old in zip(changes, before, strict=True) if same(old, each.value)]
    holders = holders_of(subject)
    tolerated = tolerated_in(subject, holders, lacked_before(ev, binding, subject))
    return [
        each
        for each, old in zip(changes, before, strict=True)
        if same(old, each.value)
        or (
            (old is ABSENT or old is None or old != read(document, each.path))
            and holder(holders, each.path) not in tolerated
        )
    ]


Holder = tuple[str, str] | None
"""The list and the name of a container, None for the pod itself."""


def lacked_before(ev: Evaluation, binding: Any, view: PodView) -> frozenset[Holder]:
    """The containers, or the pod, that lacked the default of a binding before the update."""
    if view.old is None:
        return frozenset()
    scratch = evaluation_of(ev, ev.old, None)
    with before_update():
        binding.fill(view.old, scratch)
    holders = holders_of(view.old)
    return frozenset(holder(holders, each.path) for each in scratch.findings.changes)


def holders_of(view: PodView) -> dict[Path, Holder]:
    """Return the containers of a pod by their places."""
    return {real(each.path): (each.list, each.name) for each in view.everyone}


def holder(holders: Mapping[Path, Holder], path: Path) -> Holder:
    """Return which container a path leads into."""
    place = real(path)
    heads = (place[:size] for size in range(len(place) + 1))
    return next((holders[head] for head in heads if head in holders), None)


def tolerated_in(
    view: PodView, holders: Mapping[Path, Holder], lacked: frozenset[Holder]
) -> frozenset[Holder]:
    """Where a default may be missing: where it was missing before the update."""
    known = {
        (each.list, each.name) for each in view.everyone if view.old_container(each) is not None
    }
    found = known if None in lacked else known & lacked
    whole = known.issuperset(holders.values())
    if whole and (None in lacked or (found and len(found) == len(known))):
        return frozenset((*found, None))
    return frozenset(found)
