"""The drill with a hostile client, in its short form: about a minute, most of it waiting."""

from __future__ import annotations

import pytest

from tests.drill_server.__main__ import SHORT, drill
from tests.drill_server.attacks import SCENES

pytestmark = pytest.mark.long


def test_a_hostile_client_stops_nobody() -> None:
    rows = drill(SHORT, is_told=False)
    assert [row.name for row in rows] == [name for name, _ in SCENES]
    missed = [row.text() for row in rows if row.misses]
    assert not missed, "\n".join(missed)
