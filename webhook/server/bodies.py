"""Reads bodies of reviews, within a limit for each body and a limit for all bodies that a process holds."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass, field
from typing import Any

from webhook.admission import review
from webhook.admission.review import ReviewFault

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
DISCARD_BYTES = 32 * 1024 * 1024
DISCARD_SECONDS = 2.0
LIGHT = 8 * 1024 * 1024
"""Bodies that decode to less do not queue: the number of threads limits them already."""


@dataclass(eq=False, slots=True)
class Body:
    """The bytes held of one body, and of its `decoded` form; reading stops at `limit`."""

    size: int = 0
    decoded: int = 0
    limit: asyncio.Timeout | None = None
    gave_way: bool = False


@dataclass(slots=True)
class Room:
    """Bytes of bodies that a process holds, including those of reviews under evaluation.

    When there is no room for more, the body that has been incomplete for longest is dropped. An API
    server sends a body at once, so a client that holds many bodies for long is not one.
    """

    most: int
    used: int = 0
    unfinished: dict[Body, None] = field(default_factory=dict)

    def take(self, body: Body, count: int) -> bool:
        """Hold more bytes of a body; return False if there is no room for them."""
        while self.used + count > self.most:
            oldest = next(iter(self.unfinished), body)
            if oldest is body:
                return False
            oldest.gave_way = True
            self.release(oldest)
            if oldest.limit is not None:
                oldest.limit.reschedule(0.0)
        self.used += count
        body.size += count
        return True

    def release(self, body: Body) -> None:
        """Release all bytes of a body."""
        self.unfinished.pop(body, None)
        self.used -= body.size
        body.size = 0


@dataclass(slots=True)
class DecodedRoom:
    """Bytes that decoded bodies take in a process, evaluation included; large ones wait in a queue."""

    most: int
    used: int = 0
    line: deque[tuple[int, asyncio.Future[None]]] = field(default_factory=deque)

    async def take(self, size: int, seconds: float) -> bool:
        """Wait at most `seconds` for room for a body; return whether there was any."""
        if not self.line and self.used + size <= self.most:
            self.used += size
            return True
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.line.append((size, turn))
        await asyncio.wait({turn}, timeout=max(0.0, seconds))
        if not turn.cancel():
            return True
        self.admit()
        return False

    def release(self, size: int) -> None:
        """Give up the room of one body."""
        self.used -= size
        self.admit()

    def admit(self) -> None:
        """Admit queued bodies in their order, as long as there is room."""
        while self.line:
            size, turn = self.line[0]
            if not turn.cancelled():
                if self.used + size > self.most:
                    return
                self.used += size
                turn.set_result(None)
            self.line.popleft()


async def read(
    receive: Receive, room: Room, held: Body, limit: int, seconds: float
) -> bytes | ReviewFault | None:
    """Read a whole body, held in `room` until its owner releases it.

    Return a fault if it is too large, too slow, or if there is no room; None if the client left.
    """
    message = await receive()
    if message["type"] != "http.request":
        return None
    begun: bytes = message.get("body", b"")
    if not message.get("more_body"):
        if len(begun) > limit:
            return review.too_large(review.find_uid(begun), limit)
        return begun if room.take(held, len(begun)) else review.no_room(review.find_uid(begun))
    body = bytearray(begun)
    room.unfinished[held] = None
    try:
        async with asyncio.timeout(max(0.0, seconds)) as held.limit:
            return await read_on(receive, room, held, body, limit)
    except TimeoutError:
        if held.gave_way:
            return review.no_room(review.find_uid(body))
        return ReviewFault(review.find_uid(body), 408, "the body came too slowly", "slow-body")
    finally:
        room.unfinished.pop(held, None)


async def read_on(
    receive: Receive, room: Room, held: Body, body: bytearray, limit: int
) -> bytes | ReviewFault | None:
    """Read the rest of a body that arrives in several chunks, at most `limit` bytes of it."""
    more, added = True, len(body)
    while True:
        if len(body) > limit:
            uid = review.find_uid(body)
            body.clear()
            room.release(held)
            if more:
                await discard(receive)
            return review.too_large(uid, limit)
        if not room.take(held, added):
            return review.no_room(review.find_uid(body))
        if not more:
            return bytes(body)
        message = await receive()
        if message["type"] != "http.request":
            return None
        piece = message.get("body", b"")
        body += piece
        added = len(piece)
        more = message.get("more_body", False)


async def discard(receive: Receive) -> None:
    """Read and drop the rest of a body for a while: a client that still sends misses the answer."""
    seen = 0
    try:
        async with asyncio.timeout(DISCARD_SECONDS):
            while seen < DISCARD_BYTES:
                message = await receive()
                seen += len(message.get("body", b""))
                if not message.get("more_body"):
                    return
    except TimeoutError:
        return
