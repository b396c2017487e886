"""One review's request through treatment and decision; shared by the webhook and `podgate review`."""

from __future__ import annotations

from dataclasses import replace

from webhook.admission.exemptions import treatment
from webhook.core.catalog import Catalog
from webhook.core.decide import decide
from webhook.core.decision import Decision
from webhook.core.references import References
from webhook.core.request import Request


def judge_review(request: Request, catalog: Catalog, references: References) -> Decision:
    """The decision on a request as an API server sends it."""
    treated = treatment(request, catalog)
    if treated is not request.treatment:
        request = replace(request, treatment=treated)
    return decide(request, catalog, references)
