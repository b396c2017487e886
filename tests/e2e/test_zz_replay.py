"""Every review of this session, judged again without a server: the very same answers."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import pytest

from tests.e2e.gate import Gate
from tests.e2e.recorder import Recording
from tests.e2e.testbed import releases
from webhook.admission.judge import decide_review
from webhook.admission.review import ReviewFault, parse_review, respond
from webhook.catalog.catalog import Catalog
from webhook.evaluation.outcome import Decision, Denied
from webhook.evaluation.references import References
from webhook.evaluation.request import Request, Stage
from webhook.sources.load import Sources, load

pytestmark = [pytest.mark.e2e, pytest.mark.core]


@cache
def catalog_of(policies: Path) -> Catalog:
    """The catalog of a policy folder."""
    catalog, problems = load(Sources((str(policies),), kubernetes_minor=releases.chosen().minor))
    assert catalog is not None, problems
    return catalog


def generation_of(recording: Recording) -> int:
    """The generation of the catalog that judged."""
    return int(recording.response["auditAnnotations"]["catalog"])


def decide_again(recording: Recording, catalog: Catalog) -> tuple[Request, Decision]:
    """The request of a recording, and podgate's decision on it without a server."""
    request = parse_review(recording.body.encode(), Stage(recording.stage))
    assert not isinstance(request, ReviewFault), request
    return request, decide_review(request, catalog, References())


def needs_owner(decision: Decision) -> bool:
    """Whether the answer depends on an owner, which the server looked up and no recording holds."""
    return isinstance(decision, Denied) and decision.needs is not None


def answer(recording: Recording, catalog: Catalog) -> str:
    """What podgate answers now."""
    request, decision = decide_again(recording, catalog)
    return respond(request, decision, generation_of(recording)).decode()


def test_every_recorded_review_gets_the_same_answer_offline(gate: Gate) -> None:
    recordings = gate.recorder.recordings()
    assert recordings
    history = gate.podgate.history
    left_out = 0
    for recording in recordings:
        catalog = catalog_of(history[generation_of(recording)])
        request, decision = decide_again(recording, catalog)
        if needs_owner(decision):
            left_out += 1
            continue
        again = respond(request, decision, generation_of(recording)).decode()
        told = f"{recording.stage} {json.dumps(recording.request)[:2000]}"
        assert json.loads(again) == json.loads(recording.answer), told
        assert again == recording.answer, told
    assert left_out <= len(recordings) // 4, f"{left_out} of {len(recordings)} need an owner"


def test_both_passes_and_both_answers_were_recorded(gate: Gate) -> None:
    kinds = {(each.stage, each.response["allowed"]) for each in gate.recorder.recordings()}
    # `gate` itself has a bad Pod refused in the mutating pass.
    assert ("mutate", False) in kinds
    assert {stage for stage, _ in kinds} <= {"mutate", "validate"}
