"""Connections, credentials and rights that end while podgate reads a real API server."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.cli.running import podgate
from tests.cluster.proxy import Proxy
from tests.cluster.test_credentials import Plugin, in_time
from tests.e2e import test_living_cluster
from tests.e2e.api import Api, StatusError
from tests.e2e.conftest import running_cluster
from tests.e2e.served import Certificates
from tests.e2e.test_credentials import write_kubeconfig
from tests.e2e.test_living_cluster import POLICIES, A, B, images, put, running
from tests.e2e.testbed.cluster import Cluster
from webhook.cluster import client, credentials, list_and_watch
from webhook.cluster.client import ApiServer
from webhook.cluster.credentials import Credentials, Kubeconfig
from webhook.cluster.list_and_watch import Collection, choose_pause, follow
from webhook.interface import names

pytestmark = pytest.mark.e2e

SPACE = "shaken"
SPACED = f"/api/v1/namespaces/{SPACE}"
MAPS = f"{SPACED}/configmaps"
DEPLOYMENTS = f"/apis/apps/v1/namespaces/{SPACE}/deployments"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
C = "registry.example.com/c:1"
SOON = 90.0  # seconds; on an idle machine 10 are enough
Json = dict[str, Any]


@pytest.fixture(scope="module")
def own() -> Iterator[Cluster]:
    """A cluster that may be hurt."""
    with running_cluster() as cluster:
        cluster.kubectl("create", "namespace", SPACE)
        cluster.wait_namespace_ready(SPACE)  # a controller manager that starts needs an API server
        yield cluster


@pytest.fixture
def api(own: Cluster) -> Iterator[Api]:
    """The administrator's connection to it."""
    with contextlib.closing(Api(own)) as made:
        yield made


@pytest.fixture
def proxy() -> Iterator[Proxy]:
    """A proxy for HTTPS on loopback."""
    with Proxy().running() as made:
        yield made


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """Path and status of each answer that podgate gets in this process."""
    found: list[tuple[str, int]] = []
    send = client.send

    def note(loaded: Any, method: str, path: str, *rest: Any) -> client.Answer:
        answer = send(loaded, method, path, *rest)
        found.append((path, answer.status))
        return answer

    monkeypatch.setattr(client, "send", note)
    return found


def wait(holds: Callable[[], object], log: Callable[[], str] = str) -> None:
    """Until something is so; `log` says why not."""
    until = time.monotonic() + SOON
    while not holds():
        assert time.monotonic() < until, log()
        time.sleep(0.05)


def compact(own: Cluster) -> None:
    """Have etcd forget all but the newest versions."""
    (flag,) = (
        each
        for each in json.loads((own.folder / "plan.json").read_text())["commands"]["kube-apiserver"]
        if each.startswith("--etcd-servers=")
    )

    def ask(path: str, body: Json) -> Json:
        asked = urllib.request.Request(flag.partition("=")[2] + path, json.dumps(body).encode())
        with urllib.request.urlopen(asked, timeout=30) as answer:
            return dict(json.load(answer))

    revision = ask("/v3/maintenance/status", {})["header"]["revision"]
    ask("/v3/kv/compaction", {"revision": revision, "physical": True})


def listens(own: Cluster) -> bool:
    """Whether the API server accepts connections."""
    address = urlsplit(own.server)
    with contextlib.suppress(OSError), socket.create_connection((address.hostname, address.port)):
        return True
    return False


@contextlib.contextmanager
def restarting(own: Cluster) -> Iterator[None]:
    """The API server is away when the block begins, and back when it ends."""
    thread = threading.Thread(target=own.restart, args=("kube-apiserver",))
    thread.start()
    try:
        wait(lambda: not listens(own))
        yield
    finally:
        thread.join()


