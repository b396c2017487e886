"""Bytes of all bodies together: who has been unfinished for longest gives way."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import orjson
import pytest

from webhook.admission.review import ReviewFault
from webhook.server import bodies
from webhook.server.bodies import Body, Room

LIMIT = 1_000


class Client:
    """A client that sends the pieces which a test puts."""

    def __init__(self) -> None:
        self.pieces: asyncio.Queue[dict[str, Any]] = asyncio.Queue()

    def send(self, size: int, *, more: bool = True) -> None:
        """Send so many bytes."""
        self.pieces.put_nowait({"type": "http.request", "body": b"x" * size, "more_body": more})

    async def receive(self) -> dict[str, Any]:
        """The next piece."""
        return await self.pieces.get()

    def read(self, room: Room, held: Body, seconds: float = 5) -> asyncio.Task[Any]:
        """The body, read in a task."""
        read = bodies.read(self.receive, room, held, LIMIT, seconds)
        return asyncio.get_running_loop().create_task(read)


async def settle() -> None:
    """Let all tasks run until they wait."""
    for _ in range(20):
        await asyncio.sleep(0)


def run(scene: Callable[[], Any]) -> None:
    """Play a scene in a loop of its own."""
    asyncio.run(scene())


def test_the_oldest_unfinished_body_gives_way_and_newer_ones_are_read() -> None:
    async def scene() -> None:
        room, old, new = Room(1_500), Client(), Client()
        first, second = Body(), Body()
        old.send(900)
        slow = old.read(room, first)
        await settle()
        assert room.used == 900
        new.send(500)
        quick = new.read(room, second)
        await settle()
        new.send(400, more=False)
        assert len(await quick) == 900
        fault = await slow
        assert isinstance(fault, ReviewFault)
        assert (fault.http_status, fault.reason) == (503, "no-room")
        assert room.used == 900
        room.release(second)
        assert room.used == 0

    run(scene)


def test_a_body_that_is_whole_never_gives_way() -> None:
    async def scene() -> None:
        room, first, second = Room(1_000), Body(), Body()
        whole, late = Client(), Client()
        whole.send(900, more=False)
        assert len(await whole.read(room, first)) == 900
        late.send(200, more=False)
        fault = await late.read(room, second)
        assert isinstance(fault, ReviewFault)
        assert fault.http_status == 503
        room.release(first)
        late.send(200, more=False)
        assert len(await late.read(room, second)) == 200

    run(scene)


@pytest.mark.parametrize("sizes", [[2_000], [600, 600], [1, 1_000]])
def test_a_body_over_its_own_limit_leaves_nothing_behind(sizes: list[int]) -> None:
    async def scene() -> None:
        room, client, held = Room(10_000), Client(), Body()
        for size in sizes[:-1]:
            client.send(size)
        client.send(sizes[-1], more=False)
        fault = await client.read(room, held)
        assert isinstance(fault, ReviewFault)
        assert fault.http_status == 413
        room.release(held)
        assert room.used == 0

    run(scene)


def test_a_caller_that_leaves_or_is_slow_leaves_nothing_behind() -> None:
    async def scene() -> None:
        room = Room(10_000)
        for seconds, end in ((5.0, {"type": "http.disconnect"}), (0.01, None)):
            client, held = Client(), Body()
            client.send(500)
            if end:
                client.pieces.put_nowait(end)
            found = await client.read(room, held, seconds)
            assert found is None or found.http_status == 408
            room.release(held)
        assert (room.used, room.unfinished) == (0, {})

    run(scene)


def test_what_there_is_no_room_for_is_told_with_its_uid() -> None:
    async def scene() -> None:
        room, client = Room(10), Client()
        body = orjson.dumps({"request": {"uid": "abc"}})
        client.pieces.put_nowait({"type": "http.request", "body": body, "more_body": False})
        fault = await client.read(room, Body())
        assert fault.uid == "abc"

    run(scene)
