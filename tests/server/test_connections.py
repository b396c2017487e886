"""Connections of hostile clients, over raw sockets: what is too long, too slow or not HTTP."""

# ruff: noqa: F811 - fixtures are imported

from __future__ import annotations

import contextlib
import socket
import ssl
import time
from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import orjson
import pytest

from certs import authority
from certs.pair import KeyPair
from tests.server.test_http import (  # noqa: F401 - fixtures
    NOW,
    UID,
    Running,
    ca,
    eventually,
    launch,
    review,
    running,
)
from webhook.server import connections, gate

HEAD = b"POST /mutate?timeout=5s HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\n"


@pytest.fixture(autouse=True)
def short_lingering(monkeypatch: pytest.MonkeyPatch) -> None:
    """Refused clients are let go sooner."""
    monkeypatch.setattr(connections, "LINGER_SECONDS", 0.1)


@contextlib.contextmanager
def opened(running: Running) -> Iterator[ssl.SSLSocket]:
    """A connection of a client that says what it likes."""
    context = ssl.create_default_context(cadata=running.ca.certificate_pem.decode())
    with (
        socket.create_connection(("127.0.0.1", running.port), timeout=60) as plain,
        context.wrap_socket(plain, server_hostname="localhost") as secured,
    ):
        yield secured


def rest(secured: socket.socket) -> bytes:
    """All that the server says until it closes the connection."""
    found = b""
    with contextlib.suppress(ConnectionError, ssl.SSLError):
        while data := secured.recv(65536):
            found += data
    return found


def exchange(running: Running, parts: Iterable[bytes]) -> tuple[int, bytes, Any]:
    """Status, head and JSON of the answer to what is sent; the server has to close afterwards."""
    with opened(running) as secured:
        with contextlib.suppress(ConnectionError, ssl.SSLError):
            for part in parts:
                secured.sendall(part)
        return parsed(rest(secured))


def parsed(answer: bytes) -> tuple[int, bytes, Any]:
    """Status, head and JSON of an answer."""
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 "), answer[:200]
    return int(head.split(b" ", 2)[1]), head, orjson.loads(body)


def one(secured: ssl.SSLSocket) -> tuple[int, bytes, Any]:
    """The same for one answer on a connection that stays."""
    found = b""
    while not found.endswith(b"}"):
        data = secured.recv(65536)
        assert data, "the connection ended"
        found += data
    return parsed(found)


def whole(body: bytes, *, more: bytes = b"") -> bytes:
    """A request with a length."""
    return HEAD + more + b"content-length: %d\r\n\r\n" % len(body) + body


LONG = b"9" * 16_000
CHUNKED = HEAD + b"transfer-encoding: chunked\r\n\r\n"
HEADERS = [b"x-%d: %s\r\n" % (number, b"y" * 100) for number in range(3_000)]


