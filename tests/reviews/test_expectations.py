"""Every review of the shared data against what the semantics say of it, written down by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.reviews.table import Expected, Table, asked, assert_decided

TABLE = Table(Path(__file__).parent / "expectations.yaml")
COUNT = 124


def test_every_review_has_one_expectation_under_each_policy(upstream_data: Path) -> None:
    TABLE.assert_complete(COUNT)
    assert len(list((upstream_data / "reviews").glob("*.json"))) == COUNT


@pytest.mark.parametrize("row", list(TABLE.expected()), ids=str)
def test_a_review_is_decided_as_the_semantics_say(row: Expected, upstream_data: Path) -> None:
    request = asked(upstream_data / "reviews", row.review)
    assert_decided(row, request, TABLE.catalogs[row.policy])
