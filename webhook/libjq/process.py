"""One jq process: started, asked with a deadline, killed by its id and started again."""

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
    """The process has ended, answers nonsense, or cannot be started."""


class LateError(Exception):
    """The time is over."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """What one process may use: bytes of address space, outputs of a program, bytes of them."""

    memory: int = 512 << 20
    outputs: int = 1000
    size: int = 1 << 20


@dataclass(slots=True)
class JqProcess:
    """A place for a process. One thread at a time asks; any thread may call `close`."""

    bounds: Bounds
    process: subprocess.Popen[bytes] | None = None
    is_ready: bool = False
    since: float = 0.0
    is_closed: bool = False
    guard: threading.Lock = field(default_factory=threading.Lock)

    @property
    def has_ended(self) -> bool:
        """Whether there was a process and it has ended by itself."""
        process = self.process
        return process is not None and process.poll() is not None

    def prepare(self, until: float) -> None:
        """Have a process that takes requests, by a moment of time.monotonic.

        Raises LateError, EndedError.
        """
        if self.process is None or self.process.poll() is not None:
            self.restart()
        if self.is_ready:
            return
        try:
            self.begin(until)
        except BaseException as error:
            # A slow start is left to the next call, which may find it done.
            if not isinstance(error, LateError) or time.monotonic() - self.since > STARTING:
                self.stop()
            raise
        self.is_ready = True

    def begin(self, until: float) -> None:
        """Wait for the first word of a process."""
        kind, _ = self.receive(until)
        if kind != READY:
            raise EndedError("it did not begin as it should")

    def ask(self, program: bytes, document: bytes, deadline: float) -> Answer:
        """The answer of a prepared process within `deadline` seconds; b"" only compiles.

        Raises LateError, EndedError. Whatever it raises, the process is another one then.
        """
        until = time.monotonic() + deadline
        try:
            header = REQUEST.pack(len(program), len(document), math.ceil(deadline) + 1)
            for part in (header, program, document):
                self.send(part, until)
            return self.receive(until)
        except BaseException as error:
            # What is left of the request or the answer would be taken for the next one.
            log.warning("a jq process is replaced: %s", type(error).__name__)
            with contextlib.suppress(EndedError):
                self.restart()
            raise

    def restart(self) -> None:
        """Another process, which is not yet ready; raises EndedError if there can be none."""
        self.stop()
        with self.guard:
            if self.is_closed:
                raise EndedError("it is closed")
            try:
                self.process = started(self.bounds)
            except OSError as error:
                raise EndedError("it cannot be started") from error
            self.since = time.monotonic()

    def stop(self) -> None:
        """End the process and take its place in the process table away. Idempotent."""
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
        """Kill the process for good; who asks it gets EndedError, and `stop` clears up."""
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
        """Read so many bytes."""
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


def started(bounds: Bounds) -> subprocess.Popen[bytes]:
    """A process in a group of its own with nothing but two pipes; raises OSError."""
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
    """Kill a process and what it may have started, unless it was waited for already."""
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def descriptor(pipe: object) -> int:
    """The number of a pipe; raises EndedError where there is none."""
    number = getattr(pipe, "fileno", None)
    if number is None:
        raise EndedError("it does not run")
    found: int = number()
    return found


def wait(file: int, event: int, until: float) -> None:
    """Wait for a pipe, an error on it included; raises LateError."""
    left = until - time.monotonic()
    poll = select.poll()
    poll.register(file, event)
    if left <= 0 or not poll.poll(math.ceil(left * 1000)):
        raise LateError("the time is over")
