"""decide: one object in, allowed with one patch or denied with every violation out.

The order is that of semantics §3: find pod locations, read intent and effective values, intent
rules, defaults and computed defaults, final rules, one diff. The mutating pass writes; the
validating pass judges the final object and writes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from webhook.core.catalog import Catalog, Kinds
from webhook.core.decision import (
    Allowed,
    Decision,
    Denied,
    OwnerReference,
    Violation,
    Warning,
    sort_key,
)
from webhook.core.joined import joined
from webhook.core.patch import PatchError, diff
from webhook.core.plan import Plan, Steps
from webhook.core.pointer import ABSENT, Path, read
from webhook.core.policy.row import Binding, Field
from webhook.core.references import References
from webhook.core.request import Request, Stage, Treatment
from webhook.core.scale_review import decide_scale
from webhook.core.workload.bindings.items import reread
from webhook.core.workload.conflicts import judge_conflicts, pairs_written
from webhook.core.workload.coverage import pod_like, uncovered
from webhook.core.workload.elsewhere import tell_elsewhere
from webhook.core.workload.evaluation import Evaluation
from webhook.core.workload.exclude import excluded_items
from webhook.core.workload.foreign import Facts, before_update, given
from webhook.core.workload.locations import Definition, LocationError, PodLocation, locate
from webhook.core.workload.podspec import MalformedPod, PodView, pod_view
from webhook.core.workload.restore import immutable_places, restore_immutable
from webhook.core.wrapped import (
    facts_for,
    fault_at,
    over_budget,
    with_pod_sets,
    wrapped_objects,
)

MAX_CONTAINERS = 5000
UNWRITTEN = "Send the object again; the policy fills it in."
OWNED = "Write it; objects that name a controller are not completed."
STEERING = frozenset({"podgate.dev/exclude", "podgate.dev/main-container"})


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
    if request.treatment is Treatment.EXEMPT or request.operation not in ("CREATE", "UPDATE"):
        return Allowed(request.object, judged=False)
    if request.subresource == "scale":
        decision, trial = decide_scale(request, catalog, references)
        if trial is None or request.stage is Stage.VALIDATE:
            return decision
        return with_trial(decision, trial)
    definition = catalog.definition(request.group, request.kind, request.version)
    if definition is None:
        return Allowed(request.object, warnings=unknown_kind(request, catalog), judged=False)
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
    if plans.trial is None or request.stage is Stage.VALIDATE:
        return decision
    return with_trial(decision, judge(request, plans.trial, references))


def names_of(request: Request, catalog: Catalog) -> list[tuple[str, str, str]]:
    """Group, kind and name by which the object may be excused.

    What a controller makes is excused with its owner, whose name somebody chose: only its exact
    user name makes a request such a one. A name that the server is going to make excuses nothing.
    What is wrapped is excused with what is around it.
    """
    found = read(request.object, ("metadata",))
    metadata = found if isinstance(found, dict) else {}
    name = "" if metadata.get("generateName") else str(metadata.get("name") or "")
    names = [(request.group, request.kind, name)] if name else []
    if name and request.subresource == "scale":
        # Its kind is Scale, whatever is scaled.
        scaled = catalog.definition_of_resource(
            request.resource_group, request.resource, request.resource_version
        )
        if scaled is not None:
            names = [(scaled.interface.group, scaled.interface.kind, name)]
    if request.treatment is Treatment.CHILD:
        for each in read(request.object, ("metadata", "ownerReferences")) or ():
            if isinstance(each, dict) and each.get("controller") is True:
                group = str(each.get("apiVersion", "")).rpartition("/")[0]
                names.append((group, str(each.get("kind", "")), str(each.get("name", ""))))
    if request.within is not None:
        names += names_of(request.within.around, catalog)
    return names


def decide_child(
    request: Request, catalog: Catalog, references: References, definition: Definition
) -> Decision:
    """What a controller made of a workload that leaves something of its pods to it."""
    owner = controller_of(request.outermost.object)
    if owner is None:
        return Allowed(request.object, judged=False)
    if request.namespace_labels:
        namespaces = {**references.namespaces, request.namespace: request.namespace_labels}
        references = replace(references, namespaces=namespaces)
    plan = catalog.plan_for_child(definition, request.namespace, references, owner)
    decision = judge(request, plan, references)
    if isinstance(decision, Denied):
        return replace(decision, tell=owner_reference(request.outermost.object))
    return decision


def binds_children(row: Field) -> bool:
    """Whether a field's rules hold for what controllers make: safety, images, amounts."""
    return row.safety or row.binding in (Binding.SAFETY, Binding.AMOUNT)


