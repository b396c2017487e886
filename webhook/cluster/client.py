"""The API server for whoever reads and writes objects: one request each, lists in pages, watches."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

import httptools
import orjson

from webhook.cluster.namespaces import (
    Access,
    AccessError,
    Credentials,
    TooLongError,
    head_of,
    is_status,
    opened,
    reason_of,
    request,
)

log = logging.getLogger("podgate.api")

Json = dict[str, Any]
PAGE = 250
PATIENCE = 15.0
WATCH_SECONDS = 290
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 30.0
APPLY = "application/apply-patch+yaml"
MERGE = "application/merge-patch+json"
NOT_READ = "not read yet"
LONGEST_LINE = 8 * 1024 * 1024
JSON = "application/json"
METADATA = f"{JSON};as=PartialObjectMetadata;g=meta.k8s.io;v=v1, {JSON}"
METADATA_LIST = f"{JSON};as=PartialObjectMetadataList;g=meta.k8s.io;v=v1, {JSON}"
SHORT = 1.0  # seconds; a watch that ends sooner and says nothing is a failure


class ApiError(Exception):
    """What the API server said instead of doing it; `code` is the HTTP status, 0 without an answer."""

    def __init__(self, code: int, text: str, reason: str = "") -> None:
        super().__init__(text)
        self.code = code
        self.reason = reason


class LongPageError(ApiError):
    """The answer is longer than this process reads at once: ask for fewer objects."""


class GoneError(ApiError):
    """The version to watch from is too old: list again."""


@dataclass(slots=True)
class ApiServer:
    """One API server; every method raises ApiError, with code 0 where there was no answer."""

    credentials: Credentials
    manager: str = "podgate"

    async def ask(
        self,
        method: str,
        path: str,
        body: Json | None = None,
        content: str = JSON,
        accept: str = JSON,
    ) -> Json:
        """The object in the answer."""
        data = b"" if body is None else orjson.dumps(body)
        asked = name_of(method, path)
        try:
            async with asyncio.timeout(PATIENCE):
                access = await asyncio.to_thread(self.credentials.current)
                status, answer = await request(
                    access, method, path, data, content=content, accept=accept
                )
        except TimeoutError:
            text = f"{asked}: the API server did not answer in {PATIENCE:g} s"
            raise ApiError(0, text) from None
        except AccessError as error:
            raise ApiError(0, str(error)) from error
        except (OSError, ValueError, httptools.HttpParserError) as error:
            text = f"{asked}: asking the API server failed: {reason_of(error)}"
            made = LongPageError if isinstance(error, TooLongError) else ApiError
            raise made(0, text) from error
        if not 200 <= status < 300:
            raise refusal(status, method, path, answer)
        return object_in(answer, asked)

    async def find(self, path: str) -> Json | None:
        """The object at a path, None when there is none of that name."""
        try:
            return await self.ask("GET", path)
        except ApiError as error:
            if error.code == 404:
                return None
            raise

    async def create(self, path: str, body: Json) -> Json:
        """Make an object in a collection."""
        return await self.ask("POST", f"{path}?fieldManager={self.manager}", body)

    async def apply(self, path: str, body: Json, *, dry_run: bool = False) -> Json:
        """Bring the object at a path to what the body says, as the owner of these fields."""
        dry = "&dryRun=All" if dry_run else ""
        query = f"?fieldManager={self.manager}&force=true{dry}"
        return await self.ask("PATCH", path + query, body, APPLY)

    async def merge(self, path: str, body: Json) -> Json:
        """Change some fields of the object at a path."""
        return await self.ask("PATCH", f"{path}?fieldManager={self.manager}", body, MERGE)

    async def delete(self, path: str) -> None:
        """Delete the object at a path, if it is there."""
        try:
            await self.ask("DELETE", path)
        except ApiError as error:
            if error.code != 404:
                raise

    async def items(self, path: str, **query: str) -> tuple[list[Json], str]:
        """All objects of a collection, read in pages, and the version of the list."""
        found: list[Json] = []
        newest = ""
        async for items, version in self.pages(path, **query):
            found += items
            newest = version
        return found, newest

    async def pages(
        self, path: str, accept: str = JSON, **query: str
    ) -> AsyncIterator[tuple[list[Json], str]]:
        """The objects of a collection page by page, each with the version of the list.

        Where objects are so large that a page is longer than is read at once, pages get smaller.
        """
        token, limit = "", PAGE
        while True:
            more = {**query, "limit": str(limit), **({"continue": token} if token else {})}
            try:
                page = await self.ask("GET", f"{path}?{urlencode(more)}", accept=accept)
            except LongPageError:
                if limit == 1:
                    raise
                limit = max(1, limit // 4)
                continue
            items, metadata = page.get("items") or (), metadata_of(page)
            if not isinstance(items, list | tuple):
                raise ApiError(0, f"{name_of('GET', path)}: the API server's answer is no list")
            token = str(metadata.get("continue") or "")
            yield (
                [each for each in items if isinstance(each, dict)],
                str(metadata.get("resourceVersion") or ""),
            )
            if not token:
                return

    async def events(
        self, path: str, version: str, accept: str = JSON, **query: str
    ) -> AsyncIterator[tuple[str, Json]]:
        """What happens to a collection after a version, until the server ends the watch."""
        asked = urlencode(
            {
                **query,
                "watch": "1",
                "allowWatchBookmarks": "true",
                "resourceVersion": version,
                "timeoutSeconds": str(WATCH_SECONDS),
            }
        )
        access = await asyncio.to_thread(self.credentials.current)
        async for line in lines(access, f"{path}?{asked}", accept):
            event = object_in(line, name_of("GET", path))
            kind, item = str(event.get("type")), event.get("object") or {}
            if not isinstance(item, dict):
                raise ApiError(0, f"{name_of('GET', path)}: an event has no object")
            if kind == "ERROR":
                number, text = item.get("code"), str(item.get("message"))
                code = number if isinstance(number, int) else 0
                raise (GoneError if code == 410 else ApiError)(code, text)
            yield kind, item


def name_of(method: str, path: str) -> str:
    """A request as errors name it."""
    return f"{method} {path.partition('?')[0]}"


def object_in(answer: bytes, asked: str) -> Json:
    """The object in an answer; ApiError, which names the request, where none can be read."""
    try:
        found = orjson.loads(answer)
    except ValueError as error:
        text = f"{asked}: the API server's answer cannot be read as JSON ({error})"
        raise ApiError(0, text) from error
    if not isinstance(found, dict):
        raise ApiError(0, f"{asked}: the API server's answer is no object")
    return found


def metadata_of(body: Json) -> Json:
    """The metadata of an object or a list; empty where it is no map."""
    metadata = body.get("metadata")
    return metadata if isinstance(metadata, dict) else {}


def refusal(status: int, method: str, path: str, answer: bytes) -> ApiError:
    """The error for an answer that is none of success."""
    text, reason = f"HTTP {status}", ""
    if is_status(answer):
        found = orjson.loads(answer)
        text, reason = str(found.get("message") or text), str(found.get("reason") or "")
    made = GoneError if status == 410 else ApiError
    return made(status, f"{name_of(method, path)}: {text}", reason)


async def lines(access: Access, path: str, accept: str = JSON) -> AsyncIterator[bytes]:
    """The lines of one long answer as they come."""
    # Not wait_for: before Python 3.12 it may swallow that somebody cancels, and this goes on for ever.
    async with asyncio.timeout(PATIENCE):
        reader, writer = await opened(access)
    try:
        writer.write(head_of(access, "GET", path, accept=accept))
        answer = Streamed()
        parser = httptools.HttpResponseParser(answer)
        while not answer.complete:
            async with asyncio.timeout(WATCH_SECONDS + PATIENCE):
                data = await reader.read(65536)
            if not data:
                if not answer.begun:
                    raise ConnectionResetError("the connection ended without an answer")
                return
            parser.feed_data(data)
            if answer.started and parser.get_status_code() != 200:
                raise refusal(parser.get_status_code(), "GET", path, bytes(answer.rest))
            for line in answer.taken():
                yield line
            if len(answer.rest) > LONGEST_LINE:
                raise ValueError(f"an event is longer than {LONGEST_LINE} bytes")
    finally:
        writer.transport.abort()


@dataclass(slots=True)
class Streamed:
    """What httptools tells of a long answer: its lines."""

    rest: bytearray = field(default_factory=bytearray)
    begun: bool = False
    started: bool = False
    complete: bool = False

    def on_headers_complete(self) -> None:
        """There is an answer, of whatever length."""
        self.begun = True

    def on_body(self, data: bytes) -> None:
        """A piece of the body."""
        self.started = True
        self.rest += data

    def on_message_complete(self) -> None:
        """The end of the answer."""
        self.complete = True

    def taken(self) -> list[bytes]:
        """The whole lines so far."""
        *whole, rest = self.rest.split(b"\n")
        self.rest = rest
        return [bytes(each) for each in whole if each.strip()]


Key = tuple[str, str]


def whole(item: Json) -> Json:
    """All of an object."""
    return item


@dataclass(slots=True)
class Collection:
    """The objects of one resource as far as they are known, by namespace and name.

    `version` is where a watch goes on, "" before the first list. `absent` says that the API server
    has no such resource, which is no failure; `trouble` is why nothing newer is known. `heard` is
    when the server last said anything on it, in Unix time. `query` and `only_metadata`
    are what is asked for, and `kept` makes of each object what is remembered of it. Where `touched`
    is a set, it gets the keys of objects that have come, changed or gone; its owner empties it.
    """

    path: str
    only_metadata: bool = False
    query: Mapping[str, str] = field(default_factory=dict)
    kept: Callable[[Json], Json] = whole
    touched: set[Key] | None = None
    objects: dict[Key, Json] = field(default_factory=dict)
    version: str = ""
    was_read: bool = False
    absent: bool = False
    trouble: str = NOT_READ
    heard: float = 0.0

    @property
    def is_known(self) -> bool:
        """Whether it was read at least once, or is known not to be there."""
        return self.was_read or self.absent

    async def listed(self, server: ApiServer) -> str:
        """Read all objects, of which no more than one page is whole at a time; the list's version."""
        found: dict[Key, Json] = {}
        version = ""
        accept = METADATA_LIST if self.only_metadata else JSON
        async for items, newest in server.pages(self.path, accept, **self.query):
            found |= {key_of(each): self.kept(each) for each in items}
            version = newest
        self.replace(found)
        return version

    def replace(self, found: dict[Key, Json]) -> None:
        """Take these objects for those that were known."""
        if self.touched is not None:
            keys = found.keys() | self.objects.keys()
            self.touched |= {key for key in keys if found.get(key) != self.objects.get(key)}
        self.objects = found

    def put(self, key: Key, body: Json | None) -> None:
        """Take in one object, None for one that has gone."""
        if self.touched is not None and self.objects.get(key) != body:
            self.touched.add(key)
        if body is None:
            self.objects.pop(key, None)
        else:
            self.objects[key] = body


