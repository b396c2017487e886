"""Connections of clients: limits the head of a request, and decides when a connection ends."""

from __future__ import annotations

import asyncio
import math
import random
import time
from collections.abc import Callable, Iterable, Mapping
from http import HTTPStatus
from typing import Any, cast

import httptools
import orjson
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from webhook.server.gate import Gate, Peer, Stage

ARRIVED, GOOD = "podgate.arrived", "podgate.good"
TARGET_BYTES = 2 * 1024
HEADER_BYTES = 8 * 1024
HEAD_BYTES = 16 * 1024
HEAD_FIELDS = 64
FIRST_SECONDS = HEAD_SECONDS = 10.0
LINGER_SECONDS = 1.0
LINGER_BYTES = 4 * 1024 * 1024
END_SECONDS = 10.0

BAD, FORBIDDEN, BUSY, TARGET, HEAD = (
    HTTPStatus.BAD_REQUEST,
    HTTPStatus.FORBIDDEN,
    HTTPStatus.SERVICE_UNAVAILABLE,
    HTTPStatus.REQUEST_URI_TOO_LONG,
    HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
)


class RefusedError(Exception):
    """A request that is answered as soon as its head was read."""

    def __init__(self, status: HTTPStatus, message: str, cause: str = "malformed") -> None:
        """`status` and `message` are the answer; `cause` is counted."""
        super().__init__(message)
        self.status = status
        self.cause = cause


NOT_HTTP = RefusedError(BAD, "this server speaks HTTP/1.1, and this is something else")


