"""Workers ask the reading process, which asks the API server: over a socket that may come and go."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import uvloop

from certs import authority
from certs.pair import KeyPair
from tests.cluster.test_kubernetes import FakeApi
from webhook.cluster.client import ApiError, ApiServer
from webhook.cluster.credentials import Credentials, Kubeconfig
from webhook.cluster.reader_connection import ReaderConnection, ReaderSocket

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
    """A reading process, as a task."""
    server = ApiServer(Credentials(Kubeconfig(api.kubeconfig())))
    task = asyncio.create_task(ReaderSocket(server, worker.socket).run())
    yield
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


def test_many_requests_at_once_get_their_own_answers(api: FakeApi, tmp_path: Path) -> None:
    async def run() -> None:
        worker = ReaderConnection(tmp_path / "api")
        async with reader(api, worker):
            absent = "/api/v1/namespaces/none"
            paths = [NAMESPACE, absent] * 20
            answers = await asyncio.gather(*(worker.send("GET", each) for each in paths))
            assert [status for status, _ in answers] == [200, 404] * 20
            assert json.loads(answers[0][1])["metadata"]["name"] == "team-a"

    asyncio.run(run())


@pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_the_folder_may_have_a_long_path(
    api: FakeApi, tmp_path: Path, loop: Callable[[], asyncio.AbstractEventLoop]
) -> None:
    folder = tmp_path / ("x" * 100)
    folder.mkdir()

    async def run() -> None:
        worker = ReaderConnection(folder / "api")
        async with reader(api, worker):
            assert (await worker.send("GET", NAMESPACE))[0] == 200

    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(run())
    assert [each.name for each in folder.iterdir()] == ["api"]


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


def test_an_answer_that_breaks_off_is_none(tmp_path: Path) -> None:
    async def break_off(got: asyncio.StreamReader, sent: asyncio.StreamWriter) -> None:
        await got.read()
        sent.write(b'{"status":200,"why":"","size":9}\n{"kind":')
        sent.close()

    async def run() -> None:
        worker = ReaderConnection(tmp_path / "api")
        async with await asyncio.start_unix_server(break_off, str(worker.socket)):
            with pytest.raises(ApiError, match="does not run"):
                await worker.send("GET", NAMESPACE)

    asyncio.run(run())


def test_what_is_no_message_is_refused_alone(
    api: FakeApi, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def run() -> None:
        worker = ReaderConnection(tmp_path / "api")
        async with reader(api, worker):
            assert (await worker.send("GET", NAMESPACE))[0] == 200
            for text in (b"", b"\xff\xff\xff\xff", b"{", b"[1]"):
                got, sent = await asyncio.open_unix_connection(str(worker.socket))
                sent.write(text)
                sent.write_eof()
                assert b"podgate has a fault" in await got.read()
                sent.close()
            assert (await worker.send("GET", NAMESPACE))[0] == 200
            assert caplog.text.count("a request of a worker failed") == 4

    asyncio.run(run())
