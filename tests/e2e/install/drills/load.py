"""A steady, bounded load: people who take objects through their lives, every answer held against rules."""

from __future__ import annotations

import contextlib
import http.client
import itertools
import json
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from tests.e2e.api import Api, StatusError
from tests.e2e.install.drills.attempts import Attempt, Kind, Life, life
from tests.e2e.install.drills.rules import Rules, plain, wrong
from tests.e2e.install.drills.tally import Answer, Outcome
from tests.e2e.objects import Json
from tests.e2e.testbed.cluster import Cluster

USERS = ("ann", "ben", "cleo", "dan")
EACH_SECOND = 20.0
"""Requests of all people together."""
PATIENCE = 60.0
NO_ANSWER = (OSError, ValueError, http.client.HTTPException)
UNWELL = {0, 429, 500, 502, 503, 504}


@dataclass(slots=True)
class Load:
    """Who works on what; `accepted` are the rules of which any may explain an answer.

    `away` says that the API server is known not to be there: whoever takes it away sets it before,
    and clears it once the server has answered again.
    """

    cluster: Cluster
    kinds: Sequence[Kind]
    accepted: tuple[Rules, ...]
    away: threading.Event = field(default_factory=threading.Event)
    ended: threading.Event = field(default_factory=threading.Event)
    answers: list[Answer] = field(default_factory=list)
    numbers: Iterator[int] = field(default_factory=itertools.count)

    @contextlib.contextmanager
    def running(self) -> Iterator[list[Answer]]:
        """Work until the block ends; the answers of this time."""
        self.answers, self.ended = [], threading.Event()
        threads = [threading.Thread(target=self.work, args=(n,)) for n in range(len(USERS))]
        for each in threads:
            each.start()
        try:
            yield self.answers
        finally:
            self.ended.set()
            for each in threads:
                each.join()

    def work(self, number: int) -> None:
        """One life after another, at a steady pace; what a stall has missed is not caught up."""
        kinds = itertools.cycle([*self.kinds[number:], *self.kinds[:number]])
        pause = len(USERS) / EACH_SECOND
        due = time.monotonic() + pause * number / len(USERS)
        with contextlib.closing(Api(self.cluster, USERS[number])) as api:
            api.connection.timeout = PATIENCE
            for kind in kinds:
                one = life(kind, f"it-{next(self.numbers)}")
                attempt: Attempt | None = next(one)
                while attempt is not None:
                    if self.ended.wait(max(0.0, due - time.monotonic())):
                        return
                    due = max(due + pause, time.monotonic())
                    attempt = self.next_of(one, api, attempt)

    def next_of(self, one: Life, api: Api, attempt: Attempt) -> Attempt | None:
        """Make one request; the next of that life, None where it has ended."""
        begun, accepted, was_away = time.monotonic(), self.accepted, self.away.is_set()
        said = ask(api, attempt)
        rules = {*accepted, *self.accepted}
        outcome, why = outcome_of(attempt, said, rules, away=was_away or self.away.is_set())
        told = f"{attempt.deed} {attempt.path}: {why}" if why else ""
        self.answers.append(Answer(begun, time.monotonic() - begun, outcome, told))
        if outcome != "right":
            return None
        try:
            return one.send(plain(said.stored) if said.stored and attempt.wanted else {})
        except StopIteration:
            return None


@dataclass(frozen=True, slots=True)
class Said:
    """What is stored, None where it was not done; what was said, and the HTTP code, 0 for no answer."""

    stored: Json | None
    told: str = ""
    code: int = 0

    @property
    def is_decision(self) -> bool:
        """Whether podgate decided: it was done, or podgate's own words say why not."""
        return self.stored is not None or (self.code == 403 and "podgate refused" in self.told)

    @property
    def may_be_away(self) -> bool:
        """Whether only the API server can be the reason: no answer, or one that it is not well.

        A webhook that could not be called is none: that is podgate's fault or the drill's.
        """
        if "webhook" in self.told:
            return False
        return self.code in UNWELL or "not yet ready to handle request" in self.told


def outcome_of(
    attempt: Attempt, said: Said, rules: set[Rules], *, away: bool
) -> tuple[Outcome, str]:
    """How a request came out, and why where it is not right."""
    if not said.is_decision:
        return ("away" if away and said.may_be_away else "failed"), f"{said.code} {said.told}"
    if attempt.wanted is not None:
        why = wrong(attempt.wanted, said.stored, said.told, rules)
    else:
        why = "" if said.stored is not None else said.told
    return ("wrong" if why else "right"), why


def ask(api: Api, attempt: Attempt) -> Said:
    """Make a request once."""
    body = None if attempt.body is None else json.dumps(attempt.body)
    headers = {**api.headers, "Content-Type": attempt.content}
    try:
        return Said(api.answered(attempt.method, attempt.path, body, headers))
    except StatusError as error:
        return Said(None, str(error), int(error.status.get("code") or 0))
    except NO_ANSWER as error:
        api.close()
        return Said(None, repr(error))
