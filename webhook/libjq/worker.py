"""jq texts evaluated at a distance: checked first, then run in processes that can be stopped."""

from __future__ import annotations

import json
import queue
import threading
import time
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final, Self

from webhook.documents.read_model import shown
from webhook.interface.jq_rules import Fault, fault_in
from webhook.jq.expressions import Compile, JqError, JqLimitError, JqSyntaxError, Run
from webhook.libjq.child import NO_JQ, OUTPUTS, TOO_MANY, Answer
from webhook.libjq.process import Bounds, EndedError, JqProcess, LateError

DEADLINE: Final = 0.25
PATIENCE: Final = 2.0
WAITING: Final = 64
DOCUMENT: Final = 8 << 20
PROGRAM: Final = 1 << 16
KNOWN: Final = 1024


class JqUnansweredError(JqError):
    """A call that has no answer of jq's; `outcome` is the word for that in counts."""

    outcome = "fault"


class JqRefusedError(JqUnansweredError):
    """A text with a forbidden part, or a text or document that is too large: nothing was sent."""

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
    """The process ended: killed, out of memory, or libjq gave up."""

    outcome = "died"

    passes = True


@lru_cache(maxsize=KNOWN)
def refused(text: str) -> Fault | None:
    """The first part of a text that must not be run, None if there is none.

    Beyond what definitions may hold, `path(…)` around a text: Evaluator asks so for places.
    """
    return fault_in(text.removeprefix("path") if text.startswith("path(") else text)


class JqWorker:
    """Evaluates jq texts in `processes` processes, for any number of threads.

    Times are seconds. `deadline` bounds the evaluation, `patience` the wait before it for a
    process that is free and ready: a call ends after their sum. More than `waiting` calls in
    line are refused. A process starts when it is first needed. `refuse` tells what not to run.
    `told` hears what came of each call, and "ended" where a process was found dead before one.
    """

    def __init__(
        self,
        processes: int = 1,
        *,
        deadline: float = DEADLINE,
        patience: float = PATIENCE,
        waiting: int = WAITING,
        bounds: Bounds = Bounds(),  # noqa: B008 - frozen
        refuse: Callable[[str], Fault | None] = refused,
        told: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.deadline = deadline
        self.patience = patience
        self.refuse = refuse
        self.told = told
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
        """Every output of a program for a document, which is the bytes of one JSON value.

        Numbers are what jq makes of them: never write them to an object. Raises JqError: one of
        the classes here, JqSyntaxError, JqLimitError; no message quotes the document.
        """
        if not 0 < len(document) <= DOCUMENT:
            raise JqRefusedError(f"a document of {len(document)} bytes is not given to jq")
        return self.outputs(program, document, deadline, cancelled)

    def compile(self, text: str) -> Run:
        """A text as a function of a document, with the worker's deadline: for Evaluator."""
        return self.compiler()(text)

    def compiler(
        self, deadline: float | None = None, cancelled: threading.Event | None = None
    ) -> Compile:
        """The same with another deadline, or for calls that can be cancelled before they begin."""

        def compile_jq(text: str) -> Run:
            if text not in self.known:
                self.outputs(text, b"", deadline, cancelled)
                self.remember(text)

            def run(document: Any) -> list[Any]:
                return self.evaluate(text, encoded(text, document), deadline, cancelled)

            return run

        return compile_jq

    def close(self) -> None:
        """Kill and reap every process; calls that run or wait raise JqDiedError. Idempotent."""
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
        """What a process answers; an empty document only compiles."""
        try:
            found = self.asked(text, document, deadline, cancelled)
        except JqError as error:
            self.told(error.outcome if isinstance(error, JqUnansweredError) else "fault")
            raise
        self.told("answered")
        return found

    def asked(
        self,
        text: str,
        document: bytes,
        deadline: float | None,
        cancelled: threading.Event | None,
    ) -> list[Any]:
        """The same, untold."""
        program = self.allowed(text)
        until = time.monotonic() + self.patience
        seconds = self.deadline if deadline is None else deadline
        if seconds <= 0:
            raise JqDeadlineError(f"`{shown(text)}`: no time is left")
        process = self.taken()
        try:
            if cancelled is not None and cancelled.is_set():
                raise JqCancelledError(f"`{shown(text)}`: the call was cancelled")
            if process.has_ended:
                self.told("ended")
            prepare(process, until)
            answer = asked(process, text, program, document, seconds)
        finally:
            self.idle.put(process)
            self.line.release()
        return read(text, answer)

    def taken(self) -> JqProcess:
        """A process that nobody else asks, with a place in the line; raises JqBusyError."""
        if not self.line.acquire(blocking=False):
            raise JqBusyError("too many calls wait for jq")
        try:
            return self.idle.get(timeout=self.patience)
        except BaseException as error:
            self.line.release()
            if isinstance(error, queue.Empty):
                raise JqBusyError("no jq process became free") from error
            raise

    def allowed(self, text: str) -> bytes:
        """The bytes of a text that may be run."""
        if len(text) > PROGRAM:
            raise JqRefusedError(f"`{shown(text)}` is too long")
        fault = self.refuse(text)
        if fault is not None:
            raise JqRefusedError(f"`{shown(text)}`: `{shown(fault.found)}` is not allowed")
        try:
            program = text.encode()
        except UnicodeEncodeError as error:
            raise JqSyntaxError(f"`{shown(text)}` is no jq") from error
        # libjq takes the text up to a zero byte, an empty one for `.`: neither is what was meant.
        if not program.strip() or b"\0" in program:
            raise JqSyntaxError(f"`{shown(text)}` is no jq")
        return program

    def remember(self, text: str) -> None:
        """Note that a text is jq, so that it is not asked again."""
        if len(self.known) >= KNOWN:
            self.known = {}
        self.known[text] = None


def prepare(process: JqProcess, until: float) -> None:
    """Have a process that takes requests; raises JqBusyError, JqDiedError."""
    try:
        process.prepare(until)
    except LateError as error:
        raise JqBusyError("no jq process is ready") from error
    except EndedError as error:
        raise JqDiedError(f"jq cannot run: {error}") from error


def asked(
    process: JqProcess, text: str, program: bytes, document: bytes, deadline: float
) -> Answer:
    """The answer of a process that is ready; raises JqDeadlineError, JqDiedError."""
    try:
        return process.ask(program, document, deadline)
    except LateError as error:
        raise JqDeadlineError(f"`{shown(text)}` took more than {deadline:g} s") from error
    except EndedError as error:
        raise JqDiedError(f"`{shown(text)}` ended the jq process: {error}") from error


def encoded(text: str, document: Any) -> bytes:
    """A document as JSON; raises JqError for what is none."""
    try:
        return json.dumps(document, separators=(",", ":"), allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise JqError(f"`{shown(text)}`: the document is no JSON") from error


def read(text: str, answer: Answer) -> list[Any]:
    """The outputs of an answer, or the JqError that it tells."""
    kind, payload = answer
    if kind == OUTPUTS:
        try:
            found = json.loads(payload)
        except (ValueError, RecursionError) as error:
            raise JqError(f"`{shown(text)}`: the outputs cannot be read") from error
        if isinstance(found, list):
            return found
    if kind == NO_JQ:
        raise JqSyntaxError(f"`{shown(text)}` is no jq")
    if kind == TOO_MANY:
        raise JqLimitError(f"`{shown(text)}` gives more than jq may answer")
    raise JqError(f"`{shown(text)}` fails on this document")
