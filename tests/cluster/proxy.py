"""A proxy on loopback that passes bytes on, and can stop to do so without closing a connection."""

from __future__ import annotations

import base64
import contextlib
import re
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field


@dataclass
class Tunnel:
    """A connection through the proxy; what comes from the client of a dead one is counted, and lost."""

    client: socket.socket
    server: socket.socket
    is_dead: bool = False
    lost: int = 0

    def pump(self, source: socket.socket, target: socket.socket) -> None:
        """Pass on what one side sends, until it ends."""
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                if not self.is_dead:
                    target.sendall(data)
                elif source is self.client:
                    self.lost += len(data)
            if not self.is_dead:
                target.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        """End it on both sides."""
        for each in (self.client, self.server):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()


@dataclass
class Proxy:
    """Tunnels where its clients ask to (CONNECT), or to `port` if there is one.

    `hosts` are those that clients asked for; `user` is who they said they are, name and password.
    """

    port: int | None = None
    hosts: list[str] = field(default_factory=list)
    tunnels: list[Tunnel] = field(default_factory=list)
    user: bytes = b""
    address: str = ""

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://{self.address}"

    def kill_connections(self) -> None:
        """From now on nothing comes through the connections that are open, and none is closed."""
        for each in self.tunnels:
            each.is_dead = True

    def close_connections(self) -> None:
        """Close those that are open."""
        for each in self.tunnels:
            each.close()

    @contextlib.contextmanager
    def running(self) -> Iterator[Proxy]:
        """Listen until the block ends."""
        with socket.create_server(("127.0.0.1", 0), backlog=128) as listening:
            self.address = f"127.0.0.1:{listening.getsockname()[1]}"
            threading.Thread(target=self.serve, args=(listening,), daemon=True).start()
            try:
                yield self
            finally:
                listening.shutdown(socket.SHUT_RDWR)
                self.close_connections()

    def serve(self, listening: socket.socket) -> None:
        """Accept connections until there is nobody to listen."""
        with contextlib.suppress(OSError):
            while True:
                client, _ = listening.accept()
                threading.Thread(target=self.open, args=(client,), daemon=True).start()

    def open(self, client: socket.socket) -> None:
        """Tunnel for one client; one that cannot be served is closed."""
        try:
            host, port = "127.0.0.1", self.port
            if port is None:
                head = client.recv(65536)
                asked = head.decode().split()[1]
                shown = re.search(rb"(?i)proxy-authorization: basic (\S+)", head)
                self.user = base64.b64decode(shown[1]) if shown else b""
                self.hosts.append(asked)
                host, _, number = asked.rpartition(":")
                port = int(number)
            server = socket.create_connection((host, port))
            if self.port is None:
                client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
        except (OSError, ValueError, IndexError):
            client.close()
            return
        made = Tunnel(client, server)
        self.tunnels.append(made)
        threading.Thread(target=made.pump, args=(server, client), daemon=True).start()
        made.pump(client, server)
