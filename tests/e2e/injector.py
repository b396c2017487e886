"""A sidecar injector: a small mutating webhook that adds to pods what it is told to add."""

from __future__ import annotations

import base64
import contextlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.e2e.objects import Json
from tests.e2e.served import Certificates
from tests.e2e.tls_server import TlsServer

Patch = list[Json]


@dataclass(slots=True)
class Injector:
    """Serves HTTPS on loopback and answers every review with the patch that `inject` makes of it."""

    certificates: Certificates
    inject: Callable[[Json], Patch] = lambda _: []
    resources: Mapping[str, Sequence[str]] = field(default_factory=lambda: {"": ["pods"]})
    """What it is asked about, by group."""
    asked: int = 0
    server: TlsServer = field(init=False)

    def __post_init__(self) -> None:
        """Listen; nobody is served yet."""
        held = self.certificates
        self.server = TlsServer(held.certificate, held.key, self.answer)

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"{self.server.url}/inject"

    @contextlib.contextmanager
    def running(self) -> Iterator[Injector]:
        """Serve until the block ends."""
        with self.server.running():
            yield self

    def answer(self, path: str, body: bytes) -> tuple[int, bytes]:
        """The review with the patch as its answer."""
        review = json.loads(body)
        self.asked += 1
        patch = json.dumps(self.inject(review["request"]["object"])).encode()
        response: dict[str, Any] = {"uid": review["request"]["uid"], "allowed": True}
        response |= {"patchType": "JSONPatch", "patch": base64.b64encode(patch).decode()}
        return 200, json.dumps({**review, "request": None, "response": response}).encode()

    def configuration(self, name: str, namespace: str) -> Json:
        """Its registration for one namespace; webhooks are called in order of names."""
        ca = base64.b64encode(self.certificates.ca.read_bytes()).decode()
        selector = {"matchLabels": {"kubernetes.io/metadata.name": namespace}}
        rules = [
            {
                "apiGroups": [group],
                "apiVersions": ["v1"],
                "operations": ["CREATE"],
                "resources": list(resources),
            }
            for group, resources in self.resources.items()
        ]
        webhook = {
            "name": "inject.example.com",
            "admissionReviewVersions": ["v1"],
            "clientConfig": {"url": self.url, "caBundle": ca},
            "rules": rules,
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
