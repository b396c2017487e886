"""Gates of a full cluster: podgate's start, memory and slowest answers behind a real API server."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson

from bench import crowd
from bench.api import Caller
from bench.https import Client, cpu_seconds, free_port
from bench.inprocess import review
from bench.objects import ray_cluster
from bench.timing import Gate
from certs.development import ensure_development_certificates
from tests.e2e.testbed.cluster import REPOSITORY, Cluster

WORKERS, PATIENCE, ROUNDS = 2, 120.0, 3
GROUPS = 330  # worker groups of a RayCluster of 1.5 MB
TEAM = f"{crowd.GROUP}/clusterworkloadpolicies/team-0"
Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Webhook:
    """A running `podgate serve --cluster`."""

    process: subprocess.Popen[bytes]
    folder: Path
    port: int
    metrics: int
    ready: float

    def workers(self) -> list[Json]:
        """What its workers judge by."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.metrics}/statusz", timeout=5) as told:
            return list(json.load(told)["workers"])

    def client(self, body: bytes = b"") -> Client:
        """A caller with a connection of its own."""
        return Client(self.port, self.folder / "ca.crt", "/mutate?timeout=10s", body)


def command(*words: str) -> list[str]:
    """podgate with these words."""
    return [sys.executable, "-c", "from webhook.cli.main import main; main()", *words]


def megabytes(pid: int, row: str = "Pss") -> float:
    """Memory of a process: its share of pages that several have (Pss), or all of them (Rss)."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith(f"{row}:"):
            return int(line.split()[1]) * 1024 / 1e6
    raise SystemExit(f"process {pid} tells nothing of its memory")


def children(pid: int) -> list[int]:
    """The processes that a process has started."""
    found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(each) for each in found]


def until(holds: Callable[[], bool], what: str, patience: float = PATIENCE) -> float:
    """Wait for something; seconds it took."""
    started = time.monotonic()
    while True:
        with contextlib.suppress(OSError):
            if holds():
                return time.monotonic() - started
        if time.monotonic() - started > patience:
            raise SystemExit(f"{what}: not within {patience:.0f} s")
        time.sleep(0.02)


@contextlib.contextmanager
def running(words: list[str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process that ends with the block, by its process id."""
    with log.open("wb") as sink:
        process = subprocess.Popen(words, stdout=sink, stderr=sink, cwd=REPOSITORY)
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@contextlib.contextmanager
def webhook(cluster: Cluster, folder: Path) -> Iterator[Webhook]:
    """podgate with the recommended two workers, once both judge by every policy."""
    port, metrics = free_port(), free_port()
    words = command(
        *("serve", "--cluster", "--kubeconfig", str(cluster.kubeconfig())),
        *("--listen", f"127.0.0.1:{port}", "--metrics-listen", f"127.0.0.1:{metrics}"),
        *("--workers", str(WORKERS), "--drain", "0", "--log-level", "warning"),
        *("--tls-cert", str(folder / "tls.crt"), "--tls-key", str(folder / "tls.key")),
    )
    with running(words, folder / "serve.log") as process:
        made = Webhook(process, folder, port, metrics, 0.0)

        def ready() -> bool:
            told = made.workers()
            return len(told) == WORKERS and all(judged(each) == crowd.POLICIES for each in told)

        seconds = until(ready, "both workers judge by every policy")
        yield Webhook(process, folder, port, metrics, seconds)


def judged(worker: Json) -> int:
    """How many documents are in force in a worker."""
    return sum(number > 0 for *_, number in worker["in_force"])


def gates() -> Iterator[Gate]:
    """S3 and M1 of the webhook, T10 of its answers, M2 of the controller."""
    with tempfile.TemporaryDirectory() as name, Cluster() as cluster:
        folder, call = Path(name), Caller(cluster)
        ensure_development_certificates(folder, ["localhost"], ["127.0.0.1"], datetime.now(UTC), 30)
        cluster.kubectl("apply", "-k", str(REPOSITORY / "deploy" / "crds"))
        cluster.kubectl("wait", "crd", "--all", "--for=condition=Established")
        crowd.fill(call, crowd.namespaces())
        crowd.fill(call, crowd.policies())
        with webhook(cluster, folder) as made:
            yield from of_the_start(made)
            yield from of_answers(made, call)
            yield memory(made, "after these reviews")
            yield from of_the_controller(cluster, made)


def of_the_start(made: Webhook) -> Iterator[Gate]:
    """Until every worker judges by everything, in CPU time: others on the machine count less.

    What is above the workers comes first, then they work beside one another.
    """
    above = cpu_seconds(made.process.pid)
    workers = [cpu_seconds(int(each["process"])) for each in made.workers()]
    told = ", ".join(f"{each:.1f}" for each in workers)
    detail = f"{above:.1f} s and then {told} s in workers; {made.ready:.1f} s elapsed"
    what = f"CPU seconds from the start until ready, {crowd.POLICIES} policies in the cluster"
    yield Gate("S3", what, above + max(workers), 5.0, detail)


