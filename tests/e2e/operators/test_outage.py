"""While podgate is down nothing passes unseen; once it is back, operators go on by themselves."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime

import pytest

from tests.e2e.objects import Json
from tests.e2e.operators.bed import Bed
from tests.e2e.operators.cases import CASES, Case, wanted
from tests.e2e.operators.played import Played, play, succeed

pytestmark = pytest.mark.e2e

DOWN = float(os.environ.get("PODGATE_DOWN_SECONDS", "20"))
FAR = datetime.max.replace(tzinfo=UTC)
TOGETHER = [case for case in CASES if wanted(case)]


@dataclass(slots=True)
class Outage:
    """Workloads that wanted another pod meanwhile, uids of their first pods, and when it was over."""

    played: dict[str, Played] = field(default_factory=dict)
    first: dict[str, set[str]] = field(default_factory=dict)
    over: datetime = FAR

    def new(self, name: str) -> list[Json]:
        """The pods of a workload that were not there before."""
        pods = self.played[name].pods()
        return [each for each in pods if each["metadata"]["uid"] not in self.first[name]]

    def seconds(self, pod: Json) -> float:
        """How long after it was over a pod was made, to the second."""
        made = datetime.fromisoformat(pod["metadata"]["creationTimestamp"])
        return max(0.0, (made - self.over).total_seconds())


@pytest.fixture(scope="module")
def outage(bed: Bed) -> Outage:
    """Every workload has lost a pod while podgate was down.

    Or one has ended that the next step waits for.
    """
    found = Outage()
    for case in TOGETHER:
        played = found.played[case.name] = play(bed, case, f"down-{case.name}")
        found.first[case.name] = {each["metadata"]["uid"] for each in played.pods()}
    bed.gate.podgate.stop()
    try:
        for played in found.played.values():
            lose(played)
        time.sleep(DOWN)
        for name, played in found.played.items():
            assert not found.new(name), f"made without podgate:\n{played.state()}"
    finally:
        bed.gate.podgate.start_again()
        found.over = datetime.now(UTC)
    return found


def lose(played: Played) -> None:
    """Delete a pod, or end it where none is made anew."""
    pod = played.pods()[-1]
    if played.case.again:
        played.kubectl("delete", "pod", pod["metadata"]["name"], "--wait=false")
    else:
        succeed(played.bed, pod)


@pytest.mark.parametrize("case", TOGETHER, ids=lambda case: case.name)
def test_an_operator_goes_on_when_podgate_is_back(outage: Outage, case: Case) -> None:
    played = outage.played[case.name]
    if not case.again:
        # It waits for the next event: the other pods end too, and the last step is left.
        for pod in played.pods():
            if pod["status"]["phase"] == "Running":
                succeed(played.bed, pod)
    played.running(case.pods if case.again else 1)
    new = outage.new(case.name)
    assert new
    print(f"{case.name}: {max(map(outage.seconds, new)):.0f} s after an outage of {DOWN:.0f} s")
    assert played.complaints() == []
    assert played.refusals() == []
