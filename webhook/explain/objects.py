"""Explains one new object: each field's value in its completed form, its place and its source.

The steps of a decision are taken once more, so that values can be told of a refused object too.
"""

from __future__ import annotations

from contextlib import suppress
from functools import cached_property
from typing import Any

from webhook.catalog.catalog import Plans
from webhook.catalog.plan import POD_SHAPES, component_roles, concerns, pod_binding
from webhook.decision.decide import apply_rules
from webhook.decision.pods import views_of
from webhook.decision.wrapped import with_pod_sets
from webhook.evaluation.outcome import Decision, Denied
from webhook.evaluation.references import References
from webhook.evaluation.request import Request
from webhook.evaluation.state import Evaluation
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
from webhook.explain.pods import Asked, pod_entries
from webhook.explain.support import is_of_workload, reach_of
from webhook.explain.values import factor_text
from webhook.explain.workload import Asked as AskedOfWorkload
from webhook.explain.workload import counted, workload_entries
from webhook.fields.computed import ComputedField
from webhook.fields.exclude import excluded_items
from webhook.fields.steps import Steps
from webhook.fields.workload_paths import scale_places
from webhook.objects.draft import PatchError
from webhook.objects.path import ABSENT
from webhook.pods.location import LocationError
from webhook.pods.pod_view import MalformedPod, PodView
from webhook.policy.combine import Effective, Leaf
from webhook.policy.merge_components import united
from webhook.policy.row import AMOUNT, ITEMS, PULL_SECRETS, SCALE, Field
from webhook.policy.table import TABLE

TELLS_MISSING = frozenset({ITEMS, PULL_SECRETS})
"""Shapes of which unset entries are told beside those that are set."""


