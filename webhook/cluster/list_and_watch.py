"""Collections of objects: read in pages, watched, and kept up to date.

The informer of the `kubernetes` package (37.0) reads a collection in one piece and keeps it whole,
asks for no bookmarks, waits for ever on a dead connection and retries without a pause.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any
from urllib.parse import urlencode

from webhook.cluster.client import (
    JSON,
    METADATA,
    ApiError,
    ApiServer,
    Json,
    LongPageError,
    NoAnswerError,
    metadata_of,
    name_of,
    object_in,
    read_lines,
)

log = logging.getLogger("podgate.api")

Key = tuple[str, str]
PAGE, WATCH_SECONDS = 500, 290
METADATA_LIST = METADATA.replace("PartialObjectMetadata", "PartialObjectMetadataList")
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 30.0
PASSING = frozenset({429, 500, 502, 503, 504})  # what may be over in a moment
SHORT = 1.0  # seconds; a watch that ends sooner without an event is a failure
NOT_READ = "not read yet"
NO_QUERY: Mapping[str, str] = MappingProxyType({})


@dataclass(slots=True)
class Page:
    """Some objects of a list, its resourceVersion and apiVersion, and how many objects follow.

    A list is not consistent from the page on at which the API server had forgotten the version that
    the list began with: what was deleted since is missing from later pages only.
    """

    items: list[Json]
    version: str
    api_version: str = ""
    remaining: int = 0
    is_consistent: bool = True


async def read_pages(
    server: ApiServer,
    path: str,
    accept: str = JSON,
    query: Mapping[str, str] = NO_QUERY,
    *,
    resumed: float = 0.0,
) -> AsyncIterator[Page]:
    """The objects of a collection page by page; raises ApiError.

    While the API server is away or busy, a page is asked for again, for `resumed` seconds in all.
    Pages get smaller where one is longer than is read at once. A list that takes longer than the
    API server remembers its version goes on with what is there now. `query` may limit the pages.
    """
    token, limit, is_consistent, failures = "", int(query.get("limit", PAGE)), True, 0
    while True:
        more = {**query, "limit": str(limit), **({"continue": token} if token else {})}
        try:
            page = await server.ask("GET", f"{path}?{urlencode(more)}", accept=accept)
        except LongPageError:
            if limit == 1:
                raise
            limit = max(1, limit // 4)
            continue
        except ApiError as error:
            failures += 1
            seconds = choose_pause(failures)
            # For a moment after its start an API server forbids what its rules allow.
            begins = error.code == 403 and (token or failures > 1)
            passes = begins or isinstance(error, NoAnswerError) or error.code in PASSING
            if passes and resumed > seconds and server.has_answered:
                log.warning("%s; asking again in %.0f s", error, seconds)
                resumed -= seconds
                await asyncio.sleep(seconds)
                continue
            following = str(metadata_of(error.body).get("continue") or "")
            if error.code != 410 or not token or following in ("", token):
                raise
            log.warning("listing %s took so long that the rest is of a later moment", path)
            token, is_consistent = following, False
            continue
        items, metadata = page.get("items") or (), metadata_of(page)
        if not isinstance(items, list | tuple):
            raise ApiError(0, f"{name_of('GET', path)}: the API server's answer is no list")
        token = str(metadata.get("continue") or "")
        version = str(metadata.get("resourceVersion") or "")
        objects = [each for each in items if isinstance(each, dict)]
        number = metadata.get("remainingItemCount")
        remaining = number if token and isinstance(number, int) else 0
        failures = 0
        yield Page(objects, version, str(page.get("apiVersion") or ""), remaining, is_consistent)
        if not token:
            return


async def read_all(
    server: ApiServer, path: str, accept: str = JSON, query: Mapping[str, str] = NO_QUERY
) -> list[Json]:
    """All objects of a collection; raises ApiError."""
    return [each async for page in read_pages(server, path, accept, query) for each in page.items]


async def read_events(
    server: ApiServer, path: str, version: str, accept: str = JSON, **query: str
) -> AsyncIterator[tuple[str, Json]]:
    """The events of a collection after a version, until the server ends the watch.

    Raises ApiError, with code 410 where the version is too old to watch from.
    """
    asked = {
        **query,
        "watch": "1",
        "allowWatchBookmarks": "true",
        "resourceVersion": version,
        "timeoutSeconds": str(WATCH_SECONDS),
    }
    async for line in read_lines(server, f"{path}?{urlencode(asked)}", accept):
        event = object_in(line, name_of("GET", path))
        kind, item = str(event.get("type")), event.get("object") or {}
        if not isinstance(item, dict):
            raise ApiError(0, f"{name_of('GET', path)}: an event has no object")
        if kind == "ERROR":
            number = item.get("code")
            code = number if isinstance(number, int) else 0
            raise ApiError(code, str(item.get("message")), item)
        yield kind, item


def keep_whole(item: Json) -> Json:
    """All of an object."""
    return item


@dataclass(slots=True)
class Collection:
    """The objects of one resource as far as they are known, by namespace and name.

    `query` and `only_metadata` are what is asked for, and `brief` makes of each object what is kept
    of it. `version` is where a watch goes on, "" before the first list. `absent` means that the API
    server has no such resource, which is no failure; `trouble` is why nothing newer is known.
    `heard` is when the server last sent something on it, in Unix time. Where `touched` is a set, the
    keys of objects that have come, changed or gone are added to it; its owner empties it.
    """

    path: str
    only_metadata: bool = False
    query: Mapping[str, str] = field(default_factory=dict)
    brief: Callable[[Json], Any] = keep_whole
    touched: set[Key] | None = None
    objects: dict[Key, Any] = field(default_factory=dict)
    version: str = ""
    was_read: bool = False
    is_consistent: bool = True
    absent: bool = False
    trouble: str = NOT_READ
    heard: float = 0.0

    @property
    def is_known(self) -> bool:
        """Whether it was read at least once, or is known not to be there."""
        return self.was_read or self.absent

    async def read(self, server: ApiServer, resumed: float = 0.0) -> None:
        """Read all objects, whole no more than a page at a time; raises ApiError."""
        found: dict[Key, Any] = {}
        version, is_consistent = "", True
        accept = METADATA_LIST if self.only_metadata else JSON
        async for page in read_pages(server, self.path, accept, self.query, resumed=resumed):
            found |= {key_of(each): self.brief(each) for each in page.items}
            version, is_consistent = page.version, page.is_consistent
        self.replace(found)
        self.version, self.is_consistent = version, is_consistent

    def replace(self, found: dict[Key, Any]) -> None:
        """Keep these objects instead of those that were known."""
        if self.touched is not None:
            keys = found.keys() | self.objects.keys()
            self.touched |= {key for key in keys if found.get(key) != self.objects.get(key)}
        self.objects = found

    def put(self, key: Key, body: Any) -> None:
        """Keep one object, or forget it where the body is None."""
        if self.touched is not None and self.objects.get(key) != body:
            self.touched.add(key)
        if body is None:
            self.objects.pop(key, None)
        else:
            self.objects[key] = body

    def note_absent(self) -> bool:
        """The API server has no such resource; whether that is new."""
        is_new = not self.absent or bool(self.objects)
        self.replace({})
        self.version, self.trouble = "", ""
        self.absent, self.heard = True, time.time()
        return is_new

    def note_failure(self, trouble: str) -> None:
        """Nothing newer is known; logged once for each reason."""
        if trouble != self.trouble:
            log.warning("watching %s: %s", self.path, trouble)
        self.trouble = trouble


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
    """Keep a collection up to date for ever; `changed` is called after every change.

    Failures leave the objects as they were. `pause` gives the seconds to wait after n of them.
    """
    failures = 0
    while True:
        try:
            if not collection.version:
                await list_again(server, collection, changed)
                if not collection.is_consistent:  # once more at once: it may not last as long again
                    await list_again(server, collection, changed)
            begun, heard = time.monotonic(), collection.heard
            await watch(server, collection, changed)
            if not collection.is_consistent:
                collection.version = ""
            if time.monotonic() - begun > SHORT or collection.heard > heard:
                failures = 0
                continue
        except ApiError as error:
            if error.code == 410:
                collection.version = ""
            elif error.code != 404:
                collection.note_failure(str(error))
            elif collection.note_absent():
                changed(collection)
        except Exception as error:  # one collection must not end the others
            log.exception("watching %s failed", collection.path)
            collection.version = ""
            collection.note_failure(f"podgate has a fault ({type(error).__name__})")
        failures += 1
        await asyncio.sleep((pause or choose_pause)(failures))


def choose_pause(failures: int) -> float:
    """Seconds to wait after so many failures in a row, never the same for all who wait."""
    longest = min(LONGEST_PAUSE, FIRST_PAUSE * 2.0 ** min(failures, 10))
    return random.uniform(longest / 2, longest)  # noqa: S311 - spreads load, keeps no secret


async def list_again(
    server: ApiServer, collection: Collection, changed: Callable[[Collection], None]
) -> None:
    """Read the collection as a whole."""
    before = collection.objects if collection.is_known and not collection.absent else None
    await collection.read(server)
    collection.was_read, collection.absent, collection.trouble = True, False, ""
    collection.heard = time.time()
    if before is None or before != collection.objects:
        changed(collection)


async def watch(
    server: ApiServer, collection: Collection, changed: Callable[[Collection], None]
) -> None:
    """Take in events until the server ends the watch."""
    # A server that is asked for a list here ends the watch at once.
    asked = collection.path, collection.version, METADATA if collection.only_metadata else JSON
    async for kind, item in read_events(server, *asked, **collection.query):
        version = metadata_of(item).get("resourceVersion")
        collection.version = str(version or collection.version)
        collection.trouble, collection.heard = "", time.time()
        if kind == "BOOKMARK":
            continue
        collection.put(key_of(item), None if kind == "DELETED" else collection.brief(item))
        changed(collection)
