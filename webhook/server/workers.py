"""The processes of a Pod: starts workers and the reader, watches their heartbeats, replaces those that
end, and stops them all.
"""

from __future__ import annotations

import contextlib
import gc
import logging
import mmap
import os
import signal
import struct
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

log = logging.getLogger("podgate.workers")

BEAT = struct.Struct("d")
LOADED, STRIDE = BEAT.size, 2 * BEAT.size
STOPPING = (signal.SIGTERM, signal.SIGINT)
WATCHED = {*STOPPING, signal.SIGCHLD}
SILENCE = 30.0  # seconds without a heartbeat after which a worker is always replaced
STANDSTILL = (
    6.0  # seconds without a heartbeat and without CPU time after which a worker is replaced
)
ASLEEP = 5.0  # seconds between two checks after which this process itself was suspended
SHORT_LIFE = 10.0
SHORT_LIVES = 5
AGAIN = 5.0  # seconds between two starts of the reader


def cpu_count(group: Path = Path("/sys/fs/cgroup")) -> int:
    """How many CPUs this process may use: its affinity, and the quota of its control group."""
    allowed = len(os.sched_getaffinity(0))
    quota = quota_of(group)
    return max(1, min(allowed, int(quota))) if quota else max(1, allowed)


def quota_of(group: Path) -> float:
    """CPUs of the control group's quota (version 2, then 1), not rounded; 0 without a quota."""
    with contextlib.suppress(OSError, ValueError):
        quota, period = (group / "cpu.max").read_text().split()
        return 0.0 if quota == "max" else int(quota) / int(period)
    with contextlib.suppress(OSError, ValueError):
        quota_us = int((group / "cpu" / "cpu.cfs_quota_us").read_text())
        period_us = int((group / "cpu" / "cpu.cfs_period_us").read_text())
        return quota_us / period_us if quota_us > 0 else 0.0
    return 0.0


