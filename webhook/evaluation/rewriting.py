"""Recognises updates that take away what podgate wrote, so that nothing of them is left."""

from __future__ import annotations

from typing import Any, Final

from webhook.evaluation.outcome import Allowed, Decision
from webhook.evaluation.request import Request, Stage

KEPT_BY_SERVER: Final = frozenset({"managedFields", "resourceVersion", "generation"})


def is_rewriting(request: Request, decision: Decision | None) -> bool:
    """Whether an update lacks what podgate wrote, and podgate's patch leads back to the old object.

    An operator that compares what it owns with a template sends such updates for ever, as none of
    them changes anything. Whoever changes something else besides is not meant.
    """
    return (
        isinstance(decision, Allowed)
        and bool(decision.patch)
        and request.stage is Stage.MUTATE
        and request.operation == "UPDATE"
        and not request.dry_run
        and isinstance(request.old, dict)
        and essence(decision.object) == essence(request.old)
    )


def essence(document: Any) -> Any:
    """An object without its status and without what the server writes into every version."""
    metadata = document.get("metadata")
    if not isinstance(metadata, dict):
        return document
    kept = {key: each for key, each in metadata.items() if key not in KEPT_BY_SERVER}
    return {**document, "metadata": kept, "status": None}
