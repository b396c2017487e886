"""The server over real TLS on loopback: reviews, limits, probes, reloads, draining, workers."""

import asyncio
import base64
import contextlib
import http.client
import logging
import math
import os
import re
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import jsonpatch
import orjson
import pytest

from certs import authority, files
from certs.names import Names
from certs.pair import KeyPair
from tests.ports import free_port
from tests.server.judges import Deciding
from webhook.admission.judge import Judge, NeedsFacts, NeedsNamespace, NeedsObjects, Ready
from webhook.cluster.client import ApiServer
from webhook.cluster.credentials import Credentials, Kubeconfig
from webhook.cluster.reader_connection import ReaderSocket
from webhook.documents.problem import Problem, Source
from webhook.evaluation.outcome import Allowed, Decision, Denied, Excused, OwnerReference, Violation
from webhook.evaluation.references import ClaimKey
from webhook.evaluation.request import Request, Stage
from webhook.server import app, call, serve
from webhook.server.listeners import Listeners
from webhook.server.serve import LoadError, Process, certificate_of
from webhook.service import telemetry
from webhook.service.metrics import MOST_KINDS, Metrics
from webhook.service.settings import Settings
from webhook.service.tls import Certificate
from webhook.sources.snapshot import Snapshot

UID = "215e849f-c56a-4894-b019-c6ac32a1d2bf"
NOW = datetime.now(UTC)
SECRET = "hunter2-in-an-annotation"
PATCH = ({"op": "add", "path": "/spec/nodeName", "value": "n1"},)
JSON = {"content-type": "application/json"}


