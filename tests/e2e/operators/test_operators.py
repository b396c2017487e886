"""What real operators make of governed workloads keeps to the policy, and none of them is refused."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import podgate
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
def test_its_tree_shows_its_state_and_all_its_pods(played: Played) -> None:
    wait_for(lambda: tree(played)["state"] == played.case.state, f"not its state:\n{drawn(played)}")
    found = list(below(tree(played)))
    assert [each["problem"] for each in found if each["problem"]] == []
    pods = {each["name"]: each for each in found if each["kind"] == "Pod"}
    assert set(pods) == {each["metadata"]["name"] for each in played.pods()}
    assert [name for name, each in pods.items() if not each["component"]] == []
    assert {each["state"] for each in pods.values()} <= {"Running", "Completed"}


def drawn(played: Played, *more: str) -> str:
    """What `podgate interface tree` prints of the workload in the cluster."""
    of = ("--namespace", played.space, "--kubeconfig", str(played.bed.cluster.kubeconfig()))
    result = podgate("interface", "tree", played.target, *of, *more)
    assert (result.exit_code, result.stderr) == (0, "")
    return result.stdout


def tree(played: Played) -> Any:
    """The same as JSON."""
    return json.loads(drawn(played, "--output", "json"))


def below(node: Any) -> Iterator[Any]:
    """A node of a tree and all below it."""
    yield node
    for each in node["children"]:
        yield from below(each)


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


@each_of([case for case in ASKED if case.suspends])
def test_what_suspend_prints_suspends_it(played: Played, tmp_path: Path) -> None:
    count = len(played.pods())
    printed(played, tmp_path, "suspend")
    wait_for(lambda: not played.pods(), f"its pods stay:\n{played.state()}", PATIENCE)
    wait_for(lambda: tree(played)["state"] == "Suspended", "its state stays", PATIENCE)
    printed(played, tmp_path, "suspend", "--resume")
    played.running(count)
    wait_for(lambda: tree(played)["state"] == played.case.state, "it does not go on", PATIENCE)
    assert played.complaints() == []
    assert played.refusals() == []


@each_of([case for case in ASKED if case.name == "raycluster"])
def test_what_update_prints_changes_one_instance(played: Played, tmp_path: Path) -> None:
    printed(played, tmp_path, "update", "-c", "workers", "-i", "small", "--set", "replicas=2")
    played.running(played.case.pods + 1)
    instances = [each["instance"] for each in below(tree(played)) if each["component"] == "workers"]
    assert sorted(instances) == ["gpu", "gpu", "small", "small"]
    assert played.refusals() == []


def printed(played: Played, folder: Path, command: str, *more: str) -> None:
    """Apply what a command makes of the workload; again where its operator wrote meanwhile."""
    file = folder / "workload.json"

    def applied() -> bool:
        file.write_text(json.dumps(played.workload()))
        result = podgate("interface", command, played.case.resource, str(file), *more)
        assert (result.exit_code, result.stderr) == (0, "")
        done = played.kubectl("apply", "--filename=-", input=result.stdout, check=False)
        assert done.returncode == 0 or "the object has been modified" in done.stderr, done.stderr
        return done.returncode == 0

    wait_for(applied, "it is written again and again")


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
