"""decide: one object in, allowed with one patch or denied with every violation out.

The order is that of semantics §3: find pod locations, read intent and effective values, intent
rules, defaults and computed defaults, final rules, one diff. The mutating pass writes; the
validating pass judges the final object and writes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from webhook.catalog.catalog import Catalog, Plans
from webhook.catalog.plan import Plan
from webhook.decision.conclusion import concluded
from webhook.decision.controller_made import decide_derived
from webhook.decision.external_pods import tell_elsewhere
from webhook.decision.fill import fill
from webhook.decision.missing_defaults import judge_unwritten, must_be_complete
from webhook.decision.origins import kind_of
from webhook.decision.outcome_merge import joined, stricter, with_trial
from webhook.decision.owners import names_of, others_of, owner_reference
from webhook.decision.pods import refuse_unreadable, views_of
from webhook.decision.replicas import decide_scale
from webhook.decision.reserved_paths import judge_reserved
from webhook.decision.rules import judge_child, judge_final, judge_intent, judged_pods
from webhook.decision.unchanged import body_changed, compare_with_before, is_unchanged
from webhook.decision.uncovered import judge_coverage, undefined
from webhook.decision.wrapped import (
    facts_for,
    fault_at,
    over_budget,
    with_pod_sets,
    wrapped_objects,
)
from webhook.evaluation.outcome import (
    EXEMPT_SENDER,
    NO_POLICY,
    OTHER_OPERATION,
    Allowed,
    Decision,
    Denied,
)
from webhook.evaluation.references import References
from webhook.evaluation.request import Request, Stage, Treatment
from webhook.evaluation.state import Evaluation
from webhook.fields.exclude import excluded_items
from webhook.interface.injected_items import Injected
from webhook.jq.external import Facts, given
from webhook.objects.draft import PatchError
from webhook.pods.definition import Definition
from webhook.pods.location import LocationError
from webhook.pods.pod_view import MalformedPod, PodView


def decide(
    request: Request,
    catalog: Catalog,
    references: References,
    facts: Facts | None = None,
) -> Decision:
    """Judge one object; pure: the same arguments give the same decision.

    `facts` are the results of paths that only jq can evaluate, None where there are no such paths.
    """
    if facts is None:
        return decided(request, catalog, references, None)
    with given(facts_for(request, facts), request.object, request.old):
        return decided(request, catalog, references, facts)


def decided(
    request: Request, catalog: Catalog, references: References, facts: Facts | None
) -> Decision:
    """The decision by what is to be judged: a scale, a child, or the object itself."""
    if catalog.exceptions:
        request = replace(
            request, excused_by=catalog.exceptions_for(request, names_of(request, catalog))
        )
    if request.operation not in ("CREATE", "UPDATE"):
        return Allowed(request.object, not_evaluated=OTHER_OPERATION)
    if request.treatment is Treatment.EXEMPT:
        return Allowed(request.object, not_evaluated=EXEMPT_SENDER)
    if request.subresource == "scale":
        decision, trial = decide_scale(request, catalog, references)
        if trial is None or request.stage is Stage.VALIDATE:
            return decision
        return with_trial(decision, trial)
    definition = catalog.definition(request.group, request.kind, request.version)
    if definition is None:
        return undefined(request, catalog)
    if request.treatment is Treatment.DERIVED:
        return decide_derived(request, catalog, references, definition, facts)
    if definition.embedded:
        return decide_with_wrapped(request, catalog, references, definition, facts)
    return decide_alone(request, catalog, references, definition)


def decide_with_wrapped(
    request: Request,
    catalog: Catalog,
    references: References,
    definition: Definition,
    facts: Facts | None,
) -> Decision:
    """An object and those that it wraps, in one answer; each of them is decided as its own kind."""
    if request.within is None and (fault := over_budget(request, definition, catalog)):
        return Denied((fault,))
    own = decide_alone(request, catalog, references, definition)
    try:
        found = wrapped_objects(request, definition, catalog)
    except LocationError as error:
        return joined(request, own, [], fault_at(error))
    return joined(
        request,
        own,
        [
            (each, decide(each.request, catalog, references, facts) if each.request else None)
            for each in found
        ],
    )


def decide_alone(
    request: Request, catalog: Catalog, references: References, definition: Definition
) -> Decision:
    """One object without what it wraps."""
    if request.treatment is Treatment.CHILD:
        return decide_child(request, catalog, references, definition)
    labels, others = request.namespace_labels or None, others_of(request)
    plans = catalog.plans_for(definition, request.namespace, references, labels, others)
    decision = judge(request, plans.enforced, references)
    if others:
        own = catalog.plans_for(definition, request.namespace, references, labels).enforced
        if own is not plans.enforced:
            decision = stricter(decision, judge(request, own, references))
    return tried(request, plans, decision, references)


def decide_child(
    request: Request, catalog: Catalog, references: References, definition: Definition
) -> Decision:
    """What a controller made of a workload that leaves something of its pods to it."""
    reference = owner_reference(request.outermost.object)
    if reference is None:
        return Allowed(request.object, not_evaluated=EXEMPT_SENDER)
    owner = kind_of(reference)
    if request.namespace_labels:
        namespaces = {**references.namespaces, request.namespace: request.namespace_labels}
        references = replace(references, namespaces=namespaces)
    plans = catalog.plans_for_child(definition, request.namespace, references, owner)
    adds = catalog.injected_for((owner,)).made_of(reference.name)
    decision = judge(request, plans.enforced, references, adds)
    decision = tried(request, plans, decision, references, adds)
    if isinstance(decision, Denied):
        return replace(decision, tell=reference)
    return decision


def tried(
    request: Request,
    plans: Plans,
    decision: Decision,
    references: References,
    adds: Injected | None = None,
) -> Decision:
    """The decision with what policies in warn or audit mode add, reported once.

    The mutating pass reports it, but for children of controllers, which only the validating pass sees.
    """
    reporting = Stage.VALIDATE if request.treatment is Treatment.CHILD else Stage.MUTATE
    if plans.trial is None and not plans.enforced.policies and isinstance(decision, Allowed):
        return replace(decision, not_evaluated=NO_POLICY)
    if plans.trial is None or request.stage is not reporting:
        return decision
    return with_trial(decision, judge(request, plans.trial, references, adds))


def judge(
    request: Request, plan: Plan, references: References, adds: Injected | None = None
) -> Decision:
    """One pass over one object under one plan; `adds` are the settings' list and its operator's."""
    request.go_on()
    injected = plan.vocabulary.injected if adds is None else adds
    ev = Evaluation(request, references, plan.definition, injected)
    try:
        if ev.updating and is_unchanged(request, plan):
            return Allowed(request.object)
        plan = with_pod_sets(plan, request)
        ev.definition = plan.definition
        views, before = views_of(ev)
        ev.excluded = excluded_items(ev)
        if ev.updating:
            compare_with_before(ev, plan, views, before)
        if ev.differs or (plan.strict and body_changed(request.outermost)):
            apply_rules(ev, plan, views)
        if request.treatment is not Treatment.CHILD:
            judge_coverage(ev, [view.location for view in views])
            judge_reserved(ev)
            if plan.policies and ev.definition.pods_elsewhere:
                tell_elsewhere(ev, views)
    except (LocationError, MalformedPod, PatchError) as error:
        refuse_unreadable(ev, error)
    return concluded(ev)


def apply_rules(ev: Evaluation, plan: Plan, views: Sequence[PodView]) -> None:
    """Intent rules, defaults, final rules: on the pods that are judged, then the workload."""
    pods = judged_pods(ev, plan, views)
    if ev.request.treatment is Treatment.CHILD:
        judge_child(ev, pods)
        return
    if ev.judges_intent:
        judge_intent(ev, plan, pods, views)
    if ev.writes:
        fill(ev, plan, pods, views)
    if must_be_complete(ev):
        judge_unwritten(ev, plan, pods, views)
    judge_final(ev, plan, pods, views)
