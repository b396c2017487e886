"""Summaries of the cluster's CustomResourceDefinitions: metadata is watched, each CRD is read once."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from hashlib import blake2b
from typing import Any, NamedTuple

import orjson

from webhook.catalog.definition_order import KindName
from webhook.cluster import list_and_watch
from webhook.cluster.client import ApiError, ApiServer
from webhook.cluster.list_and_watch import NOT_READ, follow
from webhook.interface import names
from webhook.interface.crd_summary import Brief, brief_of, restore_schemas
from webhook.interface.kind_schema import KindSchema
from webhook.interface.pruning import Shapes

log = logging.getLogger("podgate.crds")

Json = dict[str, Any]
PATH = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
OURS = frozenset(each.group for each in names.ALL)
AGAIN = 5.0  # seconds after which a CRD that could not be read is read again


class Stored(NamedTuple):
    """The summary of a CRD, and the digest of its schemas; equal schemas have the same digest."""

    brief: Brief
    digest: str


@dataclass(slots=True)
class Known:
    """The known CRDs by name; `bodies` has the schemas by digest.

    Only metadata is watched. A CRD that is new, or has a new generation, is read as a whole, and
    only its summary is kept: a cluster may have hundreds of CRDs, of a megabyte each.
    """

    server: ApiServer
    changed: Callable[[], None]
    found: dict[str, Stored] = field(default_factory=dict)
    bodies: dict[str, bytes] = field(default_factory=dict)
    marks: dict[str, Json] = field(default_factory=dict)
    collection: list_and_watch.Collection = field(
        default_factory=lambda: list_and_watch.Collection(PATH, only_metadata=True, brief=mark_of)
    )
    wake: asyncio.Event = field(default_factory=asyncio.Event)
    was_tried: bool = False

    @property
    def is_settled(self) -> bool:
        """Whether all CRDs were read, or cannot be read now."""
        failed = self.collection.trouble not in ("", NOT_READ)
        return self.was_tried or self.collection.absent or failed

    async def run(self) -> None:
        """Watch CRDs without end."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(follow(self.server, self.collection, lambda _: self.wake.set()))
            while True:
                await self.wake.wait()
                self.wake.clear()
                if not await self.catch_up():
                    with contextlib.suppress(TimeoutError):
                        async with asyncio.timeout(AGAIN):
                            await self.wake.wait()
                    self.wake.set()

    async def catch_up(self) -> bool:
        """Read changed CRDs and forget deleted ones; return whether all could be read."""
        names = {
            name: mark
            for (_, name), mark in self.collection.objects.items()
            if name.partition(".")[2] not in OURS
        }
        before = dict(self.found)
        for name in self.found.keys() - names.keys():
            del self.found[name]
            self.marks.pop(name, None)
        failed = False
        for name, mark in names.items():
            if self.marks.get(name) == mark:
                continue
            try:
                await self.read(name, mark)
            except ApiError as error:
                log.warning("reading CustomResourceDefinition %s: %s", name, error)
                failed = True
                if error.code == 403:
                    break  # as it is for the others: a cluster may have hundreds
            except Exception:  # one CRD must not end the process that reads the others
                log.exception("reading CustomResourceDefinition %s failed", name)
                self.marks[name] = mark
        self.forget_bodies()
        self.was_tried = True
        if before != self.found:
            self.changed()
        return not failed

    async def read(self, name: str, mark: Json) -> None:
        """Read one CRD; the watch reports one that was deleted in the meantime."""
        data = await self.server.find(f"{PATH}/{name}")
        made = await asyncio.to_thread(brief_of, data)
        self.marks[name] = mark
        if made is None:
            return
        brief, schemas = made
        body = orjson.dumps(schemas)
        digest = blake2b(body, digest_size=16).hexdigest()
        self.bodies[digest] = body
        self.found[name] = Stored(brief, digest)

    def forget_bodies(self) -> None:
        """Forget the schemas that no CRD has any more."""
        used = {each.digest for each in self.found.values()}
        for digest in self.bodies.keys() - used:
            del self.bodies[digest]


def rows_of(found: Mapping[str, Stored]) -> list[tuple[str, Json]]:
    """CRDs as plain JSON, the inverse of `found_of`."""
    return [(each.digest, asdict(each.brief)) for _, each in sorted(found.items())]


def found_of(rows: Iterable[tuple[str, Json]]) -> dict[str, Stored]:
    """CRDs by name, the inverse of `rows_of`."""
    return {brief["name"]: Stored(Brief(**brief), digest) for digest, brief in rows}


def mark_of(item: Json) -> Json:
    """A value that changes when the schemas of a CRD change."""
    metadata = item.get("metadata") or {}
    return {"uid": metadata.get("uid"), "generation": metadata.get("generation")}


@dataclass(slots=True)
class Schemas:
    """The schemas of kinds, decoded on first use; `load` returns a stored body."""

    load: Callable[[str], bytes]
    shapes: Shapes = field(default_factory=Shapes)
    decoded: dict[str, tuple[Stored, tuple[KindSchema, ...]]] = field(default_factory=dict)

    def of(
        self,
        found: Mapping[str, Stored],
        beside: Iterable[KindSchema],
        kinds: Collection[KindName],
    ) -> tuple[KindSchema, ...]:
        """The schemas of these kinds and of all kinds with pods. Those in `beside`, from files,
        apply to kinds that the cluster does not have.
        """
        wanted = {
            name: each
            for name, each in found.items()
            if each.brief.holds_pods or (each.brief.group, each.brief.kind) in kinds
        }
        # Decode first, then forget others: equal shapes are shared while one of them is in use.
        now = {name: self.one(each) for name, each in wanted.items()}
        self.decoded = {name: (wanted[name], each) for name, each in now.items()}
        has = {(each.brief.group, each.brief.kind) for each in found.values()}
        rest = (each for each in beside if (each.group, each.kind) not in has)
        return (*(each for several in now.values() for each in several), *rest)

    def one(self, stored: Stored) -> tuple[KindSchema, ...]:
        """The schemas of one CRD."""
        known = self.decoded.get(stored.brief.name)
        if known is not None and known[0] == stored:
            return known[1]
        return restore_schemas(stored.brief, orjson.loads(self.load(stored.digest)), self.shapes)