def stricter(decision: Decision, other: Decision) -> Decision:
    """The decision with what the policies of the object's own kind alone refuse.

    Anybody can write an owner reference, or wrap an object, so the policies of the other kind only
    ever add.
    """
    if isinstance(other, Allowed):
        return decision
    violations = other.violations
    if isinstance(decision, Denied):
        violations = (*decision.violations, *violations)
    excused = (*decision.excused, *other.excused)
    told = tuple(sorted(dict.fromkeys(violations), key=sort_key))
    return Denied(told, decision.warnings, excused=excused)


def unknown_kind(request: Request, catalog: Catalog) -> tuple[Warning, ...]:
    """A kind without a definition that seems to hold pods is told, never silently ungoverned.

    A version without one is told of every object, since other versions of the kind are governed.
    """
    group = f".{request.group}" if request.group else ""
    named = f"{request.kind}{group}/{request.version}"
    defined = catalog.definitions.get((request.group, request.kind), ())
    if defined:
        known = ", ".join(sorted({version for each in defined for version in each.versions}))
        return (Warning("unknown-version", "", (), (named, f"known are {known}")),)
    try:
        if not pod_like(request.object):
            return ()
    except LocationError:
        pass  # too deep or too large to tell: say that it is not judged
    return (Warning("unknown-kind", "", (), (named,)),)


def others_of(request: Request) -> Kinds:
    """The kinds whose policies reach the object too: what controls a Pod, and what wraps it."""
    found: Kinds = ()
    if request.kind == "Pod" and not request.group and (owner := controller_of(request.object)):
        found = (owner,)
    within = request.within
    while within is not None:
        found = (*found, (within.around.group, within.around.kind))
        within = within.around.within
    return found


def controller_of(document: Any) -> tuple[str, str] | None:
    """The group and kind of the owner with `controller: true`; None when nobody controls it."""
    owner = owner_reference(document)
    return None if owner is None else (owner.api_version.rpartition("/")[0], owner.kind)


def owner_reference(document: Any) -> OwnerReference | None:
    """The owner with `controller: true`; None when nobody controls the object."""
    owners = read(document, ("metadata", "ownerReferences"))
    for owner in owners if isinstance(owners, list) else ():
        if isinstance(owner, dict) and owner.get("controller") is True:
            keys = ("apiVersion", "kind", "name", "uid")
            return OwnerReference(*(str(owner.get(key, "")) for key in keys))
    return None


def judge(request: Request, plan: Plan, references: References) -> Decision:
    """One pass over one object under one plan."""
    definition = plan.definition
    ev = Evaluation(request, references, definition)
    ev.injected = plan.vocabulary.injected
    try:
        if ev.updating and is_unchanged(request, plan):
            return Allowed(request.object)
        plan = with_pod_sets(plan, request)
        definition = ev.definition = plan.definition
        views, before = changed_views(ev, plan)
        ev.excluded = excluded_items(ev)
        if ev.updating:
            ev.immutable = immutable_places(request, definition, request.object)
            ev.complete = lambda: completed_before(request, plan, references)
            ev.steered = steering_changed(ev, plan.vocabulary.node_pool_labels)
            ev.as_before = frozenset(view.spec_path for view in views if untouched(ev, view))
            ev.differs = differs(ev, plan, views, before)
        if ev.differs or (plan.strict and body_changed(request.outermost)):
            run(ev, plan, views)
        if request.treatment is not Treatment.CHILD:
            judge_coverage(ev, definition, [view.location for view in views])
            if definition.pods_elsewhere and plan.policies:
                tell_elsewhere(ev, views)
    except LocationError as error:
        refuse_location(ev, error.path, error.reason, error.text)
    except MalformedPod as error:
        refuse_location(ev, error.path, "wrong-type", str(error))
    except PatchError as error:
        refuse_location(ev, error.path, "wrong-type", str(error))
    return concluded(ev)