class Connection(HttpToolsProtocol):
    """One connection of a client: uvicorn's own, with the limits that a webhook needs.

    Connections end after an answer while draining and, with jitter, after about `age` seconds, so
    that new replicas and workers get their share. A head that is too long is answered with 414 or
    431 before anything else looks at it, and what is not HTTP/1.1 with 400, each in JSON.

    `overhead` counts the bytes of a request that are not its body: its head, the sizes of its
    chunks, its trailers. The parser keeps a header until it ends, so that lengths are also
    checked here, before the header is whole.
    """

    draining: Callable[[], bool]
    age: float
    gate: Gate
    names: frozenset[str] = frozenset()
    peer: Peer

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Note when to end, and do not wait for ever for a first request."""
        super().connection_made(transport)
        self.expires = time.monotonic() + self.age * random.uniform(0.75, 1.25)  # noqa: S311
        self.overhead = self.body_bytes = self.head_bytes = self.lingered = 0
        self.in_head = self.in_message = self.is_refused = False
        self.head_timer: asyncio.TimerHandle | None = None
        self.end_timer: asyncio.TimerHandle | None = None
        self.timeout_keep_alive_task = self.loop.call_later(FIRST_SECONDS, self.end_late)
        self.first_until = self.loop.time() + FIRST_SECONDS
        self.peer.connection = self
        self.check_client()

    def check_client(self) -> None:
        """Trust a client with a certificate, and refuse one whose name is not listed.

        If the server requires certificates, each client that gets here has one of the client CA.
        """
        shown = self.transport.get_extra_info("peercert")
        if not shown:
            return
        if self.names and self.names.isdisjoint(names_of(shown)):
            self.refuse(RefusedError(FORBIDDEN, "no client of this name is let in", "client-name"))
            return
        self.gate.move(self.peer, Stage.GOOD)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timers of the connection."""
        super().connection_lost(exc)
        self.gate.leave(self.peer)
        self._unset_keepalive_if_required()
        self.end_head()
        if self.end_timer is not None:
            self.end_timer.cancel()

    def data_received(self, data: bytes) -> None:
        """Parse data; refuse what exceeds a limit or is not HTTP."""
        if self.is_refused:
            self.lingered += len(data)
            if self.lingered > LINGER_BYTES:
                self.transport.abort()
            return
        self.overhead += len(data)
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserError as error:
            ours = error.__context__
            self.refuse(ours if isinstance(ours, RefusedError) else NOT_HTTP)
            return
        except httptools.HttpParserUpgrade:
            self.refuse(NOT_HTTP)
            return
        if self.overhead > HEAD_BYTES + self.body_bytes:
            self.refuse(too_many_headers())
        elif self.in_head and self.head_timer is None:
            until = min(self.first_until, self.loop.time() + HEAD_SECONDS)
            self.head_timer = self.loop.call_at(until, self.end_late)

    def eof_received(self) -> None:
        """Let a refused client that has nothing more to send disconnect."""
        if self.is_refused:
            self.end()

    def on_message_begin(self) -> None:
        """Note when the request arrived, and pause a client that sends the next request too early:
        podgate would have to keep what it sent.
        """
        if self.cycle is not None and not self.cycle.response_complete:
            raise RefusedError(BAD, "wait for the answer before the next request")
        self._unset_keepalive_if_required()
        super().on_message_begin()
        cast("dict[str, Any]", self.scope)[ARRIVED] = time.monotonic()
        self.in_head = self.in_message = True
        self.head_bytes = self.body_bytes = 0

    def on_url(self, url: bytes) -> None:
        """Append a chunk of the request target."""
        if len(self.url) + len(url) > TARGET_BYTES:
            message = f"the request target is longer than {TARGET_BYTES} bytes"
            raise RefusedError(TARGET, message, "too-long")
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Count a header or a trailer; nobody reads trailers."""
        self.head_bytes += len(name) + len(value)
        if len(name) + len(value) > HEADER_BYTES:
            raise RefusedError(HEAD, f"a header is longer than {HEADER_BYTES} bytes", "too-long")
        if len(self.headers) >= HEAD_FIELDS or self.head_bytes > HEAD_BYTES:
            raise too_many_headers()
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Decide whether this answer is the connection's last."""
        if self.peer.stage is not Stage.GOOD and self.gate.is_full():
            raise RefusedError(BUSY, "there are too many connections; try again", "full")
        super().on_headers_complete()
        self.gate.move(self.peer, Stage.SENDING)
        self.end_head()
        self.first_until = math.inf
        if self.draining() or time.monotonic() > self.expires:
            self.cycle.keep_alive = False

    def on_body(self, body: bytes) -> None:
        """Count a chunk of the body."""
        self.overhead -= len(body)
        self.body_bytes += len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Reset the counts for the next request."""
        super().on_message_complete()
        self.in_message = False
        self.overhead = 0

    def on_response_complete(self) -> None:
        """Wait for the next request, unless the rest of this one could continue without end."""
        super().on_response_complete()
        good = cast("dict[str, Any]", self.scope).get(GOOD)
        self.gate.move(self.peer, Stage.GOOD if good else Stage.SERVED)
        if self.in_message and not self.transport.is_closing():
            self.linger()

    def end_head(self) -> None:
        """Stop timing the head."""
        self.in_head = False
        if self.head_timer is not None:
            self.head_timer.cancel()
            self.head_timer = None

    def refuse(self, error: RefusedError) -> None:
        """Answer instead of the application, and read no more from this client.

        If an answer to an earlier request is due, that answer is the last one.
        """
        cycle, earlier = self.cycle, not self.in_message
        self.gate.refused(error.cause)
        self.end_head()
        if cycle is not None and not cycle.response_complete:
            cycle.keep_alive = False
            if earlier:
                self.is_refused = True
                return
            cycle.disconnected = True
            cycle.message_event.set()
            if cycle.response_started:
                self.end()
                return
        self.transport.write(refusal(error))
        self.linger()

    def linger(self) -> None:
        """Close after a moment: a client that is still sending would miss an answer otherwise."""
        self.is_refused = True
        self._unset_keepalive_if_required()
        self.timeout_keep_alive_task = self.loop.call_later(LINGER_SECONDS, self.end)

    def is_idle(self) -> bool:
        """Whether no client waits for an answer on this connection."""
        cycle = self.cycle
        return self.in_message or cycle is None or bool(cycle.response_complete)

    def give_way(self) -> None:
        """Close at once, to make room for another connection."""
        if self.cycle is not None and not self.cycle.response_complete:
            self.cycle.disconnected = True
        self.transport.abort()

    def end_late(self) -> None:
        """End a connection whose request did not come in time."""
        self.gate.refused("slow")
        self.end()

    def timeout_keep_alive_handler(self) -> None:
        """Close a connection without a request."""
        self.end()

    def end(self) -> None:
        """Close; drop unsent data after a while if the client does not read it."""
        if not self.transport.is_closing():
            self.transport.close()
        if self.end_timer is None:
            self.end_timer = self.loop.call_later(END_SECONDS, self.transport.abort)


def connection(
    draining: Callable[[], bool], age: float, gate: Gate, names: Iterable[str] = ()
) -> type[Connection]:
    """The protocol class of one server whose connections end after about `age` seconds.

    Only clients with one of the `names` in their certificate are let in, where there are any.
    """
    values = {"draining": staticmethod(draining), "age": age, "gate": gate}
    return type("ConnectionOfServer", (Connection,), {**values, "names": frozenset(names)})


def names_of(certificate: Mapping[str, Any]) -> frozenset[str]:
    """The common names and subject alternative names (DNS, URI, e-mail) of a client certificate."""
    subject = (pair for part in certificate.get("subject", ()) for pair in part)
    common = (value for key, value in subject if key == "commonName")
    other = (
        value
        for key, value in certificate.get("subjectAltName", ())
        if key in ("DNS", "URI", "email")
    )
    return frozenset((*common, *other))


def too_many_headers() -> RefusedError:
    """The refusal of a request with too many or too long headers."""
    message = f"the headers are more than {HEAD_FIELDS} or longer than {HEAD_BYTES} bytes"
    return RefusedError(HEAD, message, "too-long")


def refusal(error: RefusedError) -> bytes:
    """A complete answer that ends its connection."""
    body = orjson.dumps({"error": str(error)})
    head = b"content-type: application/json\r\ncontent-length: %d\r\n" % len(body)
    again = b"retry-after: 1\r\n" if error.status is BUSY else b""
    return STATUS_LINE[error.status] + head + again + b"connection: close\r\n\r\n" + body
