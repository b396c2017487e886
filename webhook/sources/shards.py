"""Claims, device classes and labels of namespaces in the Pod's folder: apart from the documents, in shards.

They change far more often than documents, and one change rewrites one shard and nothing else.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any
from zlib import crc32

from webhook.cluster.client import ApiError, ApiServer
from webhook.cluster.list_and_watch import NOT_READ, Collection, follow
from webhook.evaluation.references import ClaimKey
from webhook.sources.snapshot import Snapshot

log = logging.getLogger("podgate.shards")

SHARDS = 64
SHARD, WATCHED = "{}-{}.json", "{}.json"
CLAIMS, DOMAINS, CLASSES, NAMESPACES = "claims", "domains", "device-classes", "namespaces"
ABSENT = 60.0  # seconds after which a cluster without such objects is asked for them again
AGAIN = 5.0  # seconds after which that is asked again if there was no answer
QUIET = 0.01  # seconds in which changes are collected: a review that waits for one has 0.3

Mark = tuple[int, int]
Rows = Mapping[ClaimKey, Any]
"""What is kept of objects, by kind, namespace and name."""


def shard_of(namespace: str, name: str, shards: int = SHARDS) -> int:
    """The number of an object's shard. One namespace may have most of the claims of a cluster."""
    return crc32(f"{namespace}/{name}".encode()) % shards


@dataclass(slots=True)
class Shards:
    """The shards of one name in a snapshot's folder, each decoded again only when it has changed.

    Any thread may read: what is decoded is never changed, only replaced. `number` is how many there
    are: one for what is always read as a whole.
    """

    snapshot: Snapshot
    name: str = CLAIMS
    number: int = SHARDS
    decoded: dict[int, tuple[Mark, Rows]] = field(default_factory=dict)
    kinds: tuple[Mark, frozenset[str]] = ((0, 0), frozenset())

    def write(self, number: int, objects: Rows) -> None:
        """Replace one shard. What several objects share is written, and decoded, once."""
        bodies = {id(body): body for body in objects.values()}
        places = {each: place for place, each in enumerate(bodies)}
        rows = [
            [*key, places[id(body)]] for key, body in sorted(objects.items(), key=itemgetter(0))
        ]
        content = {"bodies": list(bodies.values()), "rows": rows}
        self.snapshot.put(SHARD.format(self.name, number), content)

    def write_watched(self, kinds: Iterable[str]) -> None:
        """Write which kinds are watched, so that new objects of them arrive without a request."""
        self.snapshot.put(WATCHED.format(self.name), {"kinds": sorted(kinds)})

    def watched_types(self) -> frozenset[str]:
        """Read the watched kinds; empty before they are written."""
        name = WATCHED.format(self.name)
        mark = self.snapshot.mark(name)
        if mark != self.kinds[0]:
            body = self.snapshot.take(self.snapshot.folder / name) or {"kinds": []}
            self.kinds = mark, frozenset(body["kinds"])
        return self.kinds[1]

    def shard(self, number: int) -> Rows:
        """The newest version of one shard; empty before it is written."""
        name = SHARD.format(self.name, number)
        mark = self.snapshot.mark(name)
        known = self.decoded.get(number)
        if known is None or known[0] != mark:
            body = self.snapshot.take(self.snapshot.folder / name) or {"rows": [], "bodies": []}
            bodies = body["bodies"]
            rows = {(kind, space, each): bodies[place] for kind, space, each, place in body["rows"]}
            known = self.decoded[number] = mark, rows
        return known[1]


@dataclass(slots=True)
class ShardedCollections:
    """Collections as far as they are known, written by shard whenever they change.

    `find` gives the collections by kind, none where the cluster has no such API. `is_settled` means
    that there is nothing to wait for: they are written, or cannot be had.
    """

    server: ApiServer
    shards: Shards
    find: Callable[[ApiServer], Awaitable[dict[str, Collection]]]
    followed: Mapping[str, Collection] = field(default_factory=dict)
    known: list[dict[ClaimKey, Any]] = field(init=False)
    kinds: frozenset[str] | None = None
    wake: asyncio.Event = field(default_factory=asyncio.Event)
    is_settled: bool = False

    def __post_init__(self) -> None:
        """Nothing is known yet."""
        self.known = [{} for _ in range(self.shards.number)]

    async def run(self) -> None:
        """Watch without end, in the newest version that the cluster serves."""
        while True:
            pause = ABSENT
            try:
                self.followed = await self.find(self.server)
                if self.followed:
                    await self.follow_all()
                    pause = AGAIN
                elif self.kinds != frozenset():
                    self.begin_anew()
            except ApiError as error:
                log.warning("looking for %s: %s", self.shards.name, error)
                pause = AGAIN
            self.is_settled = True
            await asyncio.sleep(pause)

    async def follow_all(self) -> None:
        """Watch all of them until the cluster no longer serves one."""
        async with asyncio.TaskGroup() as tasks:
            followers = [
                tasks.create_task(follow(self.server, each, lambda _: self.wake.set()))
                for each in self.followed.values()
            ]
            await self.begin()
            while not any(each.absent for each in self.followed.values()):
                await self.wake.wait()
                await asyncio.sleep(QUIET)
                self.wake.clear()
                self.write(self.take_touched())
            for each in followers:
                each.cancel()

    async def begin(self) -> None:
        """Write every shard once all objects were read: those of an earlier process may be outdated.

        If nothing can be read, the old shards stay; a kind that alone cannot be read is omitted.
        """
        while not all(each.is_known or is_troubled(each) for each in self.followed.values()):
            await asyncio.sleep(0.02)
        self.is_settled = not any(each.is_known for each in self.followed.values())
        while not any(each.is_known for each in self.followed.values()):
            await self.wake.wait()
            self.wake.clear()
        self.begin_anew()
        self.is_settled = True

    def begin_anew(self) -> None:
        """Write every shard with the objects that are known now."""
        self.known = [{} for _ in range(self.shards.number)]
        self.take_touched()
        self.write(set(range(self.shards.number)))

    def take_touched(self) -> set[int]:
        """Apply the changes; return the shards that differ."""
        dirty: set[int] = set()
        for kind, collection in self.followed.items():
            touched, collection.touched = collection.touched or set(), set()
            for namespace, name in touched:
                number = shard_of(namespace, name, self.shards.number)
                spec = collection.objects.get((namespace, name))
                if spec is None:
                    self.known[number].pop((kind, namespace, name), None)
                else:
                    self.known[number][kind, namespace, name] = spec
                dirty.add(number)
        return dirty

    @property
    def heard(self) -> float:
        """When the API server last sent something on all of them, in Unix time; 0 for never."""
        return min((each.heard for each in self.followed.values()), default=0.0)

    def write(self, dirty: set[int]) -> None:
        """Write these shards, and the watched kinds if they changed."""
        for number in sorted(dirty):
            self.shards.write(number, self.known[number])
        kinds = frozenset(
            kind for kind, each in self.followed.items() if each.was_read and not each.absent
        )
        if kinds != self.kinds:
            self.kinds = kinds
            self.shards.write_watched(kinds)


def is_troubled(collection: Collection) -> bool:
    """Whether an attempt to read it failed."""
    return collection.trouble not in ("", NOT_READ)
