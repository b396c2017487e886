"""Memory in a large cluster: the peaks of `audit`, of a controller that scans, and of the reading process.

The objects are in a real API server. "Above start" is beside the same program before they were there.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson

from bench import crowd
from bench.api import Caller
from bench.full import children, command, running, until
from bench.https import free_port
from bench.timing import Gate
from certs.development import ensure_development_certificates
from tests.e2e.test_audit import report_crd
from tests.e2e.testbed.cluster import REPOSITORY, Cluster

Json = dict[str, Any]
NUMBERS = (10_000, 100_000)
SPACES, LIMIT, LONGEST = 200, 150.0, 1800.0
AUDITS: Mapping[str, tuple[str, ...]] = {
    "audit": (),
    "audit -o json": ("-o", "json"),
    "audit --injected": ("--injected",),
    "audit --injected -o json": ("--injected", "-o", "json"),
}
MEASURED = (
    "from pathlib import Path\n"
    "from webhook.cli.main import main\n"
    "try:\n    main()\n"
    "finally:\n    Path('{}').write_text(Path('/proc/self/status').read_text())\n"
)
RULES = {"image": {"options": [{"value": "registry.example.com/good:1"}]}}
LISTED = ("/apis/apps/v1/deployments", "/api/v1/pods", "/apis/resource.k8s.io/v1/resourceclaims")
LABELS = {"app.kubernetes.io/name": "web", "app.kubernetes.io/part-of": "shop", "owner": "team-a"}


def body(version: str, kind: str, name: str, namespace: str = "", **more: Any) -> Json:
    """An object."""
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    metadata |= more.pop("metadata", {})
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **more}


def space(number: int) -> str:
    """The name of a namespace."""
    return f"large-{number % SPACES}"


def pod_spec() -> Json:
    """A pod of one container, as users write small ones; its image breaks a rule."""
    container = {
        "name": "web",
        "image": "registry.example.com/web:1.27",
        "env": [{"name": f"OPTION_{n}", "value": f"value-{n}"} for n in range(8)],
        "ports": [{"name": "http", "containerPort": 8080}],
        "resources": {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"memory": "1Gi"}},
        "readinessProbe": {"httpGet": {"path": "/ready", "port": "http"}},
        "volumeMounts": [{"name": "settings", "mountPath": "/etc/web"}],
    }
    volume = {"name": "settings", "configMap": {"name": "web-settings"}}
    return {"containers": [container], "volumes": [volume]}


def template() -> Json:
    """What a Deployment or ReplicaSet makes its Pods of."""
    selector = {"matchLabels": {"owner": "team-a"}}
    made = {"metadata": {"labels": LABELS}, "spec": pod_spec()}
    return {"replicas": 0, "selector": selector, "template": made}


def grounds() -> Iterator[Json]:
    """Governed namespaces, in each what Pods need, and a policy that every object breaks."""
    for number in range(SPACES):
        name, labels = space(number), {"podgate.dev/governed": "true"}
        yield body("v1", "Namespace", name, metadata={"labels": labels})
        yield body("v1", "ServiceAccount", "default", name)
    spec = {"scope": "cluster", "rules": RULES}
    yield body("podgate.dev/v1alpha1", "ClusterWorkloadPolicy", "images", spec=spec)


def workloads(numbers: Iterable[int], owners: Mapping[str, str]) -> Iterator[Json]:
    """Of five objects two Deployments, two Pods, and a Pod of a ReplicaSet with a foreign container."""
    for number in numbers:
        name, namespace = f"web-{number}", space(number // 5)
        metadata: Json = {"labels": LABELS}
        if number % 5 < 2:
            yield body("apps/v1", "Deployment", name, namespace, metadata=metadata, spec=template())
            continue
        if number % 5 == 4:
            owner: Json = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web"}
            owner |= {"uid": owners[namespace], "controller": True}
            metadata |= {"ownerReferences": [owner]}
        made = body("v1", "Pod", name, namespace, metadata=metadata, spec=pod_spec())
        if number % 5 == 4:
            made["spec"]["containers"].append({"name": "proxy", "image": "example.com/proxy:3"})
        yield made


def claims(numbers: Iterable[int]) -> Iterator[Json]:
    """Claims of one to eight GPUs."""
    for number in numbers:
        exactly = {"deviceClassName": "gpu.example.com", "count": number % 8 + 1}
        spec = {"devices": {"requests": [{"name": "gpus", "exactly": exactly}]}}
        metadata = {"labels": LABELS}
        yield body(
            "resource.k8s.io/v1",
            "ResourceClaim",
            f"gpus-{number}",
            space(number),
            metadata=metadata,
            spec=spec,
        )


def create_owners(call: Caller) -> dict[str, str]:
    """A ReplicaSet in every namespace; the UIDs by namespace."""
    found = {}
    for number in range(SPACES):
        made = body("apps/v1", "ReplicaSet", "web", space(number), spec=template())
        status, answer = call("POST", crowd.place(made), orjson.dumps(made))
        assert status == 201, answer[:500]
        found[space(number)] = orjson.loads(answer)["metadata"]["uid"]
    return found


def bytes_each(cluster: Cluster, path: str) -> int:
    """The size of one listed object."""
    _, answer = Caller(cluster)("GET", f"{path}?limit=500")
    return len(answer) // max(1, len(orjson.loads(answer)["items"]))


def peak(status: Path) -> float:
    """The largest resident memory that a process ever had, in MB."""
    found = re.search(r"VmHWM:\s+(\d+) kB", status.read_text())
    assert found is not None
    return int(found[1]) * 1024 / 1e6


class Large:
    """A cluster that fills up, and the programs that are measured in it."""

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        self.kubeconfig, self.folder, self.claims = str(cluster.kubeconfig()), folder, 0
        self.figures: Mapping[str, Callable[[], tuple[float, float]]] = {
            **{name: lambda more=more: self.audit(more) for name, more in AUDITS.items()},  # type: ignore[misc]
            "control --scan-every": self.control,
            "the reading process": self.read,
        }

    def audit(self, more: tuple[str, ...]) -> tuple[float, float]:
        """Peak in MB and seconds of one audit."""
        status, begun = self.folder / "status", time.monotonic()
        words = [sys.executable, "-c", MEASURED.format(status), "audit", *more]
        with (self.folder / "audit.out").open("wb") as out:
            done = subprocess.run(
                [*words, "--kubeconfig", self.kubeconfig],
                stdout=out,
                stderr=subprocess.PIPE,
                cwd=REPOSITORY,
                check=False,
            )
        assert done.returncode in (0, 1), done.stderr[-2000:]
        sys.stderr.write(done.stderr.decode()[-300:])
        return peak(status), time.monotonic() - begun

    def control(self) -> tuple[float, float]:
        """The same of a controller that has written its reports once."""
        metrics = free_port()
        words = command(
            *("control", "--kubeconfig", self.kubeconfig, "--lease", "default/podgate"),
            *("--url", "https://127.0.0.1:9", "--ca-file", str(self.folder / "ca.crt")),
            *("--scan-every", "3600", "--metrics-listen", f"127.0.0.1:{metrics}"),
        )
        try:
            with running(words, self.folder / "control.log") as process:
                seconds = until(lambda: has_scanned(metrics), "the scan is over", LONGEST)
                return peak(Path(f"/proc/{process.pid}/status")), seconds
        finally:
            subprocess.run(command("hooks", "remove", "--kubeconfig", self.kubeconfig), check=True)

    def read(self) -> tuple[float, float]:
        """The same of the process that reads the cluster for the webhook."""
        port, metrics = free_port(), free_port()
        words = command(
            *("serve", "--cluster", "--kubeconfig", self.kubeconfig, "--workers", "1"),
            *("--listen", f"127.0.0.1:{port}", "--metrics-listen", f"127.0.0.1:{metrics}"),
            *("--drain", "0", "--log-level", "warning"),
            *("--tls-cert", str(self.folder / "tls.crt")),
            *("--tls-key", str(self.folder / "tls.key")),
        )
        with (
            tempfile.TemporaryDirectory() as name,
            running(["env", f"TMPDIR={name}", *words], self.folder / "serve.log") as process,
        ):
            until(lambda: is_ready(metrics), "the webhook is ready", LONGEST)
            # Claims may come after the first documents.
            seconds = until(
                lambda: rows(Path(name)) == self.claims, "all claims are there", LONGEST
            )
            (reader,) = {*children(process.pid)} - workers(metrics)
            return peak(Path(f"/proc/{reader}/status")), seconds


def has_scanned(port: int) -> bool:
    """Whether the controller has finished a scan."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
        lines = answer.read().decode().splitlines()
    return any(re.match(r"podgate_scan_duration_seconds_count [1-9]", line) for line in lines)


