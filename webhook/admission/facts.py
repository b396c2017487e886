"""Facts of a request: the results of paths that only jq can evaluate, had before the decision."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from webhook.catalog.catalog import Catalog
from webhook.decision.wrapped import wrapped_objects
from webhook.evaluation.request import Request
from webhook.jq.expressions import Evaluator
from webhook.jq.external import Facts, ForeignProgram, evaluate
from webhook.pods.location import LocationError

Asked = tuple[tuple[ForeignProgram, ...], tuple[Any, Any]]
"""Paths, and the documents that they are asked of: an object and the one before it."""


def foreign_paths(request: Request, catalog: Catalog) -> tuple[ForeignProgram, ...]:
    """The paths that need jq, of the object's kind and of those that it wraps; nearly always none."""
    return tuple(each for paths, _ in asked_of(request, catalog) for each in paths)


def asked_of(request: Request, catalog: Catalog) -> Iterator[Asked]:
    """The same by object."""
    if request.subresource or request.operation not in ("CREATE", "UPDATE"):
        return
    definition = catalog.definition(request.group, request.kind, request.version)
    if definition is None:
        return
    if definition.foreign:
        within = request.within
        documents = (request.object, request.old)
        yield definition.foreign, (request.raw, within.old_raw) if within else documents
    if not definition.embedded or not catalog.needs_jq:
        return
    try:
        found = wrapped_objects(request, definition, catalog)
    except LocationError:
        return  # the decision says so
    for each in found:
        if each.request is not None:
            yield from asked_of(each.request, catalog)


def facts_of_all(request: Request, catalog: Catalog, evaluator: Evaluator | None) -> Facts | None:
    """The facts of a request and of the objects that were looked up for it."""
    found = [facts_of(request, catalog, evaluator)]
    for each in request.objects.values() if catalog.needs_jq else ():
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
            found.append(facts_of(own, catalog, evaluator))
    known = [each for each in found if each is not None]
    return Facts(one for each in known for one in each.known) if known else None


def facts_of(request: Request, catalog: Catalog, evaluator: Evaluator | None) -> Facts | None:
    """What jq says of the object and of the one before it; None where nobody needs to ask.

    What cannot be evaluated is a fact too, and the reason of a refusal: never an absent pod.
    """
    asked = list(asked_of(request, catalog))
    if not asked:
        return None
    if evaluator is None:
        return Facts()
    return Facts(
        known for paths, documents in asked for known in evaluate(paths, evaluator, documents).known
    )
