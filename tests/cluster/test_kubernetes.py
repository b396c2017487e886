"""Namespaces are looked up over real TLS on loopback: in a second, once, and never as "no policy"."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import functools
import json
import logging
import os
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
import yaml

from certs import authority
from certs.names import Names
from certs.pair import KeyPair
from tests.e2e.testbed.cluster import Cluster
from tests.e2e.testbed.missing import MissingTestbed
from tests.listing import nest_deep
from tests.server.test_http import UID, Documents, Running, eventually, review
from tests.server.test_http import start as start_server
from webhook.admission.judge import CatalogJudge, NeedsNamespace, Ready
from webhook.cli.serve import make_judge_from_files
from webhook.cluster import namespaces
from webhook.cluster.client import ApiError, ApiServer, path_of
from webhook.cluster.credentials import (
    Credentials,
    CredentialsError,
    Kubeconfig,
    ServiceAccount,
    find_credentials,
)
from webhook.cluster.namespaces import Namespaces
from webhook.evaluation.request import Request
from webhook.server.serve import serve
from webhook.service.settings import Settings
from webhook.sources.load import Sources

NOW = datetime.now(UTC)
CACHED = "?resourceVersion=0"
TOKEN = "a-bearer-token"
NAME_LABEL = "kubernetes.io/metadata.name"
Json = dict[str, Any]

POLICY = """
apiVersion: podgate.dev/v1alpha1
kind: ClusterWorkloadPolicy
metadata: {name: vision}
spec:
  scope: department
  namespaceSelector: {matchLabels: {department: vision}}
  excludeNamespaces: [sandbox]
  rules: {image: {options: [{value: good}]}}
