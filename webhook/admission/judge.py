"""One review's request through treatment, facts and decision; for webhook and `podgate review`."""

from __future__ import annotations

from dataclasses import replace

from webhook.admission.facts import facts_of_all
from webhook.admission.request_class import treatment
from webhook.catalog.catalog import Catalog
from webhook.decision.decide import decide
from webhook.evaluation.outcome import Decision, Denied
from webhook.evaluation.references import References
from webhook.evaluation.request import Request, Stage, Treatment
from webhook.jq.expressions import Evaluator


def judge_review(
    request: Request,
    catalog: Catalog,
    references: References,
    evaluator: Evaluator | None = None,
) -> Decision:
    """The decision on a request as an API server sends it; `evaluator` is asked for facts."""
    treated = treatment(request, catalog)
    if treated is not request.treatment:
        request = replace(request, treatment=treated)
    exempt = request.treatment is Treatment.EXEMPT
    facts = None if exempt else facts_of_all(request, catalog, evaluator)
    decision = decide(request, catalog, references, facts)
    completed = request.treatment in (Treatment.FULL, Treatment.OWNED)
    if completed and request.stage is Stage.VALIDATE and isinstance(decision, Denied):
        return replace(decision, completed=True)
    return decision
