"""A reverse proxy between API server and webhook that keeps every review with its answer."""

from __future__ import annotations

import contextlib
import http.client
import http.server
import json
import ssl
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit


@dataclass(frozen=True, slots=True)
class Recording:
    """One review as it came and the answer as it went; `body` and `answer` are the very texts."""

    stage: str
    body: str
    answer: str

    @property
    def request(self) -> dict[str, Any]:
        """The request inside the review."""
        return dict(json.loads(self.body)["request"])

    @property
    def response(self) -> dict[str, Any]:
        """The response inside the answer."""
        return dict(json.loads(self.answer)["response"])


class Recorder:
    """Serves HTTPS on loopback, passes calls on to `target` and writes them to `file`."""

    def __init__(self, file: Path, certificate: Path, key: Path, ca: Path, target: str) -> None:
        self.file = file
        self.target = urlsplit(target)
        self.trust = ssl.create_default_context(cafile=ca)
        self.lock = threading.Lock()
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(certificate, key)
        self.server = Server(("127.0.0.1", 0), handler_of(self))
        # The handshake belongs to the connection's own thread, not to the one that accepts.
        self.server.socket = context.wrap_socket(
            self.server.socket, server_side=True, do_handshake_on_connect=False
        )
        self.url = f"https://127.0.0.1:{self.server.server_port}"

    @contextlib.contextmanager
    def running(self) -> Iterator[Recorder]:
        """Serve until the block ends."""
        thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield self
        finally:
            self.server.shutdown()
            thread.join()
            self.server.server_close()

    def upstream(self) -> http.client.HTTPSConnection:
        """A new connection to the webhook."""
        assert self.target.hostname
        return http.client.HTTPSConnection(
            self.target.hostname, self.target.port, context=self.trust, timeout=30
        )

    def keep(self, recording: Recording) -> None:
        """Append one line."""
        line = json.dumps([recording.stage, recording.body, recording.answer])
        with self.lock, self.file.open("a", encoding="utf-8") as file:
            file.write(f"{line}\n")

    def recordings(self) -> list[Recording]:
        """Everything kept so far, in order."""
        with self.lock:
            lines = self.file.read_text("utf-8").splitlines() if self.file.exists() else []
        return [Recording(*json.loads(line)) for line in lines]


class Server(http.server.ThreadingHTTPServer):
    """A thread per connection; API servers keep theirs open, so threads are not waited for."""

    daemon_threads = True
    block_on_close = False

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of connections that break: the API server closes them as it likes."""


def handler_of(recorder: Recorder) -> type[http.server.BaseHTTPRequestHandler]:
    """The handler class of one recorder."""

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            with contextlib.closing(recorder.upstream()) as upstream:
                headers = {"Content-Type": self.headers["Content-Type"]}
                upstream.request("POST", self.path, body, headers)
                response = upstream.getresponse()
                answer = response.read()
            if response.status == 200:
                stage = urlsplit(self.path).path.strip("/")
                recorder.keep(Recording(stage, body.decode(), answer.decode()))
            self.send_response(response.status)
            self.send_header("Content-Type", response.headers["Content-Type"])
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    return Handler
