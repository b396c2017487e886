"""decide: one object in, allowed with one patch or denied with every violation out.

The order is that of semantics §3: find pod locations, read intent and effective values, intent
rules, defaults and computed defaults, final rules, one diff. The mutating pass writes; the
validating pass evaluates the final object and writes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from webhook.catalog.catalog import Catalog, Plans
from webhook.catalog.plan import Plan
from webhook.decision.conclusion import conclude
from webhook.decision.controller_made import decide_derived
from webhook.decision.devices import (
    NOT_WRITTEN,
    check_devices,
    choose_plans,
    has_immutable_spec,
    is_of_devices,
)
from webhook.decision.fill import fill
from webhook.decision.missing_defaults import check_locked_defaults, must_be_complete
from webhook.decision.origins import kind_of
from webhook.decision.outcome_merge import add_would_be_violations, merge_outcomes, stricter
from webhook.decision.owners import names_of, others_of, owner_reference
from webhook.decision.pods import refuse_unreadable, views_of
from webhook.decision.replicas import decide_scale
from webhook.decision.rules import check_child, check_final, check_intent, find_evaluated_pods
from webhook.decision.unchanged import body_changed, compare_with_before, is_unchanged
from webhook.decision.uncovered import (
    allow_undefined,
    check_coverage,
    check_reserved_paths,
    warn_about_external_pods,
)
from webhook.decision.wrapped import (
    facts_for,
    fault_at,
    locate_pod_sets,
    over_budget,
    wrapped_objects,
)
from webhook.evaluation.outcome import (
    EXEMPT_SENDER,
    IMMUTABLE,
    NO_POLICY,
    OTHER_OPERATION,
    Allowed,
    Decision,
    Denied,
)
from webhook.evaluation.references import References
from webhook.evaluation.request import Request, RequestClass, Stage
from webhook.evaluation.state import Evaluation
from webhook.fields.exclude import excluded_items
from webhook.interface.injected_items import Injected
from webhook.jq.external import Facts
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
    """Decide on one object: a scale, a child of a workload, or a workload.

    Pure: the same arguments give the same decision. `facts` are the results of paths that only jq
    can evaluate, None if there are no such paths.
    """
    if facts is not None:
        facts = facts_for(request, facts)
    if catalog.exceptions:
        request = replace(
            request, excused_by=catalog.exceptions_for(request, names_of(request, catalog))
        )
    if request.operation not in ("CREATE", "UPDATE"):
        return Allowed(request.object, not_evaluated=OTHER_OPERATION)
    if request.request_class is RequestClass.EXEMPT:
        return Allowed(request.object, not_evaluated=EXEMPT_SENDER)
    if request.subresource == "scale":
        decision, with_warn = decide_scale(request, catalog, references)
        if with_warn is None or request.stage is Stage.VALIDATE:
            return decision
        return add_would_be_violations(decision, with_warn)
    definition = catalog.definition(request.group, request.kind, request.version)
    if definition is None:
        return allow_undefined(request, catalog)
    if has_immutable_spec(request):
        return Allowed(request.object, not_evaluated=IMMUTABLE)
    if request.request_class is RequestClass.DERIVED:
        return decide_derived(request, catalog, references, definition, facts)
    if definition.embedded:
        return decide_with_wrapped(request, catalog, references, definition, facts)
    return decide_alone(request, catalog, references, definition, facts)


def decide_with_wrapped(
    request: Request,
    catalog: Catalog,
    references: References,
    definition: Definition,
    facts: Facts | None,
) -> Decision:
    """Decide on an object and on each object that it wraps, and merge the decisions."""
    if request.within is None and (fault := over_budget(request, definition, catalog, facts)):
        return Denied((fault,))
    own = decide_alone(request, catalog, references, definition, facts)
    try:
        found = wrapped_objects(request, definition, catalog)
    except LocationError as error:
        return merge_outcomes(request, own, [], fault_at(error))
    return merge_outcomes(
        request,
        own,
        [
            (each, decide(each.request, catalog, references, facts) if each.request else None)
            for each in found
        ],
    )


def decide_alone(
    request: Request,
    catalog: Catalog,
    references: References,
    definition: Definition,
    facts: Facts | None,
) -> Decision:
    """Decide on one object without the objects that it wraps."""
    if request.request_class is RequestClass.CHILD:
        return decide_child(request, catalog, references, definition, facts)
    labels, others = request.namespace_labels or None, others_of(request)
    plans = catalog.plans_for(definition, request.namespace, references, labels, others)
    if is_of_devices(request):
        plans = choose_plans(request, catalog, definition, plans)
        if request.kind in NOT_WRITTEN:
            request = replace(request, request_class=RequestClass.UNPATCHED)
    decision = evaluate_plan(request, plans.enforced, references, facts)
    if others:
        own = catalog.plans_for(definition, request.namespace, references, labels).enforced
        if own is not plans.enforced:
            decision = stricter(decision, evaluate_plan(request, own, references, facts))
    return add_warn_policies(request, plans, decision, references, facts)


def decide_child(
    request: Request,
    catalog: Catalog,
    references: References,
    definition: Definition,
    facts: Facts | None,
) -> Decision:
    """Decide on a child: an object in which a controller may set more than its workload does."""
    reference = owner_reference(request.outermost.object)
    if reference is None:
        return Allowed(request.object, not_evaluated=EXEMPT_SENDER)
    owner = kind_of(reference)
    if request.namespace_labels:
        namespaces = {**references.namespaces, request.namespace: request.namespace_labels}
        references = replace(references, namespaces=namespaces)
    plans = catalog.plans_for_child(definition, request.namespace, references, owner)
    adds = catalog.injected_for((owner,)).made_of(reference.name)
    decision = evaluate_plan(request, plans.enforced, references, facts, adds)
    decision = add_warn_policies(request, plans, decision, references, facts, adds)
    if isinstance(decision, Denied):
        return replace(decision, report_to=reference)
    return decision


def add_warn_policies(
    request: Request,
    plans: Plans,
    decision: Decision,
    references: References,
    facts: Facts | None,
    adds: Injected | None = None,
) -> Decision:
    """Return the decision with the findings of policies in warn or audit mode, reported once.

    The mutating pass reports them. Children reach only the validating pass, which reports theirs.
    """
    reporting = Stage.VALIDATE if request.request_class is RequestClass.CHILD else Stage.MUTATE
    if plans.with_warn is None and not plans.enforced.policies and isinstance(decision, Allowed):
        return decision if is_of_devices(request) else replace(decision, not_evaluated=NO_POLICY)
    if plans.with_warn is None or request.stage is not reporting:
        return decision
    return add_would_be_violations(
        decision, evaluate_plan(request, plans.with_warn, references, facts, adds)
    )


def evaluate_plan(
    request: Request,
    plan: Plan,
    references: References,
    facts: Facts | None,
    adds: Injected | None = None,
) -> Decision:
    """Run one pass over one object under one plan.

    `adds` is the content that the settings and the owner's operator may inject.
    """
    request.go_on()
    injected = plan.config.injected if adds is None else adds
    ev = Evaluation(request, references, plan.definition, injected, facts=facts)
    try:
        if ev.updating and is_unchanged(request, plan):
            return Allowed(request.object)
        locate_pod_sets(ev)
        views, before = views_of(ev)
        ev.excluded = excluded_items(ev)
        if ev.updating:
            compare_with_before(ev, plan, views, before)
        if ev.differs or (plan.strict and body_changed(request.outermost)):
            apply_rules(ev, plan, views)
        if is_of_devices(request):
            check_devices(ev, plan.config)
        if request.request_class is not RequestClass.CHILD:
            check_coverage(ev, [view.location for view in views])
            check_reserved_paths(ev)
            if plan.policies and ev.definition.pods_elsewhere:
                warn_about_external_pods(ev, views)
    except (LocationError, MalformedPod, PatchError) as error:
        refuse_unreadable(ev, error)
    return conclude(ev)


def apply_rules(ev: Evaluation, plan: Plan, views: Sequence[PodView]) -> None:
    """Apply intent rules, defaults and final rules, to the evaluated pods, then the workload."""
    pods = find_evaluated_pods(ev, plan, views)
    if ev.request.request_class is RequestClass.CHILD:
        check_child(ev, pods)
        return
    if ev.checks_intent:
        check_intent(ev, plan, pods, views)
    if ev.writes:
        fill(ev, plan, pods, views)
    if must_be_complete(ev):
        check_locked_defaults(ev, plan, pods, views)
    check_final(ev, plan, pods, views)
