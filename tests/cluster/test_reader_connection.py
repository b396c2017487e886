"""Workers ask the reading process, which asks the API server: over a socket that may come and go."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from certs import authority
from certs.pair import KeyPair
from tests.cluster.test_kubernetes import FakeApi
from webhook.cluster import reader_connection
from webhook.cluster.client import ApiError, ApiServer
from webhook.cluster.credentials import Credentials, Kubeconfig
from webhook.cluster.reader_connection import ReaderConnection, ReaderSocket, frame

NAMESPACE = "/api/v1/namespaces/team-a"


@pytest.fixture(scope="module")
def ca() -> KeyPair:
    """An authority."""
    return authority.create_authority(datetime.now(UTC), timedelta(days=30))


@pytest.fixture
def api(ca: KeyPair, tmp_path: Path) -> Iterator[FakeApi]:
    """A fake API server with one namespace."""
    with FakeApi(ca, tmp_path, {"team-a": {}}).running() as fake:
        yield fake


@asynccontextmanager
async def reader(api: FakeApi, worker: ReaderConnection) -> AsyncIterator[None]:
    """A reading process, as a task; when it ends, so does the worker's connection."""
    server = ApiServer(Credentials(Kubeconfig(api.kubeconfig())))
    task = asyncio.create_task(ReaderSocket(server, worker.socket).run())
    yield
    worker.close()
    await asyncio.sleep(0.05)
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


def test_many_requests_share_one_connection(api: FakeApi, tmp_path: Path) -> None:
    async def run() -> None:
        worker = ReaderConnection(tmp_path / "api")
        async with reader(api, worker):
            absent = "/api/v1/namespaces/none"
            paths = [NAMESPACE, absent] * 20
            answers = await asyncio.gather(*(worker.send("GET", each) for each in paths))
            assert [status for status, _ in answers] == [200, 404] * 20
            assert json.loads(answers[0][1])["metadata"]["name"] == "team-a"
            assert not worker.waiting

    asyncio.run(run())


def test_a_request_waits_for_a_reading_process_that_starts(api: FakeApi, tmp_path: Path) -> None:
    async def run() -> None:
        worker = ReaderConnection(tmp_path / "api")
        asked = asyncio.create_task(worker.send("GET", NAMESPACE))
        await asyncio.sleep(0.1)
        async with reader(api, worker):
            assert (await asked)[0] == 200

    asyncio.run(run())


def test_a_reading_process_that_is_gone_is_told_and_its_successor_used(
    api: FakeApi, tmp_path: Path
) -> None:
    async def run() -> None:
        worker = ReaderConnection(tmp_path / "api")
        async with reader(api, worker):
            assert (await worker.send("GET", NAMESPACE))[0] == 200
        worker.socket.unlink()
        with pytest.raises(ApiError, match="does not run"):
            await worker.send("GET", NAMESPACE, timeout=0.2)
        async with reader(api, worker):
            assert (await worker.send("GET", NAMESPACE))[0] == 200

    asyncio.run(run())


def test_an_api_server_that_is_away_is_told(api: FakeApi, tmp_path: Path) -> None:
    async def run() -> None:
        worker = ReaderConnection(tmp_path / "api")
        api.port = 1
        async with reader(api, worker):
            with pytest.raises(ApiError, match="refused"):
                await worker.send("GET", NAMESPACE)

    asyncio.run(run())


@pytest.mark.parametrize("method, path", [("DELETE", NAMESPACE), ("POST", "/api/v1/pods")])
def test_workers_only_read_and_write_events(
    api: FakeApi, tmp_path: Path, method: str, path: str
) -> None:
    async def run() -> None:
        worker = ReaderConnection(tmp_path / "api")
        async with reader(api, worker):
            with pytest.raises(ApiError, match="only read objects and write events"):
                await worker.send(method, path, {})
            assert not api.paths

    asyncio.run(run())


def test_what_is_no_message_ends_its_connection_alone(
    api: FakeApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader_connection, "LONGEST", 1000)

    async def run() -> None:
        worker = ReaderConnection(tmp_path / "api")
        async with reader(api, worker):
            assert (await worker.send("GET", NAMESPACE))[0] == 200
            for text in (b"\xff\xff\xff\xff", frame(b"x" * 2000), frame(b"{")):
                got, sent = await asyncio.open_unix_connection(str(worker.socket))
                sent.write(text)
                assert await got.read() == b""
                sent.close()
            assert (await worker.send("GET", NAMESPACE))[0] == 200

    asyncio.run(run())