"""
BY_NAME = POLICY.replace("department: vision", f"{NAME_LABEL}: team-a")


@dataclass
class FakeApi:
    """An API server that knows namespaces; `status` and `act` make it say something else.

    One that is `behind` has nothing in its cache yet.
    """

    ca: KeyPair
    folder: Path
    known: dict[str, dict[str, str]] = field(default_factory=dict)
    status: int = 200
    behind: bool = False
    token: str = TOKEN
    act: Callable[[BaseHTTPRequestHandler], bool] = lambda _: False
    paths: list[str] = field(default_factory=list)
    clients: list[Any] = field(default_factory=list)
    port: int = 0

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        """One GET."""
        self.paths.append(handler.path)
        self.clients.append(handler.connection.getpeercert())  # type: ignore[attr-defined]
        if self.act(handler):
            return
        path, _, query = handler.path.partition("?")
        name = path.rpartition("/")[2]
        absent = name not in self.known or (self.behind and query == CACHED[1:])
        scheme, _, token = handler.headers.get("Authorization", "").partition(" ")
        shown = scheme.lower() == "bearer" and token == self.token
        status = self.status if shown or self.clients[-1] else 401
        body: Json = {"kind": "Status", "code": status}
        if status == 200 and absent:
            status = 404
        elif status == 200:
            labels = self.known[name] | {NAME_LABEL: name}
            body = {"kind": "Namespace", "metadata": {"name": name, "labels": labels}}
        reply(handler, status, json.dumps(body).encode())

    @contextlib.contextmanager
    def serving(self) -> Iterator[ApiServer]:
        """Listen until the block ends; a client with the credentials of a service account."""
        with self.running():
            account = ServiceAccount("127.0.0.1", str(self.port), self.folder)
            yield ApiServer(Credentials(account))

    @contextlib.contextmanager
    def running(self) -> Iterator[FakeApi]:
        """Listen until the block ends."""
        fake = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                fake.answer(self)

            def do_POST(self) -> None:
                fake.answer(self)

            def log_message(self, *arguments: Any) -> None:
                pass

        class Quiet(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 128

            def handle_error(self, request: Any, client_address: Any) -> None:
                pass  # clients of these tests go away in the middle

        pair = authority.issue_server(
            self.ca, Names.of(["localhost"], ["127.0.0.1"]), NOW, timedelta(days=1)
        )
        for name, data in (("s.crt", pair.certificate_pem), ("s.key", pair.key_pem)):
            (self.folder / name).write_bytes(data)
        (self.folder / "ca.crt").write_bytes(self.ca.certificate_pem)
        (self.folder / "token").write_text(TOKEN + "\n")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.folder / "s.crt", self.folder / "s.key")
        context.load_verify_locations(self.folder / "ca.crt")
        context.verify_mode = ssl.CERT_OPTIONAL
        with Quiet(("127.0.0.1", 0), Handler) as listening:
            listening.socket = context.wrap_socket(
                listening.socket, server_side=True, do_handshake_on_connect=False
            )
            self.port = listening.server_address[1]
            thread = threading.Thread(target=listening.serve_forever, args=(0.02,), daemon=True)
            thread.start()
            yield self
            listening.shutdown()
            thread.join()

    def kubeconfig(self, user: Json | None = None, **cluster: Any) -> Path:
        """A kubeconfig for it."""
        named: Json = {"server": f"https://127.0.0.1:{self.port}"}
        named |= cluster or {"certificate-authority": "ca.crt"}
        document = {
            "current-context": "here",
            "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u"}}],
            "clusters": [{"name": "c", "cluster": named}],
            "users": [{"name": "u", "user": {"token": TOKEN} if user is None else user}],
        }
        path = self.folder / "kubeconfig"
        path.write_text(yaml.safe_dump(document))
        return path

    def namespaces(self, **more: Any) -> Namespaces:
        """Asks it, with its kubeconfig."""
        return Namespaces(ApiServer(Credentials(Kubeconfig(self.kubeconfig()))), **more)


def reply(handler: BaseHTTPRequestHandler, status: int, body: bytes) -> None:
    """A whole answer."""
    body = nest_deep(body)
    handler.send_response(status)
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body)


@dataclass
class Clock:
    """A clock that tests set."""

    now: float = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture(scope="module")
def ca() -> KeyPair:
    """An authority."""
    return authority.create_authority(NOW, timedelta(days=30))


@pytest.fixture
def api(ca: KeyPair, tmp_path: Path) -> Iterator[FakeApi]:
    """A fake API server with one namespace of the department."""
    folder = tmp_path / "api"
    folder.mkdir()
    known = {"team-a": {"department": "vision"}, "team-b": {}}
    with FakeApi(ca, folder, known).running() as fake:
        yield fake


def in_loop(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Runs a test on an event loop."""

    @functools.wraps(test)
    def run(*arguments: Any, **more: Any) -> None:
        asyncio.run(test(*arguments, **more))

    return run


@in_loop
async def test_labels_are_asked_for_once_and_kept_for_30_seconds(api: FakeApi) -> None:
    clock, outcomes = Clock(), list[str]()
    spaces = api.namespaces(clock=clock, counted=outcomes.append)
    assert spaces.known("team-a") is None
    expected = {"department": "vision", NAME_LABEL: "team-a"}
    found = await asyncio.gather(*(spaces.labels("team-a", 60) for _ in range(50)))
    assert found == [expected] * 50
    assert api.paths == [f"/api/v1/namespaces/team-a{CACHED}"]
    clock.now += 29
    assert spaces.known("team-a") == expected == await spaces.labels("team-a", 60)
    assert outcomes == ["found"]
    assert not spaces.running


