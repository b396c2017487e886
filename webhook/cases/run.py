"""Judges what a case submits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from webhook.admission.judge import judge_review
from webhook.cases.case import REQUEST_KEYS, Case, Outcome
from webhook.cases.installation import catalog_of, place_of, references_for
from webhook.cases.read import refuse_unknown
from webhook.cases.run_offline import judge
from webhook.catalog.catalog import Catalog
from webhook.decision.origins import object_path
from webhook.evaluation.outcome import Allowed, Decision, Denied
from webhook.evaluation.references import References
from webhook.evaluation.request import ObjectRead, Request, Stage
from webhook.interface.kind_schema import KindSchema
from webhook.libjq import evaluator as jq
from webhook.service import clock


def run(case: Case, schemas: Sequence[KindSchema] = ()) -> Outcome:
    """Judge what the case submits."""
    catalog, references = catalog_of(case, schemas), references_for(case)
    if case.offline:
        return run_manifest(case, catalog, references)
    return run_request(case, catalog, references)


def run_manifest(case: Case, catalog: Catalog, references: References) -> Outcome:
    """The manifest as `podgate apply` judges it: the raw file is the intent."""
    raw = case.given["object"]
    verdict = judge(raw, str(case.file), catalog, references, place_of(case))
    return Outcome(verdict.decision, raw, verdict.object, verdict.patch)


def run_request(case: Case, catalog: Catalog, references: References) -> Outcome:
    """A request in the named stage; without one in both, as an API server asks."""
    request = request_of(case)
    submitted = request.object
    stage = case.given["request"].get("stage")
    decision, lookups = answer(case, request, catalog, references)
    if stage is None and isinstance(decision, Allowed):
        final = replace(request, object=decision.object, stage=Stage.VALIDATE)
        second, lookups = answer(case, final, catalog, references)
        if isinstance(second, Denied):
            decision = second
        else:
            told = tuple(dict.fromkeys((*decision.warnings, *second.warnings)))
            decision = replace(decision, warnings=told, audit=decision.audit or second.audit)
    if isinstance(decision, Denied):
        return Outcome(decision, submitted, None, (), lookups)
    return Outcome(decision, submitted, decision.object, decision.patch, lookups)


def answer(
    case: Case, request: Request, catalog: Catalog, references: References
) -> tuple[Decision, int]:
    """The decision, with the objects of the case's cluster that it needs, and how many these are."""
    objects = dict(cluster_of(case, catalog))
    while True:
        decision = judge_review(request, catalog, references, jq.evaluator())
        needed = decision.needs if isinstance(decision, Denied) else None
        if needed is None:
            return decision, len(request.objects)
        found = objects.get(needed.path, ObjectRead())
        request = replace(request, objects={**request.objects, needed.path: found})


def cluster_of(case: Case, catalog: Catalog) -> Iterator[tuple[str, ObjectRead]]:
    """The objects that look-ups find, by path; `forbidden: true` beside one that may not be read."""
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
    refuse_unknown(body, REQUEST_KEYS, case.file, "request")
    document, place = body.get("object"), place_of(case)
    metadata = document.get("metadata") or {}
    group, _, version = str(document.get("apiVersion")).rpartition("/")
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
        namespace=metadata.get("namespace") or place.namespace,
        name=str(metadata.get("name") or metadata.get("generateName") or ""),
        user=str(body.get("user") or "someone@example.com"),
        groups=tuple(body.get("groups") or ()),
        extra={key: tuple(held) for key, held in (body.get("extra") or {}).items()},
        field_manager=str(body.get("fieldManager") or ""),
        replaces=body.get("replaces") is True,
        dry_run=body.get("dryRun") is True,
        stage=Stage(body.get("stage") or "mutate"),
        namespace_labels=place.labels,
        time=place.time or clock.moment(),
    )
