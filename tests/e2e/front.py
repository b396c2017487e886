"""What stands between API server and podgate, and can be slow, break calls off, or be gone."""

from __future__ import annotations

import contextlib
import ssl
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from tests.e2e.served import Certificates
from tests.e2e.tls_server import TlsServer, passed_on


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
    server: TlsServer = field(init=False)

    def __post_init__(self) -> None:
        """Listen; nobody is served yet."""
        held = self.certificates
        self.server = TlsServer(held.certificate, held.key, self.answer)

    @property
    def url(self) -> str:
        """Where it listens."""
        return self.server.url

    @contextlib.contextmanager
    def running(self) -> Iterator[Front]:
        """Serve until the block ends."""
        with self.server.running():
            try:
                yield self
            finally:
                self.breaks = True  # connections that are still open lead nowhere either

    def answer(self, path: str, body: bytes) -> tuple[int, bytes] | None:
        """What podgate answers, if calls are not broken off."""
        self.count("calls")
        if self.breaks:
            return None
        trust = ssl.create_default_context(cafile=self.certificates.ca)
        answer = passed_on(self.target, trust, path, body)
        self.count("answered")
        time.sleep(self.delay)
        return answer

    def count(self, name: str) -> None:
        """One more."""
        with self.lock:
            setattr(self, name, getattr(self, name) + 1)
