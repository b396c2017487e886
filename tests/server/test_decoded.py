"""Memory of decoded bodies: known before they are decoded, bounded for one and for all together."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
import tracemalloc
from typing import Any

import orjson
import pytest

from tests.building import deployment
from tests.server.judges import Deciding
from tests.server.test_deadlines import Endless, SlowNamespaces, body_of, post, reason, run
from webhook.admission import timeouts
from webhook.admission.judge import NeedsFacts, NeedsNamespace, NeedsObjects, Ready
from webhook.admission.review import parse_review
from webhook.evaluation.outcome import Allowed, Decision
from webhook.evaluation.request import Request, Stage
from webhook.server.app import Reviews
from webhook.server.bodies import LIGHT, DecodedRoom
from webhook.server.call import Limits, Observation, State

SIZE = 400_000
UNKNOWN = frozenset({("ResourceClaim", "team-a", "c")})


def filled(piece: bytes) -> bytes:
    """A list of so many pieces, with numbers in them."""
    pieces = (piece.replace(b"%d", b"%d" % number) for number in range(SIZE // len(piece)))
    return b"[" + b",".join(pieces) + b"]"


def nested(piece: bytes, end: bytes, depth: int = 80) -> bytes:
    """A list of deep values."""
    one = piece * depth + b"0" + end * depth
    return b"[" + b",".join([one] * (SIZE // len(one))) + b"]"


BODIES = {
    "empty lists": filled(b"[]"),
    "lists": filled(b"[1]"),
    "empty maps": filled(b"{}"),
    "maps": filled(b'{"":0}'),
    "maps of two": filled(b'{"a%d":1,"b%d":2}'),
    "deep maps": nested(b'{"a":', b"}"),
    "deep lists": nested(b"[", b"]"),
    "small numbers": filled(b"0"),
    "large numbers": filled(b"123456789%d"),
    "fractions": filled(b"1.5"),
    "empty texts": filled(b'""'),
    "texts": filled(b'"k%d"'),
    "keys": b"{" + filled(b'"k%d":"v"')[1:-1] + b"}",
    "keys with numbers": b"{" + filled(b'"k%d":1%d')[1:-1] + b"}",
    "one long text": orjson.dumps("x" * SIZE),
    "one wide text": orjson.dumps("x" * SIZE + "\U0001f600"),
    "one text with an escape": b'"' + b"x" * SIZE + b'\\ud83d\\ude00"',
    "one long key": orjson.dumps({"x" * SIZE: 1}),
}


@pytest.mark.parametrize("name", BODIES)
def test_a_body_never_takes_more_than_was_expected(name: str) -> None:
    body = BODIES[name]
    tracemalloc.start()
    try:
        decoded = orjson.loads(body)
        timeouts.too_deep(decoded)
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert decoded
    assert taken <= timeouts.decoded_size(body)


def test_ordinary_objects_up_to_what_etcd_takes_are_decoded() -> None:
    """An update of an object of 1.5 MiB, a third of it managedFields."""
    body: dict[str, Any] = deployment()
    body["metadata"]["managedFields"] = [
        {"manager": f"m{number}", "fieldsV1": {f"f:name-{each}": {} for each in range(1_000)}}
        for number in range(30)
    ]
    body["spec"]["data"] = [
        {"name": f"variable-{number}", "value": f"a value of its own, {number}"}
        for number in range(15_000)
    ]
    text = orjson.dumps(body)
    assert len(text) > 1_300_000
    assert timeouts.decoded_size(text * 2) < timeouts.DECODED_LIMIT


def heavy(name: str, size: int) -> bytes:
    """A review that decodes to about so many bytes."""
    body = orjson.loads(body_of(name))
    body["request"]["object"]["x"] = [[]] * (size // (timeouts.LIST + timeouts.ENTRY + 6))
    return orjson.dumps(body)


def test_what_would_fill_the_memory_is_refused_before_it_is_decoded() -> None:
    seen, judged = list[Observation](), list[Request]()

    def judge(request: Request) -> Decision:
        judged.append(request)
        return Allowed(request.object)

    reviews = Reviews(State(judge=Deciding(judge)), seen.append)
    status, told, _ = run(lambda: post(reviews, heavy("big", 2 * timeouts.DECODED_LIMIT)))
    assert (status, told["response"]["uid"], told["response"]["allowed"]) == (200, "big", False)
    assert reason((status, told, 0)) == "too-many-values"
    assert "smaller objects" in told["response"]["status"]["message"]
    assert not judged
    assert [each.fault for each in seen] == ["too-many-values"]


def test_heavy_bodies_wait_for_one_another_and_light_ones_for_nobody() -> None:
    begun, go_on = threading.Event(), threading.Event()
    lock, active, most = threading.Lock(), 0, 0

    def judge(request: Request) -> Decision:
        nonlocal active, most
        if request.name == "light":
            return Allowed(request.object)
        with lock:
            active += 1
            most = max(most, active)
        begun.set()
        go_on.wait(60)
        with lock:
            active -= 1
        return Allowed(request.object)

    reviews = Reviews(State(judge=Deciding(judge)), lambda seen: None, Limits(deadline=60))

    async def play() -> tuple[list[int], list[int]]:
        body = heavy("heavy", 30 << 20)
        several = [asyncio.create_task(post(reviews, body, "25s")) for _ in range(4)]
        await asyncio.to_thread(begun.wait, 60)
        light = [(await post(reviews, body_of("light", large=True), "25s"))[0] for _ in range(3)]
        assert 0 < reviews.decoded_room.used <= timeouts.DECODED_LIMIT
        go_on.set()
        return [(await each)[0] for each in several], light

    assert run(play) == ([200] * 4, [200] * 3)
    assert most == 1
    assert (reviews.decoded_room.used, reviews.room.used) == (0, 0)


def test_work_that_goes_on_after_its_answer_keeps_its_room_until_it_ends() -> None:
    judge = Endless()
    reviews = Reviews(State(), lambda seen: None, Limits(deadline=0.5), lambda: 0.0)
    stopped = threading.Event()

    def slow(request: Request) -> Decision:
        stopped.wait(60)
        return judge.work(request)

    reviews.state.judge = Deciding(slow)

    async def play() -> None:
        found = await post(reviews, heavy("endless", LIGHT * 2))
        assert reason(found) == "overdue"
        assert reviews.decoded_room.used > LIGHT
        assert reviews.room.used > 0
        stopped.set()
        while reviews.decoded_room.used:
            await asyncio.sleep(0.01)
        assert reviews.room.used == 0

    run(play)


def test_who_waits_in_vain_is_asked_to_come_again_and_leaves_the_line() -> None:
    async def play() -> None:
        room = DecodedRoom(100)
        assert await room.take(80, 0)
        assert not await room.take(50, 0.01)
        waiting = asyncio.create_task(room.take(90, 60))
        small = asyncio.create_task(room.take(10, 60))
        await asyncio.sleep(0.01)
        assert not small.done(), "nobody overtakes a heavy one, which would wait for ever"
        room.release(80)
        assert await waiting
        assert await small
        room.release(90)
        room.release(10)
        assert (room.used, len(room.line)) == (0, 0)

    run(play)


ODD = {
    "digits": (b"1" * 10**6, "malformed"),
    "an exponent": (b"1e" + b"9" * 10**6, "malformed"),
    "a fraction": (b"1." + b"1" * 10**6, ""),
    "keys that repeat": (b"{" + b'"a":1,' * 10**5 + b'"a":1}', ""),
    "half a surrogate": (b'"\\ud800"', ""),
    "no UTF-8": (b'"\xff"', ""),
    "no UTF-8 and no end": (b'"\xff', "malformed"),
    "no UTF-8 and lists without end": (b'["\xff", ' + b"[" * 10**6, "too-deep"),
    "not a number": (b"NaN", "malformed"),
    "lists without end": (b"[" * 10**6, "too-deep"),
    "gzip": (b"\x1f\x8b\x08", "malformed"),
}


@pytest.mark.parametrize("name", ODD)
def test_odd_json_is_read_or_is_a_fault_with_its_uid(name: str) -> None:
    value, why = ODD[name]
    body = body_of("odd").replace(b'"spec":{}', b'"spec":{"replicas":' + value + b"}")
    found = parse_review(body, Stage.MUTATE)
    assert getattr(found, "reason", "") == why
    assert found.uid == "odd"


@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize("needs", [None, NeedsNamespace(), NeedsFacts, NeedsObjects(UNKNOWN)])
def test_a_request_goes_with_its_answer_and_waits_for_no_collector(large: bool, needs: Any) -> None:
    """A request refers to its call, which may not refer back for longer than it lasts."""

    class Needing(Deciding):
        def prepare(self, request: Request) -> Any:
            ready = Ready(request)
            if needs is NeedsFacts:
                return NeedsFacts(lambda: ready)
            lacking = isinstance(needs, NeedsNamespace) and not request.namespace_labels
            return needs if lacking else ready

        def decide(self, ready: Ready, *, final: bool) -> Any:
            lacking = isinstance(needs, NeedsObjects) and not final
            return needs if lacking else super().decide(ready, final=final)

    def requests() -> list[Request]:
        return [each for each in gc.get_objects() if isinstance(each, Request)]

    judge = Needing(lambda request: Allowed(request.object))
    reviews = Reviews(State(judge=judge), lambda _: None, namespaces=SlowNamespaces(0.0))
    gc.collect()
    gc.disable()
    try:
        before = len(requests())
        assert run(lambda: post(reviews, body_of("a", large=large)))[0] == 200
        until = time.monotonic() + 60  # a thread lets go of its work after the answer
        while len(requests()) > before and time.monotonic() < until:
            time.sleep(0.01)
        assert len(requests()) == before
    finally:
        gc.enable()
