"""The labels of namespaces where policies select by them: watched, else asked of the API server.

An unknown namespace is never "no policy" (semantics §6): one look-up of at most a second, then an
error. A namespace that the API server does not know (404) is an error too: objects can only be
written where a namespace is, so its absence means that this is the wrong API server, or that the
namespace has gone in between, and neither says which policies apply.

The process that reads the cluster watches namespaces. A look-up is for one that is newer than what
was watched, and for an installation that may `get` namespaces but not `list` and `watch` them.
"""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from webhook.cluster.client import METADATA, ApiError, object_in, path_of, status_in
from webhook.cluster.credentials import NO_ACCESS
from webhook.cluster.reader_connection import Sender
from webhook.policy.selectors import NAME_LABEL

log = logging.getLogger("podgate.kubernetes")

FRESH = 30.0  # seconds that labels are used without asking again
USABLE = 300.0  # seconds that they are used while asking again does not succeed
LOOKUP_TIMEOUT = 3.0  # seconds of a look-up in all, from waiting for its turn to the last byte
AGAIN = 5.0  # seconds between attempts to renew labels that are still usable
KEPT = 10_000
LOOKUPS = 16  # at a time
RENEWALS = 256
NAMESPACE = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
MAY_NOT = "grant `get` on `namespaces` in a ClusterRole"


@dataclass(slots=True)
class Entry:
    """Labels, when they were asked for, and when they may be asked for again."""

    labels: Mapping[str, str]
    asked: float
    renewable: float


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of a look-up: `found`, `not-found`, `denied`, `timeout` or `failed`, and why."""

    outcome: str
    labels: Mapping[str, str] = field(default_factory=dict)
    why: str = ""


@dataclass(slots=True)
class Namespaces:
    """The labels of namespaces; `counted` is called with the outcome of each look-up.

    `watched` gives labels as a watch has them, None for a namespace that it does not know. At most
    KEPT look-ups are remembered. Belongs to one event loop; `known` alone may be called from other
    threads.
    """

    server: Sender | None
    counted: Callable[[str], None] = lambda _: None
    watched: Callable[[str], Mapping[str, str] | None] | None = None
    clock: Callable[[], float] = time.monotonic
    kept: dict[str, Entry] = field(default_factory=dict)
    running: dict[str, asyncio.Task[Answer]] = field(default_factory=dict)
    turns: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(LOOKUPS))

    def known(self, name: str) -> Mapping[str, str] | None:
        """Labels that need no look-up, at once."""
        labels = self.watched(name) if self.watched is not None else None
        if labels is not None:
            self.kept.pop(name, None)  # the watch knows better
            return {**labels, NAME_LABEL: name}
        entry = self.kept.get(name)
        return entry.labels if entry is not None and self.clock() - entry.asked <= FRESH else None

    async def labels(self, name: str, seconds: float) -> Mapping[str, str] | str:
        """Labels after at most `seconds`, or why they are not known.

        Labels that are old but usable are given at once and renewed behind the back.
        """
        if self.server is None:
            return NO_ACCESS
        if NAMESPACE.fullmatch(name) is None:
            return "no namespace can have this name"
        entry, now = self.kept.get(name), self.clock()
        if entry is not None and now - entry.asked <= USABLE:
            due = now - entry.asked > FRESH and now >= entry.renewable
            if due and name not in self.running and len(self.running) < RENEWALS:
                self.start(self.server, name)
            return entry.labels
        task = self.running.get(name) or self.start(self.server, name)
        try:
            async with asyncio.timeout(seconds):
                answer = await asyncio.shield(task)
        except TimeoutError:
            return f"the API server did not answer within the {seconds:.1f} s that the caller waits"
        return answer.labels if answer.outcome == "found" else answer.why

    def start(self, server: Sender, name: str) -> asyncio.Task[Answer]:
        """A look-up that all who ask meanwhile wait for."""
        task = asyncio.get_running_loop().create_task(self.look_up(server, name))
        self.running[name] = task
        task.add_done_callback(lambda _: self.running.pop(name, None))
        return task

    async def look_up(self, server: Sender, name: str) -> Answer:
        """Ask once, within LOOKUP_TIMEOUT, and remember the answer."""
        asked = self.clock()
        try:
            async with asyncio.timeout(LOOKUP_TIMEOUT), self.turns:
                answer = await ask_for_labels(server, name)
        except TimeoutError:
            answer = Answer("timeout", why=f"the API server did not answer in {LOOKUP_TIMEOUT:g} s")
        except (ApiError, ValueError) as error:
            answer = Answer("failed", why=str(error))
        self.counted(answer.outcome)
        self.remember(name, answer, asked)
        return answer

    def remember(self, name: str, answer: Answer, asked: float) -> None:
        """Keep labels, forget a namespace that has gone; a failure leaves the old ones."""
        old = self.kept.get(name)
        if answer.outcome == "found":
            self.kept.pop(name, None)  # so that the oldest come first
            while len(self.kept) >= KEPT:
                del self.kept[next(iter(self.kept))]
            self.kept[name] = Entry(answer.labels, asked, asked)
            return
        log.warning("looking up namespace %s: %s", name, answer.why)
        if answer.outcome == "not-found":
            self.kept.pop(name, None)
        elif old is not None:
            old.renewable = self.clock() + AGAIN


async def ask_for_labels(server: Sender, name: str) -> Answer:
    """What the API server says of a namespace.

    It may look into its cache, which it can also while etcd stands still or is busy. A namespace that
    is not in there yet is asked for again, from etcd.
    """
    path = path_of("api", "v1", "namespaces", name)
    cached = await server.send(
        "GET", f"{path}?resourceVersion=0", accept=METADATA, timeout=LOOKUP_TIMEOUT
    )
    answer = read_answer(name, *cached)
    if answer.outcome != "not-found":
        return answer
    return read_answer(
        name, *await server.send("GET", path, accept=METADATA, timeout=LOOKUP_TIMEOUT)
    )


def read_answer(name: str, status: int, body: bytes) -> Answer:
    """What an answer of the API server says of a namespace."""
    if status == 200:
        metadata = object_in(body, f"GET namespace {name}").get("metadata")
        labels = (metadata.get("labels") or {}) if isinstance(metadata, dict) else None
        if isinstance(metadata, dict) and metadata.get("name") == name and isinstance(labels, dict):
            texts = {key: value for key, value in labels.items() if isinstance(value, str)}
            return Answer("found", {**texts, NAME_LABEL: name})
        return Answer("failed", why="the API server answered with something that is no namespace")
    if status == 404 and status_in(body):
        return Answer("not-found", why="the API server that is asked has no such namespace")
    if status == 401:
        return Answer("denied", why="the API server does not accept the credentials (401)")
    if status == 403:
        return Answer("denied", why=f"the API server forbids it (403); {MAY_NOT}")
    return Answer("failed", why=f"the API server answered with HTTP {status}")