def explain_object(
    request: Request,
    plans: Plans,
    references: References,
    decision: Decision,
    component: str = "",
) -> ObjectReport:
    """Every field that a policy names or the object sets, of one new object and its decision.

    `request` is the object offline, with its raw form; `decision` is what both passes said.
    """
    found = Explanation(request, plans, references)
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
    """The state of one explanation: the decision's steps taken, and what they wrote."""

    def __init__(self, request: Request, plans: Plans, references: References) -> None:
        self.plans, self.plan = plans, plans.enforced
        with suppress(LocationError):  # as below
            self.plan = with_pod_sets(self.plan, request)
        self.definition = self.plan.definition
        self.leaves = Leaves(plans)
        self.ev = Evaluation(request, references, self.definition, self.plan.vocabulary.injected)
        self.before: list[PodView] = []
        self.views: list[PodView] = []
        try:
            self.before, _ = views_of(self.ev)
            self.ev.excluded = excluded_items(self.ev)
            apply_rules(self.ev, self.plan, self.before)
            self.views = [self.ev.as_it_stands(view) for view in self.before]
        except (LocationError, MalformedPod, PatchError):
            # Pods that cannot be told have no fields to tell of; the decision says what is wrong.
            self.views = []
        self.origins = Origins(request, self.ev.draft.document, self.ev.findings.changes)

    def report(self, component: str) -> ObjectReport:
        """The fields of every pod, or of the pods of one component, and of the workload."""
        pods = [
            self.pod(view)
            for view in self.views
            if names_component(component, view.location.component, view.location.roles)
        ]
        workload = self.workload() if self.views or not self.before else []
        return ObjectReport(policies_of(self.plans), pods, workload, [], [])

    # Pods

    def pod(self, view: PodView) -> PodReport:
        """One pod: what its policies name, then what the object sets beside that."""
        location = view.location
        leaves = self.leaves.of(location.component, location.roles)
        effective = self.plan.effective(location.component, location.roles)
        fields: list[FieldReport] = []
        for row in TABLE.fields.values():
            if row.shape not in POD_SHAPES or is_of_workload(self.definition, row):
                continue
            said = tuple(each for each in leaves if TABLE.owner(each.field) is row)
            entries = self.entries_of_pod(view, row, effective)
            if said or any(each.value is not ABSENT for each in entries):
                fields.append(FieldReport(row.path, row.secret, said, entries))
        return PodReport(
            location.component, location.instance, location.roles, location.place, fields
        )

    def entries_of_pod(self, view: PodView, row: Field, effective: Effective) -> list[Entry]:
        """The values of a field in one pod, with what is to be noted of them."""
        component = view.location.component
        leaf = effective.get(row.path, Leaf(row.path))
        binding = pod_binding(self.plan, row, leaf, effective, component)
        entries = []
        if binding is not None:
            entries = readable(Asked(self.origins, self.ev, view, row, binding))
        if row.shape not in TELLS_MISSING:
            present = [each for each in entries if each.value is not ABSENT]
            entries = present or entries[:1] or [Entry(view.location.place, ABSENT, UNSET)]
        steps = self.plan.pod(component, view.location.roles)
        for each in entries:
            self.tell_computed(each, row, steps, view)
            tell_reach(each, *reach_of(self.plan, component, row.path))
        return entries

    # The workload

    @cached_property
    def effectives(self) -> list[Effective]:
        """The effective policy of every component; each takes as long as all else in a report."""
        pairs = component_roles(self.definition) or [("", ("worker",))]
        return [self.plan.effective(*each) for each in pairs]

    def workload(self) -> list[FieldReport]:
        """The fields of the object as a whole, and the replicas of every component."""
        leaves = self.leaves.of_workload()
        fields: list[FieldReport] = []
        for row in TABLE.fields.values():
            try:
                if row.shape == SCALE:
                    fields += self.scales(row)
                elif is_of_workload(self.definition, row):
                    said = tuple(each for each in leaves if TABLE.owner(each.field) is row)
                    fields += self.of_workload(row, said)
            except LocationError:
                # Numbers that cannot be told; the decision says what is wrong with them.
                continue
        return fields

    def of_workload(self, row: Field, said: tuple[LeafReport, ...]) -> list[FieldReport]:
        """One field of the object, unless neither the policies nor the object say anything."""
        leaf = united(row.path, self.effectives) or Leaf(row.path)
        asked = AskedOfWorkload(self.origins, self.ev, self.views, self.plan, row, leaf)
        entries = workload_entries(asked)
        told = said and concerns(self.plan, row)
        if not told and all(each.value is ABSENT for each in entries):
            return []
        for each in entries:
            self.tell_computed(each, row, self.plan.workload, self.before)
            tell_reach(each, *reach_of(self.plan, "", row.path))
        return [FieldReport(row.path, row.secret, said, entries)]

    def scales(self, row: Field) -> list[FieldReport]:
        """The replicas of each component of which a policy bounds them."""
        found = []
        for component, roles in component_roles(self.definition):
            leaves = self.leaves.of(component, roles)
            said = tuple(each for each in leaves if each.field == row.path)
            if said:
                places = scale_places(self.definition, component, roles)(
                    self.ev, self.origins.document
                )
                entries = [counted(self.origins, row, each, each.key) for each in places]
                found.append(FieldReport(row.path, row.secret, said, entries))
        # A component may have roles that none of its instances has in this object.
        return [each for each in found if each.entries] or found[:1]

    def tell_computed(self, entry: Entry, row: Field, steps: Steps, subject: Any) -> None:
        """Tell a computed default from a static one, and a default that was brought in line."""
        binding = next((each for each in steps.fill if names(each, row)), None)
        if entry.source != DEFAULT or not hasattr(binding, "rules"):
            return
        assert binding is not None
        rules = binding.rules
        if isinstance(binding, ComputedField):
            rules = binding.resolved(subject, self.ev).rules
            if rules.default is not binding.rules.default:
                entry.source = DEFAULT_FROM
                entry.note = f"{binding.source.field.path} x {factor_text(binding.factor)}"
        default = rules.default
        amount = row.shape == AMOUNT and default is not None and entry.value is not None
        if amount and rules.read(entry.value) != default.value:
            part = "request" if row.at[1] == "limits" else "limit"
            entry.note = f"{rules.show(default.value)}, brought in line with the {part}"


def names(binding: Any, row: Field) -> bool:
    """Whether a step fills this field; some steps only tell something."""
    return getattr(binding, "field", None) is row


def readable(asked: Asked) -> list[Entry]:
    """The values of a field; of what no policy reads and cannot be read, only that."""
    try:
        return list(pod_entries(asked))
    except MalformedPod as error:
        return [Entry(error.path, ABSENT, UNSET, note=f"cannot be read: {error}")]


def tell_reach(entry: Entry, reach: str, why: str) -> None:
    """Say of an unset field why the kind cannot carry it, or what limits it."""
    if why and not entry.note and (entry.value is ABSENT or reach == FORBIDDEN):
        entry.note = why