@in_loop
async def test_old_labels_are_used_while_they_are_renewed_but_not_for_more_than_5_minutes(
    api: FakeApi, caplog: pytest.LogCaptureFixture
) -> None:
    clock, outcomes = Clock(), list[str]()
    spaces = api.namespaces(clock=clock, counted=outcomes.append)
    old = await spaces.labels("team-a", 60)
    api.known["team-a"] = {"department": "speech"}
    clock.now += 31
    assert spaces.known("team-a") is None
    assert await spaces.labels("team-a", 60) == old
    await asyncio.gather(*spaces.running.values())
    renewed = spaces.known("team-a")
    assert renewed == {"department": "speech", NAME_LABEL: "team-a"}

    api.status = 503
    clock.now += 31
    for _ in range(3):
        assert await spaces.labels("team-a", 60) == renewed
        await asyncio.gather(*spaces.running.values())
    assert outcomes == ["found", "found", "failed"], "it is not asked for again within 5 s"
    clock.now += 6
    assert await spaces.labels("team-a", 60) == renewed
    await asyncio.gather(*spaces.running.values())
    assert outcomes[3:] == ["failed"]
    assert "team-a" in caplog.text
    clock.now += 300
    assert await spaces.labels("team-a", 60) == "the API server answered with HTTP 503"
    api.status = 200
    assert await spaces.labels("team-a", 60) == renewed


@in_loop
async def test_a_namespace_that_has_gone_is_an_error_and_one_that_comes_is_found(
    api: FakeApi,
) -> None:
    clock = Clock()
    spaces = api.namespaces(clock=clock)
    assert isinstance(await spaces.labels("team-a", 60), dict)
    del api.known["team-a"]
    clock.now += 31
    assert isinstance(await spaces.labels("team-a", 60), dict)
    await asyncio.gather(*spaces.running.values())
    assert "no such namespace" in str(await spaces.labels("team-a", 60))
    api.known["team-a"] = {"a": "b"}
    assert await spaces.labels("team-a", 60) == {"a": "b", NAME_LABEL: "team-a"}