def is_unchanged(request: Request, plan: Plan) -> bool:
    """Whether an update leaves the object as it is; `existing: strict` looks at the whole sent."""
    if request.object != request.old:
        return False
    within = request.within
    if within is None:
        return True
    strictly = plan.strict and body_changed(request.outermost)
    return not strictly and within.pod_sets == within.old_pod_sets


def refuse_location(ev: Evaluation, path: Path, reason: str, text: str) -> None:
    """An object whose pods cannot be told is refused: it would go round every policy."""
    ev.violate("", path, None, text, None, reason=reason)


def concluded(ev: Evaluation) -> Decision:
    """The decision that the findings amount to."""
    findings = ev.findings
    excused = ev.excuse()
    warnings = tuple(findings.warnings)
    if len(warnings) > 1:
        warnings = tuple(dict.fromkeys(warnings))
    if findings.violations:
        told = tuple(sorted(dict.fromkeys(findings.violations), key=sort_key))
        return Denied(told, warnings, excused=excused)
    if not ev.writes or not findings.changes:
        return Allowed(ev.request.object, warnings=warnings, excused=excused)
    patch = diff(ev.request.object, ev.draft.document)
    changes = tuple(findings.changes)
    return Allowed(ev.draft.document, tuple(patch), changes, warnings, excused=excused)


def changed_views(ev: Evaluation, plan: Plan) -> tuple[list[PodView], list[PodView]]:
    """A view of every pod location, with the same pod before the update at its side; the old ones."""
    request, definition = ev.request, plan.definition
    old: dict[tuple[str, str], PodView] = {}
    if ev.updating:
        for view in views_before(definition, request.old):
            old[view.location.component, view.location.instance] = view
    views = [
        pod_view(location, old.get((location.component, location.instance)))
        for location in locate(definition, request.object)
    ]
    if sum(len(view.everyone) for view in views) > MAX_CONTAINERS:
        text = f"more than {MAX_CONTAINERS} containers; one object may have as many"
        raise LocationError((), "too-many-containers", text)
    return views, list(old.values())


def views_before(definition: Definition, old: Any) -> list[PodView]:
    """The pods of the old object; what cannot be read excuses nothing."""
    try:
        return [pod_view(location) for location in locate(definition, old)]
    except (LocationError, MalformedPod):
        return []


def completed_before(
    request: Request, plan: Plan, references: References
) -> dict[tuple[str, str], PodView]:
    """The pods of the old object as our own writing completes them where a pod is changed."""
    definition = plan.definition
    again = replace(
        request, object=request.old, stage=Stage.MUTATE, treatment=Treatment.FULL, raw=None
    )
    ev = Evaluation(again, references, definition)
    ev.injected = plan.vocabulary.injected
    views = [replace(view, old=view) for view in views_before(definition, request.old)]
    ev.immutable = immutable_places(request, definition, request.old)
    ev.excluded = excluded_items(ev)
    try:
        with before_update():
            for view in views:
                fill_pod(ev, plan.pod(view.location.component, view.location.roles), view)
            return {
                (view.location.component, view.location.instance): reread(view, ev)
                for view in views
            }
    except (MalformedPod, PatchError):
        return {}


def differs(
    ev: Evaluation, plan: Plan, views: Sequence[PodView], before: Sequence[PodView]
) -> bool:
    """Whether the update changes any place that the plan reads; else the object passes untouched."""
    if len(views) != len(before) or len(ev.as_before) != len(views) or ev.steered:
        return True
    everything = {*plan.workload.intent, *plan.workload.fill, *plan.workload.final}
    return any(
        seen(binding.seen(ev, ev.request.object, views)) != seen(binding.seen(ev, ev.old, before))
        for binding in everything
    )


