"""Requests to an API server: one object each, sent in threads by the `kubernetes` package."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import logging
import os
import re
import ssl
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Self, TypeVar
from urllib.parse import quote

import orjson

from webhook.cluster.credentials import LOGIN_TIMEOUT, Credentials, CredentialsError, Loaded
from webhook.documents import texts
from webhook.documents.json_text import replace_no_characters

log = logging.getLogger("podgate.api")

T = TypeVar("T")
Json = dict[str, Any]
TIMEOUT = 15.0  # seconds of one request, from connecting to the last byte
LONGEST_ANSWER = 4 * 1024 * 1024
APPLY = "application/apply-patch+yaml"
MERGE = "application/merge-patch+json"
JSON = "application/json"
METADATA = f"{JSON};as=PartialObjectMetadata;g=meta.k8s.io;v=v1, {JSON}"
CHUNK = 65536
SILENCE = (
    120.0  # seconds without a byte that end a long answer: a watch gets bookmarks every minute
)
LONGEST_LINE = 8 * 1024 * 1024
AHEAD = 4  # chunks of a long answer that are read before the first of them is used
DEEPEST = 240  # levels of an answer that are read: orjson writes 254, and a snapshot adds some
SPARE = 1024 - DEEPEST  # orjson reads 1024
CUT = b'"podgate: nested too deep"'
TOKENS = re.compile(rb'(?s)"[^"\\]*(?:\\.[^"\\]*)*"|[\[{]|[\]}]')


class ApiError(Exception):
    """The API server refused or did not answer.

    `code` is the HTTP status, 0 without an answer; `body` is the Status that the API server sent.
    """

    def __init__(self, code: int, text: str, body: Json | None = None) -> None:
        super().__init__(text)
        self.code = code
        self.body = body or {}

    @property
    def reason(self) -> str:
        """The reason in the Status, such as `AlreadyExists`."""
        return str(self.body.get("reason") or "")


class NoAnswerError(ApiError):
    """The connection failed, or nothing came in time."""

    def __init__(self, text: str) -> None:
        super().__init__(0, text)


class LongPageError(ApiError):
    """The answer is longer than this process reads at once: ask for fewer objects."""


@dataclass(slots=True)
class ApiServer:
    """One API server; every method raises ApiError, with code 0 where there was no answer.

    `has_answered` tells an API server that is away for a moment from one that was never there.
    """

    credentials: Credentials
    manager: str = "podgate"
    has_answered: bool = False

    async def ask(
        self,
        method: str,
        path: str,
        body: Json | None = None,
        content: str = JSON,
        accept: str = JSON,
        timeout: float = TIMEOUT,
    ) -> Json:
        """The object in the answer."""
        status, answer = await self.send(method, path, body, content, accept, timeout)
        if not 200 <= status < 300:
            raise refusal(status, method, path, answer)
        return object_in(answer, name_of(method, path))

    async def send(
        self,
        method: str,
        path: str,
        body: Json | None = None,
        content: str = JSON,
        accept: str = JSON,
        timeout: float = TIMEOUT,
    ) -> tuple[int, bytes]:
        """Status and body of the answer, whatever the status is."""
        await self.log_in()
        headers = {"Accept": accept, **({"Content-Type": content} if body is not None else {})}

        ends = time.monotonic() + timeout

        def call() -> tuple[int, bytes]:
            try:
                return exchange(self.credentials, method, path, headers, body, timeout)
            except NoAnswerError:
                if method != "GET" or not self.has_answered:
                    raise
                # The API server may have closed a connection that was kept at the same moment.
                left = max(0.1, ends - time.monotonic())
                return exchange(self.credentials, method, path, headers, body, left)

        try:
            async with asyncio.timeout(timeout):
                answer = await run_in_thread(call)
        except TimeoutError:
            text = f"{name_of(method, path)}: the API server did not answer in {timeout:g} s"
            raise NoAnswerError(text) from None
        except CredentialsError as error:
            raise ApiError(0, str(error)) from error
        self.has_answered = True
        return answer

    async def log_in(self) -> None:
        """Load the credentials where that is due; a plugin has more time for it than a request."""
        if not self.credentials.are_due():
            return
        try:
            async with asyncio.timeout(LOGIN_TIMEOUT):
                await run_in_thread(self.credentials.current)
        except TimeoutError:
            text = f"the program that gives the credentials took longer than {LOGIN_TIMEOUT:g} s"
            raise ApiError(0, text) from None
        except CredentialsError as error:
            raise ApiError(0, str(error)) from error

    async def find(self, path: str) -> Json | None:
        """The object at a path, None when there is none of that name."""
        try:
            return await self.ask("GET", path)
        except ApiError as error:
            if error.code == 404:
                return None
            raise

    async def create(self, path: str, body: Json, *, dry_run: bool = False) -> Json:
        """Create an object in a collection."""
        dry = "&dryRun=All" if dry_run else ""
        return await self.ask("POST", f"{path}?fieldManager={self.manager}{dry}", body)

    async def apply(self, path: str, body: Json, *, dry_run: bool = False) -> Json:
        """Apply an object on the server's side, as the owner of its fields."""
        dry = "&dryRun=All" if dry_run else ""
        query = f"?fieldManager={self.manager}&force=true{dry}"
        return await self.ask("PATCH", path + query, body, APPLY)

    async def merge(self, path: str, body: Json) -> Json:
        """Change some fields of the object at a path."""
        return await self.ask("PATCH", f"{path}?fieldManager={self.manager}", body, MERGE)

    async def delete(self, path: str) -> None:
        """Delete the object at a path, if it is there."""
        try:
            await self.ask("DELETE", path)
        except ApiError as error:
            if error.code != 404:
                raise


