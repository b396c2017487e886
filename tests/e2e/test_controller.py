"""The controller on a real API server: it registers, proves, repairs, leads alone and tells."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cli.running import podgate
from tests.e2e.api import Api, StatusError
from tests.e2e.served import Certificates, environment
from tests.e2e.test_living_cluster import (  # noqa: F401 - fixtures
    POLICIES,
    ROOT,
    A,
    B,
    Living,
    api,
    images,
    living,
    put,
)
from tests.e2e.testbed.cluster import Cluster

pytestmark = pytest.mark.e2e

VALIDATING = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/podgate"
SOON = 30.0
PROBE = "podgate-probe"


def soon(holds: Callable[[], object], log: Path) -> None:
    until = time.monotonic() + SOON
    while not holds():
        assert time.monotonic() < until, log.read_text("utf-8")
        time.sleep(0.2)


class Controllers:
    """Controllers that end with the test."""

    def __init__(
        self, cluster: Cluster, url: str, certificates: Certificates, folder: Path
    ) -> None:
        self.cluster, self.url, self.certificates, self.folder = cluster, url, certificates, folder
        self.running: list[subprocess.Popen[bytes]] = []

    @property
    def log(self) -> Path:
        return self.folder / "controller.log"

    def start(self, identity: str, plain: str, *more: str) -> subprocess.Popen[bytes]:
        flags = {
            "--identity": identity,
            "--lease": "default/podgate",
            "--url": self.url,
            "--ca-file": self.certificates.ca,
            "--admission": plain,
            "--probe-namespace": PROBE,
            "--kubeconfig": self.cluster.kubeconfig(),
        }
        command = ["control", *(str(part) for pair in flags.items() for part in pair), *more]
        with self.log.open("ab") as out:
            process = subprocess.Popen(
                [sys.executable, "-c", "from webhook.cli.main import main; main()", *command],
                cwd=ROOT,
                env=environment({"PODGATE_LOG_FORMAT": "text"}),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
            )
        self.running.append(process)
        return process

    def stop(self) -> None:
        for each in self.running:
            if each.poll() is None:
                os.kill(each.pid, signal.SIGTERM)
        for each in self.running:
            each.wait(20)


@pytest.fixture
def controllers(
    bare: Cluster,
    living: Living,  # noqa: F811 - the fixture
    certificates: Certificates,
    tmp_path: Path,
) -> Iterator[Controllers]:
    labels = {"podgate.dev/governed": "true"}
    with contextlib.closing(Api(bare)) as server:
        document = {"metadata": {"name": PROBE, "labels": labels}}
        with contextlib.suppress(StatusError):
            server.request("POST", "/api/v1/namespaces", document)
        made = Controllers(bare, living.url, certificates, tmp_path)
        try:
            yield made
        finally:
            made.stop()
            removed = podgate("hooks", "remove", "--kubeconfig", str(bare.kubeconfig()))
            assert removed.exit_code == 0, removed.stderr
            assert server.find(VALIDATING) is None


def policy_of(server: Api) -> str:
    found = server.find(VALIDATING)
    entries = (found or {}).get("webhooks") or [{"failurePolicy": ""}]
    return str(entries[0]["failurePolicy"])


def condition(server: Api, name: str, kind: str = "Ready") -> tuple[str, str]:
    found = server.request("GET", f"{POLICIES}/{name}")
    for each in (found.get("status") or {}).get("conditions") or ():
        if each["type"] == kind:
            return each["status"], each["reason"]
    return "", ""


def test_it_registers_proves_repairs_and_tells(
    controllers: Controllers,
    living: Living,  # noqa: F811 - the fixture
    api: Api,  # noqa: F811 - the fixture
    bare: Cluster,
) -> None:
    first = controllers.start("first", living.plain)
    soon(lambda: policy_of(api) == "Fail", controllers.log)
    assert "proven to refuse" in controllers.log.read_text("utf-8")

    put(api, images(A))
    waited = bare.kubectl("wait", "cwpol/images", "--for=condition=Ready", "--timeout=30s")
    assert "condition met" in waited.stdout
    assert not living.allows(B), "Ready is said only when it is in force"
    shown = bare.kubectl("get", "cwpol", "images").stdout.splitlines()[1].split()
    assert "True" in shown
    status = api.request("GET", f"{POLICIES}/images")["status"]
    assert (status["workers"], "Pod" in status["kinds"]) == (2, True)

    other = {**images(B), "metadata": {"name": "others"}}
    configuration = api.request("GET", VALIDATING.replace("/podgate", "/podgate-documents"))
    api.request("DELETE", VALIDATING.replace("/podgate", "/podgate-documents"))
    other["spec"]["rules"] = {"imagee": {"options": [B]}}
    put(api, other)
    soon(lambda: condition(api, "others") == ("False", "Faulty"), controllers.log)
    problems = api.request("GET", f"{POLICIES}/others")["status"]["problems"]
    assert [each["path"] for each in problems] == ["spec.rules.imagee"]
    assert configuration["webhooks"]

    patch = "application/merge-patch+json"
    api.request("PATCH", VALIDATING, {"webhooks": []}, patch)
    soon(lambda: policy_of(api) == "Fail", controllers.log)

    config = str(bare.kubeconfig())
    assert podgate("hooks", "off", "--kubeconfig", config).exit_code == 0
    shown_hooks = podgate("hooks", "show", "--kubeconfig", config).stdout
    assert "validatingwebhookconfiguration/podgate fails open, switched off" in shown_hooks
    time.sleep(3)
    assert policy_of(api) == "Ignore", "the switch is not undone by the controller"
    assert podgate("hooks", "on", "--kubeconfig", config).exit_code == 0
    soon(lambda: policy_of(api) == "Fail", controllers.log)

    second = controllers.start("second", living.plain)
    place = "/apis/coordination.k8s.io/v1/namespaces/default/leases/podgate"
    assert api.request("GET", place)["spec"]["holderIdentity"] == "first"
    os.kill(first.pid, signal.SIGTERM)
    first.wait(20)
    soon(lambda: api.request("GET", place)["spec"]["holderIdentity"] == "second", controllers.log)
    put(api, images(B))
    soon(lambda: living.allows(B), controllers.log)
    soon(lambda: condition(api, "images") == ("True", "InForce"), controllers.log)
    assert second.poll() is None


def test_hooks_stay_open_while_nobody_answers(
    controllers: Controllers,
    living: Living,  # noqa: F811 - the fixture
    api: Api,  # noqa: F811 - the fixture
) -> None:
    controllers.url = "https://127.0.0.1:9"
    controllers.start("alone", living.plain)
    soon(lambda: policy_of(api), controllers.log)
    soon(lambda: "must be refused was not" in controllers.log.read_text("utf-8"), controllers.log)
    assert policy_of(api) == "Ignore"