@in_loop
async def test_no_more_namespaces_are_kept_than_there_is_room_for(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(namespaces, "KEPT", 3)
    api.known = {f"n{number}": {} for number in range(5)}
    spaces = api.namespaces()
    for name in api.known:
        await spaces.labels(name, 60)
    assert list(spaces.kept) == ["n2", "n3", "n4"]


@in_loop
async def test_many_namespaces_at_once_take_few_connections(api: FakeApi) -> None:
    api.known = {f"n{number}": {} for number in range(100)}
    busy, most, lock = [0], [0], threading.Lock()

    def act(handler: BaseHTTPRequestHandler) -> bool:
        with lock:
            busy[0] += 1
            most[0] = max(most[0], busy[0])
        time.sleep(0.005)
        with lock:
            busy[0] -= 1
        return False

    api.act = act
    spaces = api.namespaces()
    found = await asyncio.gather(*(spaces.labels(name, 60) for name in api.known))
    assert all(isinstance(each, dict) for each in found), found
    assert most[0] <= namespaces.LOOKUPS


@in_loop
async def test_a_namespace_that_is_not_in_the_servers_cache_yet_is_asked_for_again(
    api: FakeApi,
) -> None:
    api.behind = True
    spaces = api.namespaces()
    assert await spaces.labels("team-a", 60) == {"department": "vision", NAME_LABEL: "team-a"}
    path = "/api/v1/namespaces/team-a"
    assert api.paths == [f"{path}{CACHED}", path]
    assert "no such namespace" in str(await spaces.labels("none", 60))


def garbage(handler: BaseHTTPRequestHandler) -> bool:
    """Something that is no HTTP."""
    handler.wfile.write(b"hello\r\n\r\n")
    handler.close_connection = True
    return True


def cut_short(handler: BaseHTTPRequestHandler) -> bool:
    """Half an answer."""
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{}")
    handler.close_connection = True
    return True


def endless(handler: BaseHTTPRequestHandler) -> bool:
    """An answer without an end."""
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    with contextlib.suppress(OSError):
        while True:
            handler.wfile.write(b"10000\r\n" + b" " * 0x10000 + b"\r\n")
    handler.close_connection = True
    return True


def saying(body: Any, status: int = 200) -> Callable[[BaseHTTPRequestHandler], bool]:
    """A JSON answer."""

    def act(handler: BaseHTTPRequestHandler) -> bool:
        reply(handler, status, body if isinstance(body, bytes) else json.dumps(body).encode())
        return True

    return act


@pytest.mark.parametrize(
    "act, told",
    [
        (garbage, "asking the API server failed"),
        (cut_short, "the connection ended before the answer did"),
        (endless, "longer than"),
        (saying(b"<html>"), "cannot be read as JSON"),
        (saying([]), "is no object"),
        (saying({"metadata": {"name": "team-b"}}), "no namespace"),
        (saying({"metadata": {"name": "team-a", "labels": [1]}}), "no namespace"),
        (saying(b"not here", 404), "HTTP 404"),
        (saying({"kind": "Status"}, 404), "no such namespace"),
        (saying({"kind": "Status"}, 403), "grant `get` on `namespaces`"),
        (saying({"kind": "Status"}, 401), "does not accept the credentials"),
        (saying({"kind": "Status"}, 302), "HTTP 302"),
        (saying({"kind": "Status"}, 429), "HTTP 429"),
    ],
)
def test_whatever_else_is_answered_is_no_labels(
    api: FakeApi, act: Callable[[BaseHTTPRequestHandler], bool], told: str
) -> None:
    api.act = act
    spaces = api.namespaces()
    assert told in str(asyncio.run(spaces.labels("team-a", 60)))
    assert not spaces.kept


@pytest.mark.parametrize("name", ["", "A", "a/b", "a b", "../x", "a" * 64, "-a", "a\n"])
def test_a_name_that_no_namespace_can_have_is_not_asked_for(api: FakeApi, name: str) -> None:
    told = asyncio.run(api.namespaces().labels(name, 60))
    assert told == "no namespace can have this name"
    assert not api.paths


def trickle(handler: BaseHTTPRequestHandler) -> bool:
    """A byte now and then."""
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n")
    with contextlib.suppress(OSError):
        for _ in range(90):
            time.sleep(0.5)
            handler.wfile.write(b" ")
    handler.close_connection = True
    return True


def silent(handler: BaseHTTPRequestHandler) -> bool:
    """Nothing, until the client has gone."""
    handler.rfile.read(1)
    handler.close_connection = True
    return True


@pytest.mark.parametrize("act", [trickle, silent])
@pytest.mark.parametrize(
    "limit, patience, told",
    [(0.5, 60, "did not answer in 0.5 s"), (30, 0.2, "within the 0.2 s that the caller waits")],
)
def test_a_slow_api_server_costs_no_more_than_a_look_up_may_take_and_the_caller_has(
    api: FakeApi,
    monkeypatch: pytest.MonkeyPatch,
    act: Callable[[BaseHTTPRequestHandler], bool],
    limit: float,
    patience: float,
    told: str,
) -> None:
    monkeypatch.setattr(namespaces, "LOOKUP_TIMEOUT", limit)
    api.act = act
    assert told in str(asyncio.run(api.namespaces().labels("team-a", patience)))


def test_nobody_listening_and_a_foreign_authority_are_told(api: FakeApi, ca: KeyPair) -> None:
    other = authority.create_authority(NOW, timedelta(days=1)).certificate_pem
    data = {"certificate-authority-data": base64.b64encode(other).decode()}
    wrong = Namespaces(ApiServer(Credentials(Kubeconfig(api.kubeconfig(**data)))))
    assert "does not verify" in str(asyncio.run(wrong.labels("team-a", 60)))
    assert not api.paths, "the token is shown to nobody else"
    api.port = 1
    assert "refused" in str(asyncio.run(api.namespaces().labels("team-a", 60))).lower()


def test_every_way_to_log_in_that_needs_no_program_works(api: FakeApi, ca: KeyPair) -> None:
    pair = authority.issue_client(ca, "podgate", NOW, timedelta(days=1))
    chain, key = pair.certificate_pem, pair.key_pem
    (api.folder / "c.crt").write_bytes(chain)
    (api.folder / "c.key").write_bytes(key)
    encoded = [base64.b64encode(each).decode() for each in (chain, key)]
    users: list[Json] = [
        {"token": TOKEN},
        {"tokenFile": "token", "token": "old"},
        {"client-certificate": "c.crt", "client-key": str(api.folder / "c.key")},
        {"client-certificate-data": encoded[0], "client-key-data": encoded[1]},
    ]
    for user in users:
        spaces = Namespaces(ApiServer(Credentials(Kubeconfig(api.kubeconfig(user)))))
        assert isinstance(asyncio.run(spaces.labels("team-a", 60)), dict), user
    assert [bool(each) for each in api.clients] == [False, False, True, True]
    path = api.kubeconfig(**{
        "server": f"https://127.0.0.1:{api.port}/k8s/clusters/c-1/",
        "certificate-authority": "ca.crt",
        "tls-server-name": "localhost",
    })  # fmt: skip
    spaces = Namespaces(ApiServer(Credentials(Kubeconfig(path))))
    assert isinstance(asyncio.run(spaces.labels("team-a", 60)), dict)
    assert api.paths[-1] == f"/k8s/clusters/c-1/api/v1/namespaces/team-a{CACHED}"


@pytest.mark.parametrize(
    "user, cluster, told",
    [
        ({}, {}, "neither a token nor a client certificate"),
        ({"auth-provider": {"name": "azure"}}, {}, "neither a token nor a client certificate"),
        ({"exec": {"command": "./none", "apiVersion": "v1"}}, {}, "./none, which gives"),
        ({"exec": {"command": "false", "apiVersion": "v1"}}, {}, "false gave no credentials"),
        ({"exec": {"command": "echo", "apiVersion": "v1"}}, {}, "echo gave no credentials"),
        ({"exec": {"command": "true"}}, {}, "missing key 'apiVersion'"),
        ({"exec": "x"}, {}, "is not a usable kubeconfig"),
        ({"token": "a b"}, {}, "no readable token"),
        ({"tokenFile": "none"}, {}, "none"),
        ({"tokenFile": "a\0b"}, {}, "embedded null byte"),
        ({"token": "\u1234"}, {}, "no readable token"),
        (
            {"client-certificate-data": "!", "client-key-data": "e30="},
            {},
            "cannot be used",
        ),
        ({"client-certificate-data": "e30=", "client-key-data": "e30="}, {}, "cannot be used"),
        (None, {"server": "127.0.0.1:1"}, "write https://HOST:PORT"),
        (None, {"certificate-authority": "none"}, "none"),
        (None, {"certificate-authority-data": "e30="}, "cannot be used"),
        (None, {"certificate-authority": os.devnull}, os.devnull),
    ],
)
def test_a_kubeconfig_that_cannot_be_used_says_why(
    api: FakeApi, user: Json | None, cluster: Json, told: str
) -> None:
    with pytest.raises(CredentialsError) as caught:
        Kubeconfig(api.kubeconfig(user, **cluster)).load()
    assert told in str(caught.value)
    assert TOKEN not in str(caught.value)


@pytest.mark.parametrize(
    "content",
    [
        *("", "[", "[]", "current-context: x", "contexts: {}", "a: 2026-02-31", "a: !!bool b"),
        *("a: !!timestamp b", "a: " + "9" * 5000, "[" * 900 + "]" * 900, "a: &a [*a]", "a: *b"),
        *("{? [a]: b}", "a: \udc80", "a: \0", "a: 1\n---\nb: 1", "a: !!python/x b", "\ta: b"),
    ],
)
def test_what_is_no_kubeconfig_says_so(tmp_path: Path, content: str) -> None:
    path = tmp_path / "config"
    path.write_bytes(content.encode("utf-8", "surrogateescape"))
    with pytest.raises(CredentialsError, match=r"config.*; "):
        Kubeconfig(path).load()
    with pytest.raises(CredentialsError, match="cannot be read"):
        Kubeconfig(tmp_path / "none").load()


def test_a_service_account_is_used_where_there_is_one_and_no_kubeconfig(api: FakeApi) -> None:
    environ = {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": str(api.port)}
    assert find_credentials(None, {}, api.folder) is None
    assert find_credentials(None, environ, api.folder / "none") is None
    assert find_credentials(None, {"KUBECONFIG": str(api.kubeconfig())}, api.folder) is None
    given = find_credentials(api.kubeconfig(), environ, api.folder)
    assert given is not None
    assert isinstance(given.source, Kubeconfig)
    found = find_credentials(None, environ, api.folder)
    assert found is not None
    assert isinstance(found.source, ServiceAccount)
    spaces, clock = Namespaces(ApiServer(found)), Clock()
    spaces.clock = clock
    assert isinstance(asyncio.run(spaces.labels("team-a", 60)), dict)

    # Kubelet exchanges the token; the old one is no longer accepted.
    api.token = "a-new-token"
    assert "(401)" in str(asyncio.run(spaces.labels("team-b", 60)))
    renewed = api.folder / "token.new"
    renewed.write_text("a-new-token")
    renewed.replace(api.folder / "token")
    assert isinstance(asyncio.run(spaces.labels("team-b", 60)), dict)
    (api.folder / "token").unlink()
    assert "token file does not exist" in str(asyncio.run(spaces.labels("team-c", 60)))


def pod(image: str = "bad", padding: int = 0, **metadata: Any) -> Json:
    """A Pod."""
    labels = {"annotations": {"padding": "x" * padding}} if padding else {}
    container = {"name": "c", "image": image}
    return {"metadata": {"name": "p"} | labels | metadata, "spec": {"containers": [container]}}


def make_judge(folder: Path, *documents: str) -> CatalogJudge:
    """The judge that serve makes of these policies."""
    path = folder / "policies.yaml"
    path.write_text("---\n".join(documents))
    return make_judge_from_files(Sources((str(path),)))


@pytest.fixture
def launch(
    ca: KeyPair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., Running]]:
    """Starts servers with policies; they end with the test."""
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    made: list[Running] = []

    def begin(*documents: str, **flags: Any) -> Running:
        judge = make_judge(tmp_path, *documents)
        made.append(start_server(tmp_path / "pair", ca, Documents(judge), **flags))
        return made[-1]

    yield begin
    for each in made:
        assert each.stop() == 0


def causes(answer: Json) -> list[str]:
    """The reasons of a refusal."""
    return [each["reason"] for each in answer["response"]["status"]["details"]["causes"]]


@pytest.mark.parametrize("padding", [0, 100_000])
@pytest.mark.parametrize("path", ["/mutate", "/validate"])
def test_policies_reach_the_namespaces_whose_labels_they_select(
    launch: Callable[..., Running], api: FakeApi, padding: int, path: str
) -> None:
    running = launch(POLICY, kubeconfig=api.kubeconfig())
    status, answer = running.post(review(object=pod(padding=padding)), path)
    assert (status, answer["response"]["allowed"]) == (200, False)
    assert causes(answer) == ["options"]
    for namespace in ("team-b", "sandbox"):
        body = review(object=pod(padding=padding), namespace=namespace)
        status, answer = running.post(body, path)
        assert (status, answer["response"]["allowed"]) == (200, True)
    assert api.paths == [f"/api/v1/namespaces/{name}{CACHED}" for name in ("team-a", "team-b")]
    dry = running.post(review(object=pod(padding=padding), dryRun=True), path)
    assert causes(dry[1]) == ["options"]
    shown = running.probe("/metrics")[1]
    assert 'podgate_namespace_lookups_total{outcome="found"} 2.0' in shown


def test_an_unknown_namespace_is_an_error_that_names_it_with_the_uid(
    launch: Callable[..., Running], api: FakeApi
) -> None:
    running = launch(POLICY, kubeconfig=api.kubeconfig())
    status, answer = running.post(review(namespace="nowhere", object=pod("good")))
    response = answer["response"]
    assert (status, response["uid"], response["allowed"]) == (500, UID, False)
    assert causes(answer) == ["unknown-namespace"]
    assert "namespace nowhere" in response["status"]["message"]
    assert "no such namespace" in response["status"]["message"]
    shown = running.probe("/metrics")[1]
    assert 'outcome="unknown-namespace"' in shown
    assert 'podgate_namespace_lookups_total{outcome="not-found"} 1.0' in shown


def test_a_look_up_keeps_nobody_else_waiting(launch: Callable[..., Running], api: FakeApi) -> None:
    running = launch(POLICY, kubeconfig=api.kubeconfig())
    go_on, answers = threading.Event(), list[int]()

    def hold(handler: BaseHTTPRequestHandler) -> bool:
        assert go_on.wait(60)
        return False

    def ask() -> None:
        answers.append(running.post(review(object=pod()))[0])

    api.act = hold
    waiting = [threading.Thread(target=ask) for _ in range(20)]
    for each in waiting:
        each.start()
    assert eventually(lambda: bool(api.paths))
    with contextlib.closing(running.connect()) as connection:
        for _ in range(20):
            body = review(object=pod(), namespace="sandbox")
            connection.request("POST", "/mutate", body, {"content-type": "application/json"})
            assert connection.getresponse().read()
    assert not answers, "the others still wait"
    go_on.set()
    for each in waiting:
        each.join()
    assert answers == [200] * 20
    assert len(api.paths) == 1


def test_without_anybody_to_ask_it_is_told_at_the_start_and_in_each_answer_that_needs_it(
    launch: Callable[..., Running], caplog: pytest.LogCaptureFixture
) -> None:
    running = launch(POLICY)
    told = [each.getMessage() for each in caplog.records if each.levelno == logging.WARNING]
    assert any("--kubeconfig (PODGATE_KUBECONFIG)" in each for each in told)
    status, answer = running.post(review(object=pod("good")))
    assert (status, answer["response"]["uid"]) == (500, UID)
    message = answer["response"]["status"]["message"]
    assert "namespace team-a" in message
    assert "PODGATE_KUBECONFIG" in message
    status, answer = running.post(review(object=pod(), namespace="sandbox"))
    assert (status, answer["response"]["allowed"]) == (200, True)


def test_names_need_nobody_to_ask(
    launch: Callable[..., Running], caplog: pytest.LogCaptureFixture
) -> None:
    running = launch(BY_NAME)
    assert "PODGATE_KUBECONFIG" not in caplog.text
    status, answer = running.post(review(object=pod()))
    assert (status, causes(answer)) == (200, ["options"])
    status, answer = running.post(review(object=pod(), namespace="team-b"))
    assert (status, answer["response"]["allowed"]) == (200, True)


def test_a_judge_says_when_labels_matter_and_never_judges_without_them(tmp_path: Path) -> None:
    both = POLICY.replace("{department: vision}", f"{{department: vision, {NAME_LABEL}: team-a}}")
    judge = make_judge(tmp_path, POLICY)
    asked = Request("", "v1", "Pod", "CREATE", pod(), namespace="team-a")
    assert isinstance(judge.prepare(asked), NeedsNamespace)
    labelled = replace(asked, namespace_labels={"department": "vision"})
    assert isinstance(judge.prepare(labelled), Ready)
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "controller": True}
    user = "system:serviceaccount:kube-system:replicaset-controller"
    child = Request(
        "", "v1", "Pod", "CREATE", pod(ownerReferences=[owner]), namespace="team-a", user=user
    )
    assert isinstance(judge.prepare(child), Ready), "a child of a controller passes in any case"
    narrow = make_judge(tmp_path, both)
    assert isinstance(narrow.prepare(asked), NeedsNamespace)
    elsewhere = Request("", "v1", "Pod", "CREATE", pod(), namespace="team-b")
    assert isinstance(narrow.prepare(elsewhere), Ready)
    for documents in ((), (BY_NAME,)):
        others = make_judge(tmp_path, *documents)
        assert isinstance(others.prepare(asked), Ready)
        assert not others.status().selects_namespaces


