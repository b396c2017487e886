"""Evaluates jq texts in other processes: checks them first, then runs them where they can be stopped."""

from __future__ import annotations

import json
import queue
import threading
import time
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final, Self

from webhook.documents.read_model import show_value
from webhook.interface.jq_rules import Fault, fault_in
from webhook.jq.expressions import Compile, JqError, JqLimitError, JqSyntaxError, Run
from webhook.libjq.child import NO_JQ, OUTPUTS, TOO_MANY, Answer
from webhook.libjq.process import Bounds, EndedError, JqProcess, LateError

DEADLINE: Final = 0.25
QUEUE_TIMEOUT: Final = 2.0
WAITING: Final = 64
DOCUMENT: Final = 8 << 20
PROGRAM: Final = 1 << 16
KNOWN: Final = 1024


class JqUnansweredError(JqError):
    """A call without an answer of jq; `outcome` is its label in metrics."""

    outcome = "fault"


class JqRefusedError(JqUnansweredError):
    """A text with a forbidden part, or a text or document that is too large; it was not sent."""

    outcome = "refused"


class JqCancelledError(JqUnansweredError):
    """A call that was cancelled before it began."""

    outcome = "cancelled"


class JqBusyError(JqUnansweredError):
    """No process was free, or ready, in time."""

    outcome = "busy"


class JqDeadlineError(JqUnansweredError):
    """A program that did not end in time; its process was killed."""

    outcome = "deadline"


class JqDiedError(JqUnansweredError):
    """The process ended: it was killed, ran out of memory, or libjq crashed."""

    outcome = "died"

    passes = True


@lru_cache(maxsize=KNOWN)
def find_refused_part(text: str) -> Fault | None:
    """The first part of a text that must not run, None if there is none.

    `path(…)` around a text is allowed here, although definitions may not use it: Evaluator needs
    it.
    """
    return fault_in(text.removeprefix("path") if text.startswith("path(") else text)