def key_of(item: Json) -> Key:
    """Namespace and name of an object."""
    metadata = metadata_of(item)
    return str(metadata.get("namespace") or ""), str(metadata.get("name") or "")


async def follow(
    server: ApiServer,
    collection: Collection,
    changed: Callable[[Collection], None],
    pause: Callable[[int], float] | None = None,
) -> None:
    """Keep a collection up to date for ever: list, watch, and again; `changed` is told of changes.

    Whatever fails leaves the objects as they were.
    """
    failures = 0
    while True:
        try:
            if await read(server, collection, changed):
                failures = 0
            begun, heard = time.monotonic(), collection.heard
            await watch(server, collection, changed)
            if time.monotonic() - begun > SHORT or collection.heard > heard:
                failures = 0
                continue
            trouble = ""
        except GoneError:
            collection.version = ""
            continue
        except ApiError as error:
            trouble = str(error)
            if error.code == 404:
                gone = not collection.absent or bool(collection.objects)
                collection.replace({})
                collection.version = ""
                collection.absent, trouble = True, ""
                collection.heard = time.time()
                collection.trouble = trouble
                if gone:
                    changed(collection)
        except (OSError, ValueError, TimeoutError, httptools.HttpParserError, AccessError) as error:
            trouble = reason_of(error) if isinstance(error, Exception) else str(error)
        if trouble:
            if trouble != collection.trouble:
                log.warning("watching %s: %s", collection.path, trouble)
            collection.trouble = trouble
        failures += 1
        await asyncio.sleep((pause or waiting)(failures))


