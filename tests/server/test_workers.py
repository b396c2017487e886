"""Which silent worker is replaced: one that stands still, and not one that works."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.server.test_http import eventually
from webhook.server import workers
from webhook.server.workers import Heartbeats, Pool, Worker, WorkerSlot
from webhook.sources.snapshot import is_running


def forked(work: Callable[[], None]) -> int:
    """A process that does something until it is killed."""
    process = os.fork()
    if process == 0:
        while True:
            work()
    return process


@pytest.fixture
def pool() -> Pool:
    """A pool whose workers the test starts."""
    made = Pool(1, lambda slot: 0, silence=1_000, standstill=0.2)
    made.beats = Heartbeats.of(1)
    made.beats.beat(0)
    return made


def test_a_silent_worker_that_works_is_left_alone(pool: Pool) -> None:
    worker = Worker(0, forked(lambda: None))
    try:
        for _ in range(30):
            assert not pool.is_hung(worker, time.monotonic())
            time.sleep(0.02)
        assert pool.beats.seconds_silent(0) > pool.standstill
    finally:
        os.kill(worker.process, signal.SIGKILL)
        os.waitpid(worker.process, 0)


def test_a_stopped_worker_is_replaced_soon(pool: Pool) -> None:
    worker = Worker(0, forked(lambda: None))
    try:
        os.kill(worker.process, signal.SIGSTOP)
        assert eventually(lambda: pool.is_hung(worker, time.monotonic()))
    finally:
        os.kill(worker.process, signal.SIGKILL)
        os.waitpid(worker.process, 0)


def test_a_worker_that_works_and_never_beats_is_replaced_in_the_end(pool: Pool) -> None:
    pool.silence = 0.4
    worker = Worker(0, forked(lambda: None))
    try:
        assert eventually(lambda: pool.is_hung(worker, time.monotonic()))
    finally:
        os.kill(worker.process, signal.SIGKILL)
        os.waitpid(worker.process, 0)


def test_a_process_that_is_gone_takes_no_time() -> None:
    assert workers.work_of(2**22 + 1) == (0, False)
    assert workers.work_of(os.getpid())[1]


def test_a_reader_that_ends_is_started_again_and_is_there_until_the_workers_have_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers, "AGAIN", 0.1)

    def readers() -> list[int]:
        return [int(each.name) for each in tmp_path.glob("[0-9]*")]

    def read(slot: WorkerSlot) -> int:
        signal.signal(signal.SIGTERM, lambda *_: None)
        (tmp_path / str(os.getpid())).touch()
        while True:
            slot.beat()
            time.sleep(0.05)

    def work(slot: WorkerSlot) -> int:
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
        (tmp_path / "worker").touch()
        signal.sigwait({signal.SIGTERM})
        time.sleep(0.5)
        (tmp_path / "at-the-end").write_text(str([each for each in readers() if is_running(each)]))
        return 0

    parent = os.fork()
    if parent == 0:
        os._exit(Pool(1, work, read).run())
    assert eventually(lambda: (tmp_path / "worker").exists() and len(readers()) == 1)
    (first,) = readers()
    os.kill(first, signal.SIGKILL)
    assert eventually(lambda: len(readers()) == 2)
    (second,) = set(readers()) - {first}
    os.kill(parent, signal.SIGTERM)
    assert os.waitstatus_to_exitcode(os.waitpid(parent, 0)[1]) == 0
    assert (tmp_path / "at-the-end").read_text() == str([second])
    assert not is_running(second)