@dataclass(slots=True)
class Heartbeats:
    """The last heartbeat of each worker, and whether it has a catalog, in shared memory."""

    memory: mmap.mmap

    @classmethod
    def of(cls, count: int) -> Heartbeats:
        """Create shared memory for `count` workers."""
        return cls(mmap.mmap(-1, max(1, count) * STRIDE))

    def beat(self, worker: int) -> None:
        """Note that a worker's event loop runs."""
        BEAT.pack_into(self.memory, worker * STRIDE, time.monotonic())

    def seconds_silent(self, worker: int) -> float:
        """Seconds since the last beat."""
        moment: float = BEAT.unpack_from(self.memory, worker * STRIDE)[0]
        return time.monotonic() - moment

    def note_loaded(self, worker: int, *, is_loaded: bool = True) -> None:
        """Note whether a worker has a catalog."""
        self.memory[worker * STRIDE + LOADED] = is_loaded

    def others_loaded(self, worker: int) -> bool:
        """Return whether another worker has a catalog."""
        places = range(LOADED, len(self.memory), STRIDE)
        return any(self.memory[each] for each in places if each // STRIDE != worker)


@dataclass(frozen=True, slots=True)
class WorkerSlot:
    """What a worker process gets from the pool: its number and the shared heartbeats."""

    number: int
    beats: Heartbeats

    def beat(self) -> None:
        """Note that the event loop runs."""
        self.beats.beat(self.number)

    def note_loaded(self) -> None:
        """Note that this worker has a catalog."""
        self.beats.note_loaded(self.number)

    def others_loaded(self) -> bool:
        """Return whether another worker has a catalog."""
        return self.beats.others_loaded(self.number)


def work_of(process: int) -> tuple[int, bool]:
    """The clock ticks of CPU that a process took, and whether it runs or waits for a CPU."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text("utf-8").rpartition(")")[2].split()
        return int(fields[11]) + int(fields[12]), fields[0] == "R"
    except (OSError, ValueError, IndexError):
        return 0, False


@dataclass(slots=True)
class Worker:
    """One worker: its process ID, when it started, and how often it ended early."""

    number: int
    process: int = 0
    since: float = 0.0
    short_lives: int = 0
    ticks: int = 0
    worked: float = 0.0


@dataclass(slots=True)
class Pool:
    """`count` processes that each run `work(slot)` and end with its result as exit code.

    Fork is safe here: it happens before any thread, loop or catalog exists, and `work` may be a
    closure. `on_end` gets the process ID of each worker that ended. `stop_timeout` limits a
    graceful stop, in seconds. `read` is what one more process runs, which reads the cluster for the
    workers. They go on without it, so it is started again as often as it ends, and stopped last.
    """

    count: int
    work: Callable[[WorkerSlot], int]
    read: Callable[[WorkerSlot], int] | None = None
    on_end: Callable[[int], None] = lambda process: None
    stop_timeout: float = 30.0
    silence: float = SILENCE
    standstill: float = STANDSTILL
    workers: list[Worker] = field(default_factory=list)
    readers: list[Worker] = field(default_factory=list)
    beats: Heartbeats = field(init=False)

    def run(self) -> int:
        """Run until SIGTERM or SIGINT; the exit code is 1 if workers keep ending early."""
        self.beats = Heartbeats.of(self.count + 1)
        self.workers = [Worker(number) for number in range(self.count)]
        self.readers = [Worker(self.count)] if self.read is not None else []
        masked = signal.pthread_sigmask(signal.SIG_BLOCK, WATCHED)
        # Otherwise the collectors of the processes would write to all memory that they share.
        gc.collect()
        gc.freeze()
        try:
            for worker in (*self.readers, *self.workers):
                self.start(worker)
            code = self.watch()
            code = max(code, self.stop())
            for reader in self.readers:
                kill(reader)
            return code
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, masked)

    def start(self, worker: Worker) -> None:
        """Fork one worker."""
        worker.since = time.monotonic()
        self.beats.beat(worker.number)
        self.beats.note_loaded(worker.number, is_loaded=False)
        sys.stdout.flush()
        sys.stderr.flush()
        process = os.fork()
        if process:
            worker.process = process
            return
        code = 70
        try:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, WATCHED)
            work = self.read if self.read is not None and worker in self.readers else self.work
            code = work(WorkerSlot(worker.number, self.beats))
        except BaseException:
            log.exception("%s failed", self.name_of(worker))
        finally:
            os._exit(code)

    def watch(self) -> int:
        """Replace workers that end or hang, until a signal stops the pool."""
        looked = time.monotonic()
        while True:
            received = signal.sigtimedwait(WATCHED, 1.0)
            if received is not None and received.si_signo in STOPPING:
                return 0
            now, before = time.monotonic(), looked
            looked = now
            for worker in (*self.readers, *self.workers):
                if now - before > ASLEEP:
                    # The whole Pod was suspended, so its workers had no time for a heartbeat yet.
                    self.beats.beat(worker.number)
                    worker.worked = now
                elif self.is_hung(worker, now):
                    log.error("%s does not answer and is replaced", self.name_of(worker))
                    os.kill(worker.process, signal.SIGKILL)
                    self.beats.beat(worker.number)
                if self.has_ended(worker) and not self.replace(worker):
                    return 1

    def is_hung(self, worker: Worker, now: float) -> bool:
        """Whether a worker is silent for too long, or silent and neither works nor waits for a CPU.

        On a busy machine a worker may miss heartbeats, so it gets more time.
        """
        seconds_silent = self.beats.seconds_silent(worker.number)
        if seconds_silent <= self.standstill:
            worker.worked = now
            return False
        ticks, is_running = work_of(worker.process)
        if is_running or ticks != worker.ticks:
            worker.ticks, worker.worked = ticks, now
        return seconds_silent > self.silence or now - worker.worked > self.standstill / 2

    def has_ended(self, worker: Worker) -> bool:
        """Whether a worker's process has ended; logs its exit code."""
        if not worker.process:
            return True
        process, status = os.waitpid(worker.process, os.WNOHANG)
        if not process:
            return False
        worker.process = 0
        code = os.waitstatus_to_exitcode(status)
        log.log(
            logging.INFO if code == 0 else logging.ERROR,
            "%s (process %d) ended with %d",
            self.name_of(worker),
            process,
            code,
        )
        self.on_end(process)
        return True

    def replace(self, worker: Worker) -> bool:
        """Start a worker again; False if it ended early too often. The reader has to wait instead."""
        if worker in self.readers:
            if time.monotonic() - worker.since >= AGAIN:
                self.start(worker)
            return True
        early = time.monotonic() - worker.since < SHORT_LIFE
        worker.short_lives = worker.short_lives + 1 if early else 0
        if worker.short_lives >= SHORT_LIVES:
            log.error("worker %d ended early %d times in a row", worker.number, SHORT_LIVES)
            return False
        self.start(worker)
        return True

    def stop(self) -> int:
        """Stop all workers, first with SIGTERM, then with SIGKILL; 1 if SIGKILL was necessary."""
        self.send_signal(signal.SIGTERM)
        until = time.monotonic() + self.stop_timeout
        while [worker for worker in self.workers if not self.has_ended(worker)]:
            left = until - time.monotonic()
            if left <= 0:
                break
            again = signal.sigtimedwait(WATCHED, min(left, 1.0))
            if again is not None and again.si_signo in STOPPING:
                self.send_signal(signal.SIGTERM)
        late = [worker for worker in self.workers if worker.process and not self.has_ended(worker)]
        for worker in late:
            kill(worker)
        return 1 if late else 0

    def send_signal(self, number: signal.Signals) -> None:
        """Send a signal to every running worker."""
        for worker in self.workers:
            if worker.process:
                os.kill(worker.process, number)

    def name_of(self, worker: Worker) -> str:
        """A process as logs name it."""
        return "the reader" if worker in self.readers else f"worker {worker.number}"


def kill(worker: Worker) -> None:
    """End a process, if it runs, and wait for its end."""
    if worker.process:
        os.kill(worker.process, signal.SIGKILL)
        os.waitpid(worker.process, 0)