def token_of(api: Api, session: str) -> str:
    """A token of a ServiceAccount that counts as long as a Secret is there."""
    secret = api.request("POST", f"{SPACED}/secrets", {"metadata": {"name": session}})
    bound = {"kind": "Secret", "apiVersion": "v1", "name": session}
    spec = {"boundObjectRef": bound | {"uid": secret["metadata"]["uid"]}}
    answer = api.request("POST", f"{SPACED}/serviceaccounts/auditor/token", {"spec": spec})
    return str(answer["status"]["token"])


def test_an_audit_is_complete_though_everything_fails_between_two_pages(
    own: Cluster,
    api: Api,
    proxy: Proxy,
    answers: list[tuple[str, int]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The API server restarts, no longer accepts the token, and has forgotten the list's version."""
    api.request("POST", f"{SPACED}/serviceaccounts", {"metadata": {"name": "auditor"}})
    bind(api, "auditor", {"kind": "ServiceAccount", "name": "auditor", "namespace": SPACE})
    expected = {f"d{number:02}" for number in range(12)}
    for name in expected:
        api.request("POST", DEPLOYMENTS, deployment(name))
    plugin = Plugin(tmp_path)
    first, second = (token_of(api, session) for session in ("first", "second"))
    plugin.give({"token": first, "expirationTimestamp": in_time(3600)})
    policies = tmp_path / "policies"
    policies.mkdir()
    (policies / "images.json").write_text(json.dumps(images(A)))
    ask = ApiServer.ask
    stack = contextlib.ExitStack()
    away: list[str] = []

    async def asked(self: ApiServer, method: str, path: str, *rest: Any, **more: Any) -> Json:
        if "/deployments?" in path and "continue=" in path and not away:
            away.append(path)
            api.request("DELETE", f"{SPACED}/secrets/first")
            plugin.give({"token": second, "expirationTimestamp": in_time(3600)})
            compact(own)
            stack.enter_context(restarting(own))
        return await ask(self, method, path, *rest, **more)

    monkeypatch.setattr(ApiServer, "ask", asked)
    monkeypatch.setattr(list_and_watch, "PAGE", 5)
    monkeypatch.setattr(list_and_watch, "LONGEST_PAUSE", 2.0)
    monkeypatch.setattr(credentials, "AT_MOST", 0.0)
    monkeypatch.setenv("HTTPS_PROXY", proxy.url)
    monkeypatch.delenv("NO_PROXY", raising=False)
    config = str(write_kubeconfig(own, plugin))
    with stack:
        command = ["audit", "--policies", str(policies), "--governed", "all", "-n", SPACE]
        done = podgate(*command, "--kubeconfig", config, "-o", "json")
    assert done.exit_code == 1, done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert sorted(each["name"] for each in rows) == sorted(expected), done.stderr
    assert plugin.count == 2
    listed = [status for path, status in answers if "/deployments?" in path]
    assert listed.count(200) == 3, "the pages are of five"
    assert {401, 410} <= set(listed)
    assert "asking again in" in caplog.text
    assert set(proxy.hosts) == {urlsplit(own.server).netloc}


def bind(api: Api, name: str, subject: Json) -> None:
    """Allow everything."""
    role = {"kind": "ClusterRole", "name": "cluster-admin", "apiGroup": RBAC.split("/")[2]}
    body = {"metadata": {"name": name}, "roleRef": role, "subjects": [subject]}
    api.request("POST", f"{RBAC}/clusterrolebindings", body)


def deployment(name: str) -> Json:
    """One that the policy refuses, without pods."""
    labels = {"app": name}
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "m", "image": B}]}}
    spec = {"replicas": 0, "selector": {"matchLabels": labels}, "template": pod}
    return {"metadata": {"name": name}, "spec": spec}


HASTY = """
from webhook.cluster import client, list_and_watch
from webhook.cli.main import main

async def list_again(server, collection, changed, list_again=list_and_watch.list_again):
    await list_again(server, collection, changed)
    print("listed", collection.path, flush=True)

client.SILENCE, list_and_watch.LONGEST_PAUSE = 3.0, 2.0
list_and_watch.list_again = list_again
main()
"""