def review(uid: str = UID, **changes: Any) -> bytes:
    """A review as the API server sends it."""
    request: dict[str, Any] = {
        "uid": uid,
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "namespace": "team-a",
        "operation": "CREATE",
        "userInfo": {"username": "alice"},
        "object": {"metadata": {"name": "p", "annotations": {"a": SECRET}}, "spec": {}},
    }
    envelope = {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1"}
    return orjson.dumps(envelope | {"request": request | changes})


def judge(request: Request) -> Decision:
    """A stub that does as the object's name says."""
    match request.name:
        case "bug":
            raise KeyError(request.object["metadata"]["annotations"]["a"])
        case "slow":
            time.sleep(0.6)
        case "denied":
            source = Source("p1", "cluster")
            return Denied((Violation("image", ("spec",), "a", "b", "options", "options", source),))
        case _:
            pass
    patch = PATCH if request.stage is Stage.MUTATE else ()
    return Allowed(request.object, patch)


def named(name: str) -> dict[str, Any]:
    """An object that tells the stub what to do."""
    return {"metadata": {"name": name, "annotations": {"a": SECRET}}, "spec": {}}


@dataclass
class Documents:
    """A catalog that tests can change and break."""

    judge: Judge = field(default_factory=lambda: Deciding(judge))
    error: Exception | None = None
    dirty: bool = False
    loads: int = 0

    def load(self) -> Judge:
        """What the loader would give."""
        self.loads += 1
        if self.error is not None:
            raise self.error
        return self.judge

    def changed(self) -> bool:
        """Whether to load again, told once."""
        dirty, self.dirty = self.dirty, False
        return dirty


@dataclass
class Running:
    """A server in a thread."""

    process: Process
    documents: Documents
    folder: Path
    ca: KeyPair
    port: int
    plain: int
    thread: threading.Thread
    codes: list[int] = field(default_factory=list)

    def connect(self) -> http.client.HTTPSConnection:
        """A new connection of a client that verifies."""
        context = ssl.create_default_context(cadata=self.ca.certificate_pem.decode())
        return http.client.HTTPSConnection("localhost", self.port, timeout=30, context=context)

    def post(
        self, body: bytes, path: str = "/mutate?timeout=10s", headers: dict[str, str] | None = None
    ) -> tuple[int, dict[str, Any]]:
        """Status and JSON of one call on a connection of its own."""
        return self.call("POST", path, body, JSON if headers is None else headers)

    def call(
        self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
    ) -> tuple[int, dict[str, Any]]:
        """The same with any method."""
        with contextlib.closing(self.connect()) as connection:
            connection.request(method, path, body, headers or {})
            answer = connection.getresponse()
            return answer.status, orjson.loads(answer.read())

    def probe(self, path: str) -> tuple[int, str]:
        """Status and text of a call to the port without TLS."""
        with contextlib.closing(
            http.client.HTTPConnection("127.0.0.1", self.plain, timeout=30)
        ) as connection:
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()

    def stop(self) -> int:
        """End it and give its exit code."""
        self.process.stop()
        self.thread.join(60)
        assert not self.thread.is_alive()
        return self.codes[0]


@pytest.fixture(scope="module")
def ca() -> KeyPair:
    """An authority."""
    return authority.create_authority(NOW, timedelta(days=30))


def write_pair(folder: Path, ca: KeyPair) -> None:
    """A new certificate, swapped in as kubelet does."""
    names = Names.of(["localhost"], ["127.0.0.1"])
    pair = authority.issue_server(ca, names, NOW, timedelta(days=10))
    files.write_folder(folder, {"tls.crt": pair.certificate_pem, "tls.key": pair.key_pem})


def read_cluster(kubeconfig: Path) -> Snapshot:
    """The folder of a Pod whose reading process is a thread; it only answers workers."""
    snapshot = Snapshot(Path(tempfile.mkdtemp()))
    socket = ReaderSocket(ApiServer(Credentials(Kubeconfig(kubeconfig))), snapshot.socket)
    threading.Thread(target=lambda: asyncio.run(socket.run()), daemon=True).start()
    assert eventually(snapshot.socket.exists)
    return snapshot


def start(folder: Path, ca: KeyPair, documents: Documents | None = None, **flags: Any) -> Running:
    """A server on free ports."""
    write_pair(folder, ca)
    given = {
        "listen": "127.0.0.1:0",
        "metrics_listen": "127.0.0.1:0",
        "tls_cert": folder / "tls.crt",
        "tls_key": folder / "tls.key",
        "drain": 0,
        "workers": 1,
        "deadline": 10,
    }
    settings = Settings.from_sources(given | flags, {})
    assert isinstance(settings, Settings), settings
    docs = documents or Documents()
    listeners = Listeners.of(settings)
    port = listeners.reviews.getsockname()[1]
    plain = listeners.metrics.getsockname()[1] if listeners.metrics else 0
    snapshot = read_cluster(settings.kubeconfig) if settings.kubeconfig is not None else None
    given_to = settings, listeners, certificate_of(settings), docs.load, docs.changed, snapshot
    process = Process(*given_to)
    codes: list[int] = []
    thread = threading.Thread(target=lambda: codes.append(process.run()), daemon=True)
    thread.start()
    assert process.started.wait(60)
    return Running(process, docs, folder, ca, port, plain, thread, codes)


@pytest.fixture(scope="module")
def running(ca: KeyPair, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """One server for all tests that do not change it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(serve, "WATCH_SECONDS", 0.05)
        made = start(tmp_path_factory.mktemp("pair"), ca)
        yield made
        assert made.stop() == 0


@pytest.fixture
def launch(
    ca: KeyPair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., Running]]:
    """Starts servers that end with the test."""
    monkeypatch.setattr(serve, "WATCH_SECONDS", 0.05)
    made: list[Running] = []

    def begin(documents: Documents | None = None, **flags: Any) -> Running:
        made.append(start(tmp_path / str(len(made)), ca, documents, **flags))
        return made[-1]

    yield begin
    for each in made:
        if each.thread.is_alive():
            each.stop()


def eventually(holds: Callable[[], bool], seconds: float = 60) -> bool:
    """Whether something becomes true in time."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if holds():
            return True
        time.sleep(0.02)
    return False


def test_a_review_is_answered_with_its_uid_and_a_patch_that_applies(running: Running) -> None:
    status, answer = running.post(review())
    assert status == 200
    response = answer["response"]
    assert (response["uid"], response["allowed"]) == (UID, True)
    patch = base64.b64decode(response["patch"])
    assert jsonpatch.apply_patch({"spec": {}}, patch.decode()) == {"spec": {"nodeName": "n1"}}


def test_validating_writes_nothing_and_a_refusal_is_an_answer(running: Running) -> None:
    status, answer = running.post(review(), "/validate?timeout=10s")
    assert status == 200
    assert "patch" not in answer["response"]
    status, answer = running.post(review(object=named("denied")), "/validate")
    assert (status, answer["response"]["allowed"]) == (200, False)
    assert answer["response"]["status"]["details"]["causes"][0]["reason"] == "options"


@pytest.mark.parametrize("query", ["", "?timeout=10s", "?timeout=30s&x=/validate", "?"])
def test_the_path_is_matched_without_its_query(running: Running, query: str) -> None:
    assert running.post(review(), f"/mutate{query}")[0] == 200


@pytest.mark.parametrize(
    "kind", ["application/json", "application/json; charset=utf-8", "Application/JSON;v=1"]
)
def test_json_is_taken_with_parameters(running: Running, kind: str) -> None:
    assert running.post(review(), headers={"content-type": kind})[0] == 200


@pytest.mark.parametrize("kind", ["text/plain", "application/yaml", "application/jsonp", ""])
def test_other_content_types_are_415(running: Running, kind: str) -> None:
    status, answer = running.post(review(), headers={"content-type": kind} if kind else {"x": "y"})
    assert status == 415
    assert "application/json" in answer["error"]


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "PATCH"])
def test_other_methods_are_405_with_what_to_send(running: Running, method: str) -> None:
    with contextlib.closing(running.connect()) as connection:
        connection.request(method, "/mutate?timeout=1s")
        answer = connection.getresponse()
        assert (answer.status, answer.getheader("allow")) == (405, "POST")
        assert "POST" in orjson.loads(answer.read())["error"]


