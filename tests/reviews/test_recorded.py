"""Every review recorded here, with controllers' own names, against what the semantics say of it."""

from __future__ import annotations

import json

import pytest

from tests.reviews.record import RECORDED, numbered
from tests.reviews.table import OF_RECORDED, Expected, asked, assert_decided
from webhook.admission.judge import decide_review
from webhook.admission.request_class import classify_request
from webhook.decision.owners import owner_reference
from webhook.evaluation.outcome import Denied
from webhook.evaluation.references import References
from webhook.evaluation.request import RequestClass

pytestmark = pytest.mark.long

EXPECTED = pytest.mark.parametrize("row", list(OF_RECORDED.expected()), ids=str)


def test_what_is_kept_of_the_scenes_is_there_with_one_expectation_each() -> None:
    names = [name for name, _, _ in numbered()]
    assert sorted(file.name for file in RECORDED.iterdir()) == names
    OF_RECORDED.assert_complete(len(names), "treated")


def test_every_review_is_what_its_scene_keeps() -> None:
    for name, scene, kept in numbered():
        asked_for = json.loads((RECORDED / name).read_text("utf-8"))["request"]
        assert asked_for["namespace"] == scene.name
        assert asked_for["operation"] == kept.operation
        assert asked_for["kind"]["kind"] == kept.kind
        assert asked_for.get("subResource", "") == kept.subresource
        assert asked_for["userInfo"]["username"] == kept.user


@EXPECTED
def test_a_sender_is_treated_as_the_semantics_say(row: Expected) -> None:
    request = asked(RECORDED, row.review)
    assert classify_request(request, OF_RECORDED.catalogs[row.policy]) is RequestClass(
        row.row["treated"]
    )


@EXPECTED
def test_a_review_is_decided_as_the_semantics_say(row: Expected) -> None:
    assert_decided(row, asked(RECORDED, row.review), OF_RECORDED.catalogs[row.policy])


@EXPECTED
def test_only_the_owner_of_a_refused_child_is_told(row: Expected) -> None:
    request = asked(RECORDED, row.review)
    decision = decide_review(request, OF_RECORDED.catalogs[row.policy], References())
    child = row.row["treated"] == "child" and "denied" in row.said
    told = decision.report_to if isinstance(decision, Denied) else None
    assert told == (owner_reference(request.object) if child else None)