def seen(places: Iterable[Any]) -> list[tuple[str, Any]]:
    """What places say, wherever they are by now."""
    return sorted(((place.key, place.value) for place in places), key=str)


def body_changed(request: Request) -> bool:
    """Whether anything but metadata and status differs; `existing: strict` then judges it all."""
    new, old = request.object, request.old
    keys = {*new, *old} - {"metadata", "status"}
    return any(new.get(key) != old.get(key) for key in keys)


def untouched(ev: Evaluation, view: PodView) -> bool:
    """Whether nothing that the plan reads of this pod differs from before the update."""
    if view.old is None or ev.steered:
        return False
    old = view.old
    return (
        view.spec == old.spec
        and view.metadata.get("labels") == old.metadata.get("labels")
        and view.metadata.get("annotations") == old.metadata.get("annotations")
        and [body for _, body in view.location.extra] == [body for _, body in old.location.extra]
        and [body for _, body in view.claims] == [body for _, body in old.claims]
    )


def steering_changed(ev: Evaluation, pool_labels: Iterable[str]) -> bool:
    """Whether metadata of the workload that decides what its pods become differs from before."""
    profile = ev.definition.profile
    for part, known in (
        ("annotations", STEERING | profile.steering_annotations),
        ("labels", profile.steering_labels.union(pool_labels)),
    ):
        now = read(ev.request.object, ("metadata", part)) or {}
        before = read(ev.old, ("metadata", part)) or {}
        if now == before or not isinstance(now, dict) or not isinstance(before, dict):
            continue
        if any(now.get(name) != before.get(name) for name in known):
            return True
    return False


def run(ev: Evaluation, plan: Plan, views: Sequence[PodView]) -> None:
    """Intent rules, defaults, final rules: on the pods that are judged, then the workload."""
    pods = judged_pods(ev, plan, views)
    if ev.request.treatment is Treatment.CHILD:
        run_child(ev, pods)
        return
    if ev.judges_intent:
        judge_intent(ev, plan, pods, views)
    if ev.writes:
        fill(ev, plan, pods, views)
    elif (ev.final_object and not ev.updating) or claims_an_owner(ev.request):
        judge_unwritten(ev, plan, pods, views)
    pairs = pairs_written(ev)
    for view, steps, _ in pods:
        if steps.final or ev.draft.changed:
            current = reread(view, ev) if ev.draft.changed else view
            for binding in steps.final:
                binding.final(current, ev)
            judge_conflicts(current, ev, pairs)
    for binding in plan.workload.final:
        binding.final(views, ev)


def judge_intent(
    ev: Evaluation,
    plan: Plan,
    pods: Sequence[tuple[PodView, Steps, bool]],
    views: Sequence[PodView],
) -> None:
    """What may not be set, added or changed, on the object as it came."""
    for view, steps, _ in pods:
        for binding in steps.intent:
            binding.intent(view, ev)
    for binding in plan.workload.intent:
        binding.intent(views, ev)


def run_child(ev: Evaluation, pods: Sequence[tuple[PodView, Steps, bool]]) -> None:
    """The rules that hold for what a controller made; nothing is written."""
    for view, steps, _ in pods:
        for binding in steps.intent:
            if binds_children(binding.field):
                binding.intent(view, ev)
        for binding in steps.final:
            if binds_children(binding.field):
                binding.final(view, ev)


def judged_pods(
    ev: Evaluation, plan: Plan, views: Sequence[PodView]
) -> list[tuple[PodView, Steps, bool]]:
    """Every pod that is new or changed with its steps, and whether it is as before (strict)."""
    pods: list[tuple[PodView, Steps, bool]] = []
    for view in views:
        same = view.spec_path in ev.as_before
        if not same or plan.strict:
            steps = plan.pod(view.location.component, view.location.roles)
            if not steps.empty:
                pods.append((view, steps, same))
    return pods


