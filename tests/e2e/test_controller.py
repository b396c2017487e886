"""The controller on a real API server: it registers, proves, repairs, leads alone and tells."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import signal
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import podgate
from tests.e2e.api import Api, Json, StatusError
from tests.e2e.served import PODGATE, Certificates, environment, free_port
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
SOON = 60.0
PROBE = "podgate-probe"


def soon(holds: Callable[[], object], log: Path) -> None:
    until = time.monotonic() + SOON
    while not holds():
        assert time.monotonic() < until, log.read_text("utf-8")
        time.sleep(0.2)


def is_stored_unreviewed(api: Api, document: Json) -> bool:  # noqa: F811 - the fixture
    """Return whether the API server took a document without asking podgate, whose webhook it deletes.

    It may go on calling a webhook for a moment, and a controller writes the configuration again.
    """
    path = VALIDATING.replace("/podgate", "/podgate-documents")
    try:
        if api.find(path) is not None:
            api.request("DELETE", path)
        put(api, document)
    except StatusError:
        return False
    return True


def said(port: int, page: str) -> str:
    """What a controller says at its own port, "" while it cannot be reached."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/{page}", timeout=5) as answer:
            return str(answer.read().decode())
    except OSError:
        return ""


def heard(metrics: str) -> float:
    """When the API server last said anything on documents, as a process tells."""
    name = "podgate_snapshot_heard_timestamp_seconds "
    (line,) = (each for each in metrics.splitlines() if each.startswith(name))
    return float(line.removeprefix(name))


