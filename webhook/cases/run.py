"""Evaluates the input of a case."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from webhook.admission.judge import decide_review
from webhook.cases.case import Case, Outcome
from webhook.cases.installation import catalog_of, place_of, references_for
from webhook.cases.run_offline import evaluate_manifest, place_in_cluster
from webhook.catalog.catalog import Catalog
from webhook.decision.both_passes import decide_both_passes
from webhook.decision.origins import object_path
from webhook.evaluation.outcome import Decision, Denied
from webhook.evaluation.references import References
from webhook.evaluation.request import ObjectRead, Request, Stage
from webhook.interface.kind_schema import KindSchema
from webhook.libjq.evaluator import get_evaluator
from webhook.service import clock


def run(case: Case, schemas: Sequence[KindSchema] = ()) -> Outcome:
    """Evaluate the input of the case."""
    return run_in(case, catalog_of(case, schemas))


def run_in(case: Case, catalog: Catalog) -> Outcome:
    """Evaluate the input of the case with an existing catalog."""
    references = references_for(case)
    if case.offline:
        return run_manifest(case, catalog, references)
    return run_request(case, catalog, references)


def run_manifest(case: Case, catalog: Catalog, references: References) -> Outcome:
    """Evaluate the manifest as `podgate apply` does: the raw file is the intent."""
    raw = case.given["object"]
    verdict = evaluate_manifest(raw, str(case.file), catalog, references, place_of(case))
    return Outcome(verdict.decision, raw, verdict.object, verdict.patch)


def run_request(case: Case, catalog: Catalog, references: References) -> Outcome:
    """Evaluate a request in the named stage, or in both as an API server does."""
    request = request_of(case)
    submitted = request.object
    lookups = 0

    def decide(asked: Request) -> Decision:
        nonlocal lookups
        decision, lookups = answer(case, asked, catalog, references)
        return decision

    both = case.given["request"].get("stage") is None
    decision = decide_both_passes(request, decide) if both else decide(request)
    if isinstance(decision, Denied):
        return Outcome(decision, submitted, None, (), lookups)
    return Outcome(decision, submitted, decision.object, decision.patch, lookups)


def answer(
    case: Case, request: Request, catalog: Catalog, references: References
) -> tuple[Decision, int]:
    """The decision, with the objects of the case's cluster that it needs, and their number."""
    objects = dict(cluster_of(case, catalog))
    while True:
        decision = decide_review(request, catalog, references, get_evaluator())
        needed = decision.needs if isinstance(decision, Denied) else None
        if needed is None:
            return decision, len(request.objects)
        found = objects.get(needed.path, ObjectRead())
        request = replace(request, objects={**request.objects, needed.path: found})


def cluster_of(case: Case, catalog: Catalog) -> Iterator[tuple[str, ObjectRead]]:
    """The objects that lookups find, by path; `forbidden: true` marks one that may not be read."""
    for each in (case.given.get("request") or {}).get("cluster") or ():
        document = {key: value for key, value in each.items() if key != "forbidden"}
        group, _, version = str(document.get("apiVersion")).rpartition("/")
        definition = catalog.definition(group, str(document.get("kind")), version)
        resource = definition.profile.resource if definition else "controllerrevisions"
        metadata = document.get("metadata") or {}
        namespace = metadata.get("namespace") or place_of(case).namespace
        path = object_path(group, version, namespace, resource, str(metadata.get("name")))
        forbidden = each.get("forbidden") is True
        yield path, ObjectRead(None if forbidden else document, forbidden)


def request_of(case: Case) -> Request:
    """The request that a case describes."""
    body = case.given["request"]
    document, place = body.get("object"), place_of(case)
    metadata = document.get("metadata") or {}
    group, _, version = str(document.get("apiVersion")).rpartition("/")
    namespace, labels = place_in_cluster(document, place)
    resource = body.get("resource") or {}
    return Request(
        group,
        version,
        str(document.get("kind")),
        str(body.get("operation") or ("UPDATE" if body.get("old") is not None else "CREATE")),
        document,
        old=body.get("old"),
        resource=str(resource.get("resource") or ""),
        resource_group=str(resource.get("group") or ""),
        resource_version=str(resource.get("version") or ""),
        subresource=str(body.get("subresource") or ""),
        namespace=namespace,
        name=str(metadata.get("name") or metadata.get("generateName") or ""),
        user=str(body.get("user") or "someone@example.com"),
        groups=tuple(body.get("groups") or ()),
        extra={key: tuple(held) for key, held in (body.get("extra") or {}).items()},
        field_manager=str(body.get("fieldManager") or ""),
        replaces=body.get("replaces") is True,
        dry_run=body.get("dryRun") is True,
        stage=Stage(body.get("stage") or "mutate"),
        namespace_labels=labels,
        time=place.time or clock.moment(),
    )
