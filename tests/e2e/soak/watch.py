"""What is watched while people work: the workers' memory, pods by the oracle, policies that change."""

from __future__ import annotations

import contextlib
import json
import ssl
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.e2e.api import Api
from tests.e2e.gate import wait_for
from tests.e2e.objects import Json
from tests.e2e.operators.bed import Bed
from tests.e2e.operators.oracle import lacking
from tests.e2e.served import Served
from tests.e2e.soak.figures import Figures
from tests.e2e.soak.things import PLAIN, Sort

WAVE = "wave.yaml"
OURS = ("podgate_", "# TYPE podgate_")
GENERATION = "podgate_catalog_generation"


def figures_of(served: Served) -> Figures:
    """podgate's own metrics, of all workers."""
    context = ssl.create_default_context(cafile=served.certificates.ca)
    with urllib.request.urlopen(f"{served.url}/metrics", context=context, timeout=30) as answer:
        return Figures(answer.read().decode(), OURS)


def wave(number: int) -> str:
    """Policies whose default is another each time; in the plain namespace it is locked by turns.

    What stands already keeps its value, also while another is locked, and no re-apply changes it.
    """
    default = {"instances": [{"name": "WAVE", "value": str(number)}]}
    spread = {
        "apiVersion": "podgate.dev/v1alpha1",
        "kind": "ClusterWorkloadPolicy",
        "metadata": {"name": "wave"},
        "spec": {"scope": "cluster", "defaults": {"environmentVariables": default}},
    }
    rule = {"environmentVariables": {"instances": {"locked": ["WAVE"] if number % 2 else []}}}
    lock = {
        "apiVersion": "podgate.dev/v1alpha1",
        "kind": "WorkloadPolicy",
        "metadata": {"name": "lock", "namespace": PLAIN},
        "spec": {"rules": rule},
    }
    return f"{json.dumps(spread)}\n---\n{json.dumps(lock)}\n"


@dataclass(slots=True)
class Watch:
    """Threads beside the people; `memory` has for each worker (seconds, bytes)."""

    bed: Bed
    sorts: list[Sort]
    every: float
    memory: dict[int, list[tuple[float, int]]] = field(default_factory=dict)
    judged: set[str] = field(default_factory=set)
    complaints: list[str] = field(default_factory=list)
    waves: int = 0
    ended: threading.Event = field(default_factory=threading.Event)
    began: float = field(default_factory=time.monotonic)

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Watch until the block ends.

        The first policy comes before anybody works: later ones only change what it writes.
        """
        with contextlib.closing(Api(self.bed.cluster)) as api:
            self.change(api)
        threads = [
            threading.Thread(target=self.guarded, args=(seconds, what))
            for seconds, what in ((1, self.weigh), (3, self.judge), (self.every, self.change))
        ]
        for each in threads:
            each.start()
        try:
            yield
        finally:
            self.ended.set()
            for each in threads:
                each.join()

    def guarded(self, seconds: float, what: Callable[[Api], None]) -> None:
        """Do it every so many seconds until the end; what fails is a complaint, not silence."""
        with contextlib.closing(Api(self.bed.cluster)) as api:
            while not self.ended.wait(seconds):
                try:
                    what(api)
                except Exception as error:
                    self.complaints.append(f"{what.__name__}: {error!r}")
                    return

    def weigh(self, _: Api) -> None:
        """The resident memory of every worker and of the reader."""
        served = self.bed.gate.podgate.process.pid
        children = Path(f"/proc/{served}/task/{served}/children").read_text("utf-8")
        for pid in map(int, children.split()):
            held = resident(pid)
            if held:
                taken = time.monotonic() - self.began, held
                self.memory.setdefault(pid, []).append(taken)

    def judge(self, api: Api) -> None:
        """Every pod that is new, by the oracle."""
        # The plain kinds share a namespace and the names that matter to the oracle.
        for sort in {each.space: each for each in self.sorts}.values():
            for pod in api.items("Pod", sort.space):
                if pod["metadata"]["uid"] not in self.judged:
                    self.judged.add(pod["metadata"]["uid"])
                    self.complain(pod, sort)

    def complain(self, pod: Json, sort: Sort) -> None:
        """What the oracle has against a pod."""
        names = {each["name"] for each in pod["spec"]["containers"]}
        main = next((each for each in sort.mains if each in names), sort.mains[0])
        place = f"{sort.space}/{pod['metadata'].get('name', 'template')}"
        told = lacking(pod, main, sort.added, sort.without)
        self.complaints += [f"{place}: {each}" for each in told]

    def change(self, _: Api) -> None:
        """Another policy, at once and whole; all workers use it when this returns."""
        served = self.bed.gate.podgate
        before = figures_of(served).total(GENERATION)
        self.waves += 1
        partial = served.policies / f".{WAVE}"
        partial.write_text(wave(self.waves), "utf-8")
        partial.replace(served.policies / WAVE)
        wait_for(
            lambda: figures_of(served).total(GENERATION) > before,
            f"not every worker has policy {self.waves}",
        )


def resident(pid: int) -> int:
    """Bytes of a process that are in memory; 0 when it is gone."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text("utf-8").splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024
    return 0