class Controllers:
    """Controllers that end with the test."""

    def __init__(
        self, cluster: Cluster, url: str, certificates: Certificates, folder: Path
    ) -> None:
        self.cluster, self.url, self.certificates, self.folder = cluster, url, certificates, folder
        self.authority: Path | None = certificates.ca
        self.running: list[subprocess.Popen[bytes]] = []

    @property
    def log(self) -> Path:
        return self.folder / "controller.log"

    def start(self, identity: str, plain: str, *more: str) -> subprocess.Popen[bytes]:
        flags = {
            "--identity": identity,
            "--lease": "default/podgate",
            "--url": self.url,
            **({"--ca-file": self.authority} if self.authority else {}),
            "--admission": plain,
            "--probe-namespace": PROBE,
            "--kubeconfig": self.cluster.kubeconfig(),
        }
        command = ["control", *(str(part) for pair in flags.items() for part in pair), *more]
        with self.log.open("ab") as out:
            process = subprocess.Popen(
                [*PODGATE, *command],
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
            try:
                each.wait(20)
            finally:
                each.kill()


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
    port = free_port()
    listen = "--metrics-listen", f"127.0.0.1:{port}"
    first = controllers.start("first", living.plain, *listen)
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
    other["spec"]["rules"] = {"imagee": {"options": [B]}}
    soon(lambda: is_stored_unreviewed(api, other), controllers.log)
    soon(lambda: condition(api, "others") == ("False", "Faulty"), controllers.log)
    problems = api.request("GET", f"{POLICIES}/others")["status"]["problems"]
    assert [each["path"] for each in problems] == ["spec.rules.imagee"]
    assert configuration["webhooks"]

    patch = "application/merge-patch+json"
    api.request("PATCH", VALIDATING, {"webhooks": []}, patch)
    soon(lambda: policy_of(api) == "Fail", controllers.log)
    hook = 'configuration="validatingwebhookconfiguration/podgate"'
    drift = f'podgate_configurations_written_total{{cause="drift",{hook}}} 1.0'
    soon(lambda: drift in said(port, "metrics"), controllers.log)
    metrics = said(port, "metrics").splitlines()
    for line in (
        "podgate_leader 1.0",
        "podgate_hooks_proven 1.0",
        "podgate_processes 2.0",
        f"podgate_hooks_fail_closed{{{hook}}} 1.0",
        'podgate_documents{kind="ClusterWorkloadPolicy",state="in-force"} 1.0',
        'podgate_documents{kind="ClusterWorkloadPolicy",state="faulty"} 1.0',
    ):
        assert line in metrics, metrics
    assert any(each.startswith("podgate_certificate_not_after_seconds{") for each in metrics)
    assert heard(said(port, "metrics")) > time.time() - 120
    with urllib.request.urlopen(living.plain.replace("statusz", "metrics"), timeout=5) as answer:
        assert heard(answer.read().decode()) > time.time() - 120
    assert said(port, "livez") == '{"status":"alive","reasons":[]}'
    ready = json.loads(said(port, "readyz"))
    assert (ready["status"], ready["reasons"]) == ("ready", [])
    assert ready["certificate_days"]["bundle"] > 0

    config = str(bare.kubeconfig())
    assert podgate("hooks", "off", "--kubeconfig", config).exit_code == 0
    shown_hooks = podgate("hooks", "show", "--kubeconfig", config).stdout
    assert "validatingwebhookconfiguration/podgate fails open, switched off" in shown_hooks
    switched = f"podgate_hooks_switched_off{{{hook}}} 1.0"
    soon(lambda: switched in said(port, "metrics"), controllers.log)
    assert f"podgate_hooks_fail_closed{{{hook}}} 0.0" in said(port, "metrics")
    assert policy_of(api) == "Ignore", "the switch is not undone by the controller"
    assert podgate("hooks", "on", "--kubeconfig", config).exit_code == 0
    soon(lambda: policy_of(api) == "Fail", controllers.log)
    soon(lambda: switched not in said(port, "metrics"), controllers.log)
    assert drift in said(port, "metrics"), "what the switch changes is no drift"

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


def test_it_makes_and_exchanges_certificates_that_the_webhook_serves(
    bare: Cluster,
    api: Api,  # noqa: F811 - the fixture
    certificates: Certificates,
    tmp_path: Path,
) -> None:
    folder = tmp_path / "tls"
    folder.mkdir()
    port, metrics = free_port(), free_port()
    secret = "/api/v1/namespaces/default/secrets/podgate-tls"

    def mounted() -> bool:
        """What kubelet does with a Secret that a Pod mounts."""
        found = api.find(secret)
        for name, text in ((found or {}).get("data") or {}).items():
            fresh = folder / f".{name}"
            fresh.write_bytes(base64.b64decode(text))
            fresh.replace(folder / name)
        return found is not None

    controllers = Controllers(bare, f"https://127.0.0.1:{port}", certificates, tmp_path)
    controllers.authority = None
    with contextlib.suppress(StatusError):
        labels = {"podgate.dev/governed": "true"}
        document = {"metadata": {"name": PROBE, "labels": labels}}
        api.request("POST", "/api/v1/namespaces", document)
    more = ("--tls-secret", "default/podgate-tls")
    controllers.start("keeper", f"http://127.0.0.1:{metrics}/statusz", *more)
    serving: subprocess.Popen[bytes] | None = None
    try:
        soon(mounted, controllers.log)
        flags = {
            "--listen": f"127.0.0.1:{port}",
            "--metrics-listen": f"127.0.0.1:{metrics}",
            "--tls-cert": folder / "tls.crt",
            "--tls-key": folder / "tls.key",
            "--workers": 1,
            "--drain": 0,
        }
        command = ["serve", *(str(part) for pair in flags.items() for part in pair)]
        serving = subprocess.Popen(
            [*PODGATE, *command],
            cwd=ROOT,
            env=environment(),
            stdin=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        soon(lambda: policy_of(api) == "Fail", controllers.log)
        before = (folder / "tls.crt").read_bytes()
        api.request("DELETE", secret)
        soon(lambda: mounted() and (folder / "tls.crt").read_bytes() != before, controllers.log)
        time.sleep(3)
        place = f"/api/v1/namespaces/{PROBE}/pods?dryRun=All"
        with pytest.raises(StatusError) as error:
            api.request("POST", place, bad_pod())
        assert "podgate refused" in str(error.value)
    finally:
        controllers.stop()
        if serving is not None:
            os.kill(serving.pid, signal.SIGTERM)
            serving.wait(20)
        podgate("hooks", "remove", "--kubeconfig", str(bare.kubeconfig()))


def bad_pod() -> dict[str, Any]:
    container = {"name": "m", "image": "a", "securityContext": {"privileged": True}}
    metadata, spec = {"name": "p"}, {"containers": [container]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
