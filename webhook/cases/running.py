"""Judges what a case submits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from webhook import clock, jq
from webhook.admission.judge import judge_review
from webhook.cases.case import REQUEST_KEYS, Case, Outcome
from webhook.cases.installation import catalog_of, place_of, references_for
from webhook.cases.reading import refuse_unknown
from webhook.core.catalog import Catalog
from webhook.core.decision import Allowed, Denied
from webhook.core.references import References
from webhook.core.request import Request, Stage
from webhook.core.workload.kind_schema import KindSchema
from webhook.offline import judge


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
    decision = judge_review(request, catalog, references, jq.evaluator())
    if stage is None and isinstance(decision, Allowed):
        final = replace(request, object=decision.object, stage=Stage.VALIDATE)
        second = judge_review(final, catalog, references, jq.evaluator())
        if isinstance(second, Denied):
            decision = second
    if isinstance(decision, Denied):
        return Outcome(decision, submitted, None, ())
    return Outcome(decision, submitted, decision.object, decision.patch)


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
