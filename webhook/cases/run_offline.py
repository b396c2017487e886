"""Evaluates manifests from files with the decision that the cluster uses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from webhook.admission import timeouts
from webhook.admission.facts import decide_with_facts
from webhook.admission.review import TOO_DEEP
from webhook.catalog.catalog import Catalog
from webhook.decision.both_passes import decide_both_passes
from webhook.decision.carry_to_manifest import carry
from webhook.decision.owners import others_of
from webhook.devices.briefs import claim_brief, domain_brief
from webhook.devices.classes import class_brief
from webhook.devices.domain_templates import add_domain_templates
from webhook.devices.kinds import CLASS, DOMAIN, GROUP, KINDS
from webhook.documents.problem import Problem
from webhook.documents.source import SourceDocument
from webhook.evaluation.installation import GOVERNED_LABEL, NEVER_GOVERNED
from webhook.evaluation.outcome import (
    UNGOVERNED,
    Allowed,
    Decision,
    Denied,
    outcome_of,
    why_not_evaluated,
)
from webhook.evaluation.references import CLAIM_KINDS, ClaimKey, References
from webhook.evaluation.request import Request
from webhook.explain.wrapped import split_by_object
from webhook.libjq.evaluator import get_evaluator
from webhook.objects.draft import diff
from webhook.policy.policy import Policy
from webhook.policy.selectors import NAME_LABEL
from webhook.service import clock


def labels_in(namespace: str, labels: Mapping[str, str]) -> Mapping[str, str]:
    """The labels of a namespace, with the one that every cluster adds."""
    return {**labels, NAME_LABEL: namespace}


NOTHING_KNOWN = References({})


@dataclass(frozen=True, slots=True)
class Verdict:
    """The outcome of one manifest: the decision, and the completed manifest in its author's form.

    `policies` are those in force for it or for an object that it wraps; `namespace` is its
    namespace.
    """

    source: str
    kind: str
    name: str
    decision: Decision
    object: Any
    patch: tuple[dict[str, Any], ...] = ()
    group: str = ""
    namespace: str = ""
    policies: tuple[Policy, ...] = ()

    @property
    def is_allowed(self) -> bool:
        """Whether the manifest is allowed."""
        return isinstance(self.decision, Allowed)

    @property
    def outcome(self) -> str:
        """allowed, refused or not-evaluated."""
        return outcome_of(self.decision)

    @property
    def reason(self) -> str:
        """Why it is not evaluated, "" if it is."""
        return why_not_evaluated(self.decision)


@dataclass(frozen=True, slots=True)
class Place:
    """The namespace of manifests and its labels, and the time; "" means now."""

    namespace: str = "default"
    labels: Mapping[str, str] = field(default_factory=dict)
    time: str = ""


def manifests_of(
    documents: Sequence[SourceDocument],
) -> tuple[list[tuple[str, Any]], list[Problem]]:
    """Every object with its source, with the items of Lists; reports what is not an object."""
    found: list[tuple[str, Any]] = []
    problems: list[Problem] = []
    for document in documents:
        source = document.origin if document.index == 1 else f"{document.origin}#{document.index}"
        for name, data in open_items(source, document.data):
            reason = not_an_object(data)
            if reason:
                line, column = document.position(())
                fix = "write a Kubernetes object with apiVersion, kind and metadata"
                problems.append(
                    Problem(document.origin, "", reason, fix, "not-an-object", line, column)
                )
            else:
                found.append((name, data))
    return found, problems


def open_items(source: str, data: Any) -> Iterator[tuple[str, Any]]:
    """The object itself, or the items of a List."""
    if isinstance(data, dict) and str(data.get("kind", "")).endswith("List"):
        items = data.get("items")
        if isinstance(items, list):
            for index, item in enumerate(items):
                yield f"{source}[{index}]", item
            return
    yield source, data


def not_an_object(data: Any) -> str:
    """Why a document is not a Kubernetes object; "" if it is one."""
    if not isinstance(data, dict):
        return "a document that is no map"
    for key in ("apiVersion", "kind"):
        if not isinstance(data.get(key), str) or not data[key]:
            return f"no {key}"
    metadata = data.get("metadata")
    if metadata is not None and not isinstance(metadata, dict):
        return "metadata that is no map"
    if not isinstance((metadata or {}).get("namespace") or "", str):
        return "a metadata.namespace that is no text"
    return ""


def references_of(objects: Sequence[tuple[str, Any]], place: Place) -> References:
    """Claims, claim templates, device and priority classes and namespaces among the manifests."""
    claims: dict[ClaimKey, Any] = {}
    domains: dict[ClaimKey, Any] = {}
    device_classes: dict[str, Any] = {}
    priority_classes = set()
    namespaces = {place.namespace: place.labels}
    for _, data in objects:
        group, _, version = str(data["apiVersion"]).rpartition("/")
        kind, metadata = data["kind"], data.get("metadata") or {}
        name = str(metadata.get("name"))
        if (group, version, kind) == ("", "v1", "Namespace"):
            labels = metadata.get("labels")
            stated = {} if name != place.namespace else place.labels
            found = labels if isinstance(labels, dict) else {}
            namespaces[name] = {**{str(k): str(v) for k, v in found.items()}, **stated}
        elif kind == "PriorityClass":
            priority_classes.add(name)
        elif version not in KINDS.get((group, kind), ()):
            continue
        elif kind in CLAIM_KINDS:
            key = kind, metadata.get("namespace") or place.namespace, name
            claims[key] = claim_brief(kind, data)
        elif kind == CLASS:
            device_classes[name] = class_brief(data)
        elif kind == DOMAIN:
            key = kind, metadata.get("namespace") or place.namespace, name
            domains[key] = domain_brief(data)
    known = device_classes or None
    claims = add_domain_templates(claims, domains.items())
    return References(namespaces, claims, known, frozenset(priority_classes))


def applied_references(
    objects: Sequence[tuple[str, Any]], catalog: Catalog, place: Place
) -> References:
    """The references among manifests that are applied together, with claims as podgate completes them.

    A cluster stores a completed claim, and its pods are evaluated with that one.
    """
    references = references_of(objects, place)
    found = []
    for source, raw in objects:
        completed = raw
        if raw["kind"] in CLAIM_KINDS:
            with suppress(Exception):  # reported when the claim itself is evaluated
                verdict = evaluate_manifest(raw, source, catalog, references, place)
                completed = verdict.object if verdict.is_allowed else raw
        found.append((source, completed))
    return references_of(found, place)


def place_in_cluster(raw: Any, place: Place) -> tuple[str, Mapping[str, str]]:
    """The namespace of an object, and the labels if nothing else is known: a class has neither."""
    group, _, _ = str(raw["apiVersion"]).rpartition("/")
    if (group, raw["kind"]) == (GROUP, CLASS):
        return "", {}
    return (raw.get("metadata") or {}).get("namespace") or place.namespace, place.labels


def request_of(
    raw: Any, defaulted: Any, place: Place, references: References = NOTHING_KNOWN
) -> Request:
    """The request that `kubectl apply` sends for a new object."""
    group, _, version = str(raw["apiVersion"]).rpartition("/")
    metadata = raw.get("metadata") or {}
    namespace, labels = place_in_cluster(raw, place)
    return Request(
        group,
        version,
        str(raw["kind"]),
        "CREATE",
        defaulted,
        raw=raw,
        namespace=namespace,
        name=str(metadata.get("name") or metadata.get("generateName") or ""),
        namespace_labels=labels_in(namespace, references.namespaces.get(namespace, labels)),
        time=place.time or clock.moment(),
    )


def evaluate_manifest(
    raw: Any, source: str, catalog: Catalog, references: References, place: Place
) -> Verdict:
    """Run both passes on one manifest: the mutating one, then the validating one on its result."""
    if timeouts.too_deep(raw):
        return too_deep(raw, source)
    group, _, version = str(raw["apiVersion"]).rpartition("/")
    definition = catalog.definition(group, str(raw["kind"]), version)
    defaulted = raw if definition is None else catalog.complete(definition, raw)
    request = request_of(raw, defaulted, place, references)
    if definition is not None and not is_governed(request):
        passed = Allowed(raw, not_evaluated=UNGOVERNED)
        return verdict_on(request, source, passed, raw)
    evaluator = get_evaluator()
    decision = decide_both_passes(
        request, lambda asked: decide_with_facts(asked, catalog, references, evaluator)
    )
    policies = policies_for(request, decision, catalog, references)
    if isinstance(decision, Denied):
        return replace(verdict_on(request, source, decision), policies=policies)
    completed = carry(raw, defaulted, decision.object)
    found = verdict_on(request, source, decision, completed)
    return replace(found, patch=tuple(diff(raw, completed)), policies=policies)


def verdict_on(request: Request, source: str, decision: Decision, completed: Any = None) -> Verdict:
    """The outcome for one manifest."""
    return Verdict(
        source,
        request.kind,
        request.name,
        decision,
        completed,
        group=request.group,
        namespace=request.namespace,
    )


def is_governed(request: Request) -> bool:
    """Whether the API server calls podgate for the namespace: never for its own, nor if a label opts out.

    Offline, a namespace without the label counts as governed.
    """
    governed = request.namespace_labels.get(GOVERNED_LABEL, "true") == "true"
    return governed and request.namespace not in NEVER_GOVERNED


def policies_for(
    request: Request, decision: Decision, catalog: Catalog, references: References
) -> tuple[Policy, ...]:
    """The policies in force for an object and for the objects that it wraps, each once."""
    found: dict[tuple[str, str, str], Policy] = {}
    for part in split_by_object(request, decision, catalog):
        asked = part.request
        definition = catalog.definition(asked.group, asked.kind, asked.version)
        if definition is None:
            continue
        labels, others = asked.namespace_labels or None, others_of(asked)
        plans = catalog.plans_for(definition, asked.namespace, references, labels, others)
        for each in (plans.with_warn or plans.enforced).policies:
            found[each.scope, each.namespace, each.name] = each
    return tuple(found.values())


def too_deep(raw: Any, source: str) -> Verdict:
    """The webhook's answer to an object that is nested too deeply."""
    metadata = raw.get("metadata") or {}
    name, namespace = str(metadata.get("name") or ""), str(metadata.get("namespace") or "")
    group = str(raw["apiVersion"]).rpartition("/")[0]
    refused = Denied((TOO_DEEP,))
    return Verdict(source, str(raw["kind"]), name, refused, None, (), group, namespace)