@pytest.mark.parametrize(
    "status, parts",
    [
        pytest.param(414, [b"POST /mutate?timeout=", LONG, b"s HTTP/1.1\r\n\r\n"], id="timeout"),
        pytest.param(414, [b"GET /" + LONG + b" HTTP/1.1\r\n\r\n"], id="path in one write"),
        pytest.param(414, [b"GET /", *[b"a" * 500] * 500], id="path in parts"),
        pytest.param(431, [HEAD, b"x: " + LONG, b"\r\n\r\n"], id="header"),
        pytest.param(431, [HEAD, b"x: ", *[b"y" * 500] * 500], id="endless header"),
        pytest.param(431, [HEAD, LONG, LONG], id="endless header name"),
        pytest.param(431, [HEAD, b"".join(HEADERS)], id="headers in one write"),
        pytest.param(431, [HEAD, *HEADERS], id="endless headers"),
        pytest.param(431, [HEAD, *[b"x:\r\n"] * 200], id="many short headers"),
        pytest.param(431, [HEAD, b"content-type: " + LONG, b"\r\n\r\n"], id="content type"),
        pytest.param(431, [HEAD, b"traceparent: " + LONG, b"\r\n\r\n"], id="traceparent"),
        pytest.param(400, [HEAD, b"content-length: " + LONG, b"\r\n\r\n"], id="content length"),
        pytest.param(431, [CHUNKED, b"1\r\n{\r\n0\r\n", *HEADERS], id="endless trailers"),
        pytest.param(431, [CHUNKED, b"1;", *[b"e" * 500] * 500], id="endless chunk extension"),
        pytest.param(431, [CHUNKED, *[b"1;e=%s\r\n{\r\n" % (b"e" * 99)] * 999], id="extensions"),
        pytest.param(431, [b"\r\n" * 10_000], id="blank lines without a request"),
        pytest.param(400, [b"\x16\x03\x01\x02\x00\x01\x00"], id="not HTTP"),
        pytest.param(400, [b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"], id="HTTP/2"),
        pytest.param(400, [HEAD, b"content-length: 1\r\ncontent-length: 2\r\n\r\n"], id="lengths"),
        pytest.param(400, [CHUNKED, b"zz\r\n"], id="no chunk size"),
        pytest.param(
            400,
            [HEAD, b"content-length: 5\r\ntransfer-encoding: chunked\r\n\r\n"],
            id="length and chunks",
        ),
        pytest.param(
            400,
            [HEAD + b"connection: upgrade\r\nupgrade: websocket\r\n\r\n", b"{}" * 99],
            id="upgrade",
        ),
        pytest.param(400, [b"GET /\xff\xfe HTTP/1.1\r\n\r\n"], id="path that is not ASCII"),
    ],
)
def test_a_bad_head_is_answered_in_json_and_ends_the_connection(
    running: Running, status: int, parts: list[bytes]
) -> None:
    found, head, body = exchange(running, parts)
    assert found == status, body
    assert b"content-type: application/json" in head
    assert b"connection: close" in head
    assert body.get("error") or body["response"]["status"]["message"]
    assert running.post(review())[0] == 200


def test_a_second_request_has_to_wait_for_the_first_answer(running: Running) -> None:
    body = review()
    answer = exchange(running, [whole(body) + whole(body) * 50])
    assert answer[0] == 200
    assert answer[2]["response"]["uid"] == UID  # the JSON of one answer, and no second one
    assert b"connection: close" in answer[1]


def test_requests_one_after_the_other_keep_their_connection(running: Running) -> None:
    with opened(running) as secured:
        for _ in range(3):
            secured.sendall(b"\r\n" + whole(review()))
            assert one(secured)[0] == 200


def test_a_body_that_goes_on_after_the_answer_ends_the_connection(running: Running) -> None:
    with opened(running) as secured:
        secured.sendall(b"POST /livez HTTP/1.1\r\nhost: a\r\ncontent-length: 9999\r\n\r\nx")
        secured.settimeout(connections.LINGER_SECONDS + 60)
        assert b"405" in rest(secured)


def test_who_sends_no_request_is_not_kept(
    launch: Callable[..., Running], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "FIRST_SECONDS", 0.5)
    server = launch()
    for sent in (b"", b"\r\n", b"POST /mutate", HEAD):
        with opened(server) as secured:
            secured.sendall(sent)
            assert rest(secured) == b""


def test_who_has_sent_a_request_is_kept_for_longer(
    launch: Callable[..., Running], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "FIRST_SECONDS", 4.0)
    with opened(launch()) as secured:
        secured.sendall(whole(review()))
        assert one(secured)[0] == 200
        time.sleep(connections.FIRST_SECONDS + 0.5)
        secured.sendall(whole(review()))
        assert one(secured)[0] == 200


def test_who_has_had_good_reviews_answered_is_served_when_there_are_too_many(
    launch: Callable[..., Running],
) -> None:
    server = launch(concurrency=8)
    with contextlib.ExitStack() as stack:
        known = [stack.enter_context(opened(server)) for _ in range(8)]
        for each in known:
            each.sendall(whole(review()))
            assert one(each)[0] == 200
        newer = stack.enter_context(opened(server))
        for each in known:
            each.sendall(whole(review()))
            assert one(each)[0] == 200
        newer.sendall(whole(review()))
        status, head, _ = one(newer)
        assert (status, b"retry-after: 1" in head) == (503, True)


@pytest.mark.parametrize(
    "names, status",
    [
        ((), 200),
        (("kube-apiserver", "front-proxy"), 200),
        (("front-proxy",), 403),
        (("kube-apiserver-2",), 403),
        (("kube-*",), 403),
    ],
)
def test_only_clients_of_the_given_names_are_let_in(
    launch: Callable[..., Running],
    ca: KeyPair,
    tmp_path: Path,
    names: tuple[str, ...],
    status: int,
) -> None:
    (tmp_path / "ca.crt").write_bytes(ca.certificate_pem)
    made = launch(client_ca=tmp_path / "ca.crt", client_ca_name=names)
    client = authority.issue_client(ca, "kube-apiserver", NOW, timedelta(days=1))
    pem = tmp_path / "client.pem"
    pem.write_bytes(client.certificate_pem + client.key_pem)
    context = ssl.create_default_context(cadata=ca.certificate_pem.decode())
    context.load_cert_chain(pem)
    with (
        socket.create_connection(("127.0.0.1", made.port), timeout=60) as plain,
        context.wrap_socket(plain, server_hostname="localhost") as secured,
    ):
        with contextlib.suppress(ConnectionError, ssl.SSLError):
            secured.sendall(whole(review()))
        assert one(secured)[0] == status
    counted = 'podgate_connections_refused_total{cause="client-name"} 1.0'
    assert (counted in made.probe("/metrics")[1]) == (status == 403)


def test_names_are_common_names_and_alternative_names_that_no_one_else_has() -> None:
    certificate = {
        "subject": ((("organizationName", "system:masters"),), (("commonName", "a"),)),
        "subjectAltName": (("DNS", "b"), ("URI", "spiffe://c"), ("IP Address", "10.0.0.1")),
    }
    assert connections.names_of(certificate) == {"a", "b", "spiffe://c"}
    assert connections.names_of({}) == frozenset()


def test_a_handshake_that_never_ends_is_not_kept(
    launch: Callable[..., Running], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gate, "HANDSHAKE_SECONDS", 0.5)
    made = launch()
    with socket.create_connection(("127.0.0.1", made.port), timeout=60) as plain:
        assert plain.recv(1) == b""
    assert eventually(lambda: 'cause="handshake"} 1.0' in made.probe("/metrics")[1])
    assert eventually(lambda: "podgate_connections 0.0" in made.probe("/metrics")[1])


def test_connections_without_descriptors_are_waited_for(
    launch: Callable[..., Running], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = launch()
    assert made.post(review())[0] == 200
    acceptor = made.process.servers[0].servers[0]
    listener, failures = acceptor.listener, [OSError(24, "Too many open files")] * 3

    class Failing:
        """A listener that fails a few times."""

        def accept(self) -> Any:
            if failures:
                raise failures.pop()
            return listener.accept()

        def __getattr__(self, name: str) -> Any:
            return getattr(listener, name)

    monkeypatch.setattr(acceptor, "listener", Failing())
    monkeypatch.setattr(gate, "PAUSE", 0.05)
    assert made.post(review())[0] == 200
    assert not failures
