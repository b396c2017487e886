"""What stands between API server and podgate, and can be slow, break calls off, or be gone."""

from __future__ import annotations

import contextlib
import http.client
import http.server
import ssl
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from tests.e2e.recorder import Server
from tests.e2e.served import Certificates


@dataclass(slots=True)
class Front:
    """Serves HTTPS on loopback. `delay` are seconds before an answer goes out, `breaks` ends calls
    without one; `answered` counts the answers that podgate gave, `calls` all that came.
    """

    certificates: Certificates
    target: str
    delay: float = 0.0
    breaks: bool = False
    calls: int = 0
    answered: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)
    server: Server = field(init=False)
    url: str = field(init=False)

    def __post_init__(self) -> None:
        """Listen; nobody is served yet."""
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(self.certificates.certificate, self.certificates.key)
        self.server = Server(("127.0.0.1", 0), handler_of(self))
        self.server.socket = context.wrap_socket(
            self.server.socket, server_side=True, do_handshake_on_connect=False
        )
        self.url = f"https://127.0.0.1:{self.server.server_port}"

    @contextlib.contextmanager
    def running(self) -> Iterator[Front]:
        """Serve until the block ends."""
        thread = threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self.breaks = True  # connections that are still open lead nowhere either
            self.server.shutdown()
            self.server.server_close()
            thread.join()

    def passed_on(self, path: str, body: bytes) -> tuple[int, bytes]:
        """What podgate answers."""
        target = urlsplit(self.target)
        assert target.hostname
        trust = ssl.create_default_context(cafile=self.certificates.ca)
        upstream = http.client.HTTPSConnection(
            target.hostname, target.port, context=trust, timeout=30
        )
        with contextlib.closing(upstream):
            upstream.request("POST", path, body, {"Content-Type": "application/json"})
            response = upstream.getresponse()
            return response.status, response.read()

    def count(self, name: str) -> None:
        """One more."""
        with self.lock:
            setattr(self, name, getattr(self, name) + 1)


def handler_of(front: Front) -> type[http.server.BaseHTTPRequestHandler]:
    """The handler class of one front."""

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            front.count("calls")
            if front.breaks:
                self.close_connection = True
                return
            status, answer = front.passed_on(self.path, body)
            front.count("answered")
            time.sleep(front.delay)
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    return Handler