def memory(made: Webhook, when: str) -> Gate:
    """The largest worker's share of memory: pages that processes share are counted once in all."""
    workers = [int(each["process"]) for each in made.workers()]
    whole = [made.process.pid, *children(made.process.pid)]
    own = [megabytes(each) for each in workers]
    told = ", ".join(f"{each:.0f}" for each in own)
    resident = ", ".join(f"{megabytes(each, 'Rss'):.0f}" for each in workers)
    pod = sum(map(megabytes, whole))
    detail = f"{when}: workers {told} MB ({resident} with all that they share), Pod {pod:.0f} MB"
    return Gate("M1", "MB of the largest admission worker", max(own), 100.0, detail)


def bodies() -> list[bytes]:
    """The recorded review of a RayCluster, once for each namespace."""
    body = orjson.loads(review("raycluster-create"))
    found = []
    for number in range(crowd.NAMESPACES):
        body["request"]["namespace"] = f"crowd-{number}"
        body["request"]["object"]["metadata"]["namespace"] = f"crowd-{number}"
        found.append(orjson.dumps(body))
    return found


def of_answers(made: Webhook, call: Caller) -> Iterator[Gate]:
    """T10: the slowest hundredth beside that of the same server at rest."""
    client, sent = made.client(), bodies()
    for each in sent:
        client.post(each)
    rest = [client.post(each) for _ in range(ROUNDS) for each in sent]
    for name, what, spent, limit in (
        ("T10s", "while a catalog is swapped", swapping(made, call, client, sent), 6.0),
        ("T10a", "first in its namespace after a swap", [client.post(each) for each in sent], 3.0),
        ("T10b", "beside objects of 1.5 MB and a relist", crowded(made, client, sent), 8.0),
    ):
        figure = p(99, spent) / p(99, rest)
        detail = (
            f"p99 {p(99, spent) * 1e3:.1f} ms beside {p(99, rest) * 1e3:.1f} ms, "
            f"p50 {p(50, spent) * 1e3:.1f} beside {p(50, rest) * 1e3:.1f} ms; {len(spent)} reviews"
        )
        yield Gate(name, f"p99 of an admission, {what} ÷ at rest", figure, limit, detail)


def p(percent: int, seconds: list[float]) -> float:
    """A quantile."""
    ordered = sorted(seconds)
    return ordered[min(len(ordered) - 1, len(ordered) * percent // 100)]


def swapping(made: Webhook, call: Caller, client: Client, sent: list[bytes]) -> list[float]:
    """Reviews from the moment that a policy changes until every worker judges by it."""
    change = b'{"spec":{"rules":{"compute":{"cpuCoreRequest":{"max":32}}}}}'
    status, answer = call("PATCH", TEAM, change, "application/merge-patch+json")
    assert status == 200, answer[:500]
    number = json.loads(answer)["metadata"]["generation"]
    wanted, done = ["ClusterWorkloadPolicy", "", "team-0", number], threading.Event()

    def wait() -> None:
        until(
            lambda: all(wanted in each["in_force"] for each in made.workers()), "the change holds"
        )
        done.set()

    threading.Thread(target=wait, daemon=True).start()
    spent: list[float] = []
    while not done.is_set():
        spent.append(client.post(sent[len(spent) % len(sent)]))
    return spent


def crowded(made: Webhook, client: Client, sent: list[bytes]) -> list[float]:
    """Reviews while another client sends objects of 1.5 MB and the documents are listed anew."""
    heavy = orjson.loads(review("raycluster-create"))
    heavy["request"]["object"]["spec"] = ray_cluster(GROUPS)["spec"]
    file = made.folder / "heavy.json"
    file.write_bytes(orjson.dumps(heavy))
    words = [sys.executable, "-m", "bench.heavy", str(made.port), str(made.folder), str(file)]
    with running(words, made.folder / "heavy.log"):
        workers = {int(each["process"]) for each in made.workers()}
        for reader in {*children(made.process.pid)} - workers:
            os.kill(reader, 9)  # it is started again and lists everything
        return [client.post(each) for _ in range(ROUNDS) for each in sent]


def of_the_controller(cluster: Cluster, made: Webhook) -> Iterator[Gate]:
    """Seconds until every status is written, and the controller's memory then."""
    metrics = free_port()
    words = command(
        *("control", "--kubeconfig", str(cluster.kubeconfig()), "--lease", "default/podgate"),
        *("--url", f"https://127.0.0.1:{made.port}", "--ca-file", str(made.folder / "ca.crt")),
        *("--admission", f"http://127.0.0.1:{made.metrics}/statusz"),
        *("--metrics-listen", f"127.0.0.1:{metrics}"),
    )
    with running(words, made.folder / "control.log") as process:
        seconds = until(lambda: in_force(metrics) == crowd.POLICIES, "every status is written")
        busy = cpu_seconds(process.pid)
        detail = f"{busy:.1f} s; {seconds:.1f} s elapsed"
        yield Gate("S4", "CPU seconds until every policy has its status", busy, 10.0, detail)
        size = megabytes(process.pid)
        yield Gate("M2", "MB of the controller then", size, 200.0, f"{size:.0f} MB")
        yield memory(made, "beside the controller")


def in_force(port: int) -> int:
    """How many documents the leader says to be in force."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as told:
        lines = told.read().decode().splitlines()
    rows = (line for line in lines if line.startswith("podgate_documents{"))
    return sum(int(float(row.split()[-1])) for row in rows if 'state="in-force"' in row)
