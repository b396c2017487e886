"""The reading process: the one of a Pod that talks to the API server, for all workers of the Pod.

It watches namespaces, and the cluster's documents where the webhook uses them, and writes both into
the Pod's folder; it sends single requests for workers. Decoding a list must never hold up a review.
Run as `python -m webhook.sources.reader FOLDER [--documents] [--namespace NAME] [--kubeconfig FILE]`
by the webhook; it ends with its parent.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import logging
import os
import sys
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from webhook.cluster.client import ApiServer
from webhook.cluster.credentials import NO_ACCESS, find_credentials
from webhook.cluster.list_and_watch import NOT_READ, Collection, follow
from webhook.cluster.reader_connection import ReaderSocket
from webhook.documents import enclosed
from webhook.interface import names
from webhook.service import telemetry
from webhook.sources import last_good
from webhook.sources.claims import watch_claims
from webhook.sources.configmaps import labelled_collection
from webhook.sources.crds import Known, rows_of
from webhook.sources.last_good import documents_of
from webhook.sources.namespaces import watch_namespaces
from webhook.sources.shards import NAMESPACES, ShardedCollections
from webhook.sources.snapshot import Key, Snapshot

log = logging.getLogger("podgate.watcher")

QUIET = 0.1  # seconds without a change after which a snapshot is written
LONGEST = 1.0  # seconds after which a snapshot is written even if changes continue
FIRST_READ_TIMEOUT = 3.0  # seconds that the first snapshot waits for CRDs and claims
HEARD_EVERY = 2.0  # seconds between two updates of the time when the snapshot was current
RESENT = frozenset({"managedFields", "resourceVersion", "selfLink"})


def paths() -> dict[str, str]:
    """The collections of all kinds of documents, by kind."""
    return {each.kind: each.path for each in names.ALL}


def collections_of(namespace: str = "") -> dict[str, Collection]:
    """The collections of all documents by kind, with the ConfigMaps of podgate's own namespace."""
    found = {kind: Collection(path) for kind, path in paths().items()}
    return {**found, enclosed.KIND: labelled_collection(namespace)} if namespace else found


