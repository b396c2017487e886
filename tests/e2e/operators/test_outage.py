"""While podgate is down nothing passes unseen; once it is back, operators go on by themselves."""

from __future__ import annotations

import os
import time

import pytest

from tests.e2e.operators.bed import Bed
from tests.e2e.operators.cases import CASES, Case, wanted
from tests.e2e.operators.played import Played, play, succeed

pytestmark = pytest.mark.e2e

DOWN = float(os.environ.get("PODGATE_DOWN_SECONDS", "20"))
TOGETHER = [case for case in CASES if wanted(case)]


@pytest.fixture(scope="module")
def after(bed: Bed) -> dict[str, tuple[Played, set[str]]]:
    """Every workload after it wanted another pod while podgate was down; uids of its first pods.

    It has lost one, or one has ended that the next step waits for.
    """
    found = {}
    for case in TOGETHER:
        played = play(bed, case, f"down-{case.name}")
        found[case.name] = played, {each["metadata"]["uid"] for each in played.pods()}
    bed.gate.podgate.stop()
    try:
        for played, _ in found.values():
            pod = played.pods()[-1]
            if played.case.again:
                name = pod["metadata"]["name"]
                played.kubectl("delete", "pod", name, "--wait=false")
            else:
                succeed(bed, pod)
        time.sleep(DOWN)
        for played, uids in found.values():
            new = [each for each in played.pods() if each["metadata"]["uid"] not in uids]
            assert not new, f"made without podgate:\n{played.state()}"
    finally:
        bed.gate.podgate.start_again()
    return found


@pytest.mark.parametrize("case", TOGETHER, ids=lambda case: case.name)
def test_an_operator_goes_on_when_podgate_is_back(
    after: dict[str, tuple[Played, set[str]]], case: Case
) -> None:
    played, first = after[case.name]
    if not case.again:
        # It waits for the next event: the other pods end too, and the last step is left.
        for pod in played.pods():
            if pod["status"]["phase"] == "Running":
                succeed(played.bed, pod)
    pods = played.running(case.pods if case.again else 1)
    assert {each["metadata"]["uid"] for each in pods} - first
    assert played.complaints() == []
    assert played.refusals() == []
