"""What a node and the controller of EndpointSlices do for Pods that are played by processes.

It mounts the Secret with the certificate as kubelet does, a folder behind a link that is exchanged at
once, asks for readiness, and writes both Services' endpoints by what it is told.
"""

from __future__ import annotations

import base64
import contextlib
import http.client
import threading
import time
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path

from tests.e2e.api import Api, Json, StatusError
from tests.e2e.install.helm import NAMESPACE
from tests.e2e.testbed.cluster import Cluster

EVERY = 0.3
LAG = 1.0
"""Seconds for which a Pod that was told to end is still among the ready endpoints."""
SECRET = f"/api/v1/namespaces/{NAMESPACE}/secrets/podgate-tls"
SLICES = f"/apis/discovery.k8s.io/v1/namespaces/{NAMESPACE}/endpointslices"
AWAY = (OSError, ValueError, StatusError, http.client.HTTPException)


@dataclass(slots=True)
class Pod:
    """A process in a Pod's place: where it listens, and since when it is told to end."""

    name: str
    address: str
    port: int
    metrics: int
    is_ready: bool = False
    told: float = 0.0
    published: dict[str, Json] = field(default_factory=dict)

    def slices(self) -> dict[str, Json]:
        """Its endpoint in each of the two Services, by path."""
        ends = bool(self.told) and time.monotonic() > self.told + LAG
        conditions = {
            "ready": self.is_ready and not ends,
            "serving": self.is_ready,
            "terminating": ends,
        }
        found = {}
        for service, port, number in (
            ("podgate", "webhook", self.port),
            ("podgate-metrics", "metrics", self.metrics),
        ):
            name = f"{service}-{self.name}"
            found[f"{SLICES}/{name}"] = {
                "apiVersion": "discovery.k8s.io/v1",
                "kind": "EndpointSlice",
                "metadata": {"name": name, "labels": {"kubernetes.io/service-name": service}},
                "addressType": "IPv4",
                "ports": [{"name": port, "port": number, "protocol": "TCP"}],
                "endpoints": [{"addresses": [self.address], "conditions": conditions}],
            }
        return found


class Kubelet:
    """Keeps mounts and endpoints until it is closed; while the API server is away they stay."""

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        self.cluster, self.folder = cluster, folder
        self.pods: dict[str, Pod] = {}
        self.data: Json = {}
        self.mounted, self.ended = threading.Event(), threading.Event()
        self.lock = threading.Lock()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self) -> None:
        """Do one round after another."""
        with contextlib.closing(Api(self.cluster)) as api:
            while not self.ended.wait(EVERY):
                for pod in [*self.pods.values()]:
                    # Of one that ends only the deletion counts, and is noticed with a lag.
                    if not pod.told:
                        pod.is_ready = answers(f"http://{pod.address}:{pod.metrics}/readyz")
                try:
                    self.mount(api)
                    with self.lock:
                        self.publish(api)
                except AWAY:
                    api.close()

    def mount(self, api: Api) -> None:
        """Bring the folder to what the Secret holds, once that has a certificate."""
        data = (api.find(SECRET) or {}).get("data") or {}
        if data == self.data or "tls.crt" not in data:
            return
        fresh = self.folder / f"..{time.monotonic_ns()}"
        fresh.mkdir(parents=True)
        for name in ("tls.crt", "tls.key"):
            (fresh / name).write_bytes(base64.b64decode(data[name]))
            link = self.folder / name
            if not link.is_symlink():
                link.symlink_to(Path("..data") / name)
        partial = self.folder / "..partial"
        partial.symlink_to(fresh.name)
        partial.replace(self.folder / "..data")
        self.data = data
        self.mounted.set()

    def publish(self, api: Api) -> None:
        """Write endpoints that are not as they should be."""
        for pod in self.pods.values():
            for path, body in pod.slices().items():
                if pod.published.get(path) != body:
                    query = "?fieldManager=endpoints&force=true"
                    api.request("PATCH", path + query, body, "application/apply-patch+yaml")
                    pod.published[path] = body

    def add(self, pod: Pod) -> None:
        """Look after one Pod more."""
        with self.lock:
            self.pods[pod.name] = pod

    def tell_to_end(self, name: str) -> None:
        """A Pod is deleted."""
        if name in self.pods:
            self.pods[name].told = time.monotonic()

    def is_endpoint(self, name: str) -> bool:
        """Whether a Pod is published as a ready endpoint of every Service."""
        found = self.pods[name].published.values() if name in self.pods else ()
        ready = [each["endpoints"][0]["conditions"]["ready"] for each in found]
        return bool(ready) and all(ready)

    def forget(self, name: str) -> None:
        """A Pod is gone, and its endpoints with it."""
        with self.lock, contextlib.closing(Api(self.cluster)) as api:
            pod = self.pods.pop(name, None)
            for path in pod.slices() if pod else ():
                if api.find(path):
                    api.request("DELETE", path)

    def close(self) -> None:
        """Stop looking."""
        self.ended.set()
        self.thread.join()


def answers(url: str) -> bool:
    """Whether a probe succeeds."""
    try:
        with urllib.request.urlopen(url, timeout=2) as answer:
            return bool(answer.status == http.HTTPStatus.OK)
    except (OSError, http.client.HTTPException):
        return False
