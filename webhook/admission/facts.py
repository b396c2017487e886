"""Gets the facts of a request before the decision: results of paths that only jq can evaluate."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from webhook.catalog.catalog import Catalog
from webhook.decision.decide import decide
from webhook.decision.wrapped import wrapped_objects
from webhook.evaluation.outcome import Decision
from webhook.evaluation.references import References
from webhook.evaluation.request import Request, RequestClass
from webhook.jq.expressions import Evaluator
from webhook.jq.external import Facts, ForeignProgram, evaluate
from webhook.pods.location import LocationError

Asked = tuple[tuple[ForeignProgram, ...], tuple[Any, Any]]
"""Paths, and the documents to evaluate them on: an object and the one before it."""


def decide_with_facts(
    request: Request, catalog: Catalog, references: References, evaluator: Evaluator | None
) -> Decision:
    """Decide on a request with the facts that it needs, which come from `evaluator`."""
    return decide(request, catalog, references, find_facts(request, catalog, evaluator))


def find_facts(request: Request, catalog: Catalog, evaluator: Evaluator | None) -> Facts | None:
    """Return the facts of a request, None if it needs none."""
    return ask_jq(questions_of(request, catalog), evaluator)


def questions_of(request: Request, catalog: Catalog) -> list[Asked]:
    """Return the paths to evaluate for a request, and for the objects that were looked up for it.

    Nearly always empty. An exempt request needs none.
    """
    if not catalog.needs_jq or request.request_class is RequestClass.EXEMPT:
        return []
    asked = list(asked_of(request, catalog))
    for each in request.objects.values():
        body = each.object
        if isinstance(body, dict):
            group, _, version = str(body.get("apiVersion")).rpartition("/")
            own = replace(
                request,
                group=group,
                version=version,
                kind=str(body.get("kind")),
                operation="CREATE",
                object=body,
                old=None,
            )
            asked += asked_of(own, catalog)
    return asked


def asked_of(request: Request, catalog: Catalog) -> Iterator[Asked]:
    """Yield the paths to evaluate for an object, and for each that it wraps."""
    if request.subresource or request.operation not in ("CREATE", "UPDATE"):
        return
    definition = catalog.definition(request.group, request.kind, request.version)
    if definition is None:
        return
    if definition.foreign:
        within = request.within
        documents = (request.object, request.old)
        yield definition.foreign, (request.raw, within.old_raw) if within else documents
    if not definition.embedded:
        return
    try:
        found = wrapped_objects(request, definition, catalog)
    except LocationError:
        return  # the decision reports the error
    for each in found:
        if each.request is not None:
            yield from asked_of(each.request, catalog)


def ask_jq(asked: Sequence[Asked], evaluator: Evaluator | None) -> Facts | None:
    """Return the results of jq for these objects, None if there is nothing to evaluate.

    A path that cannot be evaluated is a fact too, and leads to a refusal: a pod is never ignored.
    """
    if not asked:
        return None
    if evaluator is None:
        return Facts()
    return Facts(
        known for paths, documents in asked for known in evaluate(paths, evaluator, documents).known
    )
