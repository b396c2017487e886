"""An HTTP port for probes and metrics, in threads, for a process that serves nothing else."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import orjson

Answer = tuple[int, str, bytes]
JSON = "application/json"
TEXT = "text/plain; version=0.0.4; charset=utf-8"
CALL_TIMEOUT = 10.0  # seconds that a client may take
MOST = 32  # clients at a time, each with its own thread; the oldest is closed first


def start(listener: socket.socket, pages: Mapping[str, Callable[[], Answer]]) -> Callable[[], None]:
    """Answer GET for these paths on a bound socket; return the function that stops it.

    It has its own threads, so that it still answers if the event loop hangs.
    """

    callers: dict[socket.socket, None] = {}
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        """One client."""

        protocol_version = "HTTP/1.1"
        timeout = CALL_TIMEOUT
        server_version, sys_version = "podgate", ""

        def do_GET(self) -> None:
            """The page of a path, whatever its query."""
            page = pages.get(self.path.partition("?")[0])
            status, content, body = (
                page() if page else json_answer(404, {"error": "there is nothing here"})
            )
            self.send_response(status)
            self.send_header("Content-Type", content)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name it has
            """Log nothing: probes come every few seconds."""

    class Server(ThreadingHTTPServer):
        """A server on a bound socket."""

        daemon_threads = True

        def process_request(self, request: Any, client_address: Any) -> None:
            """Start a thread for the client; close the oldest client if there are too many."""
            with lock:
                while len(callers) >= MOST:
                    oldest = next(iter(callers))
                    del callers[oldest]
                    with contextlib.suppress(OSError):
                        oldest.shutdown(socket.SHUT_RDWR)
                callers[request] = None
            super().process_request(request, client_address)

        def shutdown_request(self, request: Any) -> None:
            """Forget a client."""
            with lock:
                callers.pop(request, None)
            super().shutdown_request(request)

        def handle_error(self, request: Any, client_address: Any) -> None:
            """Ignore clients that disconnect."""

    server = Server(listener.getsockname()[:2], Handler, bind_and_activate=False)
    server.socket.close()
    server.socket = listener
    thread = threading.Thread(target=server.serve_forever, name="side-port", daemon=True)
    thread.start()

    def end() -> None:
        server.shutdown()
        server.server_close()
        thread.join()

    return end


def json_answer(status: int, content: Any) -> Answer:
    """An answer in JSON."""
    return status, JSON, orjson.dumps(content)


def probe(
    reasons: Callable[[], list[str]], well: str, more: Callable[[], dict[str, Any]] = dict
) -> Callable[[], Answer]:
    """Answer a probe: `well` and 200 without reasons, else 503 with the reasons; `more` is added."""

    def page() -> Answer:
        found = reasons()
        status = f"not {well}" if found else well
        return json_answer(503 if found else 200, {"status": status, "reasons": found, **more()})

    return page


def metrics(text: Callable[[], bytes]) -> Callable[[], Answer]:
    """The page of metrics."""
    return lambda: (200, TEXT, text())
