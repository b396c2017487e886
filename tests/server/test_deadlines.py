"""What bounds the time of a review: its turn, its look-ups, its work; callers are answered in time."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson
import pytest

from tests.server.judges import Deciding
from webhook.admission.judge import NeedsFacts, NeedsNamespace, NeedsObjects, Ready
from webhook.evaluation.outcome import Allowed, Decision
from webhook.evaluation.references import ClaimKey
from webhook.evaluation.request import Overdue, Request, Stage
from webhook.server.app import MARGIN_SECONDS, Reviews
from webhook.server.call import LOOKUP_SECONDS, Limits, Observation, State

LARGE = "x" * 100_000
Answer = tuple[int, dict[str, Any], float]


def body_of(name: str, *, large: bool = False) -> bytes:
    """A review of a Pod of that name."""
    metadata: dict[str, Any] = {"name": name}
    if large:
        metadata["annotations"] = {"a": LARGE}
    asked = {
        "uid": name,
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "namespace": "team-a",
        "operation": "CREATE",
        "userInfo": {"username": "alice"},
        "object": {"metadata": metadata, "spec": {}},
    }
    envelope = {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1"}
    return orjson.dumps({**envelope, "request": asked})


class Endless(Deciding):
    """A judge that works on objects named `endless` until it is called off."""

    def __init__(self) -> None:
        super().__init__(self.work)
        self.began = self.ended = 0
        self.lock = threading.Lock()

    def work(self, request: Request) -> Decision:
        """The decision, if it comes to one."""
        if request.name != "endless":
            return Allowed(request.object)
        with self.lock:
            self.began += 1
        try:
            while True:
                sum(range(10_000))
                request.go_on()
        except Overdue:
            with self.lock:
                self.ended += 1
            raise


async def post(reviews: Reviews, body: bytes, timeout: str = "1s") -> Answer:
    """Status, answer and seconds of one call."""
    scope: dict[str, Any] = {
        "method": "POST",
        "path": "/mutate",
        "query_string": f"timeout={timeout}".encode(),
        "headers": [(b"content-type", b"application/json")],
    }
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body}

    async def send(message: Any) -> None:
        sent.append(message)

    begun = time.monotonic()
    await reviews(scope, receive, send, Stage.MUTATE)
    return sent[0]["status"], orjson.loads(sent[1]["body"]), time.monotonic() - begun


def reason(found: Answer) -> str:
    """Why a review was not evaluated."""
    causes = found[1]["response"]["status"]["details"]["causes"]
    return str(causes[0]["reason"])


def run(work: Callable[[], Awaitable[Any]]) -> Any:
    """What a coroutine gives."""

    async def main() -> Any:
        return await work()

    return asyncio.run(main())


def test_work_ends_at_the_deadline_and_small_reviews_go_on_beside_it() -> None:
    """Six objects that would never end, on four threads: two of them stand in line."""
    judge, seen = Endless(), list[Observation]()
    # Its clock stands still, so that nobody is late because the machine is busy.
    reviews = Reviews(State(judge=judge), seen.append, Limits(deadline=0.5), lambda: 0.0)

    async def play() -> tuple[list[Answer], list[Answer]]:
        heavy = [
            asyncio.create_task(post(reviews, body_of("endless", large=True))) for _ in range(6)
        ]
        small = []
        while not all(each.done() for each in heavy):
            small.append(await post(reviews, body_of("small")))
            await asyncio.sleep(0.02)
        while judge.ended < judge.began:
            await asyncio.sleep(0.01)
        after = [await post(reviews, body_of("large", large=True), "30s") for _ in range(8)]
        return [await each for each in heavy], [*small, *after]

    heavy, others = run(play)
    assert [each[0] for each in heavy] == [503] * 6
    assert sorted(map(reason, heavy)) == ["deadline"] * 2 + ["overdue"] * 4
    assert all(each[1]["response"]["uid"] == "endless" for each in heavy)
    assert judge.began == judge.ended == 4
    assert len(others) > 8
    assert all(each[0] == 200 for each in others)
    # Each is reported once, also where a thread and the caller's side came to an end together.
    assert sorted(each.fault for each in seen if each.fault) == ["deadline"] * 2 + ["overdue"] * 4


def test_the_answer_leaves_before_the_api_server_stops_waiting() -> None:
    """The clock of the server stands at the end of what it may take, and nothing is left over."""
    for timeout, left in (("3s", 3 - MARGIN_SECONDS), ("10s", 10 - MARGIN_SECONDS), ("400ms", 0.2)):
        found: list[float] = []

        def judge(request: Request, found: list[float] = found) -> Decision:
            turn = getattr(request.go_on, "__self__", None)
            assert turn is not None
            found.append(turn.until - turn.arrived)
            return Allowed(request.object)

        reviews = Reviews(State(judge=Deciding(judge)), lambda _: None)
        assert run(lambda r=reviews, t=timeout: post(r, body_of("small"), t))[0] == 200
        assert found == [pytest.approx(left)]


@dataclass
class SlowNamespaces:
    """Somebody to ask for labels who takes his time; notes how long he may."""

    takes: float
    allowed: list[float] = field(default_factory=list)

    def known(self, name: str) -> Mapping[str, str] | None:
        """Nothing is at hand."""
        return None

    async def labels(self, name: str, seconds: float) -> Mapping[str, str] | str:
        """Labels, late."""
        self.allowed.append(seconds)
        await asyncio.sleep(min(self.takes, seconds))
        return {"team": "a"} if self.takes <= seconds else "nobody answered"


class Asking(Deciding):
    """A judge that needs labels, and waits for a claim that never comes."""

    def __init__(self) -> None:
        super().__init__(lambda request: Allowed(request.object))
        self.waited: list[float] = []

    def prepare(self, request: Request) -> Ready | NeedsNamespace | NeedsFacts:
        """Labels are needed once."""
        return Ready(request) if request.namespace_labels else NeedsNamespace()

    def has(self, claims: frozenset[ClaimKey]) -> bool:
        """It never comes."""
        self.waited.append(time.monotonic())
        return False

    def decide(self, ready: Ready, *, final: bool) -> Decision | NeedsObjects:
        """Allowed in the end, without a claim that nobody knows."""
        if not final:
            return NeedsObjects(frozenset({("ResourceClaim", "team-a", "c")}))
        return super().decide(ready, final=final)


def test_all_look_ups_of_a_review_share_their_seconds() -> None:
    """What labels have taken is not there for claims."""
    names, judge = SlowNamespaces(LOOKUP_SECONDS - 0.05), Asking()
    reviews = Reviews(State(judge=judge), lambda _: None, namespaces=names)
    status, _, _ = run(lambda: post(reviews, body_of("small"), "10s"))
    assert status == 200
    assert names.allowed == [LOOKUP_SECONDS]
    # Alone the claim would have been waited for six times as long as what is left of the look-ups.
    assert len(judge.waited) <= 10

    names = SlowNamespaces(60)
    reviews = Reviews(State(judge=judge), lambda _: None, namespaces=names)
    found = run(lambda: post(reviews, body_of("small"), "10s"))
    assert found[0] == 500
    assert names.allowed == [LOOKUP_SECONDS]
    assert reason(found) == "unknown-namespace"
