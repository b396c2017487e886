"""Finds the sources of a controller-made object: its owner, an older revision, claim templates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Final

from webhook.decision.comparison import ComparableViolation
from webhook.decision.derived_pods import DerivedPods
from webhook.decision.owners import owner_reference
from webhook.evaluation.filled_in import complete_spec, without_fillings
from webhook.evaluation.outcome import OwnerReference
from webhook.evaluation.request import ObjectRead, Request
from webhook.evaluation.server_defaults import KindDefaults
from webhook.fields.steps import Steps
from webhook.objects.draft import Draft
from webhook.objects.path import ABSENT, read
from webhook.pods.definition import Definition
from webhook.pods.locate import locate
from webhook.pods.location import LocationError
from webhook.pods.pod_view import PodView
from webhook.policy.table import TABLE

Kind = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Origin:
    """An object from which a controller made another, with the definition of its kind."""

    kind: Kind
    definition: Definition
    document: Any


def kind_of(owner: OwnerReference) -> Kind:
    """Group and kind of an owner."""
    return owner.api_version.rpartition("/")[0], owner.kind


def version_of(owner: OwnerReference) -> str:
    """The version that an owner reference names."""
    return owner.api_version.rpartition("/")[2]


def without_filled_in(
    request: Request,
    definition: Definition,
    server: KindDefaults | None = None,
    owner: dict[str, Any] | None = None,
) -> Request:
    """Return the request with pod specs without the values that the API server and plugins filled in.

    `server` completes templates that the API server leaves as they are, so that both can be
    compared. With the pod spec of its `owner`, values of OpenShift's SCC plugin are removed too.
    """
    if definition.foreign:
        return request

    def cleaned(document: Any) -> Any:
        draft = Draft(document)
        for each in locate(definition, document):
            if each.fragments is None and each.spec:
                spec = each.spec if server is None else complete_spec(each.spec, server)
                draft.set(each.spec_path, without_fillings(spec, owner))
        return draft.document

    old = request.old
    if old is not None:
        try:
            old = cleaned(old)
        except LocationError:
            old = request.old
    return replace(request, object=cleaned(request.object), old=old)


Pod = tuple[DerivedPods, PodView]
"""A pod with the object that it is in."""
MOST_ALIKE: Final = 8


class Owners:
    """The pods of the owners of an object, found by the containers that they share with a pod."""

    __slots__ = ("by_container", "pods")

    def __init__(self, owners: Iterable[DerivedPods]) -> None:
        self.pods: list[Pod] = [(each, view) for each in owners for view in each.views]
        self.by_container: dict[Any, list[int]] = {}
        for number, pod in enumerate(self.pods):
            for each in marks_of(pod[1]):
                known = self.by_container.setdefault(each, [])
                if len(known) < MOST_ALIKE:
                    known.append(number)

    def nearest(self, view: PodView) -> list[Pod]:
        """Return the pods from which this one may come: those with most containers in common.

        At most MOST_ALIKE pods per container are known; any others run the same.
        """
        scores: Counter[int] = Counter()
        for each in marks_of(view):
            scores.update(self.by_container.get(each, ()))
        if not scores:
            return self.pods[:MOST_ALIKE]
        most = max(scores.values())
        return [self.pods[number] for number in sorted(scores) if scores[number] == most]


def marks_of(view: PodView) -> set[tuple[str, str, str]]:
    """Return the list, name and image of each container of a pod."""
    return {(each.list, each.name, str(each.body.get("image"))) for each in view.everyone}


def is_never_asked(finding: ComparableViolation, steps: Steps[PodView], owner: DerivedPods) -> bool:
    """Return whether a value is missing that no rule requires in the owner's pod.

    Then nobody removed it: the owner's kind has no path for it, or forbids it. `steps` are the
    rules of the owner's pod.
    """
    violation = finding.violation
    if violation.reason == "locked":
        asked = any(
            each.row.path == violation.field and each.is_locked(violation.key)
            for each in steps.final
        )
        return violation.value == "missing" and (
            not asked or violation.field in owner.unmapped_fields
        )
    if violation.value is not None or finding.content not in (ABSENT, None):
        return False
    row, rule = TABLE.fields[violation.field], violation.rule_type
    if rule is None:
        return False
    if rule.requires_value and not any(
        each.row is row and each.rules.required for each in steps.final
    ):
        return True
    return rule.fixes_default and all(each.row is not row for each in steps.locked)


def is_same(document: Any, owner: OwnerReference) -> bool:
    """Return whether an object has the uid of an owner reference."""
    return (
        isinstance(document, dict)
        and bool(owner.uid)
        and read(document, ("metadata", "uid")) == owner.uid
    )


def object_path(group: str, version: str, namespace: str, resource: str, name: str) -> str:
    """The path of a namespaced object in the API server."""
    root = f"/apis/{group}/{version}" if group else f"/api/{version}"
    return f"{root}/namespaces/{namespace}/{resource}/{name}"


def with_revision(document: Any, revision: ObjectRead | None, owner: OwnerReference) -> Any:
    """Return the owner with the template of an older revision, None if it has another owner."""
    found = revision.object if revision is not None else None
    holder = owner_reference(found)
    if holder is None or not owner.uid or holder.uid != owner.uid:
        return None
    template = read(found, ("data", "spec", "template"))
    if not isinstance(template, dict):
        return None
    draft = Draft(document)
    draft.set(("spec", "template"), {k: v for k, v in template.items() if k != "$patch"})
    return draft.document


def claimed_volumes(view: PodView, origin: PodView, owner: str) -> frozenset[int]:
    """Return the indices of the pod's volumes that come from claim templates of its owner."""
    names, claims = set(), set()
    for _, body in origin.claims:
        name = read(body, ("metadata", "name"))
        if isinstance(name, str):
            names.add(name)
        claims |= {str(body[key]) for key in ("volumeClaimName", "claimName") if body.get(key)}
    found = set()
    volumes = view.spec.get("volumes")
    for index, each in enumerate(volumes if isinstance(volumes, list) else ()):
        claim = read(each, ("persistentVolumeClaim", "claimName"))
        if not isinstance(claim, str):
            continue
        name = str(each.get("name"))
        if claim in claims or (name in names and claim.startswith(f"{name}-{owner}")):
            found.add(index)
    return frozenset(found)


def is_claimed(finding: ComparableViolation, view: PodView, claims: frozenset[int]) -> bool:
    """Return whether a violation is in a volume of a claim template, which the owner has too."""
    at = (*view.spec_path, "volumes")
    path = finding.violation.path
    return path[: len(at)] == at and len(path) > len(at) and path[len(at)] in claims