def test_other_paths_are_404_in_json(running: Running) -> None:
    for method, path in (
        ("POST", "/"),
        ("GET", "/mutate/"),
        ("POST", "/mutatex"),
        ("GET", "/metrics"),
    ):
        status, answer = running.call(method, path)
        assert status == 404
        assert "nothing at" in answer["error"]
    assert running.call("POST", "/livez")[0] == 405


def pieces(size: int) -> Iterator[bytes]:
    """A body of about `size` bytes in pieces, whose length nobody is told."""
    yield review()[:-1]
    piece = b" " * 65_536
    for _ in range(size // len(piece)):
        yield piece


def test_a_streamed_body_without_a_length_is_413_with_its_uid(running: Running) -> None:
    before = memory()
    status, answer = running.call("POST", "/mutate", pieces(10 * 1024 * 1024), JSON)
    assert status == 413
    assert (answer["response"]["uid"], answer["response"]["status"]["code"]) == (UID, 413)
    assert memory() - before < 40 * 1024
    assert running.post(review())[0] == 200


def memory() -> int:
    """Resident kilobytes of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE") // 1024


def test_a_body_just_below_the_limit_is_read(running: Running) -> None:
    data = review()
    limit = running.process.settings.body_limit
    assert running.post(data + b" " * (limit - len(data)))[0] == 200
    assert running.post(data + b" " * (limit - len(data) + 1))[0] == 413


def test_who_asks_before_sending_too_much_is_told_at_once(running: Running) -> None:
    context = ssl.create_default_context(cadata=running.ca.certificate_pem.decode())
    head = (
        b"POST /mutate HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
        b"content-length: 99999999\r\nexpect: 100-continue\r\n\r\n"
    )
    with (
        socket.create_connection(("127.0.0.1", running.port), timeout=30) as plain,
        context.wrap_socket(plain, server_hostname="localhost") as secured,
    ):
        secured.sendall(head)
        assert secured.recv(12) == b"HTTP/1.1 413"


@pytest.mark.parametrize(
    "body, code, told",
    [
        (b'{"request":{"uid":"%s"' % UID.encode(), 400, "not JSON"),
        (b"", 400, "not JSON"),
        (review().replace(b"io/v1", b"io/v1beta1"), 400, "only admission.k8s.io/v1"),
        (review().replace(b"AdmissionReview", b"TokenReview"), 400, "send an AdmissionReview"),
    ],
)
def test_what_cannot_be_read_is_told_clearly(
    running: Running, body: bytes, code: int, told: str
) -> None:
    status, answer = running.post(body)
    assert status == code
    assert told in answer["response"]["status"]["message"]
    assert answer["response"]["uid"] == (UID if UID.encode() in body else "")


def test_a_body_ten_thousand_deep_is_denied(running: Running) -> None:
    deep = b'{"a":' * 10_000 + b"1" + b"}" * 10_000
    status, answer = running.post(review(object={"x": "HERE"}).replace(b'"HERE"', deep))
    assert (status, answer["response"]["allowed"]) == (200, False)
    assert answer["response"]["uid"] == UID
    assert answer["response"]["status"]["details"]["causes"][0]["reason"] == "too-deep"


def test_a_bug_is_500_with_the_uid_and_tells_nothing_of_the_object(
    running: Running, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    status, answer = running.post(review(object=named("bug")))
    assert status == 500
    assert (answer["response"]["uid"], answer["response"]["status"]["code"]) == (UID, 500)
    record = next(each for each in caplog.records if each.getMessage() == "evaluation failed")
    for formatter in (telemetry.JsonLines(), telemetry.TextLines()):
        line = formatter.format(record)
        assert UID in line
        assert "KeyError" in line
        assert "test_http.py" in line
        assert SECRET not in line
    assert SECRET not in orjson.dumps(answer).decode()
    assert running.post(review())[0] == 200


def test_a_refusal_is_logged_with_rules_and_places_and_without_values(
    running: Running, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    running.post(review(object=named("denied"), dryRun=True))
    record = next(each for each in caplog.records if each.getMessage() == "denied")
    line = orjson.loads(telemetry.JsonLines().format(record))
    assert line["rules"] == [{"policy": "p1", "rule": "options", "path": "spec"}]
    assert (line["user"], line["kind"], line["dry_run"]) == ("alice", "Pod.v1", True)
    assert SECRET not in str(line)


@pytest.mark.parametrize("formatter", [telemetry.JsonLines(), telemetry.TextLines()])
def test_no_line_of_the_log_is_long(formatter: logging.Formatter) -> None:
    record = logging.LogRecord("a", logging.INFO, "", 1, "%s", ("m" * 10**6,), None)
    record.__dict__[telemetry.FACTS] = {
        "user": "u" * 10**6,
        "rules": [{"path": "p" * 10**6}] * 10**4,
        "k" * 10**6: Path("/" + "x" * 10**6),
        "number": 1.5,
    }
    line = formatter.format(record)
    assert len(line) < 64 * 1024
    assert "1.5" in line


def test_signals_that_mean_nothing_end_nobody(tmp_path: Path, ca: KeyPair) -> None:
    with command(tmp_path, ca, 2) as (made, child):
        assert eventually(lambda: ready(made))
        workers = children(child.pid)
        for process in (child.pid, *workers):
            for number in serve.IGNORED:
                os.kill(process, number)
        for _ in range(3):
            assert made.post(review())[0] == 200
            time.sleep(0.2)
        assert child.poll() is None
        assert children(child.pid) == workers


def test_a_connection_is_used_again_and_again(running: Running) -> None:
    with contextlib.closing(running.connect()) as connection:
        connection.connect()
        first = connection.sock
        for number in range(50):
            connection.request("POST", "/mutate?timeout=10s", review(f"uid-{number}"), JSON)
            answer = connection.getresponse()
            assert orjson.loads(answer.read())["response"]["uid"] == f"uid-{number}"
            assert connection.sock is first
            assert answer.getheader("connection") is None


def test_connections_are_recycled_by_age(launch: Callable[..., Running]) -> None:
    made = launch(connection_age=1)
    with contextlib.closing(made.connect()) as connection:

        def is_closed() -> bool:
            connection.request("POST", "/mutate", review(), JSON)
            answer = connection.getresponse()
            assert (answer.status, bool(answer.read())) == (200, True)
            return answer.getheader("connection") == "close"

        assert eventually(is_closed)


def test_who_waited_too_long_is_answered_without_work(launch: Callable[..., Running]) -> None:
    seen: list[str] = []

    def noting(request: Request) -> Decision:
        seen.append(request.uid)
        return judge(request)

    made = launch(Documents(Deciding(noting)), deadline=0.3)
    answers: list[tuple[int, dict[str, Any]]] = []
    bodies = [review(f"slow-{n}", object=named("slow")) for n in range(5)]
    connections = [made.connect() for _ in bodies]
    for connection in connections:
        connection.connect()
    for connection, body in zip(connections, bodies, strict=True):
        connection.request("POST", "/mutate?timeout=10s", body, JSON)
    for connection in connections:
        with contextlib.closing(connection):
            got = connection.getresponse()
            answers.append((got.status, orjson.loads(got.read())))
    late = [answer for status, answer in answers if status == 503]
    # While the first is judged the others come in; the next one is judged, and then they are late.
    assert late
    for answer in late:
        assert "not evaluated" in answer["response"]["status"]["message"]
        assert answer["response"]["uid"] not in seen
    assert len(seen) + len(late) == len(bodies)
    _, text = made.probe("/metrics")
    assert 'outcome="deadline"' in text
    waited = re.search(r'podgate_request_wait_seconds_sum{stage="mutate"} (\S+)', text)
    assert waited is not None
    assert float(waited[1]) > 0.3 * len(late)


def test_a_body_that_never_ends_is_cut_off_at_the_callers_timeout(running: Running) -> None:
    with contextlib.closing(running.connect()) as connection:
        connection.putrequest("POST", "/mutate?timeout=300ms")
        connection.putheader("content-type", "application/json")
        connection.putheader("content-length", "100")
        connection.endheaders(b'{"request":{"uid":"abc"')
        answer = connection.getresponse()
        assert answer.status == 408
        assert orjson.loads(answer.read())["response"]["uid"] == "abc"


def test_large_objects_are_judged_beside_small_ones(launch: Callable[..., Running]) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def wait(request: Request) -> Decision:
        if request.uid == "big":
            begun.set()
            assert go_on.wait(60)
        return judge(request)

    made, got = launch(Documents(Deciding(wait))), list[int]()
    big = review("big", object=named("p") | {"data": "x" * 200_000})
    thread = threading.Thread(target=lambda: got.append(made.post(big)[0]), daemon=True)
    thread.start()
    assert begun.wait(60)
    assert made.post(review())[0] == 200
    assert not got
    go_on.set()
    thread.join(60)
    assert got == [200]


def test_probes_and_metrics_are_on_their_own_port(running: Running) -> None:
    running.post(review())
    running.post(review(object=named("denied")))
    assert running.probe("/livez")[0] == 200
    status, text = running.probe("/readyz")
    assert (status, orjson.loads(text)["reasons"]) == (200, [])
    assert 9 < orjson.loads(text)["certificate_days"] <= 10
    assert running.call("GET", "/readyz")[0] == 200
    status, text = running.probe("/metrics")
    assert status == 200
    assert (
        'podgate_requests_total{dry_run="false",kind="Pod",operation="CREATE",'
        'outcome="patched",stage="mutate"}'
    ) in text
    assert 'podgate_request_duration_seconds_bucket{le="10.0",stage="mutate"}' in text
    assert 'podgate_violations_total{policy="p1",rule="options"}' in text
    assert "podgate_catalog_generation 1.0" in text
    assert 'podgate_certificate_not_after_seconds{part="leaf"}' in text
    assert 'podgate_request_wait_seconds_bucket{le="10.0",stage="mutate"}' in text
    assert running.probe("/mutate")[0] == 404


def test_a_certificate_that_has_ended_ends_readiness(launch: Callable[..., Running]) -> None:
    made = launch()
    made.process.look_at_certificate()
    assert made.process.state.reasons() == []
    made.process.state.leaf_ends = time.time() - 86_400
    assert made.process.state.reasons() == ["its certificate ended 1.0 days ago"]


def test_metrics_can_share_the_port_of_reviews(launch: Callable[..., Running]) -> None:
    made = launch(metrics_listen="same")
    with contextlib.closing(made.connect()) as connection:
        connection.request("GET", "/metrics")
        answer = connection.getresponse()
        assert answer.status == 200
        assert b"podgate_catalog_generation" in answer.read()


def test_kinds_that_anybody_invents_do_not_make_metrics_grow() -> None:
    counted = Metrics.new()
    for number in range(1_000):
        counted.count_review("mutate", f"Kind{number}", "CREATE", "allowed", False, 0.01, 0.001)
        counted.count_review(
            "mutate", f"no kind {number}\n", "CREATE", "allowed", False, 0.01, 0.001
        )
    assert len(counted.known) <= MOST_KINDS + 1
    assert b'kind="other"' in counted.text()


def test_without_a_first_catalog_nothing_is_judged_and_readiness_says_why(
    launch: Callable[..., Running], caplog: pytest.LogCaptureFixture
) -> None:
    fault = Problem("a.yaml", "rules.x", "`y`", "write `z`", "unknown", 3, 1)
    documents = Documents(error=LoadError((fault,)))
    made = launch(documents)
    assert "a.yaml:3:1: rules.x: found `y`; write `z`" in caplog.text
    status, text = made.probe("/readyz")
    assert status == 503
    assert "1 problems in the documents" in orjson.loads(text)["reasons"][0]
    assert made.probe("/livez")[0] == 200
    status, answer = made.post(review())
    assert (status, answer["response"]["uid"]) == (503, UID)
    documents.error, documents.dirty = None, True
    assert eventually(lambda: made.probe("/readyz")[0] == 200)
    assert made.post(review())[0] == 200


@pytest.mark.parametrize("error", [LoadError(()), RuntimeError("x"), RecursionError()])
def test_a_broken_set_keeps_the_last_good_one(
    launch: Callable[..., Running], caplog: pytest.LogCaptureFixture, error: Exception
) -> None:
    documents = Documents()
    made = launch(documents)
    documents.error, documents.dirty = error, True
    assert eventually(lambda: "catalog 1 stays in use" in caplog.text)
    assert made.post(review())[0] == 200
    assert made.probe("/readyz")[0] == 200
    assert 'podgate_reload_failures_total{what="catalog"} 1.0' in made.probe("/metrics")[1]
    assert 'podgate_reload_failing{what="catalog"} 1.0' in made.probe("/metrics")[1]
    documents.error, documents.dirty = None, True
    documents.judge = Deciding(lambda request: Allowed(request.object))
    assert eventually(lambda: "patch" not in made.post(review())[1]["response"])
    assert made.post(review())[1]["response"]["auditAnnotations"]["catalog"] == "2"
    assert 'podgate_reload_failing{what="catalog"} 0.0' in made.probe("/metrics")[1]


def exchanged(certificate: Certificate, before: ssl.SSLContext) -> bool:
    """Whether another pair is served."""
    return certificate.current is not before


def test_a_certificate_swapped_under_load_fails_no_request(running: Running) -> None:
    stop, failures, served = threading.Event(), [], []
    shown: set[bytes] = set()

    def load(keep: bool) -> None:
        connection = running.connect()
        try:
            while not stop.is_set():
                connection.request("POST", "/mutate?timeout=10s", review(), JSON)
                assert isinstance(connection.sock, ssl.SSLSocket)
                shown.add(connection.sock.getpeercert(binary_form=True) or b"")
                answer = connection.getresponse()
                answer.read()
                served.append(answer.status)
                if not keep:
                    connection.close()
        except Exception as error:
            failures.append(repr(error))
        finally:
            connection.close()

    threads = [threading.Thread(target=load, args=(n == 0,), daemon=True) for n in range(3)]
    for thread in threads:
        thread.start()
    for swap in range(3):
        assert eventually(lambda number=swap: len(shown) > number)  # type: ignore[misc]
        before = running.process.certificate
        assert before is not None
        current = before.current
        write_pair(running.folder, running.ca)
        assert eventually(partial(exchanged, before, current)), swap
    assert eventually(lambda: len(shown) > 3)
    stop.set()
    for thread in threads:
        thread.join(60)
    assert failures == []
    assert set(served) == {200}


def test_draining_turns_readiness_off_answers_on_and_closes_connections(
    launch: Callable[..., Running],
) -> None:
    made = launch(drain=300)
    with contextlib.closing(made.connect()) as kept:
        kept.request("POST", "/mutate", review(), JSON)
        assert kept.getresponse().read()
        made.process.stop()
        assert eventually(lambda: made.probe("/readyz")[0] == 503)
        assert "draining" in made.probe("/readyz")[1]
        assert made.probe("/livez")[0] == 200
        kept.request("POST", "/mutate", review(), JSON)
        answer = kept.getresponse()
        assert (answer.status, answer.getheader("connection")) == (200, "close")
        assert answer.read()
        assert made.post(review())[0] == 200
    assert made.stop() == 0, "a second signal ends it at once"
    with pytest.raises(OSError):
        made.connect().connect()


def test_a_request_under_way_is_answered_before_the_end(launch: Callable[..., Running]) -> None:
    begun = threading.Event()

    def note(request: Request) -> Decision:
        begun.set()
        return judge(request)

    made = launch(Documents(Deciding(note)))
    got: list[int] = []
    body = review(object=named("slow") | {"data": "x" * 100_000})
    thread = threading.Thread(target=lambda: got.append(made.post(body)[0]), daemon=True)
    thread.start()
    assert begun.wait(60)
    assert made.stop() == 0
    thread.join(60)
    assert got == [200]


SCRIPT = """
import os
import sys
from pathlib import Path
from webhook.evaluation.outcome import Allowed
from tests.ports import free_port
from tests.server.judges import Deciding
from webhook.server.serve import LoadError, serve
from webhook.service.settings import Settings

def load():
    if Path(sys.argv[3], "bad").exists():
        raise LoadError(())
    return Deciding(decide)

def decide(request):
    Path(sys.argv[3], f"judged-{os.getpid()}").touch()
    return Allowed(request.object)

flags = dict(listen=sys.argv[1], metrics_listen=sys.argv[2], tls_cert=sys.argv[3] + "/tls.crt",
             tls_key=sys.argv[3] + "/tls.key", drain=0.2, workers=int(sys.argv[4]))
sys.exit(serve(Settings.from_sources(flags, {}), load))
"""


@contextlib.contextmanager
def command(
    folder: Path, ca: KeyPair, workers: int
) -> Iterator[tuple[Running, subprocess.Popen[str]]]:
    """`serve` as a process of its own."""
    write_pair(folder, ca)
    port, plain = free_port(), free_port()
    arguments = [f"127.0.0.1:{port}", f"127.0.0.1:{plain}", str(folder), str(workers)]
    root = Path(__file__).parents[2]
    child = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, *arguments], cwd=root, stderr=subprocess.PIPE, text=True
    )
    try:
        yield Running(None, None, folder, ca, port, plain, None), child  # type: ignore[arg-type]
    finally:
        if child.poll() is None:
            child.send_signal(signal.SIGTERM)
            try:
                child.wait(60)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait(60)
        assert child.stderr is not None
        child.stderr.close()


def ready(made: Running) -> bool:
    """Whether a process answers and is ready."""
    try:
        return made.probe("/readyz")[0] == 200
    except OSError:
        return False


def children(process: int) -> list[int]:
    """The child processes of a process."""
    text = Path(f"/proc/{process}/task/{process}/children").read_text()
    return [int(each) for each in text.split()]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_one_process_ends_with_zero_on_a_signal(
    tmp_path: Path, ca: KeyPair, number: signal.Signals
) -> None:
    with command(tmp_path, ca, 1) as (made, child):
        assert eventually(lambda: ready(made))
        assert made.post(review())[0] == 200
        child.send_signal(number)
        _, told = child.communicate(timeout=60)
        assert child.returncode == 0
        lines = [orjson.loads(line) for line in told.splitlines()]
        assert "podgate serves https://127.0.0.1" in lines[0]["message"]


def test_workers_share_port_and_metrics_and_one_that_dies_is_replaced(
    tmp_path: Path, ca: KeyPair
) -> None:
    with command(tmp_path, ca, 2) as (made, child):
        assert eventually(lambda: ready(made))
        assert eventually(lambda: len(children(child.pid)) == 2)
        for _ in range(20):
            assert made.post(review())[0] == 200
        assert "podgate_requests_total" in made.probe("/metrics")[1]
        first = children(child.pid)
        os.kill(first[0], signal.SIGKILL)
        assert eventually(lambda: len(set(children(child.pid)) - set(first)) == 1)
        assert eventually(lambda: ready(made))
        assert made.post(review())[0] == 200
        counted = [
            line for line in made.probe("/metrics")[1].splitlines()
            if line.startswith("podgate_requests_total")
        ]  # fmt: skip
        assert sum(float(line.split()[-1]) for line in counted) == 21
        workers = children(child.pid)
        child.send_signal(signal.SIGTERM)
        _, told = child.communicate(timeout=60)
        assert child.returncode == 0, told
        assert not any(Path(f"/proc/{worker}").exists() for worker in workers)


def test_a_new_worker_answers_nobody_before_it_has_a_catalog_while_another_one_has(
    tmp_path: Path, ca: KeyPair
) -> None:
    with command(tmp_path, ca, 2) as (made, child):
        assert eventually(lambda: ready(made))
        assert eventually(lambda: len(children(child.pid)) == 2)
        bad, (first, second) = tmp_path / "bad", children(child.pid)

        def have_judged() -> bool:
            assert made.post(review())[0] == 200
            return all((tmp_path / f"judged-{each}").exists() for each in (first, second))

        assert eventually(have_judged)
        bad.touch()
        os.kill(first, signal.SIGKILL)
        assert eventually(lambda: len(set(children(child.pid)) - {first, second}) == 1)
        (third,) = set(children(child.pid)) - {second}
        for _ in range(60):
            assert made.post(review())[0] == 200
            assert made.probe("/readyz")[0] == 200
            time.sleep(0.05)
        assert children(child.pid) == [second, third]
        os.kill(second, signal.SIGKILL)
        assert eventually(lambda: unready(made)), "with no catalog anywhere it is said why"
        bad.unlink()
        assert eventually(lambda: ready(made))


def unready(made: Running) -> bool:
    """Whether a process answers that it is not ready."""
    try:
        return made.probe("/readyz")[0] == 503
    except OSError:
        return False


@pytest.fixture
def own_logging() -> Iterator[None]:
    """Leaves logging as it was found: `serve` takes it over."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


@pytest.mark.usefixtures("own_logging")
def test_a_taken_port_and_a_missing_pair_are_told_in_a_line(tmp_path: Path, ca: KeyPair) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        write_pair(tmp_path, ca)
        base = {"metrics_listen": "", "tls_cert": tmp_path / "tls.crt", "workers": 1}
        flags = base | {"listen": f"127.0.0.1:{taken.getsockname()[1]}"}
        settings = Settings.from_sources(flags | {"tls_key": tmp_path / "tls.key"}, {})
        assert isinstance(settings, Settings)
        assert serve.serve(settings, Documents().load) == 1
    for key in ({}, {"tls_key": tmp_path / "none"}):
        settings = Settings.from_sources(base | {"listen": "127.0.0.1:0"} | key, {})
        assert isinstance(settings, Settings)
        assert serve.serve(settings, Documents().load) == 2


def test_the_stub_of_an_observer_that_fails_spoils_no_answer(running: Running) -> None:
    def fail(seen: app.Observation) -> None:
        raise RuntimeError

    reviews = app.Reviews(app.State(Deciding(judge)), fail)
    call = app.Call(Stage.MUTATE, reviews.clock(), reviews.clock() + 1, body=review())
    answered = reviews.evaluate(call)
    assert isinstance(answered, tuple)
    status, payload = answered
    assert status == 200
    assert orjson.loads(payload)["response"]["uid"] == UID


class WaitingJudge(Deciding):
    """A judge that must wait before it judges some objects, as for jq."""

    def __init__(self) -> None:
        super().__init__(judge)
        self.go_on = threading.Event()

    def prepare(self, request: Request) -> Ready | NeedsNamespace | NeedsFacts:
        """Wait for the test's word, in a thread."""

        def ask() -> Ready:
            assert self.go_on.wait(60)
            return Ready(request)

        return NeedsFacts(ask) if request.name == "waiting" else Ready(request)


def test_a_judge_that_waits_holds_up_nobody_else(launch: Callable[..., Running]) -> None:
    slow = WaitingJudge()
    running = launch(Documents(slow))
    answers: list[tuple[int, dict[str, Any]]] = []
    waiting = threading.Thread(
        target=lambda: answers.append(running.post(review(object=named("waiting"))))
    )
    waiting.start()
    assert running.post(review(object=named("other")))[0] == 200
    assert not answers
    slow.go_on.set()
    waiting.join(60)
    ((status, answer),) = answers
    assert (status, answer["response"]["allowed"]) == (200, True)


class SightlessJudge(Deciding):
    """A judge that refuses while a claim is not to be seen, which `appears` seconds after it asks."""

    def __init__(self, appears: float, *, follows: bool = True) -> None:
        super().__init__(judge)
        self.appears, self.follows = appears, follows
        self.until = math.inf
        self.asked: list[str] = []

    def has(self, claims: frozenset[ClaimKey]) -> bool:
        """Whether it is there by now."""
        assert claims == {CLAIM}
        return time.monotonic() >= self.until

    def decide(self, ready: Ready, *, final: bool) -> Decision | NeedsObjects:
        """Refuse what names it while it is not there."""
        if ready.request.name == "other":
            return judge(ready.request)
        self.asked.append(threading.current_thread().name)
        self.until = min(self.until, time.monotonic() + self.appears)
        if self.has(UNSEEN):
            return Allowed(ready.request.object)
        if self.follows and not final:
            return NeedsObjects(UNSEEN)
        return Denied(
            (Violation("gpus", (), None, "4", "max", "unbounded", None),), unresolved=UNSEEN
        )


CLAIM = ("ResourceClaimTemplate", "team", "gpus")
UNSEEN = frozenset({CLAIM})
PATIENT = "/mutate?timeout=30s"


@pytest.mark.parametrize(
    ("appears", "follows", "allowed", "asked", "least"),
    [
        (0.1, True, True, 2, 0.1),
        (9, True, False, 2, app.SIGHT_SECONDS),
        (9, False, False, 1, 0.0),
    ],
    ids=["soon", "never", "not followed"],
)
@pytest.mark.parametrize("large", [False, True])
def test_a_claim_that_is_on_its_way_is_waited_for_but_not_for_long(
    launch: Callable[..., Running],
    appears: float,
    follows: bool,
    allowed: bool,
    asked: int,
    least: float,
    large: bool,
) -> None:
    sightless = SightlessJudge(appears, follows=follows)
    running = launch(Documents(sightless))
    body = {**named("p"), "data": {"x": "y" * 100_000}} if large else named("p")
    begun = time.monotonic()
    status, answer = running.post(review(object=body))
    seconds = time.monotonic() - begun
    assert (status, answer["response"]["allowed"]) == (200, allowed)
    assert len(sightless.asked) == asked
    assert {each.startswith("large") for each in sightless.asked} == {large}
    assert least <= seconds < 9


def test_who_waits_for_a_claim_holds_up_nobody_else(
    launch: Callable[..., Running], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app, "SIGHT_SECONDS", 25.0)
    monkeypatch.setattr(call, "LOOKUP_SECONDS", 25.0)
    sightless = SightlessJudge(60)
    running = launch(Documents(sightless), deadline=30)
    waiting = [
        threading.Thread(target=running.post, args=(review(object=named("p")), PATIENT))
        for _ in range(20)
    ]
    for each in waiting:
        each.start()
    while len(sightless.asked) < len(waiting):
        time.sleep(0.01)
    assert running.post(review(object=named("other")))[0] == 200
    assert all(each.is_alive() for each in waiting)
    sightless.until = 0.0
    for each in waiting:
        each.join(60)
    assert len(sightless.asked) == 2 * len(waiting)


def test_what_exceptions_excuse_and_controllers_are_refused_is_counted(
    launch: Callable[..., Running],
) -> None:
    source = Source("p1", "cluster")
    broken = Violation("max", ("spec",), "3", "2", "max", "max", source)
    owner = OwnerReference("ray.io/v1", "RayCluster", "r", "u")

    def judge(request: Request) -> Decision:
        if request.name == "child":
            return Denied((broken,), report_to=owner)
        return Allowed(request.object, excused=(Excused(broken, "vision"),))

    made = launch(Documents(Deciding(judge)))
    assert made.post(review())[0] == 200
    assert made.post(review(object=named("child")))[0] == 200
    assert made.post(review(object=named("child"), dryRun=True))[0] == 200
    text = made.probe("/metrics")[1]
    assert 'podgate_exceptions_used_total{exception="vision",policy="p1",rule="max"} 1.0' in text, (
        text
    )
    assert 'podgate_controller_refusals_total{owner="RayCluster"} 1.0' in text
