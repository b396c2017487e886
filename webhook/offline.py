"""The offline twin: manifests as files bring them, judged by the decision of the cluster."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from webhook import clock, jq
from webhook.admission import budget
from webhook.admission.facts import facts_of
from webhook.admission.review import TOO_DEEP
from webhook.core.carry import carry
from webhook.core.catalog import Catalog
from webhook.core.decide import decide
from webhook.core.decision import Allowed, Decision, Denied, Problem
from webhook.core.patch import diff
from webhook.core.references import CLAIM_KINDS, References, claim_spec
from webhook.core.request import Request, Stage
from webhook.core.source import SourceDocument


@dataclass(frozen=True, slots=True)
class Verdict:
    """What came of one manifest: the decision, and the manifest completed in its author's form."""

    source: str
    kind: str
    name: str
    decision: Decision
    object: Any
    patch: tuple[dict[str, Any], ...] = ()

    @property
    def allowed(self) -> bool:
        """Whether the manifest may pass."""
        return isinstance(self.decision, Allowed)


@dataclass(frozen=True, slots=True)
class Place:
    """Where manifests go: a namespace and its labels; and when, "" being now."""

    namespace: str = "default"
    labels: Mapping[str, str] = field(default_factory=dict)
    time: str = ""


def manifests_of(
    documents: Sequence[SourceDocument],
) -> tuple[list[tuple[str, Any]], list[Problem]]:
    """Every object with its source; lists of kind List are opened, what is no object is told."""
    found: list[tuple[str, Any]] = []
    problems: list[Problem] = []
    for document in documents:
        source = document.origin if document.index == 1 else f"{document.origin}#{document.index}"
        for name, data in opened(source, document.data):
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


def opened(source: str, data: Any) -> Iterator[tuple[str, Any]]:
    """The object itself, or the items of a List."""
    if isinstance(data, dict) and str(data.get("kind", "")).endswith("List"):
        items = data.get("items")
        if isinstance(items, list):
            for index, item in enumerate(items):
                yield f"{source}[{index}]", item
            return
    yield source, data


def not_an_object(data: Any) -> str:
    """Why a document is no Kubernetes object; "" when it is one."""
    if not isinstance(data, dict):
        return "a document that is no map"
    for key in ("apiVersion", "kind"):
        if not isinstance(data.get(key), str) or not data[key]:
            return f"no {key}"
    metadata = data.get("metadata")
    if metadata is not None and not isinstance(metadata, dict):
        return "metadata that is no map"
    return ""


def references_of(objects: Sequence[tuple[str, Any]], place: Place) -> References:
    """Claims, claim templates and priority classes among the manifests, that others refer to."""
    claims = {}
    classes = set()
    for _, data in objects:
        if data["kind"] == "PriorityClass":
            classes.add(str((data.get("metadata") or {}).get("name")))
        if data["kind"] in CLAIM_KINDS and isinstance(data.get("spec"), dict):
            metadata = data.get("metadata") or {}
            namespace = metadata.get("namespace") or place.namespace
            key = data["kind"], namespace, str(metadata.get("name"))
            claims[key] = claim_spec(data["kind"], data)
    return References({place.namespace: place.labels}, claims, frozenset(classes))


def request_of(raw: Any, defaulted: Any, place: Place) -> Request:
    """The request that `kubectl apply` of a new object would make."""
    group, _, version = str(raw["apiVersion"]).rpartition("/")
    metadata = raw.get("metadata") or {}
    return Request(
        group,
        version,
        str(raw["kind"]),
        "CREATE",
        defaulted,
        raw=raw,
        namespace=metadata.get("namespace") or place.namespace,
        name=str(metadata.get("name") or metadata.get("generateName") or ""),
        namespace_labels=place.labels,
        time=place.time or clock.moment(),
    )


def judge(raw: Any, source: str, catalog: Catalog, references: References, place: Place) -> Verdict:
    """Both passes on one manifest: the mutating one, then the validating one on its result."""
    if budget.too_deep(raw):
        return too_deep(raw, source)
    group, _, version = str(raw["apiVersion"]).rpartition("/")
    definition = catalog.definition(group, str(raw["kind"]), version)
    defaulted = raw if definition is None else catalog.completed(definition, raw)
    request = request_of(raw, defaulted, place)
    evaluator = jq.evaluator()
    decision = decide(request, catalog, references, facts_of(request, catalog, evaluator))
    if isinstance(decision, Allowed):
        final = replace(request, object=decision.object, stage=Stage.VALIDATE)
        second = decide(final, catalog, references, facts_of(final, catalog, evaluator))
        if isinstance(second, Denied):
            decision = replace(second, warnings=decision.warnings, audit=decision.audit)
    if isinstance(decision, Denied):
        return Verdict(source, request.kind, request.name, decision, None)
    completed = carry(raw, defaulted, decision.object)
    return Verdict(
        source, request.kind, request.name, decision, completed, tuple(diff(raw, completed))
    )


def too_deep(raw: Any, source: str) -> Verdict:
    """What the webhook answers to an object that is nested deeper than the budget."""
    metadata = raw.get("metadata") or {}
    name = str(metadata.get("name") or "")
    return Verdict(source, str(raw["kind"]), name, Denied((TOO_DEEP,)), None)
