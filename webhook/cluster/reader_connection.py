"""Requests that HTTP workers have sent by the process that reads the cluster.

A worker asks over a Unix socket in the Pod's folder, and the reading process sends the request with
its own credentials and connections: only single objects are read, and only events are written. Each
request has a connection of its own: JSON one way, and a line of JSON and the body the other way.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import orjson

from webhook.cluster.client import JSON, TIMEOUT, ApiError, ApiServer, Json, name_of

log = logging.getLogger("podgate.reader")

LONGEST_PATH = 103  # bytes of a socket's path; Linux takes 107
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


@dataclass(frozen=True, slots=True)
class ReaderConnection:
    """What a worker asks the reading process through."""

    socket: Path

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
        asked = {"method": method, "path": path, "body": body, "timeout": timeout}
        writer: asyncio.StreamWriter | None = None
        answer = b""
        try:
            async with asyncio.timeout(timeout):
                reader, writer = await self.open()
                writer.write(orjson.dumps({**asked, "content": content, "accept": accept}))
                writer.write_eof()
                answer = await reader.read()
        except TimeoutError:
            if writer is not None:
                text = f"{name_of(method, path)}: the API server did not answer in {timeout:g} s"
                raise ApiError(0, text) from None
        except OSError:
            pass  # it has just ended
        finally:
            if writer is not None:
                writer.transport.abort()
        line, _, data = answer.partition(b"\n")
        head = orjson.loads(line) if line else {}
        if head.get("why"):
            raise ApiError(0, head["why"])
        if head.get("size") != len(data):
            raise ApiError(0, ENDED)
        return head["status"], data

    async def open(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A connection, once the reading process listens."""
        while True:
            try:
                with short_path(self.socket) as path:
                    return await asyncio.open_unix_connection(path)
            except OSError:
                await asyncio.sleep(AGAIN)


@dataclass(frozen=True, slots=True)
class ReaderSocket:
    """The reading process's side: answers the workers of its Pod."""

    server: ApiServer
    socket: Path

    async def run(self) -> None:
        """Listen for ever. An earlier process's socket is replaced."""
        fresh = self.socket.with_suffix(".new")
        fresh.unlink(missing_ok=True)
        with short_path(fresh) as path:
            listening = await asyncio.start_unix_server(self.serve, path)
        fresh.replace(self.socket)
        async with listening:
            await listening.serve_forever()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Send one request, and write its answer or why there is none."""
        status, body, why = 0, b"", ""
        try:
            asked = orjson.loads(await reader.read())
            check_allowed(asked["method"], asked["path"])
            status, body = await self.server.send(**asked)
        except ApiError as error:
            why = str(error)
        except Exception as error:
            log.exception("a request of a worker failed")
            why = f"podgate has a fault ({type(error).__name__})"
        head = orjson.dumps({"status": status, "why": why, "size": len(body)})
        with contextlib.suppress(OSError):
            writer.write(head + b"\n" + body)
            await writer.drain()
        writer.close()


@contextlib.contextmanager
def short_path(socket: Path) -> Iterator[str]:
    """A path of a socket, by its folder's descriptor where the system takes none so long."""
    if len(os.fsencode(socket)) <= LONGEST_PATH:
        yield str(socket)
        return
    folder = os.open(socket.parent, os.O_RDONLY)
    try:
        yield f"/proc/self/fd/{folder}/{socket.name}"
    finally:
        os.close(folder)


def check_allowed(method: str, path: str) -> None:
    """Raise ApiError for a request that no worker has to send."""
    if method != "GET" and not (method == "POST" and path.endswith("/events")):
        raise ApiError(0, f"{name_of(method, path)}: workers only read objects and write events")
