"""Which connections a worker accepts, and which it closes when there are too many."""

from __future__ import annotations

import asyncio
import contextlib
import enum
import errno
import logging
import socket
import ssl
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

log = logging.getLogger("podgate.connections")

HANDSHAKE_SECONDS = 10.0
RECEIVED_BYTES = 64 * 1024  # that the system keeps of one connection, twice as it counts
RESERVE = 64  # connections beyond the limit, to answer with 503
AT_ONCE = 64
PAUSE = 0.5
NO_DESCRIPTOR = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


class Stage(enum.Enum):
    """The progress of a connection; the limit of an address counts the first two stages."""

    SILENT = "it has sent no whole head of a request"
    SENDING = "its first request is under way"
    SERVED = "it had an answer, but none to a good review"
    GOOD = "it carried a good review, or showed a client certificate"


class Held(Protocol):
    """A connection as the gate sees it."""

    def is_idle(self) -> bool:
        """Whether no request is being answered."""

    def give_way(self) -> None:
        """Close at once, to make room for another connection."""


@dataclass(eq=False, slots=True)
class Peer:
    """One connection, from the moment that it was accepted."""

    address: str
    stage: Stage = Stage.SILENT
    connection: Held | None = None
    opening: asyncio.Task[None] | None = None

    def gives_way(self) -> bool:
        """Whether the connection can be closed without losing an answer."""
        return self.connection is None or self.connection.is_idle()

    def end(self) -> None:
        """Close it at once."""
        if self.connection is not None:
            self.connection.give_way()
        elif self.opening is not None:
            self.opening.cancel()


Peers = dict[Peer, None]


@dataclass(slots=True)
class Gate:
    """The connections of one server: at most `most`, and `most_of_address` new ones of an address.

    A connection is new until its first request is complete. When there are too many, the gate
    closes the oldest connection without a request, then the oldest one that had an answer but never
    carried a successful review. A connection that carried one is never closed: instead `is_full`
    makes the server answer others with 503. `refused` gets the cause of each closed connection;
    `opened` gets 1 when a connection begins and -1 when it ends.
    """

    most: int
    most_of_address: int
    refused: Callable[[str], None] = lambda cause: None
    opened: Callable[[int], None] = lambda change: None
    stages: dict[Stage, Peers] = field(default_factory=lambda: {each: {} for each in Stage})
    addresses: dict[str, Peers] = field(default_factory=dict)

    def __len__(self) -> int:
        """How many connections are open."""
        return sum(map(len, self.stages.values()))

    def is_full(self) -> bool:
        """Whether requests on connections without a successful review must be answered with 503."""
        return len(self) > self.most

    def admit(self, address: str) -> Peer | None:
        """Admit a new connection, closing another one if necessary; return None if there is no room."""
        if len(self.addresses.get(address, ())) >= self.most_of_address and not self.make_room(
            "address", address
        ):
            self.refused("address")
            return None
        full = len(self) >= self.most and not self.make_room("full")
        if full and len(self) >= self.most + RESERVE:
            self.refused("full")
            return None
        peer = Peer(address)
        self.stages[Stage.SILENT][peer] = None
        self.addresses.setdefault(address, {})[peer] = None
        self.opened(1)
        return peer

    def make_room(self, cause: str, address: str = "") -> bool:
        """Close one connection (of an address) that never carried a successful review; return
        whether there was one.
        """
        for stage in (Stage.SILENT, Stage.SERVED, Stage.SENDING):
            for peer in self.addresses.get(address, {}) if address else self.stages[stage]:
                if peer.stage is stage and peer.gives_way():
                    self.leave(peer)
                    self.refused(cause)
                    peer.end()
                    return True
        return False

    def move(self, peer: Peer, stage: Stage) -> None:
        """Note the progress of a connection; a successful one stays successful."""
        if peer not in self.stages[peer.stage] or peer.stage in (stage, Stage.GOOD):
            return
        del self.stages[peer.stage][peer]
        peer.stage = stage
        self.stages[stage][peer] = None
        if stage in (Stage.SERVED, Stage.GOOD):
            self.forget_address(peer)

    def leave(self, peer: Peer) -> None:
        """Forget a connection that ended or is about to end."""
        if self.stages[peer.stage].pop(peer, self) is None:
            self.forget_address(peer)
            self.opened(-1)

    def forget_address(self, peer: Peer) -> None:
        """No longer count a connection for its address."""
        peers = self.addresses.get(peer.address, {})
        peers.pop(peer, None)
        if not peers:
            self.addresses.pop(peer.address, None)


@dataclass(slots=True)
class Acceptor:
    """Accepts connections from a listening socket; `made` creates the protocol of each.

    The limits apply before the first byte of TLS is read; a handshake can be closed like any
    connection.
    """

    listener: socket.socket
    gate: Gate
    made: Callable[[Peer], asyncio.Protocol]
    context: ssl.SSLContext | None
    loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.get_running_loop)
    again: asyncio.TimerHandle | None = None
    tasks: set[asyncio.Task[None]] = field(default_factory=set)
    is_closed: bool = False

    def start(self) -> None:
        """Begin to accept."""
        self.again = None
        if not self.is_closed:
            self.listener.setblocking(False)
            self.loop.add_reader(self.listener.fileno(), self.accept)

    def close(self) -> None:
        """Stop accepting."""
        if not self.is_closed and self.again is None:
            self.loop.remove_reader(self.listener.fileno())
        if self.again is not None:
            self.again.cancel()
        self.is_closed = True

    async def wait_closed(self) -> None:
        """Close the handshakes that are still open."""
        for each in list(self.tasks):
            each.cancel()

    def accept(self) -> None:
        """Accept waiting connections, a few at a time so that answers get their turn."""
        for _ in range(AT_ONCE):
            try:
                made, address = self.listener.accept()
            except (BlockingIOError, InterruptedError):
                return
            except OSError as error:
                if error.errno in NO_DESCRIPTOR and not self.gate.make_room("descriptors"):
                    self.pause(error)
                return
            peer = self.gate.admit(str(address[0]))
            if peer is None:
                made.close()
                continue
            made.setblocking(False)
            peer.opening = self.loop.create_task(self.open(made, peer))
            self.tasks.add(peer.opening)
            peer.opening.add_done_callback(self.tasks.discard)

    def pause(self, error: OSError) -> None:
        """Pause, then try again: the listener stays readable and would take all CPU time until then."""
        log.warning("cannot accept connections: %s", error.strerror)
        self.loop.remove_reader(self.listener.fileno())
        self.again = self.loop.call_later(PAUSE, self.start)

    async def open(self, made: socket.socket, peer: Peer) -> None:
        """Shake hands and begin to read."""
        options: dict[str, Any] = {}
        if self.context is not None:
            options = {"ssl": self.context, "ssl_handshake_timeout": HANDSHAKE_SECONDS}
        try:
            await self.loop.connect_accepted_socket(lambda: self.made(peer), made, **options)
        except (OSError, asyncio.CancelledError) as error:
            if peer in self.gate.stages[peer.stage]:
                self.gate.leave(peer)
                if not isinstance(error, asyncio.CancelledError):
                    self.gate.refused("handshake")
            with contextlib.suppress(OSError):
                made.close()
