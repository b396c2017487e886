"""Both passes as one: who refuses, what is written, and warnings of both."""

from __future__ import annotations

from webhook.decision.both_passes import decide_both_passes
from webhook.evaluation.outcome import Allowed, Decision, Denied, Violation, Warning
from webhook.evaluation.request import Request, Stage

REQUEST = Request("apps", "v1", "Deployment", "CREATE", {"kind": "Deployment"})
WRITTEN = {"kind": "Deployment", "spec": {}}
BOTH, FIRST, LAST = (Warning(each, "", (), ()) for each in ("both", "first", "last"))
BROKEN = Violation("image", (), None, None, "max", "max", None)
TRIED = Violation("image", (), None, None, "min", "min", None)


def test_the_second_pass_gets_what_the_first_has_written() -> None:
    asked: list[tuple[Stage, object]] = []

    def decide(request: Request) -> Decision:
        asked.append((request.stage, request.object))
        if request.stage is Stage.VALIDATE:
            return Allowed(request.object, warnings=(BOTH, LAST), audit=(TRIED,))
        return Allowed(WRITTEN, ({"op": "add"},), warnings=(FIRST, BOTH))

    found = decide_both_passes(REQUEST, decide)
    assert asked == [(Stage.MUTATE, REQUEST.object), (Stage.VALIDATE, WRITTEN)]
    assert found == Allowed(WRITTEN, ({"op": "add"},), warnings=(FIRST, BOTH, LAST), audit=(TRIED,))


def test_a_refusal_of_the_second_pass_keeps_the_warnings_of_the_first() -> None:
    def decide(request: Request) -> Decision:
        if request.stage is Stage.VALIDATE:
            return Denied((BROKEN,), (LAST,), completed=True)
        return Allowed(WRITTEN, warnings=(FIRST,), audit=(TRIED,))

    found = decide_both_passes(REQUEST, decide)
    assert found == Denied((BROKEN,), (FIRST, LAST), (TRIED,), completed=True)


def test_what_the_first_pass_refuses_is_not_asked_about_again() -> None:
    asked: list[Stage] = []

    def decide(request: Request) -> Decision:
        asked.append(request.stage)
        return Denied((BROKEN,))

    assert decide_both_passes(REQUEST, decide) == Denied((BROKEN,))
    assert asked == [Stage.MUTATE]
