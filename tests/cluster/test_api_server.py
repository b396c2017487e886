"""Lists in pages and watches that go on, over real TLS on loopback: nothing is lost, nothing narrowed."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from certs.pair import KeyPair
from tests.cluster.test_kubernetes import FakeApi, reply
from tests.listing import DEEP, nest_deep
from tests.server.test_http import ca  # noqa: F401 - a fixture
from webhook.cluster import list_and_watch
from webhook.cluster.client import (
    AHEAD,
    DEEPEST,
    JSON,
    LONGEST_ANSWER,
    ApiError,
    ApiServer,
    LineReader,
)
from webhook.cluster.credentials import Credentials, ServiceAccount
from webhook.cluster.list_and_watch import Collection, follow, read_all, read_events, read_pages
from webhook.policy.scalars import too_deep

PATH = "/apis/podgate.dev/v1alpha1/clusterworkloadpolicies"
Json = dict[str, Any]


def item(name: str, version: int, **spec: Any) -> Json:
    return {"metadata": {"name": name, "resourceVersion": str(version)}, "spec": spec}


class Objects:
    """A collection that tests change: what lists give, and what each watch says."""

    def __init__(self) -> None:
        self.items: list[Json] = []
        self.version = "1"
        self.status = 200
        self.watches: list[list[Json] | str] = []
        self.asked: list[dict[str, str]] = []
        self.page = 0
        self.silence = 3.0
        self.body: bytes | None = None
        self.limited = False
        self.lingers = 0.0
        self.expired: dict[str, str] = {}
        self.failures: list[int] = []

    def act(self, handler: BaseHTTPRequestHandler) -> bool:
        query = {key: each[0] for key, each in parse_qs(urlsplit(handler.path).query).items()}
        self.asked.append(query)
        if self.body is not None:
            reply(handler, 200, self.body)
        elif self.status != 200:
            body = {"kind": "Status", "code": self.status, "message": "no such thing"}
            reply(handler, self.status, json.dumps(body).encode())
        elif "watch" in query:
            self.watch(handler)
        else:
            self.list(handler, query)
        return True

    def list(self, handler: BaseHTTPRequestHandler, query: dict[str, str]) -> None:
        if query.get("continue") in self.expired:
            following = self.expired[query["continue"]]
            body = {"kind": "Status", "code": 410, "message": "expired", "reason": "Expired"}
            metadata = {"metadata": {"continue": following}} if following else {}
            reply(handler, 410, json.dumps(body | metadata).encode())
            return
        if self.failures:
            reply(handler, self.failures.pop(0), b'{"kind": "Status", "message": "starting"}')
            return
        start = int((query.get("continue") or "0").rpartition("-")[2])
        size = int(query["limit"]) if self.limited else self.page or len(self.items) or 1
        rest = self.items[start + size :]
        metadata: Json = {"resourceVersion": self.version}
        if rest:
            metadata["continue"] = str(start + size)
        body = {"metadata": metadata, "items": self.items[start : start + size]}
        reply(handler, 200, json.dumps(body).encode())

    def watch(self, handler: BaseHTTPRequestHandler) -> None:
        if not self.watches:
            threading.Event().wait(self.silence)
            handler.close_connection = True
            return
        said = self.watches.pop(0)
        handler.send_response(200)
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        text = said if isinstance(said, str) else "".join(json.dumps(e) + "\n" for e in said)
        data = nest_deep(text.encode())
        # In two pieces, so that a line comes in parts.
        half = len(data) // 2
        for piece in (data[:half], data[half:]):
            if piece:
                handler.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
                handler.wfile.flush()
        threading.Event().wait(self.lingers)
        if said != "{":
            handler.wfile.write(b"0\r\n\r\n")
        handler.close_connection = True


def event(kind: str, body: Json) -> Json:
    return {"type": kind, "object": body}


@pytest.fixture
def objects() -> Objects:
    return Objects()


@pytest.fixture
def server(
    objects: Objects,
    ca: KeyPair,  # noqa: F811 - the fixture
    tmp_path: Path,
) -> Iterator[ApiServer]:
    fake = FakeApi(ca, tmp_path, act=objects.act)
    with fake.serving() as found:
        yield found


def followed(server: ApiServer, done: Callable[[Collection], bool]) -> tuple[Collection, int]:
    """Follow until something is so; the collection, and how often it changed."""
    collection = Collection(PATH)
    changes: list[int] = []

    async def run() -> None:
        task = asyncio.create_task(
            follow(server, collection, lambda _: changes.append(1), lambda _: 0.01)
        )
        async with asyncio.timeout(60):
            while not done(collection):
                assert not task.done()
                await asyncio.sleep(0.01)
        task.cancel()

    asyncio.run(run())
    return collection, len(changes)


def names(collection: Collection) -> set[str]:
    return {name for _, name in collection.objects}


def test_a_list_comes_in_pages_and_is_one_change(server: ApiServer, objects: Objects) -> None:
    objects.items, objects.page = [item(f"p{at}", at) for at in range(7)], 3
    collection, changes = followed(server, lambda c: len(c.objects) == 7)
    assert changes == 1
    assert collection.is_known
    assert [each.get("continue") for each in objects.asked[:3]] == [None, "3", "6"]


def test_events_are_taken_in_and_the_watch_goes_on_where_it_ended(
    server: ApiServer, objects: Objects
) -> None:
    objects.items = [item("a", 1), item("b", 1)]
    bookmark = event("BOOKMARK", {"metadata": {"resourceVersion": "9"}})
    objects.watches = [
        [event("ADDED", item("c", 2)), event("DELETED", item("a", 3)), bookmark],
        [event("MODIFIED", item("b", 10, x=1))],
    ]
    collection, _ = followed(server, lambda c: c.version == "10")
    assert names(collection) == {"b", "c"}
    assert collection.objects["", "b"]["spec"] == {"x": 1}
    watched = [each["resourceVersion"] for each in objects.asked if "watch" in each]
    assert watched[:2] == ["1", "9"]
    assert all(each["allowWatchBookmarks"] == "true" for each in objects.asked if "watch" in each)


def test_a_version_that_is_gone_lists_again_without_losing_anything(
    server: ApiServer, objects: Objects
) -> None:
    objects.items = [item("a", 1)]
    gone = event("ERROR", {"kind": "Status", "code": 410, "message": "too old"})
    objects.watches = [[gone], [event("ADDED", item("b", 5))]]
    collection, changes = followed(server, lambda c: names(c) == {"a", "b"})
    lists = [each for each in objects.asked if "watch" not in each]
    assert len(lists) == 2
    assert changes == 2, "the second list said nothing new"
    assert collection.trouble == ""


def test_a_connection_that_breaks_in_an_event_loses_none(
    server: ApiServer, objects: Objects
) -> None:
    objects.items = [item("a", 1)]
    objects.watches = ["{", [event("ADDED", item("b", 2))]]
    followed(server, lambda c: names(c) == {"a", "b"})


def test_while_the_server_fails_what_was_known_stays(server: ApiServer, objects: Objects) -> None:
    objects.items = [item("a", 1)]
    objects.watches = [[event("ADDED", item("b", 2))]]
    seen: list[set[str]] = []

    def broken(collection: Collection) -> bool:
        if names(collection) == {"a", "b"}:
            objects.status = 503
        if "no such thing" in collection.trouble and collection.objects:
            seen.append(names(collection))
        return len(seen) > 3

    collection, _ = followed(server, broken)
    assert seen[-1] == {"a", "b"}
    assert "no such thing" in collection.trouble


def test_a_resource_that_is_not_there_is_known_to_be_empty_and_found_later(
    server: ApiServer, objects: Objects
) -> None:
    objects.status = 404
    objects.items = [item("a", 1)]
    states: list[tuple[bool, bool]] = []

    def later(collection: Collection) -> bool:
        states.append((collection.absent, bool(collection.objects)))
        if collection.absent:
            assert collection.is_known
            objects.status = 200
        return names(collection) == {"a"}

    followed(server, later)
    assert (True, False) in states


def test_a_refusal_is_told_with_what_the_server_says(server: ApiServer, objects: Objects) -> None:
    objects.status = 403
    with pytest.raises(ApiError) as error:
        asyncio.run(server.ask("GET", PATH))
    assert error.value.code == 403
    assert str(error.value) == f"GET {PATH}: no such thing"


UNREADABLE = {
    "no JSON": b"<html>",
    "nothing": b"",
    "half of it": b'{"items": [{"metadata"',
    "nested without an end": b'{"items": ' + b"[" * 3000,
    "a list": b"[]",
    "null": b"null",
    "a text": b'"ok"',
}


@pytest.mark.parametrize("body", [*UNREADABLE.values(), b'{"items": 1}', b'{"items": {"a": 1}}'])
def test_an_answer_that_cannot_be_read_is_an_error_that_names_the_request(
    body: bytes, server: ApiServer, objects: Objects
) -> None:
    objects.body = body
    with pytest.raises(ApiError, match=f"^GET {PATH}: the API server's answer ") as error:
        asyncio.run(read_all(server, PATH))
    assert error.value.code == 0


@pytest.mark.parametrize("metadata", [1, [1], "a", None])
def test_metadata_that_is_no_map_is_empty(
    metadata: Any, server: ApiServer, objects: Objects
) -> None:
    objects.body = json.dumps({"metadata": metadata, "items": [{"metadata": metadata}]}).encode()
    collection = Collection(PATH)
    asyncio.run(collection.read(server))
    assert collection.version == ""
    assert collection.objects == {("", ""): {"metadata": metadata}}


@pytest.mark.parametrize(
    "line",
    [
        "<html>",
        "[]",
        "1",
        '{"type": "ADDED", "object": [1]}',
        '{"type": "ERROR", "object": {"code": "many"}}',
        f'{{"type": "ADDED", "object": "{DEEP}"}}',
    ],
)
def test_an_event_that_cannot_be_read_is_a_failure_after_which_the_watch_goes_on(
    line: str, server: ApiServer, objects: Objects
) -> None:
    objects.items = [item("a", 1)]
    objects.watches = [line + "\n", [event("ADDED", item("b", 2))]]
    collection, _ = followed(server, lambda each: names(each) == {"a", "b"})
    assert collection.trouble == ""


def test_an_object_that_is_nested_deep_keeps_no_others_unread(
    server: ApiServer, objects: Objects, caplog: pytest.LogCaptureFixture
) -> None:
    """Only its innermost levels are missing, so that it is refused as any other deep object."""
    objects.items = [item("a", 1), item("deep", 1, x='}]"[', parts=[DEEP, 1]), item("b", 1)]
    objects.watches = [[event("MODIFIED", item("deep", 5, x=[DEEP])), event("ADDED", item("c", 6))]]
    collection = Collection(PATH)
    asyncio.run(collection.read(server))
    assert names(collection) == {"a", "deep", "b"}
    spec = collection.objects["", "deep"]["spec"]
    assert (spec["x"], spec["parts"][1]) == ('}]"[', 1)
    assert too_deep(spec["parts"][0], DEEPEST - 10)
    assert caplog.messages == [f"GET {PATH}: deep is nested deeper than {DEEPEST} levels"]

    caplog.clear()
    collection, _ = followed(server, lambda each: each.version == "6")
    assert names(collection) == {"a", "deep", "b", "c"}
    assert too_deep(collection.objects["", "deep"]["spec"]["x"], DEEPEST - 10)
    assert len([each for each in caplog.messages if "deep is nested" in each]) == 2


@pytest.mark.parametrize(
    "written, read",
    [
        (b'"\xff\xfe"', "\ufffd\ufffd"),
        (rb'"\ud800"', "\ufffd"),
        (rb'"\uDC00\ud83d\udE00\ud83dx"', "\ufffd\U0001f600\ufffdx"),
        (rb'"\ud800\n\\ud800"', "\ufffd\n\\ud800"),
        (rb'"\\\ud800\ud800\udc00\\\\udc00"', "\\\ufffd\U00010000\\\\udc00"),
        (rb'{"\udfff": "a", "b": ' + b"[" * 500 + b"]" * 500 + b"}", None),
    ],
)
def test_what_is_no_character_keeps_no_others_unread(
    written: bytes, read: str | None, server: ApiServer, objects: Objects
) -> None:
    """An API server keeps opaque parameters of claims as the bytes that their author sent."""
    spec = b'{"metadata": {"name": "odd"}, "spec": %s}' % written
    objects.body = b'{"items": [{"metadata": {"name": "a"}}, %s]}' % spec
    collection = Collection(PATH)
    asyncio.run(collection.read(server))
    assert names(collection) == {"a", "odd"}
    assert read in (None, collection.objects["", "odd"]["spec"])


def test_240_levels_are_read_as_they_are(server: ApiServer, objects: Objects) -> None:
    for depth in (DEEPEST, DEEPEST + 1):
        inner = json.loads("[" * (depth - 1) + "]" * (depth - 1))
        objects.body = json.dumps({"spec": inner}).encode()
        whole = asyncio.run(server.ask("GET", PATH)) == {"spec": inner}
        assert whole == (depth == DEEPEST)


def test_pages_get_smaller_where_objects_are_large(server: ApiServer, objects: Objects) -> None:
    objects.items = [item(f"{n}", 1, text="x" * 100_000) for n in range(100)]
    objects.limited = True
    found = asyncio.run(read_all(server, PATH))
    assert [each["metadata"]["name"] for each in found] == [f"{n}" for n in range(100)]
    asked = [(each.get("continue", "0"), each["limit"]) for each in objects.asked]
    assert asked == [("0", "500"), ("0", "125"), *((str(n), "31") for n in range(0, 100, 31))]


def test_an_object_that_is_too_large_is_an_error(server: ApiServer, objects: Objects) -> None:
    objects.items, objects.limited = [item("a", 1, text="x" * LONGEST_ANSWER)], True
    with pytest.raises(ApiError, match=f"^GET {PATH}: .*the answer is longer than"):
        asyncio.run(read_all(server, PATH))
    assert [each["limit"] for each in objects.asked] == ["500", "125", "31", "7", "1"]


def test_nobody_there_is_an_error_without_a_code(tmp_path: Path, server: ApiServer) -> None:
    away = ApiServer(Credentials(ServiceAccount("127.0.0.1", "9", tmp_path)))
    with pytest.raises(ApiError) as error:
        asyncio.run(away.find(PATH))
    assert error.value.code == 0


def test_pauses_grow_are_bounded_and_differ() -> None:
    pauses = [list_and_watch.choose_pause(failures) for failures in range(1, 40)]
    assert max(pauses) <= list_and_watch.LONGEST_PAUSE
    assert min(pauses[10:]) >= list_and_watch.LONGEST_PAUSE / 2
    assert len(set(pauses)) > 30


def test_a_watch_that_ends_without_an_answer_is_a_failure_that_is_waited_after(
    server: ApiServer, objects: Objects
) -> None:
    objects.items, objects.silence = [item("a", 1)], 0.0
    collection = Collection(PATH)
    pauses: list[int] = []

    def pause(failures: int) -> float:
        pauses.append(failures)
        return 0.01

    async def run() -> None:
        task = asyncio.create_task(follow(server, collection, lambda _: None, pause))
        async with asyncio.timeout(60):
            while len(pauses) < 3:
                await asyncio.sleep(0.01)
        task.cancel()

    asyncio.run(run())
    watches = [each for each in objects.asked if "watch" in each]
    assert len(watches) <= len(pauses) + 1, "a proxy that hangs up must not be asked in circles"
    assert pauses[:3] == [1, 2, 3]
    assert "without an answer" in collection.trouble
    assert names(collection) == {"a"}


def test_a_watch_that_ends_at_once_and_says_nothing_is_waited_after(
    server: ApiServer, objects: Objects
) -> None:
    objects.watches = [[] for _ in range(50)]
    pauses: list[int] = []

    async def run() -> None:
        collection = Collection(PATH)
        noted = lambda failures: pauses.append(failures) or 0.05  # noqa: E731
        task = asyncio.create_task(follow(server, collection, lambda _: None, noted))
        async with asyncio.timeout(60):
            while len(pauses) < 4:
                await asyncio.sleep(0.01)
        task.cancel()

    asyncio.run(run())
    assert pauses[:4] == [1, 2, 3, 4]


def test_a_cancelled_watch_ends_with_its_thread(server: ApiServer, objects: Objects) -> None:
    """The server goes on for longer than the test waits."""
    objects.watches = [json.dumps(event("ADDED", item("a", 2))) + "\n"]
    objects.lingers = 30.0

    async def run() -> None:
        events = read_events(server, PATH, "1")
        assert (await anext(events))[0] == "ADDED"
        task = asyncio.ensure_future(anext(events))
        await asyncio.sleep(0.05)
        task.cancel()
        await asyncio.wait([task], timeout=60)
        assert task.cancelled()

    before = threading.active_count()
    asyncio.run(run())
    until = time.monotonic() + 60
    # The server's own thread stays with its open answer.
    while threading.active_count() > before + 1 and time.monotonic() < until:
        time.sleep(0.01)
    assert threading.active_count() <= before + 1


def test_the_thread_of_a_watch_that_is_left_while_it_waits_for_room_ends(
    server: ApiServer, objects: Objects
) -> None:
    many = json.dumps(event("ADDED", item("a", 2, text="x" * 10_000))) + "\n"
    objects.watches = [many * 500]

    async def leave() -> None:
        loop = asyncio.get_running_loop()
        reading = LineReader(server.credentials, f"{PATH}?watch=1", JSON, loop)
        thread = threading.Thread(target=reading.run, daemon=True)
        thread.start()
        async with asyncio.timeout(60):
            while reading.batches.qsize() < AHEAD:
                await asyncio.sleep(0.01)
        await asyncio.sleep(0.1)  # it reads one more, and has nowhere to put it
        assert thread.is_alive()
        reading.stop()
        await asyncio.to_thread(thread.join, 60)
        assert not thread.is_alive()

    asyncio.run(leave())


def test_a_list_whose_version_is_forgotten_goes_on_with_what_is_there(
    server: ApiServer, objects: Objects, caplog: pytest.LogCaptureFixture
) -> None:
    objects.items, objects.page = [item(f"p{at}", at) for at in range(7)], 3
    objects.expired = {"3": "later-3"}
    objects.watches = [[event("BOOKMARK", {"metadata": {"resourceVersion": "9"}})]]
    collection, _ = followed(server, lambda c: c.version == "" and c.heard > 0)
    assert len(collection.objects) == 7
    assert "so long that the rest is of a later moment" in caplog.text
    asked = ["watch" if "watch" in each else each.get("continue") for each in objects.asked]
    assert asked[:9] == [None, "3", "later-3", "6"] * 2 + ["watch"], "at once, but not for ever"


def test_what_has_changed_before_the_later_part_of_a_list_is_known_without_a_watch(
    server: ApiServer, objects: Objects, monkeypatch: pytest.MonkeyPatch
) -> None:
    objects.items, objects.page = [item(f"p{at}", at) for at in range(7)], 3
    objects.expired, objects.silence = {"3": "later-3"}, 60.0
    answer = objects.list

    def change(handler: BaseHTTPRequestHandler, query: dict[str, str]) -> None:
        if query.get("continue") == "6":
            objects.items, objects.expired = [item("early", 8), *objects.items[1:]], {}
        answer(handler, query)

    monkeypatch.setattr(objects, "list", change)
    expected = {"early", *(f"p{at}" for at in range(1, 7))}
    collection, changes = followed(server, lambda each: names(each) == expected)
    assert collection.is_consistent
    assert changes == 2


def test_a_list_whose_version_is_forgotten_for_good_begins_again(
    server: ApiServer, objects: Objects
) -> None:
    objects.items, objects.page = [item(f"p{at}", at) for at in range(7)], 3
    objects.expired = {"3": ""}

    def done(collection: Collection) -> bool:
        if len(objects.asked) >= 2:
            objects.expired = {}
        return len(collection.objects) == 7

    followed(server, done)
    assert [each.get("continue") for each in objects.asked[:2]] == [None, "3"]


def test_a_list_of_a_command_goes_on_where_it_was_once_the_server_is_back(
    server: ApiServer, objects: Objects, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that starts forbids everything for a moment, even what its rules allow."""
    monkeypatch.setattr(list_and_watch, "FIRST_PAUSE", 0.01)
    objects.items, objects.page = [item(f"p{at}", at) for at in range(7)], 3

    async def read(resumed: float) -> list[str]:
        found = []
        async for page in read_pages(server, PATH, resumed=resumed):
            found += [each["metadata"]["name"] for each in page.items]
            objects.failures = [503, 403] if len(found) == 3 else []
        return found

    assert asyncio.run(read(5.0)) == [f"p{at}" for at in range(7)]
    objects.failures = [503, 403]
    assert asyncio.run(read(5.0)) == [f"p{at}" for at in range(7)]
    objects.failures = [403]
    with pytest.raises(ApiError, match="starting"):
        asyncio.run(read(5.0))
    with pytest.raises(ApiError, match="starting"):
        asyncio.run(read(0.0))


