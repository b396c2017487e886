"""Every review of samples/ against what the semantics say of it, written down by hand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.reviews import samples
from tests.reviews.recording.applied import SPACE, sendings
from tests.reviews.table import Expected, Table, asked, assert_decided

TABLE = Table(Path(__file__).parent / "expectations.yaml")
COUNT = 124
BY_HAND = 104
"""From here on one Deployment, one PyTorchJob and one Pod of ours go through all that people do."""


def test_every_review_has_one_expectation_under_each_policy(upstream_data: Path) -> None:
    TABLE.assert_complete(COUNT)
    assert len(list((upstream_data / "reviews").glob("*.json"))) == COUNT


def test_every_review_is_of_a_sample_or_of_an_object_of_our_own() -> None:
    """Nothing is kept that we neither wrote nor read from an archive."""
    own = {number: sending for number, *sending in sendings()}
    for file in samples.FOLDER.iterdir():
        number, kept = int(file.name[:4]), json.loads(file.read_text("utf-8"))
        assert ("sample" in kept) == (number not in own and number < BY_HAND), file.name
        if number not in own:
            continue
        options, before, sent = own.pop(number)
        request = kept["request"]
        manager = "kubectl" if options else "kubectl-client-side-apply"
        assert request["options"]["fieldManager"] == manager
        assert request["operation"] == ("UPDATE" if before else "CREATE")
        assert request["namespace"] == SPACE
        assert request["kind"]["kind"] == sent["kind"]
        assert contains(request["object"], sent), file.name
    assert not own


def contains(found: object, sent: object) -> bool:
    """Whether all that was sent came; the server has added its defaults and its own items."""
    if isinstance(sent, dict) and isinstance(found, dict):
        return all(contains(found.get(key), value) for key, value in sent.items())
    if isinstance(sent, list) and isinstance(found, list):
        return all(map(contains, found, sent)) and len(found) >= len(sent)
    return found == sent


@pytest.mark.parametrize("row", list(TABLE.expected()), ids=str)
def test_a_review_is_decided_as_the_semantics_say(row: Expected, upstream_data: Path) -> None:
    request = asked(upstream_data / "reviews", row.review)
    assert_decided(row, request, TABLE.catalogs[row.policy])