def test_a_server_outlives_dead_connections_and_a_restart(
    own: Cluster,
    api: Api,
    proxy: Proxy,
    certificates: Certificates,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What was in force stays until the new version is there."""
    installed = podgate("crds", "install", "--kubeconfig", str(own.kubeconfig()))
    assert installed.exit_code == 0, installed.stderr
    own.wait_established({each.full for each in names.OWN})
    put(api, images(A))
    plugin = Plugin(tmp_path)
    plugin.give({"token": own.token()})
    config = write_kubeconfig(own, plugin, **{"proxy-url": proxy.url})
    monkeypatch.setattr(test_living_cluster, "PODGATE", (sys.executable, "-c", HASTY))

    def is_in_force(image: str) -> bool:
        assert not served.allows(C), "there is always a policy"
        return served.all_say(image, allowed=True)

    def lists() -> int:
        return served.log.read_text("utf-8").count(f"listed {POLICIES}\n")

    with running(own, certificates, tmp_path, "--kubeconfig", str(config)) as served:
        served.soon(lambda: is_in_force(A))
        proxy.kill_connections()
        dead = len(proxy.tunnels)
        put(api, images(B))
        served.soon(lambda: is_in_force(B))
        assert len(proxy.tunnels) > dead
        assert lists() == 1

        with restarting(own):
            assert is_in_force(B)
        put(api, images(A))
        served.soon(lambda: is_in_force(A))
        assert lists() > 1, "the API server knows no versions from before its start (410)"
        assert set(proxy.hosts) == {urlsplit(own.server).netloc}
        assert plugin.count == 2, "the check at the start, and the reading process"


def test_a_watcher_without_rights_asks_seldom_and_goes_on_once_it_has_them(
    own: Cluster, api: Api, proxy: Proxy, answers: list[tuple[str, int]], tmp_path: Path
) -> None:
    """The pauses of a minute are added up instead of waited for."""
    alice = {"kind": "User", "name": "alice", "apiGroup": RBAC.split("/")[2]}
    bind(api, "alice", alice)
    plugin = Plugin(tmp_path)
    plugin.give({"token": own.token("alice")})
    config = write_kubeconfig(own, plugin, **{"proxy-url": proxy.url})
    collection, waited = Collection(MAPS), list[float]()

    def may(*, now: bool) -> bool:
        with contextlib.closing(Api(own, "alice")) as asked:
            try:
                asked.request("GET", MAPS)
            except StatusError:
                return not now
            return now

    def pause(failures: int) -> float:
        waited.append(choose_pause(failures))
        return 0.05

    async def until(holds: Callable[[], object]) -> None:
        async with asyncio.timeout(SOON):
            while not holds():
                await asyncio.sleep(0.01)

    async def run() -> None:
        server = ApiServer(Credentials(Kubeconfig(config)))
        task = asyncio.create_task(follow(server, collection, lambda _: None, pause))
        api.request("POST", MAPS, {"metadata": {"name": "before"}})
        await until(lambda: (SPACE, "before") in collection.objects)
        api.request("DELETE", f"{RBAC}/clusterrolebindings/alice")
        await asyncio.to_thread(wait, lambda: may(now=False))
        waited.clear()
        proxy.close_connections()
        await until(lambda: sum(waited) >= 60)
        refused = [status for _, status in answers].count(403)
        assert 3 <= refused <= 15
        assert "is forbidden" in collection.trouble
        assert (SPACE, "before") in collection.objects
        bind(api, "alice", alice)
        api.request("POST", MAPS, {"metadata": {"name": "after"}})
        await until(lambda: (SPACE, "after") in collection.objects)
        assert (SPACE, "before") in collection.objects
        assert collection.trouble == ""
        task.cancel()

    asyncio.run(run())
