"""The reading process: the one of a Pod that talks to the API server, for all workers of the Pod.

It watches namespaces, and the cluster's documents where the webhook uses them, and writes both into
the Pod's folder; it sends single requests for workers. Decoding a list must never hold up a review.
The parent of the workers forks it, and it ends after them.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Coroutine, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from webhook.cluster.client import ApiServer, metadata_of
from webhook.cluster.credentials import NO_ACCESS, find_credentials
from webhook.cluster.list_and_watch import NOT_READ, Collection, follow
from webhook.cluster.reader_connection import ReaderSocket
from webhook.documents import enclosed
from webhook.interface import names
from webhook.service.settings import Settings
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
    found = {kind: Collection(path, brief=drop_managers) for kind, path in paths().items()}
    return {**found, enclosed.KIND: labelled_collection(namespace)} if namespace else found


def drop_managers(item: dict[str, Any]) -> dict[str, Any]:
    """A document without the managers of its fields, which take as much memory as the rest of it."""
    metadata = {key: each for key, each in metadata_of(item).items() if key != "managedFields"}
    return {**item, "metadata": metadata}


@dataclass(slots=True)
class Watcher:
    """All collections of documents, and the snapshot that they are written to."""

    server: ApiServer
    snapshot: Snapshot
    collections: dict[str, Collection] = field(default_factory=collections_of)
    dirty: asyncio.Event = field(default_factory=asyncio.Event)
    serial: int = 0
    parent: int = field(default_factory=os.getppid)
    memory: Collection | None = None
    crds: Known = field(init=False)
    claims: tuple[ShardedCollections, ...] = field(init=False)
    namespaces: ShardedCollections = field(init=False)
    written: tuple[dict[Key, Any], list[tuple[str, Any]]] | None = None

    def __post_init__(self) -> None:
        """Watch CRDs like the documents; claims are written separately."""
        self.crds = Known(self.server, self.dirty.set)
        self.claims = watch_claims(self.server, self.snapshot)
        self.namespaces = watch_namespaces(self.server, self.snapshot)

    async def run(self, beat: Callable[[], None]) -> None:
        """Answer workers and watch until the parent has gone; call `beat` each second."""
        async with asyncio.TaskGroup() as tasks:
            running = [
                tasks.create_task(ReaderSocket(self.server, self.snapshot.socket).run()),
                tasks.create_task(self.namespaces.run()),
                tasks.create_task(self.write_heard()),
            ]
            if self.collections:
                running += [tasks.create_task(each) for each in self.watch_documents()]
            while os.getppid() == self.parent:
                beat()
                await asyncio.sleep(1.0)
            for each in running:
                each.cancel()

    def watch_documents(self) -> Iterator[Coroutine[Any, Any, None]]:
        """What keeps the documents, and what they need, up to date."""
        for each in self.collections.values():
            yield follow(self.server, each, lambda _: self.dirty.set())
        yield self.crds.run()
        for watched in self.claims:
            yield watched.run()
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
        return self.crds.is_settled and all(each.is_settled for each in self.claims)

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
        documents = {key: body for key, body, _ in documents_in(self.collections)}
        state = documents, rows_of(self.crds.found)
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


def remembered_collection(namespace: str) -> Collection:
    """The ConfigMap in which the controller stores the last good versions."""
    path = last_good.collection_of(namespace)
    return Collection(path, query={"fieldSelector": f"metadata.name={last_good.NAME}"})


def documents_in(
    collections: Mapping[str, Collection],
) -> Iterator[tuple[Key, dict[str, Any], dict[str, Any]]]:
    """Every document by its key, as its author wrote it and as the cluster stores it."""
    for kind, collection in collections.items():
        version = version_of(collection.path)
        for key, body in collection.objects.items():
            yield (kind, *key), plain(body, version, kind), body


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


def read_cluster(
    settings: Settings, snapshot: Snapshot, beat: Callable[[], None], parent: int
) -> int:
    """What the reading process runs; the exit code. `parent` is the process that has forked it."""
    for number in (signal.SIGTERM, signal.SIGINT):
        # Workers that stop still ask it. A handler, since programs that it starts would inherit SIG_IGN.
        signal.signal(number, lambda *_: None)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)  # credential plugins must not ask anyone
    credentials = find_credentials(settings.kubeconfig, os.environ)
    if credentials is None:
        log.error("cannot read the cluster: %s", NO_ACCESS)
        return 2
    namespace = settings.own_namespace
    watcher = Watcher(
        ApiServer(credentials),
        snapshot,
        collections_of(namespace) if settings.cluster else {},
        parent=parent,
        memory=remembered_collection(namespace) if settings.cluster and namespace else None,
    )
    asyncio.run(watcher.run(beat))
    return 0


def check_kubeconfig(kubeconfig: Path) -> str:
    """What is wrong with a kubeconfig, "" for nothing; found in a process of its own.

    So this one, and the workers that it forks, need not load the client library.
    """
    command = [sys.executable, "-m", "webhook.cluster.credentials", str(kubeconfig)]
    try:
        ended = subprocess.run(  # noqa: S603
            command, capture_output=True, text=True, check=False, timeout=90
        )
    except subprocess.TimeoutExpired:
        return f"{kubeconfig}: the program that gives the credentials has not ended"
    if ended.returncode == 0:
        return ""
    return ended.stderr.strip() or f"{kubeconfig} cannot be used (exit code {ended.returncode})"
