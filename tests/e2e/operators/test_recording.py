"""Scenes played anew bring reviews that are decided as those that were recorded."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.conftest import bed_or_skip
from tests.e2e.operators.bed import Bed
from tests.reviews.record import SCENES, numbered, played, theatre
from tests.reviews.table import OF_RECORDED, assert_decided
from webhook.admission.review import parse_review
from webhook.evaluation.request import Request, Stage

pytestmark = pytest.mark.e2e

ANEW = ("sets", "pods")
"""Scenes that need no operator and no minute of a schedule."""


@pytest.fixture(scope="module")
def bed_of_scenes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bed]:
    with bed_or_skip(), theatre(tmp_path_factory.mktemp("theatre")) as bed:
        yield bed


@pytest.mark.parametrize("name", ANEW)
def test_a_scene_played_anew_is_decided_as_it_was(bed_of_scenes: Bed, name: str) -> None:
    (scene,) = (each for each in SCENES if each.name == name)
    place = played(bed_of_scenes, scene)
    numbers = {int(file[:4]): kept for file, of, kept in numbered() if of is scene}
    rows = [row for row in OF_RECORDED.expected() if row.review in numbers]
    assert len(rows) == 2 * len(scene.keeps)
    for row in rows:
        body = place.seen(numbers[row.review]).body
        request = parse_review(body.encode(), Stage.MUTATE)
        assert isinstance(request, Request)
        assert_decided(row, request, OF_RECORDED.catalogs[row.policy])
