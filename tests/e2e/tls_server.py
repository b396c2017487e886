"""HTTPS on loopback for what tests put between API server and webhook, or beside it."""

from __future__ import annotations

import contextlib
import http.client
import http.server
import ssl
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

Answer = Callable[[str, bytes], tuple[int, bytes] | None]
"""Path and body of a call to status and body of its answer; None breaks the connection off."""


class TlsServer(http.server.ThreadingHTTPServer):
    """A thread per connection; API servers keep theirs open, so threads are not waited for."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, certificate: Path, key: Path, answer: Answer) -> None:
        """Listen; nobody is served yet."""
        super().__init__(("127.0.0.1", 0), handler_of(answer))
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(certificate, key)
        # The handshake belongs to the connection's own thread, not to the one that accepts.
        self.socket = context.wrap_socket(
            self.socket, server_side=True, do_handshake_on_connect=False
        )
        self.url = f"https://127.0.0.1:{self.server_port}"

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Serve until the block ends."""
        thread = threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield
        finally:
            self.shutdown()
            self.server_close()
            thread.join()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of connections that break: the API server closes them as it likes."""


def handler_of(answer: Answer) -> type[http.server.BaseHTTPRequestHandler]:
    """The handler class of one server."""

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            answered = answer(self.path, body)
            if answered is None:
                self.close_connection = True
                return
            status, told = answered
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(told)))
            self.end_headers()
            self.wfile.write(told)

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    return Handler


def passed_on(target: str, trust: ssl.SSLContext, path: str, body: bytes) -> tuple[int, bytes]:
    """What the webhook at `target` answers to a call."""
    upstream = http.client.HTTPSConnection(urlsplit(target).netloc, context=trust, timeout=30)
    with contextlib.closing(upstream):
        upstream.request("POST", path, body, {"Content-Type": "application/json"})
        response = upstream.getresponse()
        return response.status, response.read()