def exchange(
    credentials: Credentials,
    method: str,
    path: str,
    headers: dict[str, str],
    body: Json | None,
    timeout: float,
) -> tuple[int, bytes]:
    """One request and its whole answer; TimeoutError or ApiError where there is none."""
    ends = time.monotonic() + timeout
    with open_answer(credentials, method, path, headers, body, timeout) as answer:
        data = bytearray()
        while chunk := answer.read(CHUNK):
            data += chunk
            if len(data) > LONGEST_ANSWER:
                text = f"{answer.asked}: the answer is longer than {LONGEST_ANSWER} bytes"
                raise LongPageError(0, text)
            if time.monotonic() > ends:
                raise TimeoutError
        return answer.status, bytes(data)


@dataclass(slots=True)
class Answer:
    """An answer whose body is read in pieces; any thread may stop it."""

    response: Any
    asked: str

    @property
    def status(self) -> int:
        """The HTTP status."""
        status: int = self.response.status
        return status

    def read(self, size: int) -> bytes:
        """The next bytes as soon as there are some, none at the end.

        Raises TimeoutError, and ApiError where the connection fails.
        """
        try:
            data: bytes = self.response.read1(size)
        except Exception as error:
            raise connection_error(self.asked, error) from error
        return data

    def stop(self) -> None:
        """End a read of another thread."""
        with contextlib.suppress(OSError, ValueError, RuntimeError):
            self.response.shutdown()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        # A connection whose answer was read to its end is back in the pool already.
        self.response.close()


def open_answer(
    credentials: Credentials,
    method: str,
    path: str,
    headers: dict[str, str],
    body: Json | None,
    timeout: float,
) -> Answer:
    """Send a request, and read the head of its answer; TimeoutError or ApiError where that fails.

    Credentials that the API server does not accept are loaded again once. `timeout` is for every
    wait: to connect, and for each part of the answer.
    """
    loaded = credentials.current()
    answer = send(loaded, method, path, headers, body, timeout)
    if answer.status != 401:
        return answer
    renewed = credentials.reload(loaded)
    if renewed is loaded:
        return answer
    answer.response.close()
    return send(renewed, method, path, headers, body, timeout)


def send(
    loaded: Loaded,
    method: str,
    path: str,
    headers: dict[str, str],
    body: Json | None,
    timeout: float,
) -> Answer:
    """The same with given credentials."""
    asked = name_of(method, path)
    sent = {**headers, "User-Agent": "podgate"}
    try:
        if token := loaded.authorization:
            sent["Authorization"] = token
        url = loaded.client.configuration.host.rstrip("/") + path
        made = loaded.client.call_api(
            method, url, sent, body, _request_timeout=(min(timeout, TIMEOUT), timeout)
        )
    except Exception as error:  # of urllib3 and of the package, which has many
        raise connection_error(asked, error) from error
    return Answer(made.response, asked)


