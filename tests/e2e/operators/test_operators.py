"""What real operators make of governed workloads keeps to the policy, and none of them is refused."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterable
from typing import Any

import pytest

from tests.e2e.conftest import bed_or_skip
from tests.e2e.gate import wait_for
from tests.e2e.objects import at
from tests.e2e.operators.bed import Bed
from tests.e2e.operators.cases import CASES, Case, how_to_run, wanted
from tests.e2e.operators.played import PATIENCE, Played, play, succeed

pytestmark = pytest.mark.e2e

REFUSED = ("podgate refused", 'podgate.dev" denied')
POLICY = re.compile(r"\((system policy system|cluster policy operators)\)")
ASKED = [case for case in CASES if wanted(case)]


def each_of(cases: Iterable[Case]) -> pytest.MarkDecorator:
    """A test for each of these cases, or a word on how to have some."""
    none = pytest.mark.skip("no operator that is asked for has this; run `make test-operators`")
    cases = list(cases) or [pytest.param(None, marks=none, id="none")]
    return pytest.mark.parametrize("case", cases, ids=lambda case: case.name)


@pytest.fixture(scope="module")
def stage() -> dict[str, Played]:
    """Cases that have been played, by name."""
    return {}


@pytest.fixture
def played(bed: Bed, stage: dict[str, Played], case: Case) -> Played:
    """The workload of a case, applied once for all tests, with all of its pods running."""
    if case.name not in stage:
        stage[case.name] = play(bed, case, f"real-{case.name}")
    return stage[case.name]


@pytest.mark.parametrize("name", sorted({case.operator.name for case in CASES}))
def test_operator_runs_under_its_own_account(request: pytest.FixtureRequest, name: str) -> None:
    operator = next((case.operator for case in ASKED if case.operator.name == name), None)
    if operator is None:
        pytest.skip(how_to_run(name))
    bed: Bed = request.getfixturevalue("bed")
    with bed_or_skip():
        running = bed.run(operator)
    kubeconfig = f"--kubeconfig={running.folder / 'kubeconfig'}"
    told = bed.gate.kubectl("auth", "whoami", kubeconfig, "--output=json").stdout
    assert json.loads(told)["status"]["userInfo"]["username"] == operator.user
    assert running.process.poll() is None


@each_of(ASKED)
def test_every_pod_is_as_the_policy_promises(played: Played) -> None:
    assert played.complaints() == []


@each_of(ASKED)
def test_nobody_who_makes_something_of_it_is_refused(played: Played) -> None:
    asked = played.bed.reviews(played.space, *played.case.users)
    made = [each for each in asked if each.request["operation"] == "CREATE"]
    assert len([each for each in made if each.request["kind"]["kind"] == "Pod"]) >= played.case.pods
    assert played.refusals() == []
    assert played.case.completed or played.patches() == []
    log = played.log()
    assert [each for each in REFUSED if each in log] == [], log


@each_of(ASKED)
def test_what_came_of_it_is_left_alone(played: Played) -> None:
    before, spec = played.settled(), played.spec()
    played.kubectl("label", played.target, "example.com/tier=a")
    after = played.settled()
    if not played.case.spreads:
        assert played.generations(after) == played.generations(before)
    assert played.spec() == spec
    assert played.patched("UPDATE") == []
    assert played.complaints() == []


@each_of(ASKED)
def test_applying_it_again_changes_nothing(played: Played) -> None:
    before, spec = played.settled(), played.spec()
    played.apply()
    after = played.settled()
    assert played.generations(after) == played.generations(before)
    assert played.spec() == spec


@each_of([case for case in ASKED if case.again])
def test_a_pod_that_is_deleted_comes_again(played: Played) -> None:
    lost = played.pods()[-1]["metadata"]
    played.kubectl("delete", "pod", lost["name"], "--wait=false")
    played.running(played.case.pods, without={lost["uid"]})
    assert played.complaints() == []
    assert played.refusals() == []


@each_of([case for case in ASKED if case.scaled])
def test_it_scales(played: Played) -> None:
    assert played.case.scaled
    replicas, pods = played.case.scaled
    played.kubectl("scale", played.target, f"--replicas={replicas}")
    played.running(pods)
    assert played.complaints() == []
    assert played.refusals() == []
    done = played.kubectl("scale", played.target, "--replicas=9", check=False)
    assert "scale.replicas" in done.stderr, done.stderr
    assert len(played.running(pods)) == pods


def elsewhere(played: Played) -> Played:
    """The same case in another governed namespace, with nothing applied yet."""
    other = Played(played.bed, played.case, played.bed.gate.governed_namespace())
    other.prepare()
    return other


@each_of(ASKED)
def test_a_workload_that_breaks_a_rule_never_gets_a_pod(played: Played) -> None:
    other = elsewhere(played)
    document = copy.deepcopy(played.case.document)
    place: Any = at(document, played.case.broken)
    place.update(played.case.breaks)
    done = other.kubectl("apply", "--filename=-", input=json.dumps(document), check=False)
    assert done.returncode == 1, done.stdout
    assert f"- {played.case.rule} at " in done.stderr, done.stderr
    assert "cluster policy operators" in done.stderr or "system policy" in done.stderr, done.stderr
    assert other.pods() == []


@each_of([case for case in ASKED if case.smuggled.exists()])
def test_what_an_operator_merges_in_is_refused_where_it_shows(played: Played) -> None:
    other = elsewhere(played)
    other.kubectl("apply", f"--filename={played.case.smuggled}")
    (said, *_) = wait_for(other.refusals, f"nobody is refused:\n{other.state()}", PATIENCE)
    broken = f"{played.case.smuggles} at "
    assert broken in said
    assert POLICY.search(said), said
    assert other.pods() == []
    wait_for(
        lambda: broken in other.told(),
        f"people are not told why:\n{other.state()}",
        PATIENCE,
    )
    if not played.case.completed:
        what = f"podgate says nothing of it to {played.target}:\n{other.state()}"
        (message, *_) = wait_for(other.told_by_podgate, what, PATIENCE)
        assert broken in message
        assert POLICY.search(message), message


@each_of([case for case in ASKED if case.done])
def test_it_finishes(played: Played) -> None:

    def done() -> bool:
        for pod in played.bed.gate.api.items("Pod", played.space, played.case.ends):
            if pod["status"].get("phase") == "Running":
                succeed(played.bed, pod)
        status = played.workload().get("status", {})
        held = {each["type"] for each in status.get("conditions", ()) if each["status"] == "True"}
        phase = at(status, "applicationState.state") or status.get("phase")
        return played.case.done in held or phase == played.case.done

    wait_for(done, f"it does not finish:\n{played.workload().get('status')}", PATIENCE)
    assert played.refusals() == []


def test_without_podgate_the_oracle_has_much_to_say(bed: Bed) -> None:
    case = next((case for case in ASKED if not case.others), None)
    if case is None:
        pytest.skip("the operators that are asked for need others")
    bed.run(case.operator)
    played = Played(bed, case, bed.gate.plain_namespace())
    played.apply()
    wait_for(lambda: len(played.pods()) == case.pods, "no pods", PATIENCE)
    assert len(played.complaints()) >= 15 * case.pods, played.complaints()
