"""A sidecar injector: a small mutating webhook that adds to pods what it is told to add."""

from __future__ import annotations

import base64
import contextlib
import http.server
import json
import ssl
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.e2e.objects import Json
from tests.e2e.recorder import Server
from tests.e2e.served import Certificates

Patch = list[Json]


@dataclass(slots=True)
class Injector:
    """Serves HTTPS on loopback and answers every review with the patch that `inject` makes of it."""

    certificates: Certificates
    inject: Callable[[Json], Patch] = lambda _: []
    asked: int = 0
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
        self.url = f"https://127.0.0.1:{self.server.server_port}/inject"

    @contextlib.contextmanager
    def running(self) -> Iterator[Injector]:
        """Serve until the block ends."""
        thread = threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self.server.shutdown()
            self.server.server_close()
            thread.join()

    def configuration(self, name: str, namespace: str) -> Json:
        """Its registration for the Pods of one namespace; webhooks are called in order of names."""
        ca = base64.b64encode(self.certificates.ca.read_bytes()).decode()
        selector = {"matchLabels": {"kubernetes.io/metadata.name": namespace}}
        rule = {
            "apiGroups": [""],
            "apiVersions": ["v1"],
            "operations": ["CREATE"],
            "resources": ["pods"],
        }
        webhook = {
            "name": "inject.example.com",
            "admissionReviewVersions": ["v1"],
            "clientConfig": {"url": self.url, "caBundle": ca},
            "rules": [rule],
            "namespaceSelector": selector,
            "sideEffects": "None",
            "failurePolicy": "Fail",
            "reinvocationPolicy": "Never",
        }
        return {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "MutatingWebhookConfiguration",
            "metadata": {"name": name},
            "webhooks": [webhook],
        }


def handler_of(injector: Injector) -> type[http.server.BaseHTTPRequestHandler]:
    """The handler class of one injector."""

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            injector.asked += 1
            patch = json.dumps(injector.inject(review["request"]["object"])).encode()
            response: dict[str, Any] = {"uid": review["request"]["uid"], "allowed": True}
            response |= {"patchType": "JSONPatch", "patch": base64.b64encode(patch).decode()}
            answer = json.dumps({**review, "request": None, "response": response}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    return Handler