def test_what_is_kept_of_an_object_is_its_brief(server: ApiServer, objects: Objects) -> None:
    objects.items = [item("a", 1, large="x" * 1000)]
    objects.watches = [[event("MODIFIED", item("a", 2, large="y" * 1000))]]
    collection = Collection(PATH, brief=lambda each: {"at": each["metadata"]["resourceVersion"]})
    asyncio.run(collection.read(server))
    assert collection.objects == {("", "a"): {"at": "1"}}


def test_somebody_who_may_not_list_asks_less_and_less(
    server: ApiServer, objects: Objects, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Within a minute at most 15 times: the pauses are added up instead of waited for."""
    objects.status = 403
    waited: list[float] = []
    sleep = asyncio.sleep

    async def note(seconds: float) -> None:
        waited.append(seconds)
        await sleep(0)

    monkeypatch.setattr(list_and_watch.asyncio, "sleep", note)

    async def run() -> None:
        task = asyncio.create_task(follow(server, Collection(PATH), lambda _: None))
        while sum(waited) < 60:
            await sleep(0.01)
        task.cancel()

    asyncio.run(run())
    assert len(waited) <= 15


def test_an_api_server_that_accepts_and_says_nothing_is_a_failure(
    server: ApiServer, objects: Objects, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("webhook.cluster.client.SILENCE", 0.2)
    objects.items = [item("a", 1)]
    collection, _ = followed(server, lambda c: "did not answer" in c.trouble)
    assert names(collection) == {"a"}


def test_a_fault_with_one_object_ends_no_other_collection(
    server: ApiServer, objects: Objects
) -> None:
    objects.items = [item("a", 1)]
    collection = Collection(PATH, brief=lambda each: {"x": each["none"]})

    async def run() -> None:
        task = asyncio.create_task(follow(server, collection, lambda _: None, lambda _: 0.01))
        async with asyncio.timeout(60):
            while "fault (KeyError)" not in collection.trouble:
                await asyncio.sleep(0.01)
        assert not task.done()
        task.cancel()

    asyncio.run(run())
