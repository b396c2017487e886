"""Reads single objects that a decision needs, such as the owner of an object that a controller created.

A cached object may allow a request but never rejects one: before a rejection the caller reads it again
(`fresh`). Everything here runs on one event loop.
"""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from webhook.cluster.client import ApiError, object_in, status_in
from webhook.cluster.credentials import NO_ACCESS
from webhook.cluster.reader_connection import Sender
from webhook.evaluation.outcome import NeededObject
from webhook.evaluation.request import ObjectRead

log = logging.getLogger("podgate.lookups")

FRESH = 60.0  # seconds that a cached object may allow requests without being read again
TURNS = 8  # concurrent lookups
LOOKUP_TIMEOUT = 3.0  # seconds of one lookup in total
KEPT_BYTES = 8 * 1024 * 1024
PATH = re.compile(r"(?:/[A-Za-z0-9][A-Za-z0-9._:-]*)+")

Key = tuple[str, str, int]
"""Path and UID of an object, and the generation of the catalog that needed it."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The outcome of a lookup: `found`, `not-found`, `forbidden`, `timeout` or `failed`, and why."""

    outcome: str
    read: ObjectRead | None = None
    why: str = ""
    size: int = 0


@dataclass(slots=True)
class Lookups:
    """Reads objects one by one; `counted` gets the outcome of each lookup."""

    server: Sender | None
    counted: Callable[[str], None] = lambda _: None
    clock: Callable[[], float] = time.monotonic
    kept: dict[Key, tuple[float, Answer]] = field(default_factory=dict)
    size: int = 0
    running: dict[NeededObject, asyncio.Task[Answer]] = field(default_factory=dict)
    turns: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(TURNS))

    def known(self, needed: NeededObject, generation: int) -> ObjectRead | None:
        """The object if it was read a moment ago for the same catalog, else None."""
        held = self.kept.get((*needed, generation))
        if held is None or self.clock() - held[0] > FRESH:
            return None
        return held[1].read

    async def read(self, needed: NeededObject, generation: int, seconds: float) -> ObjectRead | str:
        """Look an object up within `seconds`; return a text with the reason if there is no answer."""
        if self.server is None:
            return NO_ACCESS
        if PATH.fullmatch(needed.path) is None:
            return ObjectRead()  # no object can have this name
        task = self.running.get(needed)
        if task is None:
            task = asyncio.get_running_loop().create_task(self.look_up(self.server, needed))
            self.running[needed] = task
            task.add_done_callback(lambda _: self.running.pop(needed, None))
        try:
            async with asyncio.timeout(seconds):
                answer = await asyncio.shield(task)
        except TimeoutError:
            return f"the API server did not answer within {max(seconds, 0):.1f} s"
        if answer.read is None:
            return answer.why
        self.keep((*needed, generation), answer)
        return answer.read

    async def look_up(self, server: Sender, needed: NeededObject) -> Answer:
        """Read once, within LOOKUP_TIMEOUT."""
        try:
            async with asyncio.timeout(LOOKUP_TIMEOUT), self.turns:
                answer = read_answer(*await server.send("GET", needed.path, timeout=LOOKUP_TIMEOUT))
        except TimeoutError:
            answer = Answer("timeout", why=f"the API server did not answer in {LOOKUP_TIMEOUT:g} s")
        except (ApiError, ValueError) as error:
            answer = Answer("failed", why=str(error))
        self.counted(answer.outcome)
        if answer.outcome not in ("found", "not-found"):
            log.warning("reading %s: %s", needed.path, answer.why)
        return answer

    def keep(self, key: Key, answer: Answer) -> None:
        """Cache an object that was found; the oldest are dropped."""
        old = self.kept.pop(key, None)
        self.size -= old[1].size if old is not None else 0
        if answer.outcome != "found" or answer.size > KEPT_BYTES:
            return
        self.kept[key] = (self.clock(), answer)
        self.size += answer.size
        while self.size > KEPT_BYTES:
            _, dropped = self.kept.pop(next(iter(self.kept)))
            self.size -= dropped.size


def read_answer(status: int, body: bytes) -> Answer:
    """Parse an answer of the API server about one object."""
    if status == 200:
        found = object_in(body, "GET object")
        if isinstance(found.get("metadata"), dict):
            return Answer("found", ObjectRead(found), size=len(body))
        return Answer("failed", why="the API server answered with something that is no object")
    if status == 404 and status_in(body):
        return Answer("not-found", ObjectRead())
    if status == 403:
        return Answer("forbidden", ObjectRead(forbidden=True), "the API server forbids it (403)")
    return Answer("failed", why=f"the API server answered with HTTP {status}")