async def read_lines(server: ApiServer, path: str, accept: str) -> AsyncIterator[bytes]:
    """The lines of one long answer as they come, until it ends or says nothing for SILENCE.

    Raises ApiError.
    """
    await server.log_in()
    reading = LineReader(server.credentials, path, accept, asyncio.get_running_loop())
    task = asyncio.ensure_future(run_in_thread(reading.run))
    try:
        while batch := await reading.batches.get():
            reading.room.release()
            if isinstance(batch, TimeoutError):
                if reading.answer is None:
                    text = f"{name_of('GET', path)}: the API server did not answer"
                    raise NoAnswerError(text)
                return  # the connection may be dead: a new one goes on
            if isinstance(batch, CredentialsError):
                raise ApiError(0, str(batch)) from batch
            if isinstance(batch, BaseException):
                raise batch
            for line in batch:
                yield line
    finally:
        task.cancel()
        reading.stop()


@dataclass(slots=True)
class LineReader:
    """Reads one long answer in a thread, and hands its lines to an event loop in batches.

    The last batch is empty, or the error that ended it.
    """

    credentials: Credentials
    path: str
    accept: str
    loop: asyncio.AbstractEventLoop
    batches: asyncio.Queue[list[bytes] | BaseException] = field(default_factory=asyncio.Queue)
    room: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(AHEAD))
    is_over: threading.Event = field(default_factory=threading.Event)
    answer: Answer | None = None

    def run(self) -> None:
        """Read until the answer ends, or it is stopped."""
        try:
            self.read()
            self.put([])
        except BaseException as error:
            self.put(error)

    def read(self) -> None:
        """Read one answer; raises TimeoutError, ApiError or CredentialsError."""
        headers = {"Accept": self.accept}
        with open_answer(self.credentials, "GET", self.path, headers, None, SILENCE) as answer:
            self.answer = answer
            if answer.status != 200:
                raise refusal(answer.status, "GET", self.path, answer.read(CHUNK))
            for lines in split_lines(answer, self.is_over):
                self.put(lines)

    def put(self, batch: list[bytes] | BaseException) -> None:
        """Hand over a batch, once there is room for it."""
        self.room.acquire()
        if self.is_over.is_set() or self.loop.is_closed():
            self.room.release()  # for the last one, which nobody makes room for
            return
        with contextlib.suppress(RuntimeError):  # the loop was closed meanwhile
            self.loop.call_soon_threadsafe(self.batches.put_nowait, batch)

    def stop(self) -> None:
        """End the thread, from another one."""
        self.is_over.set()
        self.room.release()
        if self.answer is not None:
            self.answer.stop()


def split_lines(answer: Answer, is_over: threading.Event) -> Iterator[list[bytes]]:
    """The lines of an answer, those of one read at a time; ApiError for one that is too long."""
    rest = b""
    while not is_over.is_set() and (data := answer.read(CHUNK)):
        *whole, rest = (rest + data).split(b"\n")
        if len(rest) > LONGEST_LINE:
            raise ApiError(0, f"{answer.asked}: a line is longer than {LONGEST_LINE} bytes")
        if lines := [each for each in whole if each.strip()]:
            yield lines


def connection_error(asked: str, error: Exception) -> Exception:
    """The error for a request that got no answer, or not all of it."""
    from urllib3.exceptions import NewConnectionError
    from urllib3.exceptions import TimeoutError as TooLateError

    if isinstance(error, TooLateError) and not isinstance(error, NewConnectionError):
        return TimeoutError()
    return NoAnswerError(f"{asked}: asking the API server failed: {reason_of(error)}")


def reason_of(error: BaseException) -> str:
    """What went wrong with a connection, in a few words."""
    each: BaseException | None = error
    while each is not None:
        for found in (each, *(arg for arg in each.args if isinstance(arg, BaseException))):
            if isinstance(found, ssl.SSLCertVerificationError):
                return f"its certificate does not verify ({found.verify_message})"
            if isinstance(found, ssl.SSLError):
                return str(found.reason or "TLS failed")
            if isinstance(found, http.client.RemoteDisconnected):
                return "the connection ended without an answer"
            if isinstance(found, http.client.IncompleteRead):
                return "the connection ended before the answer did"
            if isinstance(found, OSError) and found.errno and found.errno > 0:
                return os.strerror(found.errno)
        each = each.__cause__ or each.__context__
    return texts.clean(str(error)) or type(error).__name__


