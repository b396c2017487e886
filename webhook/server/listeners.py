"""The listening sockets, and the uvicorn server that accepts connections from them."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

import uvicorn

from webhook.server.connections import Connection
from webhook.server.gate import RECEIVED_BYTES, Acceptor, Gate, Peer
from webhook.service.settings import Settings, address


@dataclass(frozen=True, slots=True)
class Listeners:
    """The bound sockets, shared by all workers, so that a port in use fails before anything starts."""

    reviews: socket.socket
    metrics: socket.socket | None

    @classmethod
    def of(cls, settings: Settings) -> Listeners:
        """Bind the sockets; OSError names the address that failed."""
        apart = settings.metrics_listen not in ("", "same")
        reviews = bind(settings.listen)
        try:
            return cls(reviews, bind(settings.metrics_listen) if apart else None)
        except OSError:
            reviews.close()
            raise

    def close(self) -> None:
        """Close the sockets."""
        self.reviews.close()
        if self.metrics is not None:
            self.metrics.close()


def bind(text: str) -> socket.socket:
    """A listening socket at an address."""
    host, port = address(text)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        made = socket.create_server((host, port), family=family, backlog=2048)
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno and error.errno > 0 else str(error)
        raise OSError(f"{text}: {reason}") from error
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVED_BYTES)
    return made


def show_address(listener: socket.socket) -> str:
    """The bound address as text."""
    host, port = listener.getsockname()[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


class Server(uvicorn.Server):
    """A uvicorn server that accepts connections through a gate.

    The process handles signals, since it runs two of these servers.
    """

    gate: Gate

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to accept."""
        config, loop = self.config, asyncio.get_running_loop()

        def connect(peer: Peer) -> asyncio.Protocol:
            protocol = cast("type[Connection]", config.http_protocol_class)
            created = protocol(config, self.server_state, {}, loop)
            created.peer = peer
            return created

        acceptors = [Acceptor(each, self.gate, connect, config.ssl) for each in sockets or ()]
        for acceptor in acceptors:
            acceptor.start()
        self.servers = cast("list[Any]", acceptors)
        self.started = True

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to the process."""
        yield