@dataclass(slots=True)
class Watcher:
    """All collections of documents, and the snapshot that they are written to."""

    server: ApiServer
    snapshot: Snapshot
    collections: dict[str, Collection] = field(default_factory=collections_of)
    dirty: asyncio.Event = field(default_factory=asyncio.Event)
    serial: int = 0
    memory: Collection | None = None
    crds: Known = field(init=False)
    claims: ShardedCollections = field(init=False)
    namespaces: ShardedCollections = field(init=False)
    written: tuple[dict[Key, Any], list[tuple[str, Any]]] | None = None

    def __post_init__(self) -> None:
        """Watch CRDs like the documents; claims are written separately."""
        self.crds = Known(self.server, self.dirty.set)
        self.claims = watch_claims(self.server, self.snapshot)
        self.namespaces = watch_namespaces(self.server, self.snapshot)

    async def run(self) -> None:
        """Answer workers and watch until the parent has gone."""
        async with asyncio.TaskGroup() as tasks:
            running = [
                tasks.create_task(ReaderSocket(self.server, self.snapshot.socket).run()),
                tasks.create_task(self.namespaces.run()),
                tasks.create_task(self.write_heard()),
            ]
            if self.collections:
                running += [tasks.create_task(each) for each in self.watch_documents()]
            await wait_for_parent(os.getppid())
            for each in running:
                each.cancel()

    def watch_documents(self) -> Iterator[Coroutine[Any, Any, None]]:
        """What keeps the documents, and what they need, up to date."""
        for each in self.collections.values():
            yield follow(self.server, each, lambda _: self.dirty.set())
        yield self.crds.run()
        yield self.claims.run()
        if self.memory is not None:
            yield follow(self.server, self.memory, self.remember)
        yield self.write_changes()

    async def write_changes(self) -> None:
        """Write a snapshot once everything was read, and then whenever something has changed."""
        while not all(each.is_known for each in self.collections.values()):
            await asyncio.sleep(0.02)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(FIRST_READ_TIMEOUT):
                while not (self.is_remembered and self.is_settled):
                    await asyncio.sleep(0.02)
        while True:
            self.dirty.clear()
            self.write()
            await self.dirty.wait()
            await self.quiet()

    @property
    def is_settled(self) -> bool:
        """Whether CRDs and claims are read, or cannot be read now."""
        return self.crds.is_settled and self.claims.is_settled

    @property
    def is_remembered(self) -> bool:
        """Whether the versions formerly in force are read, or cannot be read."""
        failed = self.memory is not None and self.memory.trouble not in ("", NOT_READ)
        return self.memory is None or self.memory.is_known or failed

    def remember(self, memory: Collection) -> None:
        """Write the versions that other Pods used, for workers that start."""
        for body in memory.objects.values():
            self.snapshot.write_last_good(documents_of(body))

    def write(self) -> None:
        """Write a snapshot, if something has changed.

        It has no statuses: the controller writes a thousand of them, and no worker needs them.
        Schemas are written first; those that two snapshots have not used are removed.
        """
        state = dict(self.objects()), rows_of(self.crds.found)
        if state == self.written:
            return
        for digest, body in self.crds.bodies.items():
            self.snapshot.write_schema(digest, body)
        self.serial += 1
        self.snapshot.write(self.serial, *state)
        before = self.written[1] if self.written else []
        used = (digest for rows in (state[1], before) for digest, _ in rows)
        self.snapshot.keep_schemas(frozenset(used))
        self.written = state

    async def write_heard(self) -> None:
        """Write at intervals until when the snapshot is known to be current."""
        while True:
            await asyncio.sleep(HEARD_EVERY)
            documents = min((each.heard for each in self.collections.values()), default=0.0)
            heard = {"documents": documents, NAMESPACES: self.namespaces.heard}
            self.snapshot.write_heard(heard)

    async def quiet(self) -> None:
        """Wait until changes pause, but not for long."""
        loop = asyncio.get_running_loop()
        until = loop.time() + LONGEST
        while self.dirty.is_set() and loop.time() < until:
            self.dirty.clear()
            await asyncio.sleep(QUIET)

    def objects(self) -> Iterator[tuple[Key, Any]]:
        """Every object by kind, namespace and name, without the members that only the API server needs."""
        for kind, collection in self.collections.items():
            version = version_of(collection.path)
            for (namespace, name), body in collection.objects.items():
                yield (kind, namespace, name), plain(body, version, kind)


def remembered_collection(namespace: str) -> Collection:
    """The ConfigMap in which the controller stores the last good versions."""
    path = last_good.collection_of(namespace)
    return Collection(path, query={"fieldSelector": f"metadata.name={last_good.NAME}"})


def version_of(path: str) -> str:
    """The apiVersion of the objects of a collection."""
    _, root, *rest = path.split("/")
    return rest[0] if root == "api" else "/".join(rest[:2])


def plain(body: Mapping[str, Any], version: str, kind: str) -> dict[str, Any]:
    """An object as its author wrote it, with the apiVersion and kind that lists omit."""
    metadata = {
        key: each for key, each in (body.get("metadata") or {}).items() if key not in RESENT
    }
    rest = {key: each for key, each in body.items() if key not in ("metadata", "status")}
    return {**rest, "apiVersion": version, "kind": kind, "metadata": metadata}


async def wait_for_parent(parent: int) -> None:
    """Wait until the parent ends."""
    while os.getppid() == parent:
        await asyncio.sleep(1.0)


def main(arguments: Sequence[str]) -> int:
    """Read the cluster for the Pod that this process belongs to."""
    telemetry.start_logging(os.environ.get("PODGATE_LOG_LEVEL", "info"), "json")
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--documents", action="store_true")
    parser.add_argument("--namespace", default="")
    parser.add_argument("--kubeconfig", type=Path)
    given = parser.parse_args(arguments)
    credentials = find_credentials(given.kubeconfig, os.environ)
    if credentials is None:
        log.error("cannot read the cluster: %s", NO_ACCESS)
        return 2
    reads_memory = given.documents and given.namespace
    watcher = Watcher(
        ApiServer(credentials),
        Snapshot(given.folder),
        collections_of(given.namespace) if given.documents else {},
        memory=remembered_collection(given.namespace) if reads_memory else None,
    )
    try:
        asyncio.run(watcher.run())
    except* FileNotFoundError:
        if given.folder.is_dir():
            raise
        # The parent has ended and has removed the folder.
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
