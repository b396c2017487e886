"""A reverse proxy between API server and webhook that keeps every review with its answer."""

from __future__ import annotations

import contextlib
import json
import ssl
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.e2e.tls_server import TlsServer, passed_on


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
        self.target = target
        self.trust = ssl.create_default_context(cafile=ca)
        self.lock = threading.Lock()
        self.server = TlsServer(certificate, key, self.answer)
        self.url = self.server.url

    @contextlib.contextmanager
    def running(self) -> Iterator[Recorder]:
        """Serve until the block ends."""
        with self.server.running():
            yield self

    def answer(self, path: str, body: bytes) -> tuple[int, bytes]:
        """What the webhook answers, which is kept with the review."""
        status, answer = passed_on(self.target, self.trust, path, body)
        if status == 200:
            self.keep(Recording(urlsplit(path).path.strip("/"), body.decode(), answer.decode()))
        return status, answer

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
