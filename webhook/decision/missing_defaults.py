"""Reports locked defaults that the object lacks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from webhook.catalog.plan import Plan
from webhook.decision.rules import EvaluatedPod
from webhook.evaluation.intent import value_before
from webhook.evaluation.outcome import Change
from webhook.evaluation.state import Evaluation
from webhook.fields.handler import CompiledField
from webhook.fields.scalar import ScalarRules
from webhook.objects.draft import same
from webhook.objects.lookup import ListKeys
from webhook.objects.path import ABSENT, Path, read
from webhook.pods.pod_view import PodView

Locked = tuple[CompiledField[Any], PodView | Sequence[PodView]]
"""A field with a locked default, and the pod or the pods that must have it."""


def must_be_complete(ev: Evaluation) -> bool:
    """Return whether locked defaults must already be present.

    The validating pass cannot add them, and the mutating pass cannot add them below immutable
    paths.
    """
    return ev.final_object or (ev.writes and bool(ev.immutable))


def check_locked_defaults(
    ev: Evaluation,
    plan: Plan,
    pods: Sequence[EvaluatedPod],
    views: Sequence[PodView],
) -> None:
    """Report each locked default that the object lacks.

    This happens if the mutating pass was skipped, undone, or could not write the default. An update
    may lack a default that the old object lacked too, but may not remove one.
    """
    todo: list[Locked] = [
        (field, ev.current_pod(view))
        for view, steps, as_before in pods
        if not as_before
        for field in steps.locked
    ]
    if plan.workload.locked:
        now = [ev.current_pod(view) for view in views]
        todo += [(field, now) for field in plan.workload.locked]
    check_missing(ev, todo, ev.advice_on_missing())


def check_missing(ev: Evaluation, todo: Sequence[Locked], fix: str) -> None:
    """Report the locked defaults that the object lacks, each with its pod or pods."""
    if not todo:
        return
    document = ev.draft.document
    scratch = evaluation_of(ev, document, ev.old)
    for field, subject in todo:
        ev.request.go_on()
        known = len(scratch.findings.changes)
        field.fill(subject, scratch)
        changes = scratch.findings.changes[known:]
        if ev.updating and changes:
            changes = find_removed_defaults(ev, field, subject, changes)
        for change in changes:
            rules = field.rules_at(change.field)
            present = read(document, change.path)
            absent = present is ABSENT or present is None
            # A server default in a final object has already been evaluated as an edit.
            if absent or not ev.final_object:
                refuse(ev, rules, change, None if absent else present, fix)


def refuse(ev: Evaluation, rules: ScalarRules, change: Change, present: Any, fix: str) -> None:
    """Record a missing default where a rule fixes it; `present` is what stands in its place."""
    rule = next((each for each in rules.prohibitions if each.type.fixes_default), None)
    if rule is not None:
        value = None if present is None else rules.show_native_at(change.path, present)
        allowed = None if change.secret else rules.show_native(change.value)
        ev.violate(change.field, change.path, value, allowed, rule, fix=fix)


def evaluation_of(ev: Evaluation, document: Any, old: Any) -> Evaluation:
    """An evaluation that may write all defaults into a document, to see which ones it lacks."""
    again = ev.request
    if document is not again.object or old is not again.old:
        again = replace(again, object=document, old=old)
    definition = ev.definition
    if document is ev.old:
        again, definition = replace(again, operation="CREATE", raw=None), ev.definition_before
    found = Evaluation(again, ev.references, definition, ev.injected, ev.pods)
    found.write_all()
    return found


def find_removed_defaults(
    ev: Evaluation, field: CompiledField[Any], subject: Any, changes: Sequence[Change]
) -> list[Change]:
    """The missing defaults that the old object had, or that something new lacks."""
    document, lists = ev.draft.document, ListKeys()
    before = [value_before(ev.old, document, each.path, lists) for each in changes]
    if not isinstance(subject, PodView):
        return [each for each, old in zip(changes, before, strict=True) if same(old, each.value)]
    holders = holders_of(subject)
    tolerated = tolerated_in(subject, holders, lacked_before(ev, field, subject))
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


def lacked_before(ev: Evaluation, field: CompiledField[Any], view: PodView) -> frozenset[Holder]:
    """The containers, or the pod, that lacked the default of a field before the update."""
    if view.old is None:
        return frozenset()
    scratch = evaluation_of(ev, ev.old, None)
    field.fill(view.old, scratch)
    holders = holders_of(view.old)
    return frozenset(holder(holders, each.path) for each in scratch.findings.changes)


def holders_of(view: PodView) -> dict[Path, Holder]:
    """Return the containers of a pod by their paths in the object."""
    return {view.at(each.path).report: (each.list, each.name) for each in view.everyone}


def holder(holders: Mapping[Path, Holder], path: Path) -> Holder:
    """Return which container a path leads into."""
    heads = (path[:size] for size in range(len(path) + 1))
    return next((holders[head] for head in heads if head in holders), None)


def tolerated_in(
    view: PodView, holders: Mapping[Path, Holder], lacked: frozenset[Holder]
) -> frozenset[Holder]:
    """Return where a default may be missing: where it was missing before the update."""
    known = {
        (each.list, each.name) for each in view.everyone if view.old_container(each) is not None
    }
    found = known if None in lacked else known & lacked
    whole = known.issuperset(holders.values())
    if whole and (None in lacked or (found and len(found) == len(known))):
        return frozenset((*found, None))
    return frozenset(found)
