"""The process that lists and watches the cluster's documents, and writes them down for the workers.

Decoding a list must never hold up a review, so it is done here, once for all workers of a Pod.
Run as `python -m webhook.sources.reader FOLDER NAMESPACE [KUBECONFIG]` by the webhook; it ends
with its parent.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from webhook.cluster.client import NOT_READ, ApiServer, Collection, follow
from webhook.cluster.namespaces import NO_ACCESS, credentials_of
from webhook.documents import enclosed
from webhook.interface import names
from webhook.service import telemetry
from webhook.sources import last_good
from webhook.sources.claim_snapshot import ClaimShards
from webhook.sources.claims import WatchedClaims
from webhook.sources.configmaps import labelled
from webhook.sources.crds import Known, rows_of
from webhook.sources.last_good import documents_of
from webhook.sources.snapshot import Key, Snapshot

log = logging.getLogger("podgate.watcher")

QUIET = 0.1  # seconds without a change after which what has changed is written
LONGEST = 1.0  # seconds after which it is written even so
PATIENCE = 3.0  # seconds that what is known of documents waits for CRDs and claims at the start
HEARD_EVERY = 2.0  # seconds between two notes on how old that is
RESENT = frozenset({"managedFields", "resourceVersion", "selfLink"})


def paths() -> dict[str, str]:
    """The collections of all kinds of documents, by kind."""
    return {each.kind: each.path for each in names.ALL}


def collections_of(namespace: str = "") -> dict[str, Collection]:
    """The collections of all documents by kind, with the ConfigMaps of podgate's own namespace."""
    found = {kind: Collection(path) for kind, path in paths().items()}
    return {**found, enclosed.KIND: labelled(namespace)} if namespace else found


@dataclass(slots=True)
class Watcher:
    """All collections, and the snapshot that they are written to."""

    server: ApiServer
    snapshot: Snapshot
    collections: dict[str, Collection] = field(default_factory=collections_of)
    dirty: asyncio.Event = field(default_factory=asyncio.Event)
    serial: int = 0
    memory: Collection | None = None
    crds: Known = field(init=False)
    claims: WatchedClaims = field(init=False)
    written: tuple[dict[Key, Any], list[tuple[str, Any]]] | None = None

    def __post_init__(self) -> None:
        """CRDs are told of as everything else; claims are written apart."""
        self.crds = Known(self.server, self.dirty.set)
        self.claims = WatchedClaims(self.server, ClaimShards(self.snapshot))

    async def run(self) -> None:
        """Watch until the parent has gone."""
        async with asyncio.TaskGroup() as tasks:
            followed = [
                tasks.create_task(follow(self.server, each, lambda _: self.dirty.set()))
                for each in self.collections.values()
            ]
            followed.append(tasks.create_task(self.crds.run()))
            followed.append(tasks.create_task(self.claims.run()))
            if self.memory is not None:
                followed.append(tasks.create_task(follow(self.server, self.memory, self.remember)))
            written = tasks.create_task(self.write_changes())
            heard = tasks.create_task(self.write_heard())
            await orphaned(os.getppid())
            for each in (*followed, written, heard):
                each.cancel()

    async def write_changes(self) -> None:
        """Write what is known, once everything was read and then whenever it has changed."""
        while not all(each.is_known for each in self.collections.values()):
            await asyncio.sleep(0.02)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE):
                while not (self.is_remembered and self.is_settled):
                    await asyncio.sleep(0.02)
        while True:
            self.dirty.clear()
            self.write()
            await self.dirty.wait()
            await self.quiet()

    @property
    def is_settled(self) -> bool:
        """Whether nothing more is to be learned at once of CRDs and claims."""
        return self.crds.is_settled and self.claims.is_settled

    @property
    def is_remembered(self) -> bool:
        """Whether nothing more is to be learned of what was in force before."""
        failed = self.memory is not None and self.memory.trouble not in ("", NOT_READ)
        return self.memory is None or self.memory.is_known or failed

    def remember(self, memory: Collection) -> None:
        """Write what other Pods have had in force, for workers that start."""
        for body in memory.objects.values():
            self.snapshot.write_last_good(documents_of(body))

    def write(self) -> None:
        """Write everything, if it has changed.

        A status is no part of it: the controller writes a thousand of them without a worker's
        notice. Pieces come first; those that two snapshots have not used go.
        """
        state = dict(self.objects()), rows_of(self.crds.found)
        if state == self.written:
            return
        for digest, body in self.crds.bodies.items():
            self.snapshot.write_piece(digest, body)
        self.serial += 1
        self.snapshot.write(self.serial, *state)
        before = self.written[1] if self.written else []
        used = (digest for rows in (state[1], before) for digest, _ in rows)
        self.snapshot.keep_pieces(frozenset(used))
        self.written = state

    async def write_heard(self) -> None:
        """Write now and then until when what is written is known to be the newest."""
        while True:
            await asyncio.sleep(HEARD_EVERY)
            self.snapshot.write_heard(min(each.heard for each in self.collections.values()))

    async def quiet(self) -> None:
        """Wait until no more changes come, but not for long."""
        loop = asyncio.get_running_loop()
        until = loop.time() + LONGEST
        while self.dirty.is_set() and loop.time() < until:
            self.dirty.clear()
            await asyncio.sleep(QUIET)

    def objects(self) -> Iterator[tuple[Key, Any]]:
        """Every object by kind, namespace and name, without what only the API server needs."""
        for kind, collection in self.collections.items():
            version = version_of(collection.path)
            for (namespace, name), body in collection.objects.items():
                yield (kind, namespace, name), plain(body, version, kind)


def remembered(namespace: str) -> Collection:
    """What the controller remembers of documents: one ConfigMap."""
    path = last_good.collection_of(namespace)
    return Collection(path, query={"fieldSelector": f"metadata.name={last_good.NAME}"})


def version_of(path: str) -> str:
    """The apiVersion of the objects of a collection."""
    _, root, *rest = path.split("/")
    return rest[0] if root == "api" else "/".join(rest[:2])


def plain(body: Mapping[str, Any], version: str, kind: str) -> dict[str, Any]:
    """An object as its author wrote it; items of a list do not say what they are."""
    metadata = {
        key: each for key, each in (body.get("metadata") or {}).items() if key not in RESENT
    }
    rest = {key: each for key, each in body.items() if key not in ("metadata", "status")}
    return {**rest, "apiVersion": version, "kind": kind, "metadata": metadata}


async def orphaned(parent: int) -> None:
    """Wait until the parent has gone."""
    while os.getppid() == parent:
        await asyncio.sleep(1.0)


def main(arguments: Sequence[str]) -> int:
    """Watch for the Pod that this process belongs to."""
    telemetry.start_logging(os.environ.get("PODGATE_LOG_LEVEL", "info"), "json")
    folder, namespace, *rest = arguments
    credentials = credentials_of(Path(rest[0]) if rest else None, os.environ)
    if credentials is None:
        log.error("cannot watch the cluster: %s", NO_ACCESS)
        return 2
    memory = remembered(namespace) if namespace else None
    snapshot, documents = Snapshot(Path(folder)), collections_of(namespace)
    watcher = Watcher(ApiServer(credentials), snapshot, documents, memory=memory)
    try:
        asyncio.run(watcher.run())
    except* FileNotFoundError:
        if Path(folder).is_dir():
            raise
        # Whoever reads it has ended and has taken the folder along.
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
