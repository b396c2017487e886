"""The list of missing rows says neither too much nor too little."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conformance.missing import MISSING
from tests.conformance.rows import ids_in, rows

HERE = Path(__file__).parent


def test_every_row_has_a_test_or_a_reason(request: pytest.FixtureRequest) -> None:
    here = [each.nodeid for each in request.session.items if "/conformance/" in each.nodeid]
    files = {each.split("::")[0].rsplit("/", 1)[-1] for each in here}
    if request.config.getoption("keyword") or files != {
        each.name for each in HERE.glob("test_*.py")
    }:
        pytest.skip("only a part of the tests was collected")
    tested = ids_in(here)
    assert [each for each in rows() if each not in tested | set(MISSING)] == []
    assert [each for each in MISSING if each in tested] == []
