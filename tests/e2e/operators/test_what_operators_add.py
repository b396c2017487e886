"""What operators add to their children passes the strictest policy; anything like it does not."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.e2e.gate import wait_for
from tests.e2e.objects import Json
from tests.e2e.operators.bed import HERE, Bed, recorder_of
from tests.e2e.operators.cases import CASES, Case, how_to_run, wanted
from tests.e2e.operators.played import PATIENCE, Played
from tests.e2e.recorder import Recorder, Recording
from tests.e2e.served import Served, serving
from tests.e2e.tls_server import passed_on

pytestmark = pytest.mark.e2e

ADDED = {
    "pytorchjob": ("init-pytorch",),
    "raycluster": ("shared-mem", "ray-logs"),
    "mpijob": ("ssh-auth", "mpi-job-config"),
    "service": ("queue-proxy",),
    "workflow": ("init", "wait", "var-run-argo", "tmp-dir-argo"),
    "sparkapplication": ("spark-local-dir-1", "spark-conf-volume-driver"),
    "inferenceservice": ("storage-initializer", "kserve-provision-location"),
}
"""Containers and volumes that a rule would refuse; other operators add none."""
PODS = {"raycluster": 2}
"""How many Pods a workload of its own in adding/ has, if not as many as the case's."""
LISTS = ("containers", "initContainers", "volumes")


@dataclass(slots=True)
class Strict:
    """A podgate of its own with the strictest policies, behind the bed's API server."""

    bed: Bed
    served: Served
    recorder: Recorder
    played: dict[str, Played] = field(default_factory=dict)

    def play(self, case: Case) -> Played:
        """Apply the workload of a case once, and wait for its Pods."""
        if case.name not in self.played:
            for operator in (case.operator, *case.others):
                self.bed.run(operator)
            space = self.bed.gate.governed_namespace(f"strict-{case.name}")
            played = self.played[case.name] = Played(self.bed, case, space)
            played.prepare()
            own = HERE / "adding" / case.file.name
            played.kubectl("apply", f"--filename={own if own.exists() else case.file}")
        played, count = self.played[case.name], PODS.get(case.name, case.pods)

        def there() -> bool:
            assert not (refused := self.refusals(played)), "\n".join(refused)
            return len(played.pods()) >= count

        wait_for(there, f"not {count} Pods of {case.name}", PATIENCE)
        return played

    def reviews(self, played: Played) -> list[Recording]:
        """What podgate was asked about whatever came of a workload."""
        return [
            each
            for each in self.recorder.recordings()
            if each.request.get("namespace") == played.space
            and each.request["userInfo"]["username"] in played.case.users
        ]

    def refusals(self, played: Played) -> list[str]:
        """Answers that refused something that came of a workload."""
        found = (each for each in self.reviews(played) if not each.response["allowed"])
        return [f"{each.request['kind']['kind']}: {each.answer}" for each in found]

    def first_with(self, played: Played, name: str) -> Json:
        """The first review of a child that has a container or volume of this name."""
        for each in self.reviews(played):
            review = dict(json.loads(each.body))
            if each.stage.startswith("validate") and named(review["request"]["object"], name):
                return review
        pytest.fail(f"nothing that came of {played.case.name} has {name}")

    def asked(self, review: Json) -> Json:
        """What podgate answers to a review."""
        body = json.dumps(review).encode()
        trust = self.recorder.trust
        status, answer = passed_on(self.served.url, trust, "/validate?timeout=3s", body)
        assert status == 200, answer
        return dict(json.loads(answer)["response"])


def named(document: Any, name: str) -> list[Json]:
    """The containers and volumes of this name in a pod or in a pod template."""
    spec = document["spec"]
    pod = spec.get("template", document).get("spec", {})
    return [one for each in LISTS for one in pod.get(each, ()) if one["name"] == name]


def changed(added: Json) -> Iterator[tuple[str, Json]]:
    """An addition of the same shape with other content, each with what it is called."""
    if "image" in added:
        yield "image", {**added, "image": "registry.example.com/evil/spy:1"}
        yield "command", {**added, "command": ["sh", "-c", "env"]}
        yield "mount", {**added, "volumeMounts": [{"name": "mine", "mountPath": "/mine"}]}
        return
    (kind,) = set(added) - {"name"}
    others = {
        "secret": {**added[kind], "secretName": "others"},
        "configMap": {**added[kind], "name": "others"},
        "emptyDir": {"medium": "HugePages"},
    }
    yield kind, {**added, kind: others[kind]}
    yield "hostPath", {"name": added["name"], "hostPath": {"path": "/"}}


@pytest.fixture(scope="module")
def strict(bed: Bed, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Strict]:
    """The strictest podgate; afterwards the API server asks the bed's again."""
    folder = tmp_path_factory.mktemp("strict")
    certificates = bed.gate.podgate.certificates
    settings = {
        "PODGATE_KUBECONFIG": str(bed.cluster.kubeconfig()),
        "PODGATE_FEATURES": bed.gate.podgate.settings["PODGATE_FEATURES"],
    }
    with serving(folder, HERE / "strict", certificates, settings) as served:
        recorder = recorder_of(folder, certificates, served)
        with recorder.running():
            found = Strict(bed, served, recorder)
            try:
                bed.gate.register(recorder.url)
                bed.wait_until_asked("governed", "strict-pods")
                yield found
            finally:
                for each in found.played.values():
                    bed.gate.kubectl("delete", "namespace", each.space, "--wait=false")
                bed.gate.register(bed.gate.recorder.url)
                bed.wait_until_asked("governed", "operators")


def parameters() -> Iterator[Any]:
    """Every case, skipped where its operator is not asked for."""
    for case in CASES:
        reason = how_to_run(case.operator.name)
        marks = pytest.mark.skipif(not wanted(case), reason=reason)
        yield pytest.param(case, id=case.name, marks=marks)


@pytest.mark.parametrize("case", list(parameters()))
def test_what_an_operator_adds_passes_and_nothing_like_it(strict: Strict, case: Case) -> None:
    played = strict.play(case)
    asked = strict.reviews(played)
    made = {each.request["kind"]["kind"] for each in asked if each.request["operation"] == "CREATE"}
    assert "Pod" in made
    let_in = []
    for name in ADDED.get(case.name, ()):
        review = strict.first_with(played, name)
        assert strict.asked(review)["allowed"] is True
        (added,) = named(review["request"]["object"], name)
        for what, other in changed(added):
            tampered = copy.deepcopy(review)
            (place,) = named(tampered["request"]["object"], name)
            place.clear()
            place.update(other)
            if strict.asked(tampered)["allowed"]:
                let_in.append(f"{name} with another {what}")
    assert let_in == []
    assert strict.refusals(played) == []
