"""Decides on objects that a controller made from evaluated pods.

Other webhooks may inject content into such objects because a tenant asked for it. A violation that
the owner does not have was injected, and is refused. A violation that the owner has too is older
than the policy, and is dropped. The owner is looked up only if the object violates something.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from webhook.catalog.catalog import Catalog
from webhook.catalog.plan import Plan, component_roles
from webhook.decision.comparison import describe_violations, find_new_violations
from webhook.decision.derived_pods import DerivedPods, with_main
from webhook.decision.gains import Gains
from webhook.decision.origins import (
    Kind,
    Origin,
    Owners,
    claimed_volumes,
    is_claimed,
    is_never_asked,
    is_same,
    kind_of,
    object_path,
    version_of,
    with_revision,
    without_filled_in,
)
from webhook.decision.owners import owner_reference
from webhook.decision.wrapped import wrapped_objects
from webhook.evaluation.filled_in import is_of_scc
from webhook.evaluation.outcome import (
    EXEMPT_SENDER,
    Allowed,
    Decision,
    Denied,
    NeededObject,
    OwnerReference,
    Violation,
    sort_key,
)
from webhook.evaluation.outcome import Warning as Caution
from webhook.evaluation.references import References
from webhook.evaluation.request import Request
from webhook.evaluation.server_defaults import KindDefaults
from webhook.interface.injected_items import Injected
from webhook.jq.external import Facts
from webhook.objects.path import read
from webhook.pods.definition import Definition
from webhook.pods.location import LocationError
from webhook.pods.pod_view import MalformedPod, PodView
from webhook.policy.policy import Policy

POD: Final = ("", "Pod")
REVISED: Final = ("StatefulSet", "DaemonSet")
REVISION: Final = "controller-revision-hash"
KEPT: Final = 16_384
MOST_OWNERS: Final = 6

NOT_OF_OWNER: Final = (
    "{owner} does not have it: another webhook or a controller added it. Remove what asks for it, or"
    " have an administrator list it as injected content."
)
GONE: Final = "Its owner {owner} is gone or was replaced; there is nothing to do."
FORBIDDEN: Final = (
    "podgate may not read {owner}: an administrator grants `get`, or sets unreadableOwner to warn."
)
UNDEFINED: Final = (
    "No definition covers the version of {owner}: an administrator adds it to the definition."
)


@dataclass(frozen=True, slots=True)
class Variant:
    """Policies that may apply to a controller-made object, and the plan of its kind under them.

    `pod_roles` are pairs of component and roles of the owner's kind, one for each set of rules.
    """

    policies: tuple[Policy, ...]
    plan: Plan
    pod_roles: tuple[tuple[str, tuple[str, ...]], ...]


def decide_derived(
    request: Request,
    catalog: Catalog,
    references: References,
    definition: Definition,
    facts: Facts | None,
) -> Decision:
    """Decide on one object that a controller made. The decision may ask for its owner (`needs`)."""
    owner = owner_reference(request.object)
    if owner is None:
        return Allowed(request.object, not_evaluated=EXEMPT_SENDER)
    labels = request.namespace_labels or references.namespaces.get(request.namespace, {})
    made = Made(request, catalog, references, definition, owner, labels, facts)
    try:
        found = made.violations()
    except (LocationError, MalformedPod) as error:
        reason = error.reason if isinstance(error, LocationError) else "wrong-type"
        found = [Violation("", error.path, None, str(error), reason, reason, None)]
        return made.refuse(found, "")
    return made.compare_with_owner(found) if found else Allowed(request.object)


@dataclass(slots=True)
class Made:
    """One object that a controller made, and the inputs of its evaluation."""

    request: Request
    catalog: Catalog
    references: References
    definition: Definition
    owner: OwnerReference
    labels: Mapping[str, str]
    facts: Facts | None

    @property
    def kind(self) -> Kind:
        """Group and kind of the owner."""
        return kind_of(self.owner)

    def violations(self) -> list[Violation]:
        """Return the violations under any policy that may apply. This needs no owner."""
        makers = self.catalog.makers_of(*self.kind)
        # Only the owner names its own controller, so additions of that operator apply later.
        pods = self.pods(self.request, self.added_by((self.kind,)))
        found: dict[Violation, None] = {}
        for variant in self.variants(makers):
            for pod_role in variant.pod_roles:
                steps = variant.plan.pod(*pod_role)
                for view in pods.views:
                    found |= dict.fromkeys(pods.violations(variant.plan, steps, view))
        return self.without_excused(found)

    def pods(
        self, request: Request, injected: Injected, server: KindDefaults | None = None
    ) -> DerivedPods:
        """Return the pods of the object without the defaults of the API server.

        With `server` the pods are completed first, because a custom resource that owns pods has no
        server defaults in its templates.
        """
        whole = without_filled_in(request, self.definition, server)
        return DerivedPods(whole, self.references, self.definition, injected, self.facts)

    def added_by(self, kinds: tuple[Kind, ...]) -> Injected:
        """Return the content that the settings and the operators of these kinds may inject."""
        return self.catalog.injected_for(kinds).made_of(self.owner.name)

    def without_excused(self, violations: Iterable[Violation]) -> list[Violation]:
        """Return the violations that no exception covers."""
        by = self.request.excused_by
        return [each for each in violations if not any(one.covers(each) for one in by)]

    def variants(self, makers: Iterable[Kind]) -> tuple[Variant, ...]:
        """Return the policies of the owner's kind, alone and with those of each kind above it."""
        interface = self.definition.interface
        labels = frozenset(self.labels.items())
        key = (interface.group, interface.kind, self.definition.versions, self.kind)
        whole = (*key, self.request.namespace, labels, tuple(makers))
        known = self.catalog.variants.get(whole)
        if known is None:
            known = tuple(self.build_variants(makers))
            if len(self.catalog.variants) >= KEPT:
                self.catalog.variants.clear()
            self.catalog.variants[whole] = known
        return known

    def build_variants(self, makers: Iterable[Kind]) -> Iterator[Variant]:
        """Yield the variants, one for each distinct set of policies."""
        catalog, namespace = self.catalog, self.request.namespace
        own: tuple[Kind, ...] = catalog.governed_kinds(*self.kind)
        found: dict[Any, tuple[tuple[Policy, ...], list[Kind]]] = {}
        for kinds in [own, *((*own, maker) for maker in makers)]:
            applying = catalog.policies_for(kinds, namespace, self.labels)
            enforced = tuple(each for each in applying if each.enforcement == "Enforce")
            digests = frozenset((each.digest, each.name, each.namespace) for each in enforced)
            found.setdefault(digests, (enforced, []))[1].extend(kinds)
        for policies, governed in found.values():
            plan = catalog.plan(self.definition, policies)
            yield Variant(policies, plan, find_pod_roles(catalog, plan, governed))

    def compare_with_owner(self, found: list[Violation]) -> Decision:
        """Decide by the violations that the owner does not have.

        Asks for the next owner, or for the ControllerRevision, that the request does not have yet.
        """
        origins: list[Origin] = []
        makers: list[Kind] = []
        owner: OwnerReference | None = self.owner
        while (each := owner) is not None and len(makers) < MOST_OWNERS:
            definition = self.catalog.any_definition(*kind_of(each), version_of(each))
            if definition is None:
                return self.refuse(found, NOT_OF_OWNER if origins else UNDEFINED, each)
            path = self.path_of(definition, each)
            looked_up = self.request.objects.get(path)
            if looked_up is None:
                needed = NeededObject(path, each.uid)
                return replace(self.refuse(found, NOT_OF_OWNER, each), needs=needed)
            if looked_up.forbidden:
                return self.unreadable(found, each)
            document = looked_up.object
            if not is_same(document, each):
                return self.refuse(found, GONE, each)
            owner = owner_reference(document)
            makers += [kind_of(owner)] if owner is not None else []
            # A Pod that controls other objects is not their template, but its own owner may be.
            if not origins or self.kind == POD:
                origins.append(Origin(kind_of(each), definition, document))
            if self.kind != POD:
                found = self.violations_of_its_own(origins, makers)
                # An operator further up may have injected it: look up the next owner to find out.
                above = self.catalog.makers_of(*makers[-1]) if owner is not None and found else ()
                if not above or len(self.violations_of_its_own(origins, [*makers, *above])) == len(
                    found
                ):
                    break
        left = self.violations_of_its_own(origins, makers) if self.kind == POD else found
        if not left:
            return Allowed(self.request.object)
        revision = self.revision_path()
        if revision and (revision_read := self.request.objects.get(revision)) is None:
            return replace(self.refuse(left, NOT_OF_OWNER), needs=NeededObject(revision))
        first = origins[0]
        if (
            revision
            and (older := with_revision(first.document, revision_read, self.owner)) is not None
        ):
            left = self.violations_of_its_own([*origins, replace(first, document=older)], makers)
        return self.refuse(left, NOT_OF_OWNER) if left else Allowed(self.request.object)

    def path_of(self, definition: Definition, owner: OwnerReference) -> str:
        """Return the API path of an owner, in a version that the definition covers."""
        group, version = definition.interface.group, version_of(owner)
        if version not in definition.versions:
            version = definition.versions[0]
        resource = definition.profile.resource
        return object_path(group, version, self.request.namespace, resource, owner.name)

    def revision_path(self) -> str:
        """Return the API path of the ControllerRevision that a Pod's label names, "" without one."""
        group, kind = self.kind
        if group != "apps" or kind not in REVISED:
            return ""
        name = read(self.request.object, ("metadata", "labels", REVISION))
        if not isinstance(name, str) or not name:
            return ""
        if kind == "DaemonSet":
            name = f"{self.owner.name}-{name}"
        namespace = self.request.namespace
        return object_path("apps", "v1", namespace, "controllerrevisions", name)

    def unreadable(self, found: list[Violation], owner: OwnerReference) -> Decision:
        """Deny, or allow with warnings, if podgate may not read the owner (`unreadableOwner`)."""
        if self.catalog.config.unreadable_owner == "deny":
            return self.refuse(found, FORBIDDEN, owner)
        reported = tuple(
            Caution("owner-unreadable", each.field, each.path, (), each.source, each)
            for each in found
        )
        return Allowed(self.request.object, warnings=reported)

    def refuse(
        self, violations: Iterable[Violation], why: str, owner: OwnerReference | None = None
    ) -> Denied:
        """Return the refusal, with a fix for each violation, to be reported on the owner too."""
        named = owner or self.owner
        fix = why.format(owner=f"{named.kind} {named.name}")
        reported = {replace(each, fix=fix) if fix else each: None for each in violations}
        return Denied(tuple(sorted(reported, key=sort_key)), report_to=self.owner)

    def violations_of_its_own(self, origins: list[Origin], makers: list[Kind]) -> list[Violation]:
        """Return the violations that no object in `origins` has.

        `makers` are the kinds that control these objects, and the kinds above them.
        """
        injected = self.added_by((self.kind, *makers))
        owners = Owners(pods for each in origins for pods in self.owner_pods(each, injected))
        made = self.pods(self.request, injected, self.catalog.pod_defaults())
        found: dict[Violation, None] = {}
        for variant in self.variants(makers[:1] if self.kind != POD else makers):
            found |= dict.fromkeys(self.compare_pods(variant, owners, made, injected))
        return self.without_excused(found)

    def owner_pods(self, origin: Origin, injected: Injected) -> Iterator[DerivedPods]:
        """Yield the pods of an owner and of the objects that it wraps. Unreadable ones are skipped."""
        definition, document = origin.definition, origin.document
        group, kind = origin.kind
        asked = replace(
            self.request,
            group=group,
            version=str(document.get("apiVersion", "")).rpartition("/")[2],
            kind=kind,
            operation="CREATE",
            object=document,
            old=None,
            excused_by=(),
        )
        server = self.catalog.pod_defaults()
        facts = self.facts
        try:
            whole = without_filled_in(asked, definition, server)
            yield DerivedPods(whole, self.references, definition, injected, facts)
            for each in wrapped_objects(asked, definition, self.catalog):
                own = each.request and self.catalog.definition(
                    each.request.group, each.request.kind, each.request.version
                )
                if each.request is not None and own:
                    whole = without_filled_in(each.request, own, server)
                    yield DerivedPods(whole, self.references, own, injected, facts)
        except (LocationError, MalformedPod):
            return

    def compare_pods(
        self, variant: Variant, owners: Owners, made: DerivedPods, injected: Injected
    ) -> Iterator[Violation]:
        """Yield the violations under one set of policies that no matching owner's pod has."""
        for index, view in enumerate(made.views):
            candidates = owners.nearest(view)
            if not candidates:
                for pod_role in variant.pod_roles:
                    steps = variant.plan.pod(*pod_role)
                    yield from made.violations(variant.plan, steps, view)
                continue
            best: list[Violation] | None = None
            for owner, origin in candidates:
                pods = self.without_scc(made, injected, owner, origin)
                remaining = self.find_remaining(variant, pods, index, owner, origin)
                if best is None or len(remaining) < len(best):
                    best = remaining
                if not remaining:
                    break
            yield from best or ()

    def without_scc(
        self, made: DerivedPods, injected: Injected, owner: DerivedPods, origin: PodView
    ) -> DerivedPods:
        """Return a Pod without the values that OpenShift's SCC plugin wrote.

        The plugin's annotation is trusted only if the owner does not have it, because anybody can
        write it into a template. The plugin changes only Pods, so there is one pod to read again.
        """
        request = self.request
        metadata = (origin.metadata, read(owner.document, ("metadata",)))
        is_pod = (request.group, request.kind) == POD
        if not is_pod or not is_of_scc(made.views[0].metadata) or any(map(is_of_scc, metadata)):
            return made
        whole = without_filled_in(request, self.definition, owner=origin.spec)
        return DerivedPods(whole, self.references, self.definition, injected, self.facts)

    def find_remaining(
        self, variant: Variant, made: DerivedPods, index: int, owner: DerivedPods, origin: PodView
    ) -> list[Violation]:
        """Return the violations of one pod that the owner's pod in `origin` does not have."""
        view = with_main(made.views[index], [each.name for each in origin.mains])
        pod_role = (origin.location.component, origin.location.roles)
        known = made.violations(variant.plan, variant.plan.pod(*pod_role), view)
        if not known:
            return []
        plan = self.catalog.plan(owner.definition, variant.policies)
        steps = plan.pod(*pod_role)
        theirs = owner.violations(plan, steps, origin)
        found = describe_violations(view, made.document, known)
        new = set(
            map(id, find_new_violations(found, describe_violations(origin, owner.document, theirs)))
        )
        claims = claimed_volumes(view, origin, self.owner.name)
        gains = Gains((made, view), (owner, origin), self.catalog.config)
        return [
            each.violation
            for each in found
            if ((id(each) in new and not is_claimed(each, view, claims)) or gains.has(each))
            and not is_never_asked(each, steps, owner)
            and not made.ev.injected.has_value(each.violation.field, each.content)
        ]


def find_pod_roles(
    catalog: Catalog, plan: Plan, kinds: Iterable[Kind]
) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return pairs of component and roles of these kinds, one for each set of effective rules."""
    found: list[tuple[str, tuple[str, ...]]] = []
    rules: list[Any] = []
    for kind in dict.fromkeys(kinds):
        for definition in catalog.definitions.get(kind, ()):
            for each in definition.everyone:
                for pod_role in component_roles(each):
                    effective = plan.effective(*pod_role)
                    if effective not in rules:
                        rules.append(effective)
                        found.append(pod_role)
    return tuple(found) or (("", ("worker",)),)
