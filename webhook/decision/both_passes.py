"""Runs both passes on one object as an API server does: mutate, then validate the result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from webhook.evaluation.outcome import Allowed, Decision, Denied
from webhook.evaluation.request import Request, Stage


def decide_both_passes(request: Request, decide: Callable[[Request], Decision]) -> Decision:
    """Decide on an object that a client sends, for every command that shows a decision.

    `decide` is called with the request, then with the object that it allows. Either pass may deny.
    Object, patch and changes come from the first pass, because the second writes nothing. Warnings
    and violations of policies in audit mode come from both passes, without duplicates.
    """
    first = decide(request)
    if isinstance(first, Denied):
        return first
    second = decide(replace(request, object=first.object, stage=Stage.VALIDATE))
    decision: Allowed | Denied = second if isinstance(second, Denied) else first
    warnings = tuple(dict.fromkeys((*first.warnings, *second.warnings)))
    return replace(decision, warnings=warnings, audit=first.audit or second.audit)