class JqWorker:
    """Evaluates jq texts in `processes` processes, for any number of threads.

    Times are seconds. `deadline` bounds the evaluation, `queue_timeout` the wait before it for a
    process that is free and ready: a call ends after their sum. More than `waiting` calls in
    line are refused. A process starts when it is first needed. `refuse` returns why a text must not run.
    `on_outcome` gets the outcome of each call, and "ended" if a process died before a call.
    """

    def __init__(
        self,
        processes: int = 1,
        *,
        deadline: float = DEADLINE,
        queue_timeout: float = QUEUE_TIMEOUT,
        waiting: int = WAITING,
        bounds: Bounds = Bounds(),  # noqa: B008 - frozen
        refuse: Callable[[str], Fault | None] = find_refused_part,
        on_outcome: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.deadline = deadline
        self.queue_timeout = queue_timeout
        self.refuse = refuse
        self.on_outcome = on_outcome
        self.is_closed = False
        self.processes = [JqProcess(bounds) for _ in range(processes)]
        self.idle: queue.SimpleQueue[JqProcess] = queue.SimpleQueue()
        for each in self.processes:
            self.idle.put(each)
        self.line = threading.BoundedSemaphore(processes + waiting)
        self.known: dict[str, None] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def evaluate(
        self,
        program: str,
        document: bytes,
        deadline: float | None = None,
        cancelled: threading.Event | None = None,
    ) -> list[Any]:
        """Return every output of a program for a document, which is the bytes of one JSON value.

        Numbers are converted by jq: never write them to an object. Raises JqError: one of the
        classes here, JqSyntaxError, JqLimitError; no message quotes the document.
        """
        if not 0 < len(document) <= DOCUMENT:
            raise JqRefusedError(f"a document of {len(document)} bytes is not given to jq")
        return self.outputs(program, document, deadline, cancelled)

    def compile(self, text: str) -> Run:
        """Return a text as a function of a document, with the worker's deadline; for Evaluator."""
        return self.compiler()(text)

    def compiler(
        self, deadline: float | None = None, cancelled: threading.Event | None = None
    ) -> Compile:
        """Return a compile function with another deadline, or for calls that can be cancelled
        before they begin.
        """

        def compile_jq(text: str) -> Run:
            if text not in self.known:
                self.outputs(text, b"", deadline, cancelled)
                self.remember(text)

            def run(document: Any) -> list[Any]:
                return self.evaluate(text, encode_document(text, document), deadline, cancelled)

            return run

        return compile_jq

    def close(self) -> None:
        """Kill and reap every process; running and waiting calls raise JqDiedError. Idempotent."""
        if self.is_closed:
            return
        self.is_closed = True
        for each in self.processes:
            each.close()
        for each in [self.idle.get() for _ in self.processes]:
            each.stop()
            self.idle.put(each)

    def outputs(
        self,
        text: str,
        document: bytes,
        deadline: float | None,
        cancelled: threading.Event | None,
    ) -> list[Any]:
        """Run a program and report the outcome; an empty document only compiles."""
        try:
            found = self.run(text, document, deadline, cancelled)
        except JqError as error:
            self.on_outcome(error.outcome if isinstance(error, JqUnansweredError) else "fault")
            raise
        self.on_outcome("answered")
        return found

    def run(
        self,
        text: str,
        document: bytes,
        deadline: float | None,
        cancelled: threading.Event | None,
    ) -> list[Any]:
        """Run a program without reporting the outcome."""
        program = self.encode_program(text)
        until = time.monotonic() + self.queue_timeout
        seconds = self.deadline if deadline is None else deadline
        if seconds <= 0:
            raise JqDeadlineError(f"`{show_value(text)}`: no time is left")
        process = self.take_process()
        try:
            if cancelled is not None and cancelled.is_set():
                raise JqCancelledError(f"`{show_value(text)}`: the call was cancelled")
            if process.has_ended:
                self.on_outcome("ended")
            prepare(process, until)
            answer = ask_process(process, text, program, document, seconds)
        finally:
            self.idle.put(process)
            self.line.release()
        return read(text, answer)

    def take_process(self) -> JqProcess:
        """Take a free process, after waiting in the queue; raises JqBusyError."""
        if not self.line.acquire(blocking=False):
            raise JqBusyError("too many calls wait for jq")
        try:
            return self.idle.get(timeout=self.queue_timeout)
        except BaseException as error:
            self.line.release()
            if isinstance(error, queue.Empty):
                raise JqBusyError("no jq process became free") from error
            raise

    def encode_program(self, text: str) -> bytes:
        """The bytes of a text that may run."""
        if len(text) > PROGRAM:
            raise JqRefusedError(f"`{show_value(text)}` is too long")
        fault = self.refuse(text)
        if fault is not None:
            raise JqRefusedError(
                f"`{show_value(text)}`: `{show_value(fault.found)}` is not allowed"
            )
        try:
            program = text.encode()
        except UnicodeEncodeError as error:
            raise JqSyntaxError(f"`{show_value(text)}` is no jq") from error
        # libjq reads the text up to a zero byte, and an empty one as `.`: neither is intended.
        if not program.strip() or b"\0" in program:
            raise JqSyntaxError(f"`{show_value(text)}` is no jq")
        return program

    def remember(self, text: str) -> None:
        """Note that a text is valid jq, so that it is not checked again."""
        if len(self.known) >= KNOWN:
            self.known = {}
        self.known[text] = None


def prepare(process: JqProcess, until: float) -> None:
    """Get a process that takes requests; raises JqBusyError, JqDiedError."""
    try:
        process.prepare(until)
    except LateError as error:
        raise JqBusyError("no jq process is ready") from error
    except EndedError as error:
        raise JqDiedError(f"jq cannot run: {error}") from error


def ask_process(
    process: JqProcess, text: str, program: bytes, document: bytes, deadline: float
) -> Answer:
    """Return the answer of a process that is ready; raises JqDeadlineError, JqDiedError."""
    try:
        return process.ask(program, document, deadline)
    except LateError as error:
        raise JqDeadlineError(f"`{show_value(text)}` took more than {deadline:g} s") from error
    except EndedError as error:
        raise JqDiedError(f"`{show_value(text)}` ended the jq process: {error}") from error


def encode_document(text: str, document: Any) -> bytes:
    """Encode a document as JSON; raises JqError if that is not possible."""
    try:
        return json.dumps(document, separators=(",", ":"), allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise JqError(f"`{show_value(text)}`: the document is no JSON") from error


def read(text: str, answer: Answer) -> list[Any]:
    """Return the outputs of an answer, or raise the JqError in it."""
    kind, payload = answer
    if kind == OUTPUTS:
        try:
            found = json.loads(payload)
        except (ValueError, RecursionError) as error:
            raise JqError(f"`{show_value(text)}`: the outputs cannot be read") from error
        if isinstance(found, list):
            return found
    if kind == NO_JQ:
        raise JqSyntaxError(f"`{show_value(text)}` is no jq")
    if kind == TOO_MANY:
        raise JqLimitError(f"`{show_value(text)}` gives more than jq may answer")
    raise JqError(f"`{show_value(text)}` fails on this document")
