"""`podgate serve --cluster`: policies as objects of a real API server, in force in every worker soon."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import ssl
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import podgate
from tests.e2e.api import Api, Json
from tests.e2e.served import PODGATE, Certificates, environment, free_port
from tests.e2e.testbed.cluster import Cluster
from webhook.controller.registration import Options, Target, documents_configuration
from webhook.interface import names
from webhook.sources.snapshot import is_running

pytestmark = [pytest.mark.e2e, pytest.mark.core]

ROOT = Path(__file__).resolve().parents[2]
POLICIES = "/apis/podgate.dev/v1alpha1/clusterworkloadpolicies"
SOON = 60.0  # seconds; on an idle machine 3 are enough
A, B = "registry.example.com/a:1", "registry.example.com/b:1"


class Living:
    """A running `podgate serve --cluster` with two workers."""

    def __init__(
        self, process: subprocess.Popen[bytes], url: str, plain: str, ca: Path, log: Path
    ) -> None:
        self.process = process
        self.url = url
        self.plain = plain
        self.context = ssl.create_default_context(cafile=ca)
        self.log = log

    def ask(self, path: str, body: Json | None = None) -> Json:
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"}
        asked = urllib.request.Request(self.url + path, data, headers)
        # A connection of its own each time, so that both workers are asked in turns.
        with urllib.request.urlopen(asked, context=self.context, timeout=10) as answer:
            return dict(json.load(answer))

    def allows(self, image: str) -> bool:
        pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "m", "image": image}]}}
        kind = {"group": "", "version": "v1"}
        request = {
            "uid": "u",
            "operation": "CREATE",
            "namespace": "team",
            "kind": {**kind, "kind": "Pod"},
            "resource": {**kind, "resource": "pods"},
            "userInfo": {"username": "alice"},
            "object": pod,
        }
        body = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
        return bool(self.ask("/validate?timeout=5s", body)["response"]["allowed"])

    def all_say(self, image: str, allowed: bool) -> bool:
        """Whether twenty questions in a row, which both workers get, have the same answer."""
        return all(self.allows(image) is allowed for _ in range(20))

    def soon(self, holds: Callable[[], bool]) -> None:
        until = time.monotonic() + SOON
        while time.monotonic() < until:
            assert self.process.poll() is None, self.log.read_text("utf-8")
            with contextlib.suppress(OSError):
                if holds():
                    return
            time.sleep(0.2)
        raise AssertionError(f"not within {SOON:g} s:\n{self.log.read_text('utf-8')}")

    def readers(self) -> set[int]:
        """The processes that the first one has started and that answer no reviews."""
        first = self.process.pid
        started = Path(f"/proc/{first}/task/{first}/children").read_text("utf-8").split()
        with urllib.request.urlopen(self.plain, timeout=10) as answer:
            workers = {int(each["process"]) for each in json.load(answer)["workers"]}
        return {int(each) for each in started} - workers


@pytest.fixture(scope="module")
def api(bare: Cluster) -> Iterator[Api]:
    found = podgate("crds", "install", "--kubeconfig", str(bare.kubeconfig()))
    assert found.exit_code == 0, found.stderr
    bare.wait_established({each.full for each in names.OWN})
    with contextlib.closing(Api(bare)) as made:
        yield made


@contextlib.contextmanager
def running(
    cluster: Cluster, certificates: Certificates, folder: Path, *more: str
) -> Iterator[Living]:
    """`podgate serve --cluster` while the block lasts; `more` are further options."""
    port, metrics = free_port(), free_port()
    flags = {
        "--listen": f"127.0.0.1:{port}",
        "--metrics-listen": f"127.0.0.1:{metrics}",
        "--tls-cert": certificates.certificate,
        "--tls-key": certificates.key,
        "--kubeconfig": cluster.kubeconfig(),
        "--workers": 2,
        "--drain": 0,
        "--log-format": "text",
    }
    command = ["serve", "--cluster", *(str(part) for pair in flags.items() for part in pair), *more]
    log = folder / f"podgate-{port}.log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            [*PODGATE, *command],
            cwd=ROOT,
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,
        )
    plain = f"http://127.0.0.1:{metrics}/statusz"
    made = Living(process, f"https://127.0.0.1:{port}", plain, certificates.ca, log)
    try:
        made.soon(lambda: made.allows(A))
        yield made
    finally:
        readers = made.readers() if process.poll() is None else set()
        if process.poll() is None:
            os.kill(process.pid, signal.SIGTERM)
        assert process.wait(30) == 0
        assert not any(map(is_running, readers))


@pytest.fixture
def living(bare: Cluster, api: Api, certificates: Certificates, tmp_path: Path) -> Iterator[Living]:
    with running(bare, certificates, tmp_path) as made:
        try:
            yield made
        finally:
            with contextlib.suppress(Exception):
                for each in api.request("GET", POLICIES)["items"]:
                    api.request("DELETE", f"{POLICIES}/{each['metadata']['name']}")


def images(*options: str, field: str = "image") -> Json:
    return {
        "apiVersion": "podgate.dev/v1alpha1",
        "kind": "ClusterWorkloadPolicy",
        "metadata": {"name": "images"},
        "spec": {"rules": {field: {"options": list(options)}}},
    }


def put(api: Api, document: Json) -> Any:
    place = f"{POLICIES}/{document['metadata']['name']}?fieldManager=t&force=true"
    return api.request("PATCH", place, document, "application/apply-patch+yaml")


def test_a_policy_is_in_force_in_all_workers_soon_and_a_broken_one_changes_nothing(
    living: Living, api: Api
) -> None:
    living.soon(lambda: living.all_say(B, allowed=True))
    put(api, images(A))
    living.soon(lambda: living.all_say(B, allowed=False))
    assert living.all_say(A, allowed=True)
    put(api, images(B, field="imagee"))
    living.soon(lambda: "imagee" in living.log.read_text("utf-8"))
    assert living.all_say(B, allowed=False)
    put(api, images(B))
    living.soon(lambda: living.all_say(B, allowed=True))
    assert living.all_say(A, allowed=False)
    api.request("DELETE", f"{POLICIES}/images")
    living.soon(lambda: living.all_say(A, allowed=True))


def test_kubectl_is_told_every_problem_of_a_document_before_it_is_stored(
    living: Living, bare: Cluster, certificates: Certificates
) -> None:
    target = Target(url=living.url, ca=certificates.ca.read_bytes())
    configuration = documents_configuration(target, Options())
    bare.kubectl("apply", "-f", "-", input=json.dumps(configuration))
    broken = images(A, field="imagee")
    broken["spec"]["rules"]["compute"] = {"cpuCoreRequest": {"min": 3, "max": 2}}

    def refused() -> bool:
        done = bare.kubectl("apply", "-f", "-", input=json.dumps(broken), check=False)
        if done.returncode == 0:
            bare.kubectl("delete", "cwpol", "images")
            return False
        assert "podgate refused this document: 2 problems" in done.stderr, done.stderr
        assert "did you mean image" in done.stderr
        assert "spec.rules.compute.cpuCoreRequest" in done.stderr
        return True

    try:
        living.soon(refused)
        bare.kubectl("apply", "-f", "-", input=json.dumps(images(A)))
    finally:
        name = configuration["metadata"]["name"]
        bare.kubectl("delete", "validatingwebhookconfiguration", name)


def test_a_watcher_that_dies_is_started_again_and_nothing_is_forgotten(
    living: Living, api: Api
) -> None:
    put(api, images(A))
    living.soon(lambda: living.all_say(B, allowed=False))
    (first,) = living.readers()
    os.kill(first, signal.SIGKILL)
    assert living.all_say(B, allowed=False)
    put(api, images(B))
    living.soon(lambda: living.all_say(B, allowed=True))
    (second,) = living.readers()
    assert second != first
