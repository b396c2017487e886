"""Explains one new object: each field's value in the completed form, its path and its source.

The steps of a decision run again, so that values of a refused object can be explained too.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from typing import Any

from webhook.catalog.catalog import Plans
from webhook.catalog.plan import component_roles, concerns
from webhook.decision.decide import apply_rules
from webhook.decision.pods import views_of
from webhook.decision.wrapped import locate_pod_sets
from webhook.evaluation.outcome import Decision, Denied
from webhook.evaluation.references import References
from webhook.evaluation.request import Request
from webhook.evaluation.state import Evaluation
from webhook.explain.entries import entry_of
from webhook.explain.findings import attach_violation, attach_warning
from webhook.explain.kinds import names_component
from webhook.explain.leaves import Leaves, policies_of
from webhook.explain.model import (
    DEFAULT,
    DEFAULT_FROM,
    FORBIDDEN,
    UNSET,
    Entry,
    FieldReport,
    LeafReport,
    ObjectReport,
    PodReport,
)
from webhook.explain.origins import Origins
from webhook.explain.support import find_support
from webhook.explain.values import factor_text
from webhook.fields.exclude import excluded_items
from webhook.fields.handler import CompiledField
from webhook.fields.registry import POD_HANDLERS, WORKLOAD_HANDLERS, is_of_workload
from webhook.fields.steps import Steps
from webhook.jq.external import Facts
from webhook.objects.draft import PatchError
from webhook.objects.path import ABSENT
from webhook.pods.location import LocationError
from webhook.pods.pod_view import MalformedPod, PodView
from webhook.policy.combine import Effective, Leaf
from webhook.policy.merge_components import merge_leaf
from webhook.policy.row import AMOUNT, ITEMS, PULL_SECRETS, SCALE, WORKLOAD_ITEMS, Field
from webhook.policy.table import TABLE

LISTS_MISSING = frozenset({ITEMS, PULL_SECRETS, WORKLOAD_ITEMS})
"""Shapes whose unset entries are listed besides the set ones."""


def explain_object(
    request: Request,
    plans: Plans,
    references: References,
    facts: Facts | None,
    decision: Decision,
    component: str = "",
) -> ObjectReport:
    """Report every field of one new object that a policy names or the object sets, with its decision.

    `request` is the object offline, with its raw form. `decision` is the result of both passes.
    """
    found = Explanation(request, plans, references, facts)
    result = found.report(component)
    violations = decision.violations if isinstance(decision, Denied) else ()
    before, after = request.object, found.ev.draft.document
    result.audit = decision.audit
    result.violations = [
        each for each in violations if not attach_violation(each, before, after, result)
    ]
    result.warnings = [each for each in decision.warnings if not attach_warning(each, result)]
    return result


class Explanation:
    """The state of one explanation: the steps of the decision, and what they wrote."""

    def __init__(
        self, request: Request, plans: Plans, references: References, facts: Facts | None
    ) -> None:
        self.plans, plan = plans, plans.enforced
        injected = plan.config.injected
        self.ev = Evaluation(request, references, plan.definition, injected, facts=facts)
        with suppress(LocationError):  # as below
            locate_pod_sets(self.ev)
        self.definition = self.ev.definition
        self.plan = replace(plan, definition=self.definition)
        self.leaves = Leaves(plans)
        self.before: list[PodView] = []
        self.views: list[PodView] = []
        try:
            self.before, _ = views_of(self.ev)
            self.ev.excluded = excluded_items(self.ev)
            apply_rules(self.ev, self.plan, self.before)
            self.views = [self.ev.current_pod(view) for view in self.before]
        except (LocationError, MalformedPod, PatchError):
            # Pods that cannot be located have no fields. The decision reports the error.
            self.views = []
        self.origins = Origins(
            request, self.ev.draft.document, self.ev.findings.changes, self.ev.pods
        )

    def report(self, component: str) -> ObjectReport:
        """Return the fields of all pods, or of one component's pods, and of the workload."""
        pods = [
            self.pod(view)
            for view in self.views
            if names_component(component, view.location.component, view.location.roles)
        ]
        workload = self.workload() if self.views or not self.before else []
        return ObjectReport(policies_of(self.plans), pods, workload, [], [])

    # Pods

    def pod(self, view: PodView) -> PodReport:
        """Report one pod: fields that its policies name, then other fields that the object sets."""
        location = view.location
        leaves = self.leaves.of(location.component, location.roles)
        effective = self.plan.effective(location.component, location.roles)
        fields: list[FieldReport] = []
        for row in TABLE.fields.values():
            if row.shape not in POD_HANDLERS or is_of_workload(row, self.definition):
                continue
            leaves_of_field = tuple(each for each in leaves if TABLE.owner(each.field) is row)
            entries = self.entries_of_pod(view, row, effective)
            if leaves_of_field or any(each.value is not ABSENT for each in entries):
                fields.append(FieldReport(row.path, row.secret, leaves_of_field, entries))
        return PodReport(
            location.component, location.instance, location.roles, location.place, fields
        )

    def entries_of_pod(self, view: PodView, row: Field, effective: Effective) -> list[Entry]:
        """Return the values of a field in one pod, with notes."""
        component = view.location.component
        field = POD_HANDLERS[row.shape].compile(self.plan.source(row, effective, component))
        entries = [] if field is None else self.pod_entries(field, view)
        if row.shape not in LISTS_MISSING:
            present = [each for each in entries if each.value is not ABSENT]
            entries = present or entries[:1] or [Entry(view.location.place, ABSENT, UNSET)]
        steps = self.plan.pod(component, view.location.roles)
        for each in entries:
            self.note_computed(each, row, steps, view)
            note_support(each, *find_support(self.plan, component, row.path))
        return entries

    def pod_entries(self, field: CompiledField[PodView], view: PodView) -> list[Entry]:
        """Return all values in one pod. If they cannot be read, return only that entry."""
        try:
            values = list(field.read(view, self.ev))
        except MalformedPod as error:
            error.path = self.ev.report(error.path)
            return [Entry(error.path, ABSENT, UNSET, note=f"cannot be read: {error}")]
        return [entry_of(self.origins, field.row, each) for each in values]

    # The workload

    def workload_entries(self, field: CompiledField[Sequence[PodView]] | None) -> list[Entry]:
        """Return all values of the object. Raises LocationError for numbers that cannot be read."""
        if field is None:
            return []
        values = field.read(self.views, self.ev)
        return [entry_of(self.origins, field.row, each) for each in values]

    @cached_property
    def effectives(self) -> list[Effective]:
        """Return the effective policy of every component, cached because each is expensive."""
        pairs = component_roles(self.definition) or [("", ("worker",))]
        return [self.plan.effective(*each) for each in pairs]

    def workload(self) -> list[FieldReport]:
        """Return the fields of the object as a whole, and the replicas of every component."""
        leaves = self.leaves.of_workload()
        fields: list[FieldReport] = []
        for row in TABLE.fields.values():
            try:
                if row.shape == SCALE:
                    fields += self.scales(row)
                elif is_of_workload(row, self.definition):
                    leaves_of_field = tuple(
                        each for each in leaves if TABLE.owner(each.field) is row
                    )
                    fields += self.of_workload(row, leaves_of_field)
            except LocationError:
                # The numbers cannot be read. The decision reports the error.
                continue
        return fields

    def of_workload(self, row: Field, leaves_of_field: tuple[LeafReport, ...]) -> list[FieldReport]:
        """Report one field of the object, unless neither the policies nor the object set it."""
        leaf = merge_leaf(row.path, self.effectives) or Leaf(row.path)
        source = self.plan.source(row, {row.path: leaf})
        entries = self.workload_entries(WORKLOAD_HANDLERS[row.shape].compile(source))
        if row.shape not in LISTS_MISSING or not entries:
            present = [each for each in entries if each.value is not ABSENT]
            entries = present or entries[:1] or [Entry((), ABSENT, UNSET)]
        is_named = leaves_of_field and concerns(self.plan, row)
        if not is_named and all(each.value is ABSENT for each in entries):
            return []
        for each in entries:
            self.note_computed(each, row, self.plan.workload, self.before)
            note_support(each, *find_support(self.plan, "", row.path))
        return [FieldReport(row.path, row.secret, leaves_of_field, entries)]

    def scales(self, row: Field) -> list[FieldReport]:
        """Report the replicas of each component for which a policy has rules."""
        found = []
        for component, roles in component_roles(self.definition):
            leaves = self.leaves.of(component, roles)
            leaves_of_field = tuple(each for each in leaves if each.field == row.path)
            if leaves_of_field:
                effective = self.plan.effective(component, roles)
                source = self.plan.source(row, effective, component, roles)
                entries = self.workload_entries(WORKLOAD_HANDLERS[SCALE].compile(source))
                found.append(FieldReport(row.path, row.secret, leaves_of_field, entries))
        # A component may have roles that none of its instances has in this object.
        return [each for each in found if each.entries] or found[:1]

    def note_computed(self, entry: Entry, row: Field, steps: Steps[Any], subject: Any) -> None:
        """Mark a computed default, and a default that was adjusted to another field."""
        field = next((each for each in steps.fill if each.row is row), None)
        if entry.source != DEFAULT or field is None:
            return
        rules, default = field.rules, field.default_for(subject, self.ev)
        if field.follows is not None and default is not rules.default:
            follows = field.follows.argument
            entry.source = DEFAULT_FROM
            entry.note = f"{follows.field} x {factor_text(follows.factor)}"
        amount = row.shape == AMOUNT and entry.value is not None
        if amount and default is not None and rules.read(entry.value) != default.value:
            other = "request" if row.at[1] == "limits" else "limit"
            entry.note = f"{rules.show(default.value)}, brought in line with the {other}"


def note_support(entry: Entry, support: str, why: str) -> None:
    """Note why the kind cannot have an unset field, or what limits it."""
    if why and not entry.note and (entry.value is ABSENT or support == FORBIDDEN):
        entry.note = why
