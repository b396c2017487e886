"""The generator finds each old fault that is put back, by objects of that class."""

from __future__ import annotations

import pytest

from tests.fuzz.disguises import DISGUISES
from tests.fuzz.engine import Generator, outcomes
from tests.fuzz.planted import PLANTS
from tests.fuzz.report import SPELLINGS
from tests.fuzz.reviews import send

SEED = 7
SOUND = Generator(SEED)
MOST = 4_000
"""Objects that are sent for one fault; most are found within a hundred."""


def test_every_class_has_a_planted_fault() -> None:
    assert set(PLANTS) == ({*SPELLINGS, *DISGUISES} - {"plain", "control"})


@pytest.mark.parametrize("name", sorted(PLANTS))
def test_a_planted_fault_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    PLANTS[name](monkeypatch)
    for index, outcome in outcomes(Generator(SEED), range(MOST)):
        attempt = outcome.attempt
        if outcome.admitted and name in (attempt.way.spelling, *attempt.disguises):
            monkeypatch.undo()
            drawn = SOUND.attempt(index)
            assert drawn is not None
            assert not send(*drawn).admitted, "it is let in without the fault too"
            return
    pytest.fail(f"{MOST} objects did not find it")
