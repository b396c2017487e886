"""One jq process: start it, ask it with a deadline, kill it by its ID and start it again."""

from __future__ import annotations

import contextlib
import importlib.util
import logging
import math
import os
import select
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from webhook.libjq.child import ANSWER, READY, REQUEST, Answer

log = logging.getLogger("podgate.jq")

CHILD: Final = Path(__file__).with_name("child.py")
PART: Final = 1 << 16
STARTING: Final = 10.0
REAPING: Final = 5.0


class EndedError(Exception):
    """The process has ended, sent an invalid answer, or cannot be started."""


class LateError(Exception):
    """The deadline has passed."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """Limits of one process: bytes of address space, outputs of a program, bytes of them."""

    memory: int = 512 << 20
    outputs: int = 1000
    size: int = 1 << 20


@dataclass(slots=True)
class JqProcess:
    """One restartable process. One thread at a time calls `ask`; any thread may call `close`."""

    bounds: Bounds
    process: subprocess.Popen[bytes] | None = None
    is_ready: bool = False
    since: float = 0.0
    is_closed: bool = False
    guard: threading.Lock = field(default_factory=threading.Lock)

    @property
    def has_ended(self) -> bool:
        """Whether a process was started and has ended by itself."""
        process = self.process
        return process is not None and process.poll() is not None

    def prepare(self, until: float) -> None:
        """Start a process that takes requests, until a moment of time.monotonic.

        Raises LateError, EndedError.
        """
        if self.process is None or self.process.poll() is not None:
            self.restart()
        if self.is_ready:
            return
        try:
            self.begin(until)
        except BaseException as error:
            # Leave a slow start to the next call, which may find it done.
            if not isinstance(error, LateError) or time.monotonic() - self.since > STARTING:
                self.stop()
            raise
        self.is_ready = True

    def begin(self, until: float) -> None:
        """Wait for the first message of a process."""
        kind, _ = self.receive(until)
        if kind != READY:
            raise EndedError("it did not begin as it should")

    def ask(self, program: bytes, document: bytes, deadline: float) -> Answer:
        """Return the answer of a prepared process within `deadline` seconds; b"" only compiles.

        Raises LateError, EndedError. After an error the process is replaced.
        """
        until = time.monotonic() + deadline
        try:
            header = REQUEST.pack(len(program), len(document), math.ceil(deadline) + 1)
            for part in (header, program, document):
                self.send(part, until)
            return self.receive(until)
        except BaseException as error:
            # The next call would take the rest of the request or answer for its own.
            log.warning("a jq process is replaced: %s", type(error).__name__)
            with contextlib.suppress(EndedError):
                self.restart()
            raise

    def restart(self) -> None:
        """Start another process, which is not ready yet; raises EndedError if that fails."""
        self.stop()
        with self.guard:
            if self.is_closed:
                raise EndedError("it is closed")
            try:
                self.process = start_process(self.bounds)
            except OSError as error:
                raise EndedError("it cannot be started") from error
            self.since = time.monotonic()

    def stop(self) -> None:
        """Kill the process and reap it. Idempotent."""
        with self.guard:
            process, self.process, self.is_ready = self.process, None, False
            if process is None:
                return
            kill(process)
            try:
                process.wait(REAPING)
            except subprocess.TimeoutExpired:
                log.error("the jq process %d does not end", process.pid)  # noqa: TRY400
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    pipe.close()

    def close(self) -> None:
        """Kill the process for good; a running `ask` raises EndedError, and `stop` cleans up."""
        with self.guard:
            self.is_closed = True
            if self.process is not None:
                kill(self.process)

    def send(self, data: bytes, until: float) -> None:
        """Write all bytes, or raise LateError or EndedError."""
        file = descriptor(self.process and self.process.stdin)
        left = memoryview(data)
        while left:
            wait(file, select.POLLOUT, until)
            with contextlib.suppress(BlockingIOError):
                try:
                    left = left[os.write(file, left[:PART]) :]
                except BrokenPipeError as error:
                    raise EndedError("it takes nothing more") from error

    def receive(self, until: float) -> Answer:
        """Read one answer, or raise LateError or EndedError."""
        kind, size = ANSWER.unpack(self.read(ANSWER.size, until))
        if size > self.bounds.size:
            raise EndedError("it answers more than it may")
        return kind, self.read(size, until)

    def read(self, size: int, until: float) -> bytes:
        """Read that many bytes."""
        file = descriptor(self.process and self.process.stdout)
        parts = []
        while size:
            wait(file, select.POLLIN, until)
            with contextlib.suppress(BlockingIOError):
                part = os.read(file, min(size, PART))
                if not part:
                    raise EndedError("it gives no message")
                parts.append(part)
                size -= len(part)
        return b"".join(parts)


def start_process(bounds: Bounds) -> subprocess.Popen[bytes]:
    """Start a process in its own group with only two pipes; raises OSError."""
    library = importlib.util.find_spec("jq")
    if library is None or not library.origin:
        raise FileNotFoundError("the package jq is not installed")
    limits = (str(each) for each in (bounds.memory, bounds.outputs, bounds.size))
    process = subprocess.Popen(  # noqa: S603 - our interpreter, our file
        [sys.executable, "-I", "-S", "-E", "-B", str(CHILD), library.origin, *limits],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        bufsize=0,
        cwd="/",
        env={},
        start_new_session=True,
    )
    for pipe in (process.stdin, process.stdout):
        os.set_blocking(descriptor(pipe), False)
    return process


def kill(process: subprocess.Popen[bytes]) -> None:
    """Kill a process and its children, unless it was reaped already."""
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def descriptor(pipe: object) -> int:
    """The descriptor of a pipe; raises EndedError if there is none."""
    number = getattr(pipe, "fileno", None)
    if number is None:
        raise EndedError("it does not run")
    found: int = number()
    return found


def wait(file: int, event: int, until: float) -> None:
    """Wait for a pipe or an error on it; raises LateError."""
    left = until - time.monotonic()
    poll = select.poll()
    poll.register(file, event)
    if left <= 0 or not poll.poll(math.ceil(left * 1000)):
        raise LateError("the time is over")