def is_ready(port: int) -> bool:
    """Whether the webhook is ready."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=5) as answer:
        return bool(answer.status == 200)


def rows(folder: Path) -> int:
    """How many claims the reading process has written."""
    files = folder.glob("podgate-*/claims-*.json")
    return sum(len(orjson.loads(each.read_bytes())["rows"]) for each in files)


def workers(port: int) -> set[int]:
    """The processes that answer reviews."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/statusz", timeout=5) as answer:
        return {int(each["process"]) for each in orjson.loads(answer.read())["workers"]}


def gates() -> Iterator[Gate]:
    """M3: peaks above start with each of NUMBERS."""
    with tempfile.TemporaryDirectory() as name, Cluster() as cluster:
        folder, call = Path(name), Caller(cluster)
        ensure_development_certificates(folder, ["localhost"], ["127.0.0.1"], datetime.now(UTC), 30)
        yield from measure(cluster, Large(cluster, folder), call, prepare(cluster, call))


def prepare(cluster: Cluster, call: Caller) -> dict[str, str]:
    """All that is there before the objects; the owners of Pods by namespace."""
    subprocess.run(["kill", str(cluster.processes["kube-controller-manager"].pid)], check=True)
    cluster.kubectl("apply", "-k", str(REPOSITORY / "deploy" / "crds"))
    cluster.apply_crds([report_crd()])
    cluster.kubectl("wait", "crd", "--all", "--for=condition=Established")
    crowd.fill(call, (each for each in grounds() if each["kind"] == "Namespace"))
    crowd.fill(call, (each for each in grounds() if each["kind"] != "Namespace"))
    return create_owners(call)


def measure(
    cluster: Cluster, large: Large, call: Caller, owners: Mapping[str, str]
) -> Iterator[Gate]:
    """Fill the cluster step by step, and measure at each."""
    start = {name: figure()[0] for name, figure in large.figures.items()}
    before = 0
    for number in NUMBERS:
        crowd.fill(call, workloads(range(before, number), owners))
        crowd.fill(call, claims(range(before, number)))
        before = large.claims = number
        sizes = ", ".join(
            f"{path.rpartition('/')[2]} {bytes_each(cluster, path)} B" for path in LISTED
        )
        for name, figure in large.figures.items():
            mb, seconds = figure()
            detail = f"{mb:.0f} MB, {start[name]:.0f} MB before, {seconds:.0f} s; {sizes}"
            what = f"MB above start of {name}, {number} workloads and as many claims"
            yield Gate("M3", what, mb - start[name], LIMIT, detail)
            print(what, detail, file=sys.stderr)
