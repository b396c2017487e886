"""A steady stream of good reviews, as an API server sends them."""

from __future__ import annotations

import http.client
import threading
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import orjson

from tests.drill_server.stand import Stand

TIMEOUT = 3.0  # as the registered webhooks have it
PATH = "/validate?timeout=3s"
SENDERS = 4
PAUSE = 0.02
HEADERS = {"content-type": "application/json"}


def review(uid: str, *, privileged: bool, **changes: Any) -> bytes:
    """A review of a Pod that the policy of the drill refuses, or lets in."""
    container = {"name": "a", "image": "registry.example.com/a:1"}
    container["securityContext"] = {"privileged": privileged}  # type: ignore[assignment]
    request = {
        "uid": uid,
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "namespace": "team-a",
        "operation": "CREATE",
        "userInfo": {"username": "alice"},
        "object": {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "a", "namespace": "team-a"},
            "spec": {"containers": [container]},
        },
    }
    envelope = {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1"}
    return orjson.dumps({**envelope, "request": {**request, **changes}})


@dataclass(slots=True)
class Sender:
    """One caller that keeps its connection, and opens a new one now and then."""

    stream: Stream
    number: int
    connection: http.client.HTTPSConnection | None = None

    def run(self) -> None:
        """Ask until the end."""
        count = 0
        while not self.stream.ended.wait(PAUSE):
            if count % 25 == 0:
                self.forget()
            self.ask(count)
            count += 1
        self.forget()

    def forget(self) -> None:
        """Close the connection."""
        if self.connection is not None:
            self.connection.close()
        self.connection = None

    def ask(self, count: int) -> None:
        """One review; what a killed process had in its hands is asked again, and counted."""
        begun = time.monotonic()
        try:
            self.attempt(count)
        except (OSError, http.client.HTTPException) as error:
            self.forget()
            self.stream.cut.append(f"{type(error).__name__}: {error}")
            begun = time.monotonic()
            try:
                self.attempt(count)
            except (OSError, http.client.HTTPException) as again:
                self.forget()
                self.stream.failed.append(f"{type(again).__name__}: {again}")
        self.stream.slowest = max(self.stream.slowest, time.monotonic() - begun)

    def attempt(self, count: int) -> None:
        """Ask once and look at the answer; 503 is asked again as the API server does it."""
        uid, privileged = f"good-{self.number}-{count}", count % 2 == 0
        for _ in range(2):
            if self.connection is None:
                context = self.stream.context
                self.connection = http.client.HTTPSConnection(
                    "localhost", self.stream.stand.port, timeout=TIMEOUT, context=context
                )
            self.connection.request("POST", PATH, review(uid, privileged=privileged), HEADERS)
            answer = self.connection.getresponse()
            body, status = orjson.loads(answer.read()), answer.status
            if answer.getheader("connection") == "close":
                self.forget()
            if status != 503:
                break
            self.stream.again += 1
            time.sleep(float(answer.getheader("retry-after") or 0))
        response = body.get("response") or {}
        right = (status, response.get("uid"), response.get("allowed")) == (200, uid, not privileged)
        if right:
            self.stream.counts["refused" if privileged else "allowed"] += 1
        else:
            self.stream.failed.append(f"{status} {str(body)[:200]}")


@dataclass(slots=True)
class Stream:
    """What came of all good reviews so far."""

    stand: Stand
    counts: Counter[str] = field(default_factory=Counter)
    failed: list[str] = field(default_factory=list)
    cut: list[str] = field(default_factory=list)
    again: int = 0
    slowest: float = 0.0
    ended: threading.Event = field(default_factory=threading.Event)
    threads: list[threading.Thread] = field(default_factory=list)
    context: Any = None

    def begin(self) -> None:
        """Begin to ask."""
        self.context = self.stand.context()
        senders: Iterable[Sender] = [Sender(self, number) for number in range(SENDERS)]
        self.threads = [threading.Thread(target=each.run, daemon=True) for each in senders]
        for each in self.threads:
            each.start()

    def end(self) -> None:
        """Ask no more."""
        self.ended.set()
        for each in self.threads:
            each.join(3 * TIMEOUT)
