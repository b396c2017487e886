"""Requests that HTTP workers have sent by the process that reads the cluster.

A worker asks over a Unix socket in the Pod's folder, and the reading process sends the request with
its own credentials and connections: only single objects are read, and only events are written. A
message is its length in four bytes, then JSON; an answer is followed by another such with the body.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import orjson

from webhook.cluster.client import JSON, TIMEOUT, ApiError, ApiServer, Json, name_of

log = logging.getLogger("podgate.reader")

LENGTH = struct.Struct(">I")
LONGEST = 16 * 1024 * 1024
AGAIN = 0.05  # seconds between attempts to reach a reading process that is not there yet
ENDED = "the process that reads the cluster does not run; it is started again within seconds"


class Sender(Protocol):
    """Sends requests to an API server: `ApiServer`, or a worker's connection to the reader."""

    async def send(
        self,
        method: str,
        path: str,
        body: Json | None = None,
        content: str = JSON,
        accept: str = JSON,
        timeout: float = TIMEOUT,
    ) -> tuple[int, bytes]:
        """Status and body of the answer; raises ApiError where there is none."""


@dataclass(slots=True)
class ReaderConnection:
    """The connection of one event loop to the reading process, opened again when it has ended."""

    socket: Path
    numbers: itertools.count[int] = field(default_factory=itertools.count)
    waiting: dict[int, asyncio.Future[tuple[int, bytes]]] = field(default_factory=dict)
    writer: asyncio.StreamWriter | None = None
    opening: asyncio.Lock = field(default_factory=asyncio.Lock)
    reading: asyncio.Task[None] | None = None

    async def send(
        self,
        method: str,
        path: str,
        body: Json | None = None,
        content: str = JSON,
        accept: str = JSON,
        timeout: float = TIMEOUT,
    ) -> tuple[int, bytes]:
        """Status and body of the answer; raises ApiError where there is none."""
        number, loop = next(self.numbers), asyncio.get_running_loop()
        answer: asyncio.Future[tuple[int, bytes]] = loop.create_future()
        asked = {"id": number, "method": method, "path": path, "body": body, "timeout": timeout}
        try:
            async with asyncio.timeout(timeout):
                writer = await self.open()
                self.waiting[number] = answer
                writer.write(frame(orjson.dumps({**asked, "content": content, "accept": accept})))
                return await answer
        except TimeoutError:
            if self.writer is None or self.writer.is_closing():
                raise ApiError(0, ENDED) from None
            text = f"{name_of(method, path)}: the API server did not answer in {timeout:g} s"
            raise ApiError(0, text) from None
        finally:
            self.waiting.pop(number, None)

    def close(self) -> None:
        """End the connection; the next request opens another."""
        if self.writer is not None:
            self.writer.transport.abort()

    async def open(self) -> asyncio.StreamWriter:
        """The connection, once the reading process listens."""
        async with self.opening:
            while self.writer is None or self.writer.is_closing():
                try:
                    reader, self.writer = await asyncio.open_unix_connection(str(self.socket))
                except OSError:
                    await asyncio.sleep(AGAIN)
                else:
                    reading = self.read_answers(reader, self.writer)
                    self.reading = asyncio.get_running_loop().create_task(reading)
            return self.writer

    async def read_answers(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Hand each answer to whoever waits for it; where the connection ends, all fail."""
        try:
            while True:
                head = orjson.loads(await read_frame(reader))
                body = await read_frame(reader)
                waiting = self.waiting.get(head["id"])
                if waiting is None or waiting.done():
                    continue
                if head["why"]:
                    waiting.set_exception(ApiError(0, head["why"]))
                else:
                    waiting.set_result((head["status"], body))
        except (OSError, ValueError, EOFError):
            for each in self.waiting.values():
                if not each.done():
                    each.set_exception(ApiError(0, ENDED))
        finally:
            writer.transport.abort()


@dataclass(slots=True)
class ReaderSocket:
    """The reading process's side: answers the workers of its Pod."""

    server: ApiServer
    socket: Path
    running: set[asyncio.Task[None]] = field(default_factory=set)

    async def run(self) -> None:
        """Listen for ever. An earlier process's socket is replaced."""
        fresh = self.socket.with_suffix(".new")
        fresh.unlink(missing_ok=True)
        listening = await asyncio.start_unix_server(self.serve, str(fresh))
        fresh.replace(self.socket)
        async with listening:
            await listening.serve_forever()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one worker until it goes."""
        with contextlib.suppress(OSError, ValueError, EOFError):
            while True:
                asked = orjson.loads(await read_frame(reader))
                task = asyncio.create_task(self.answer(asked, writer))
                self.running.add(task)
                task.add_done_callback(self.running.discard)
        writer.transport.abort()

    async def answer(self, asked: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        """Send one request, and write its answer or why there is none."""
        number = asked.pop("id")
        status, body, why = 0, b"", ""
        try:
            check_allowed(asked["method"], asked["path"])
            status, body = await self.server.send(**asked)
        except ApiError as error:
            why = str(error)
        except Exception as error:
            log.exception("a request of a worker failed")
            why = f"podgate has a fault ({type(error).__name__})"
        head = orjson.dumps({"id": number, "status": status, "why": why})
        with contextlib.suppress(OSError):
            writer.write(frame(head) + frame(body))
            await writer.drain()


def check_allowed(method: str, path: str) -> None:
    """Raise ApiError for a request that no worker has to send."""
    if method != "GET" and not (method == "POST" and path.endswith("/events")):
        raise ApiError(0, f"{name_of(method, path)}: workers only read objects and write events")


def frame(body: bytes) -> bytes:
    """A message with its length."""
    return LENGTH.pack(len(body)) + body


async def read_frame(reader: asyncio.StreamReader) -> bytes:
    """The next message; EOFError where the connection ends, ValueError for one that is too long."""
    (length,) = LENGTH.unpack(await reader.readexactly(LENGTH.size))
    if length > LONGEST:
        raise ValueError("the message is too long")
    return await reader.readexactly(length)