def test_a_kubeconfig_that_cannot_be_used_ends_the_start(tmp_path: Path) -> None:
    flags = {"plain_http": True, "kubeconfig": tmp_path / "none", "listen": "127.0.0.1:0"}
    settings = Settings.from_sources(flags, {})
    assert isinstance(settings, Settings)
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    try:
        assert serve(settings, Documents().load) == 2
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)


@pytest.mark.e2e
def test_a_real_api_server_gives_labels_to_whom_it_may(tmp_path: Path) -> None:
    try:
        cluster = Cluster().start()
    except MissingTestbed as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(f"no test bed: {error.reason} {error.how_to_get_it}")
    try:
        cluster.kubectl("create", "namespace", "team-a")
        cluster.kubectl("label", "namespace", "team-a", "department=vision")
        expected = {"department": "vision", NAME_LABEL: "team-a"}

        async def ask(spaces: Namespaces, name: str) -> Any:
            return await spaces.labels(name, 60)

        admin = Namespaces(asking(cluster.kubeconfig()))
        assert asyncio.run(ask(admin, "team-a")) == expected
        assert "no such namespace" in asyncio.run(ask(admin, "nowhere"))
        alice = Namespaces(asking(cluster.kubeconfig("alice")))
        assert "grant `get`" in asyncio.run(ask(alice, "team-a"))

        account = service_account(cluster, tmp_path)
        assert "grant `get`" in asyncio.run(ask(account, "team-a"))
        role = ("clusterrole", "podgate", "--verb=get", "--resource=namespaces")
        cluster.kubectl("create", *role)
        bound = ("--clusterrole=podgate", "--serviceaccount=team-a:podgate")
        cluster.kubectl("create", "clusterrolebinding", "podgate", *bound)
        end = time.monotonic() + 60
        while (found := asyncio.run(ask(account, "team-a"))) != expected:
            assert time.monotonic() < end, found
    finally:
        cluster.stop()