async def run_in_thread(function: Callable[[], T]) -> T:
    """Run a function in a thread of its own, which nothing waits for at the end of the program."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def settle(set_result: Callable[[Any], None], value: object) -> None:
        if not done.done():
            set_result(value)

    def run() -> None:
        try:
            outcome: tuple[Callable[[Any], None], object] = done.set_result, function()
        except BaseException as error:
            outcome = done.set_exception, error
        with contextlib.suppress(RuntimeError):  # the loop was closed meanwhile
            loop.call_soon_threadsafe(settle, *outcome)

    threading.Thread(target=run, daemon=True).start()
    return await done


def name_of(method: str, path: str) -> str:
    """A request as errors name it."""
    return f"{method} {path.partition('?')[0]}"


def object_in(answer: bytes, asked: str) -> Json:
    """The object in an answer; ApiError, which names the request, where none can be read.

    One object that is nested too deep must not keep the others of a list unread: what is deeper than
    DEEPEST levels is replaced by CUT. The rest of it is still deeper than podgate accepts anywhere.
    The same goes for one with text that is none.
    """
    try:
        found = load_shallow(answer)
    except ValueError:
        try:
            found = orjson.loads(cut_deep(replace_no_characters(answer)))
        except ValueError as error:
            text = f"{asked}: the API server's answer cannot be read as JSON ({error})"
            raise ApiError(0, text) from error
        log_cut(found, asked)
    if not isinstance(found, dict):
        raise ApiError(0, f"{asked}: the API server's answer is no object")
    return found


def load_shallow(answer: bytes) -> Any:
    """Decode JSON; ValueError for what is nested deeper than DEEPEST levels."""
    if answer.count(b"{") + answer.count(b"[") <= DEEPEST:
        return orjson.loads(answer)
    found = orjson.loads(b"[" * SPARE + answer + b"]" * SPARE)
    for _ in range(SPARE):
        (found,) = found
    return found


def cut_deep(answer: bytes) -> bytes:
    """JSON with CUT in place of what is nested deeper than DEEPEST levels."""
    kept: list[bytes] = []
    depth = start = 0
    for token in TOKENS.finditer(answer):
        if token[0] in b"[{":
            depth += 1
            if depth == DEEPEST + 1:
                kept += answer[start : token.start()], CUT
        elif token[0] in b"]}":
            if depth == DEEPEST + 1:
                start = token.end()
            depth -= 1
    return b"".join((*kept, answer[start:]))


def log_cut(found: Any, asked: str) -> None:
    """Log the objects that were not read as a whole."""
    body = found if isinstance(found, dict) else {}
    items = body.get("items") or [body.get("object") or body]
    for each in items if isinstance(items, list) else ():
        if isinstance(each, dict) and CUT in orjson.dumps(each):
            metadata = metadata_of(each)
            name = "/".join(str(metadata[key]) for key in ("namespace", "name") if key in metadata)
            log.warning("%s: %s is nested deeper than %d levels", asked, name, DEEPEST)


def metadata_of(body: Json) -> Json:
    """The metadata of an object or a list; empty where it is no map."""
    metadata = body.get("metadata")
    return metadata if isinstance(metadata, dict) else {}


def refusal(status: int, method: str, path: str, answer: bytes) -> ApiError:
    """The error for an answer of another status than success."""
    body = status_in(answer)
    text = str(body.get("message") or f"HTTP {status}")
    return ApiError(status, f"{name_of(method, path)}: {text}", body)


def status_in(answer: bytes) -> Json:
    """The Status in an answer, empty where something in between refused, such as a proxy."""
    try:
        found = orjson.loads(answer)
    except ValueError:
        return {}
    return found if isinstance(found, dict) and found.get("kind") == "Status" else {}


def path_of(*elements: str) -> str:
    """The path of these elements, each quoted; ValueError for one that would name another path."""
    if any(each in ("", ".", "..") for each in elements):
        raise ValueError(f"{texts.show_value('/'.join(elements))} is no path of the API server")
    return "".join(f"/{quote(each, safe=':')}" for each in elements)
