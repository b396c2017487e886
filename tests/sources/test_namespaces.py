"""Labels of namespaces: watched in one process, found by the workers in shards."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from certs.pair import KeyPair
from tests.cluster.test_api_server import Objects, event
from tests.cluster.test_kubernetes import Clock, FakeApi
from tests.server.test_http import ca  # noqa: F401 - a fixture
from webhook.cluster.client import ApiServer, Json
from webhook.cluster.credentials import Credentials, ServiceAccount
from webhook.cluster.namespaces import USABLE, Namespaces
from webhook.cluster.reader_connection import ReaderConnection, ReaderSocket
from webhook.policy.selectors import NAME_LABEL
from webhook.sources.namespaces import FRESH, KIND, WatchedLabels, watch_namespaces
from webhook.sources.shards import NAMESPACES, shard_of
from webhook.sources.snapshot import Snapshot


def namespace(name: str, version: int, **labels: str) -> Json:
    return {"metadata": {"name": name, "resourceVersion": str(version), "labels": labels}}


@pytest.fixture
def objects() -> Objects:
    return Objects()


@pytest.fixture
def server(
    objects: Objects,
    ca: KeyPair,  # noqa: F811 - the fixture
    tmp_path: Path,
) -> Iterator[ApiServer]:
    fake = FakeApi(ca, tmp_path, act=objects.act)
    with fake.running():
        yield ApiServer(Credentials(ServiceAccount("127.0.0.1", str(fake.port), tmp_path)))


def test_workers_see_labels_as_the_watch_reports_them(
    server: ApiServer, objects: Objects, tmp_path: Path
) -> None:
    objects.items = [namespace("a", 1, team="red"), namespace("b", 1)]
    objects.watches = [
        [
            event("MODIFIED", namespace("a", 2, team="blue")),
            event("DELETED", namespace("b", 3)),
            event("ADDED", namespace("c", 4)),
        ]
    ]
    folder = tmp_path / "snapshot"
    folder.mkdir()
    snapshot = Snapshot(folder)
    labels = WatchedLabels(snapshot)
    snapshot.write_heard({NAMESPACES: time.time()})

    async def run() -> None:
        task = asyncio.create_task(watch_namespaces(server, snapshot).run())
        async with asyncio.timeout(60):
            while labels.find("c") is None:
                await asyncio.sleep(0.01)
        task.cancel()

    assert labels.find("a") is None
    asyncio.run(run())
    assert labels.find("a") == {"team": "blue"}
    assert labels.find("b") is None
    assert labels.find("c") == {}

    # Nothing was heard for long: a look-up decides.
    snapshot.write_heard({NAMESPACES: time.time() - FRESH - 1})
    assert labels.find("a") is None


def test_while_nobody_reads_the_cluster_labels_count_for_90_seconds_and_looked_up_ones_for_300(
    server: ApiServer, objects: Objects, tmp_path: Path
) -> None:
    """Afterwards the answer is an error, and never that no policy applies."""
    objects.body = json.dumps(namespace("asked", 1, team="red")).encode()
    snapshot = Snapshot(tmp_path / "snapshot")
    snapshot.folder.mkdir()
    watched, clock = WatchedLabels(snapshot), Clock()
    watched.shards.write(shard_of("", "watched"), {(KIND, "", "watched"): {"team": "blue"}})
    snapshot.write_heard({NAMESPACES: time.time()})
    spaces = Namespaces(ReaderConnection(snapshot.socket), watched=watched.find, clock=clock)
    red = {"team": "red", NAME_LABEL: "asked"}

    async def run() -> None:
        reading = asyncio.create_task(ReaderSocket(server, snapshot.socket).run())
        assert await spaces.labels("asked", 60) == red
        reading.cancel()
        await asyncio.wait([reading])
        assert spaces.known("watched") == {"team": "blue", NAME_LABEL: "watched"}

        snapshot.write_heard({NAMESPACES: time.time() - FRESH - 1})
        clock.now += FRESH + 1
        assert spaces.known("watched") is None
        assert "did not answer" in str(await spaces.labels("watched", 0.1))
        assert await spaces.labels("asked", 0.1) == red
        clock.now += USABLE - FRESH
        assert "did not answer" in str(await spaces.labels("asked", 0.1))
        for each in spaces.running.values():
            each.cancel()

    asyncio.run(run())
