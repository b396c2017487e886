"""Judges for tests of the HTTP side."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from webhook.admission.judge import (
    Judge,
    JudgeStatus,
    NeedsFacts,
    NeedsNamespace,
    NeedsObjects,
    Ready,
)
from webhook.evaluation.outcome import Decision
from webhook.evaluation.references import ClaimKey
from webhook.evaluation.request import Request


@dataclass
class Deciding(Judge):
    """A function decides, and a request needs nothing."""

    function: Callable[[Request], Decision]

    def prepare(self, request: Request) -> Ready | NeedsNamespace | NeedsFacts:
        """Nothing is to be found out."""
        return Ready(request)

    def decide(self, ready: Ready, *, final: bool) -> Decision | NeedsObjects:
        """What the function says."""
        return self.function(ready.request)

    def has(self, claims: frozenset[ClaimKey]) -> bool:
        """No claim is known."""
        return False

    def status(self) -> JudgeStatus:
        """Nothing to tell."""
        return JudgeStatus()
