"""The data of one call for a review, and what all calls of a server share: state and limits."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import NamedTuple, Protocol

from webhook.admission import timeouts
from webhook.admission.judge import (
    Judge,
    NeedsFacts,
    NeedsNamespace,
    NeedsObjects,
    Ready,
)
from webhook.evaluation.outcome import Decision, NeededObject
from webhook.evaluation.request import ObjectRead, Overdue, Request, Stage

Answered = tuple[int, bytes]
"""HTTP status and body."""
Needs = NeedsNamespace | NeedsFacts | NeedsObjects
LOOKUP_SECONDS = 0.7
"""Seconds that one review may spend on reading a namespace, claims and an owner."""


@dataclass(slots=True)
class State:
    """The state that readiness checks and reviews read; one assignment replaces the judge.

    `leaf` is the fingerprint of the served certificate; `leaf_ends` is its expiry in Unix time.
    """

    judge: Judge | None = None
    generation: int = 0
    trouble: str = "the first catalog is not loaded yet"
    draining: bool = False
    leaf: str = ""
    leaf_ends: float = math.inf

    def days_left(self) -> float:
        """Days until the served certificate expires; infinite without a certificate."""
        return (self.leaf_ends - time.time()) / 86_400

    def reasons(self) -> list[str]:
        """Why this process is not ready for new traffic; empty when it is ready."""
        reasons = ["draining: this process is about to end"] if self.draining else []
        if self.days_left() <= 0:
            reasons.append(f"its certificate ended {-self.days_left():.1f} days ago")
        return reasons + ([self.trouble] if self.judge is None else [])


class Phases(NamedTuple):
    """Seconds that one review spent in each phase; 0 for a phase that it did not reach.

    `wait` is the time to read the body and to get a turn. `labels` is the time to get namespace
    labels, to wait for claims, and to wait for a thread if the review needs one.
    """

    wait: float = 0.0
    decode: float = 0.0
    labels: float = 0.0
    judge: float = 0.0
    encode: float = 0.0


NO_PHASES = Phases()


@dataclass(frozen=True, slots=True)
class Observation:
    """One answered review, for metrics and logs; `fault` is the reason of a fault, else empty.

    `parent` is the caller's `traceparent`, if traces are on.
    """

    stage: Stage
    seconds: float
    uid: str = ""
    request: Request | None = None
    decision: Decision | None = None
    fault: str = ""
    error: Exception | None = None
    phases: Phases = NO_PHASES
    parent: str = ""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one review: bytes of its body, seconds it may wait, bytes evaluated in a thread.

    `in_flight` limits the bytes of all bodies that a process holds at a time. `decoded` limits the
    bytes of one decoded body, and of all large decoded bodies together.
    """

    body: int = timeouts.BODY_LIMIT
    deadline: float = 1.0
    large: int = 64 * 1024
    in_flight: int = 64 * 1024 * 1024
    decoded: int = timeouts.DECODED_LIMIT


class Namespaces(Protocol):
    """Reads the labels of namespaces; the mapping is never empty."""

    def known(self, name: str) -> Mapping[str, str] | None:
        """Return the labels if they are cached, else None; safe to call from any thread."""

    async def labels(self, name: str, seconds: float) -> Mapping[str, str] | str:
        """Return the labels within `seconds`, or a text that says why they are not available."""


class Lookups(Protocol):
    """Reads objects that a decision needs."""

    def known(self, needed: NeededObject, generation: int) -> ObjectRead | None:
        """Return the object if a recent copy is cached, else None."""

    async def read(self, needed: NeededObject, generation: int, seconds: float) -> ObjectRead | str:
        """Read the object within `seconds`; return a text with the reason if there is no answer."""


@dataclass(slots=True)
class Call:
    """One call for a review, from its first byte to the answer. Times are readings of the clock.

    The answer must leave before `until`. `lookups` are the seconds left for reading other objects.
    A call that is called off ends at its next step; until then `work`, its last task, may still run
    in a thread. `answers` numbers the answers: only the first one counts. `parent` is the caller's
    trace.

    `judge` is the one in use when the body was parsed. If `final` is set, the review waits for no
    more claims. `remembered` is set if `request` has an object from the cache; `fresh` forbids
    cached objects.
    """

    stage: Stage
    arrived: float
    until: float
    parent: str = ""
    lookups: float = field(default_factory=lambda: LOOKUP_SECONDS)
    called_off: bool = False
    work: asyncio.Future[Answered | Needs] | None = None
    answers: Iterator[int] = field(default_factory=count)
    body: bytes = b""
    is_large: bool = False
    judge: Judge | None = None
    generation: int = 0
    request: Request | None = None
    phases: Phases = NO_PHASES
    ready: Ready | None = None
    final: bool = False
    remembered: bool = False
    fresh: bool = False

    def go_on(self) -> None:
        """Raise Overdue if the caller already has an answer without a decision."""
        if self.called_off:
            raise Overdue

    def forget(self) -> None:
        """Drop the request. It refers back to this call by `go_on`, and cycles are not collected here."""
        self.body, self.request, self.ready = b"", None, None
