"""Facts of a request: the results of paths that only jq can evaluate, had before the decision."""

from __future__ import annotations

from webhook.core.catalog import Catalog
from webhook.core.request import Request
from webhook.core.workload.expressions import Evaluator
from webhook.core.workload.foreign import Facts, ForeignProgram, evaluate


def foreign_paths(request: Request, catalog: Catalog) -> tuple[ForeignProgram, ...]:
    """The paths of the object's kind that need jq; nearly always none."""
    if request.subresource or request.operation not in ("CREATE", "UPDATE"):
        return ()
    definition = catalog.definition(request.group, request.kind, request.version)
    return definition.foreign if definition is not None else ()


def facts_of(request: Request, catalog: Catalog, evaluator: Evaluator | None) -> Facts | None:
    """What jq says of the object and of the one before it; None where nobody needs to ask.

    What cannot be evaluated is a fact too, and the reason of a refusal: never an absent pod.
    """
    paths = foreign_paths(request, catalog)
    if not paths:
        return None
    if evaluator is None:
        return Facts()
    return evaluate(paths, evaluator, (request.object, request.old))