def fill(
    ev: Evaluation,
    plan: Plan,
    pods: Sequence[tuple[PodView, Steps, bool]],
    views: Sequence[PodView],
) -> None:
    """Defaults and imposed assets; a pod location equal to the old one gets no patch."""
    restored = restore_immutable(ev)
    for view, steps, same in pods:
        if not same and not any(view.spec_path[: len(place)] == place for place in restored):
            fill_pod(ev, steps, view)
    if ev.differs:
        for binding in plan.workload.fill:
            binding.fill(views, ev)


def fill_pod(ev: Evaluation, steps: Steps, view: PodView) -> None:
    """Defaults of one pod; the containers that some bring along get those of the others too."""
    bindings = iter(steps.fill)
    for binding in bindings:
        binding.fill(view, ev)
        if not getattr(binding, "adds_containers", False):
            break  # those that bring containers come first
        if ev.draft.changed:
            view = reread(view, ev)
    for binding in bindings:
        binding.fill(view, ev)


def judge_unwritten(
    ev: Evaluation,
    plan: Plan,
    pods: Sequence[tuple[PodView, Steps, bool]],
    views: Sequence[PodView],
) -> None:
    """A fixed default that the final object lacks: the mutating pass was skipped, or undone.

    What an update leaves as it was is fine; what it takes away is not.
    """
    todo: list[tuple[Any, Any]] = [
        (binding, view) for view, steps, same in pods if not same for binding in steps.fixed
    ]
    todo += [(binding, views) for binding in plan.workload.fixed]
    if not todo:
        return
    again = replace(ev.request, stage=Stage.MUTATE, treatment=Treatment.FULL)
    scratch = Evaluation(again, ev.references, ev.definition)
    scratch.injected = ev.injected
    scratch.immutable = ev.immutable
    fix = UNWRITTEN if ev.request.treatment is Treatment.FULL else OWNED
    for binding, subject in todo:
        known = len(scratch.findings.changes)
        binding.fill(subject, scratch)
        rules = [each for each in binding.rules.prohibitions if each.rule == "canEdit"]
        for change in scratch.findings.changes[known:]:
            present = read(ev.request.object, change.path)
            taken = change.why == "kept" or not ev.updating
            if taken and (present is ABSENT or present is None):
                allowed = None if change.secret else binding.rules.show_native(change.value)
                ev.violate(change.field, change.path, None, allowed, rules[0], fix=fix)


def claims_an_owner(request: Request) -> bool:
    """Whether somebody who may be a tenant says that a controller owns the object.

    Anybody can write that, and it must not be a way round fixed defaults. Controllers come from
    the control plane or from another namespace.
    """
    if request.treatment is not Treatment.UNPATCHED or request.subresource:
        return False
    own = f"system:serviceaccount:{request.namespace}:"
    return not request.user.startswith("system:") or request.user.startswith(own)


def judge_coverage(
    ev: Evaluation, definition: Definition, locations: Sequence[PodLocation]
) -> None:
    """Containers outside every known pod location are a way round policy."""
    found = uncovered(ev.request.object, locations, definition)
    for path, what in found:
        if ev.updating and read(ev.old, path) == read(ev.request.object, path):
            continue
        if definition.profile.uncovered == "warn":
            ev.warn("uncovered", "", path, what, ev.request.kind)
        else:
            ev.violate("", path, what, None, None, reason="uncovered", key=ev.request.kind)


def with_trial(decision: Decision, trial: Decision) -> Decision:
    """The decision with what Warn and Audit policies would add: reported, never enforced."""
    if isinstance(trial, Allowed):
        return decision
    known = set(decision.violations) if isinstance(decision, Denied) else set()
    added = [each for each in trial.violations if each not in known and is_trial(each)]
    warned = tuple(
        Warning("trial", each.field, each.path, (), each.source, each)
        for each in added
        if each.source is not None and each.source.enforcement == "Warn"
    )
    return replace(decision, warnings=(*decision.warnings, *warned), audit=tuple(added))


def is_trial(violation: Violation) -> bool:
    """Whether a violation comes from a policy on trial."""
    return violation.source is not None and violation.source.enforcement != "Enforce"