def asking(kubeconfig: Path | None, *more: Any) -> ApiServer:
    """The API server, by a kubeconfig or by a service account."""
    credentials = find_credentials(kubeconfig, *(more or ({},)))
    assert credentials is not None
    return ApiServer(credentials)


def service_account(cluster: Cluster, folder: Path) -> Namespaces:
    """Asks as a Pod with its service account does."""
    cluster.kubectl("create", "serviceaccount", "podgate", "--namespace=team-a")
    made: subprocess.CompletedProcess[str] = cluster.kubectl(
        "create", "token", "podgate", "--namespace=team-a"
    )
    (folder / "token").write_text(made.stdout)
    (folder / "ca.crt").write_bytes(cluster.ca_file.read_bytes())
    host, _, port = cluster.server.removeprefix("https://").rpartition(":")
    environ = {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port}
    return Namespaces(asking(None, environ, folder))


@pytest.mark.parametrize("name", ["a b", "a\r\nHost: x", "a\n", "ä", "\x7f", "a?b#c"])
def test_no_name_ends_a_request_line(api: FakeApi, name: str) -> None:
    server = ApiServer(Credentials(Kubeconfig(api.kubeconfig())))
    assert asyncio.run(server.find(path_of("api", "v1", "namespaces", name))) is None
    assert unquote(api.paths[-1]) == f"/api/v1/namespaces/{name}"
    with contextlib.suppress(ApiError):  # whoever forgot to quote it
        asyncio.run(server.find(f"/api/v1/namespaces/{name}"))
    assert all(each.startswith("/api/v1/namespaces/") for each in api.paths)


@pytest.mark.parametrize("name", ["", ".", ".."])
def test_a_name_that_leads_elsewhere_is_no_path(name: str) -> None:
    with pytest.raises(ValueError, match="no path"):
        path_of("api", "v1", "namespaces", name)


def test_separators_in_a_name_are_quoted() -> None:
    assert path_of("api", "a/b?c#d%e") == "/api/a%2Fb%3Fc%23d%25e"
