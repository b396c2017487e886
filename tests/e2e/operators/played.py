"""A workload that was applied behind podgate, and what its operator makes of it."""

from __future__ import annotations

import json
import time
from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from tests.e2e.conftest import bed_or_skip
from tests.e2e.gate import Done
from tests.e2e.objects import Json, version_of
from tests.e2e.operators.bed import Bed
from tests.e2e.operators.cases import Case
from tests.e2e.operators.oracle import lacking
from tests.e2e.testbed import processes

PATIENCE = 90.0
QUIET = 2.0
CHILDREN = "pods,jobs.batch,statefulsets.apps,replicasets.apps,deployments.apps"


@dataclass(slots=True)
class Played:
    """A case in a namespace of its own."""

    bed: Bed
    case: Case
    space: str

    def kubectl(self, *arguments: str, **more: Any) -> Done:
        """Run kubectl in the namespace."""
        return self.bed.gate.kubectl(*arguments, f"--namespace={self.space}", **more)

    def prepare(self) -> None:
        """Apply what must be there before the workload."""
        if self.case.beside.exists():
            self.kubectl("apply", "--server-side", f"--filename={self.case.beside}")

    def apply(self) -> Done:
        """Apply the workload as it is in its file."""
        return self.kubectl("apply", f"--filename={self.case.file}")

    def read(self, *what: str) -> Json:
        """What `kubectl get` finds."""
        return dict(json.loads(self.kubectl("get", *what, "--output=json").stdout))

    @property
    def target(self) -> str:
        """What kubectl calls the workload."""
        return f"{self.case.resource}/{self.case.workload}"

    def spec(self) -> Any:
        """What the workload says, without what it says of nothing."""
        return said(self.workload()["spec"])

    def workload(self) -> Json:
        """The workload as it is stored."""
        return self.read(self.target)

    def pods(self) -> list[Json]:
        """The pods that are there."""
        return self.bed.gate.api.items("Pod", self.space)

    def running(self, count: int, without: Collection[str] = ()) -> list[Json]:
        """The pods once `count` run and the others have ended, none with one of these uids."""
        end = time.monotonic() + PATIENCE
        while True:
            found = self.pods()
            # Pods of Jobs stay until their controller has taken its finalizer away.
            going = any("deletionTimestamp" in each["metadata"] for each in found)
            phases = [each["status"].get("phase") for each in found]
            phases = [each for each in phases if each != "Succeeded"]
            uids = {each["metadata"]["uid"] for each in found}
            if phases == ["Running"] * count and not going and not uids & set(without):
                return found
            assert time.monotonic() < end, f"not {count} pods that run:\n{self.state()}"
            time.sleep(0.1)

    def settled(self) -> dict[str, tuple[str, int]]:
        """Versions of the workload and all that came of it, once nobody writes them any more."""
        end = time.monotonic() + PATIENCE
        last, since = self.versions(), time.monotonic()
        while time.monotonic() - since < QUIET:
            assert time.monotonic() < end, f"it is written again and again:\n{self.state()}"
            time.sleep(0.2)
            now = self.versions()
            if now != last:
                last, since = now, time.monotonic()
        return last

    def generations(self, versions: dict[str, tuple[str, int]]) -> dict[str, int]:
        """How often the spec of each was written, but for a workload that is never left alone."""
        found = {name: generation for name, (_, generation) in versions.items()}
        if self.case.restless:
            del found[f"{self.case.document['kind']}/{self.case.workload}"]
        return found

    def versions(self) -> dict[str, tuple[str, int]]:
        """What tells whether the workload or one of its children was written again."""
        found = [self.workload(), *self.read(CHILDREN)["items"]]
        return {f"{each['kind']}/{each['metadata']['name']}": version_of(each) for each in found}

    def complaints(self) -> list[str]:
        """What the oracle has against the pods."""
        case = self.case
        found = []
        for pod in self.pods():
            names = [each["name"] for each in pod["spec"]["containers"]]
            main = next((each for each in case.mains if each in names), case.mains[0])
            told = lacking(pod, main, case.added, case.without)
            found += [f"{pod['metadata']['name']}: {each}" for each in told]
        return found

    def refusals(self) -> list[str]:
        """Answers of podgate that said no to those who make something of the workload."""
        return [
            f"{each.request['userInfo']['username']}: {each.answer}"
            for each in self.bed.reviews(self.space, *self.case.users)
            if not each.response["allowed"]
        ]

    def patched(self, operation: str) -> list[str]:
        """Patches of podgate to the workload itself, by whoever wrote it."""
        return [
            each.answer
            for each in self.bed.gate.recorder.recordings()
            if each.request.get("namespace") == self.space
            and each.request["operation"] == operation
            and each.request["kind"]["kind"] == self.case.document["kind"]
            and "patch" in each.response
        ]

    def patches(self) -> list[str]:
        """Answers of podgate that changed what they make."""
        return [
            f"{each.request['userInfo']['username']}: {each.answer}"
            for each in self.bed.reviews(self.space, *self.case.users)
            if "patch" in each.response
        ]

    def log(self) -> str:
        """What the operator has said of this namespace."""
        lines = self.bed.running[self.case.operator.name].log().splitlines()
        return "\n".join(each for each in lines if self.space in each)

    def told(self) -> str:
        """Where people look: the workload's status, the namespace's events, the operator's log."""
        found = self.kubectl("get", self.case.resource, "--output=json").stdout
        return "\n".join([found, *self.events(), self.log()])

    def events(self) -> list[str]:
        """The namespace's events."""
        found = self.bed.gate.api.items("Event", self.space)
        return [f"{each.get('reason')}: {each.get('message')}" for each in found]

    def told_by_podgate(self) -> list[str]:
        """What podgate's events on the workload say."""
        owner = {"kind": self.case.document["kind"], "name": self.case.workload}
        return [
            each["message"]
            for each in self.bed.gate.api.items("Event", self.space)
            if each.get("reason") == "PolicyRefused"
            and owner.items() <= each["involvedObject"].items()
        ]

    def state(self) -> str:
        """What there is and what was said, for people."""
        listed = self.kubectl("get", f"{CHILDREN},{self.case.resource}", check=False)
        tail = processes.tail(self.bed.running[self.case.operator.name].log_file)
        return "\n".join(
            [listed.stdout, listed.stderr, *self.events()[-20:], *self.refusals(), tail]
        )


def said(value: Any) -> Any:
    """A value without what is null or empty in it, which operators add when they write it back."""
    if isinstance(value, dict):
        kept = {key: said(each) for key, each in value.items()}
        return {key: each for key, each in kept.items() if each not in (None, {}, "")}
    if isinstance(value, list):
        return [said(each) for each in value]
    return value


def play(bed: Bed, case: Case, space: str) -> Played:
    """Start what the case needs, apply its workload and wait for its pods."""
    with bed_or_skip():
        for operator in (case.operator, *case.others):
            bed.run(operator)
    bed.gate.governed_namespace(space)
    played = Played(bed, case, space)
    played.prepare()
    played.apply()
    played.running(case.pods)
    return played


def succeed(bed: Bed, pod: Json) -> None:
    """Have the containers of a pod end well, as its node would tell."""
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    ended = {"exitCode": 0, "reason": "Completed", "startedAt": now, "finishedAt": now}
    statuses = [
        {**each, "ready": False, "started": False, "state": {"terminated": ended}}
        for each in pod["status"]["containerStatuses"]
    ]
    body = {"status": {"phase": "Succeeded", "containerStatuses": statuses}}
    metadata = pod["metadata"]
    path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}/status"
    bed.gate.api.request("PATCH", path, body, "application/merge-patch+json")