def waiting(failures: int) -> float:
    """Seconds to wait after so many failures in a row, never the same for all who wait."""
    longest = min(LONGEST_PAUSE, FIRST_PAUSE * 2.0 ** min(failures, 10))
    return random.uniform(longest / 2, longest)  # noqa: S311 - spreads load, keeps no secret


async def read(
    server: ApiServer, collection: Collection, changed: Callable[[Collection], None]
) -> bool:
    """List the collection where there is no version to watch from; whether it was listed."""
    if collection.version:
        return False
    before = collection.objects if collection.is_known and not collection.absent else None
    collection.version = await collection.listed(server)
    same = before is not None and before == collection.objects
    collection.was_read, collection.absent, collection.trouble = True, False, ""
    collection.heard = time.time()
    if not same:
        changed(collection)
    return True


async def watch(
    server: ApiServer, collection: Collection, changed: Callable[[Collection], None]
) -> None:
    """Take in what happens until the server ends the watch."""
    # A server that is asked for a list here ends the watch in silence.
    accept = METADATA if collection.only_metadata else JSON
    asked = collection.path, collection.version, accept
    async for kind, item in server.events(*asked, **collection.query):
        version = str(metadata_of(item).get("resourceVersion") or "")
        if version:
            collection.version = version
        collection.trouble, collection.heard = "", time.time()
        if kind == "BOOKMARK":
            continue
        collection.put(key_of(item), None if kind == "DELETED" else collection.kept(item))
        changed(collection)
