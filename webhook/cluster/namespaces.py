"""The labels of namespaces, asked of the API server where policies select by them.

An unknown namespace is never "no policy" (semantics §6): one look-up of at most a second, then an
error. A namespace that the API server does not know (404) is an error too: objects can only be
written where a namespace is, so its absence means that this is the wrong API server, or that the
namespace has gone in between, and neither says which policies hold.

Everything here runs on the event loop and waits without blocking it; files are read in a thread.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import logging
import os
import re
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import quote, urlsplit

import httptools
import orjson

from webhook.documents import texts
from webhook.documents.yaml_source import read_documents
from webhook.policy.selectors import NAME_LABEL

log = logging.getLogger("podgate.kubernetes")

FRESH = 30.0  # seconds that labels are used without asking again
USABLE = 300.0  # seconds that they are used while asking again does not succeed
PATIENCE = 3.0  # seconds of a look-up in all, from waiting for its turn to the last byte
AGAIN = 5.0  # seconds between attempts to renew labels that are still usable
KEPT = 10_000
CONNECTIONS = 16
RENEWALS = 256
LONGEST_ANSWER = 4 * 1024 * 1024
SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
NAMESPACE = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
TOKEN = re.compile(r"[!-~]+")
TARGET = re.compile(r"/[!-~]*")
ACCEPT = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1, application/json"
NO_ACCESS = (
    "there are neither a kubeconfig nor the credentials of a service account to ask the API server"
    " with; set --kubeconfig (PODGATE_KUBECONFIG), or run in a Pod that mounts its service account"
)
MAY_NOT = "grant `get` on `namespaces` in a ClusterRole"


class TooLongError(ValueError):
    """An answer is longer than LONGEST_ANSWER."""


class AccessError(Exception):
    """Why the API server cannot be asked as things are: one sentence for people."""


@dataclass(frozen=True, slots=True)
class Access:
    """Where the API server is and how to show who asks; `prefix` is the path of its URL."""

    host: str
    port: int
    context: ssl.SSLContext
    token: str = ""
    prefix: str = ""
    server_name: str = ""


class Source(Protocol):
    """What access is read from; `files` are those that were read, to see when they change."""

    files: list[Path]

    def read(self) -> Access:
        """The access as it is now; AccessError when there is none."""


@dataclass(slots=True)
class ServiceAccount:
    """The credentials that a Pod has mounted; kubelet exchanges the token before it ends."""

    host: str
    port: str
    folder: Path = SERVICE_ACCOUNT
    files: list[Path] = field(default_factory=list)

    def read(self) -> Access:
        """The access as it is now; AccessError when there is none."""
        authority, token = self.folder / "ca.crt", self.folder / "token"
        self.files = [authority, token]
        if not self.port.isdigit():
            raise AccessError("KUBERNETES_SERVICE_PORT is no port")
        context = verifying(content(authority), authority)
        return Access(self.host, int(self.port), context, token_of(content(token), token))


@dataclass(slots=True)
class Kubeconfig:
    """The current context of a kubeconfig file, with a token or a client certificate."""

    path: Path
    files: list[Path] = field(default_factory=list)

    def read(self) -> Access:
        """The access as it is now; AccessError when there is none that can be used here."""
        self.files = [self.path]
        documents, problems = read_documents(content(self.path), str(self.path), kubernetes=True)
        for each in problems:
            raise AccessError(f"{self.path}, line {each.line}: {each.message}; {each.fix}")
        document = documents[0].data if len(documents) == 1 else None
        context = self.named(document, "contexts", "context", text(document, "current-context"))
        cluster = self.named(document, "clusters", "cluster", text(context, "cluster"))
        user = self.named(document, "users", "user", text(context, "user"))
        url = self.url_of(text(cluster, "server"))
        authority = self.bytes_of(cluster, "certificate-authority")
        trusted = verifying(authority, self.path)
        token = self.identify(user, trusted)
        host, port, prefix = url
        return Access(host, port, trusted, token, prefix, text(cluster, "tls-server-name"))

    def named(self, document: Any, members: str, member: str, name: str) -> dict[str, Any]:
        """The entry of this name in one of the three lists."""
        entries = document.get(members) if isinstance(document, dict) else None
        for entry in entries if isinstance(entries, list) else ():
            if isinstance(entry, dict) and name and entry.get("name") == name:
                found = entry.get(member)
                if isinstance(found, dict):
                    self.usable(found, f"{member} {name}")
                    return found
        what = (
            f"{member} named {texts.quoted(name)}" if name else f"{member} for the current context"
        )
        fix = "write the names in current-context and in its context as the lists have them"
        raise AccessError(f"{self.path} has no {what}; {fix}")

    def usable(self, entry: dict[str, Any], what: str) -> None:
        """Refuse what would need a program, a proxy, or faith."""
        for key in ("exec", "auth-provider", "username", "proxy-url", "insecure-skip-tls-verify"):
            if entry.get(key):
                fix = "write certificate-authority, and a token or a client certificate"
                raise AccessError(f"{self.path}: {what} has {key}, which is not used here; {fix}")

    def url_of(self, server: str) -> tuple[str, int, str]:
        """Host, port and path of the API server's URL."""
        try:
            parts = urlsplit(server)
            if parts.scheme == "https" and parts.hostname:
                return parts.hostname, parts.port or 443, parts.path.rstrip("/")
        except ValueError:
            pass
        raise AccessError(f"{self.path}: server is {texts.quoted(server)}; write https://HOST:PORT")

    def bytes_of(self, entry: dict[str, Any], key: str) -> bytes | None:
        """What `KEY-data` holds, else the file at `KEY`; None when neither is written."""
        data, path = text(entry, f"{key}-data"), text(entry, key)
        if data:
            try:
                return base64.b64decode(data, validate=True)
            except ValueError as error:
                fix = "write the base64 of PEM text on one line"
                raise AccessError(f"{self.path}: {key}-data is no base64; {fix}") from error
        return self.beside(path) if path else None

    def beside(self, path: str) -> bytes:
        """A file that the kubeconfig names, from its own folder unless it is absolute."""
        place = self.path.parent / path
        self.files.append(place)
        try:
            return content(place)
        except AccessError as error:
            raise AccessError(f"{self.path}: {error}") from error

    def identify(self, user: dict[str, Any], context: ssl.SSLContext) -> str:
        """Put the user's client certificate into the context, or give the user's token."""
        file, token = text(user, "tokenFile"), text(user, "token")
        if file or token:
            data = self.beside(file) if file else token.encode("utf-8", "replace")
            return token_of(data, self.path)
        chain, key = (self.bytes_of(user, f"client-{each}") for each in ("certificate", "key"))
        if not chain or not key:
            what = "the user has neither a token nor a client certificate; write one of them"
            raise AccessError(f"{self.path}: {what}")
        with as_file(chain) as chain_path, as_file(key) as key_path:
            try:
                context.load_cert_chain(chain_path, key_path, password=no_password)
            except (ssl.SSLError, ValueError) as error:
                what = "the client certificate and its key are no usable pair"
                fix = "give both as PEM text, the key without a password"
                raise AccessError(f"{self.path}: {what}; {fix}") from error
        return ""


def text(entry: Any, key: str) -> str:
    """The text at `key`, else the empty text."""
    value = entry.get(key) if isinstance(entry, dict) else None
    return value if isinstance(value, str) else ""


def content(path: Path) -> bytes:
    """The bytes of a small file; AccessError when it cannot be read."""
    try:
        return path.read_bytes()
    except (OSError, ValueError) as error:
        shown = texts.clean(str(path))
        what = f"{shown} cannot be read: {reason_of(error)}"
        raise AccessError(f"{what}; check its path and permissions") from error


def token_of(data: bytes, path: Path) -> str:
    """A bearer token; AccessError, without it, when it cannot stand in a header."""
    token = data.decode("ascii", "replace").strip()
    if TOKEN.fullmatch(token) is None:
        raise AccessError(f"{path} has no readable token; write it on one line without spaces")
    return token


def verifying(authority: bytes | None, path: Path) -> ssl.SSLContext:
    """A client's context that trusts `authority` alone; without one what the system trusts."""
    if authority is not None and not authority.strip():
        raise AccessError(f"{path} has an empty CA certificate; give its PEM text")
    try:
        context = ssl.create_default_context(cadata=authority and authority.decode("ascii"))
    except (ssl.SSLError, ValueError) as error:
        what = f"{path} has no usable CA certificate; give its PEM text"
        raise AccessError(what) from error
    # Python 3.13 is strict by default, and many a cluster's CA has no key identifier.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    context.set_alpn_protocols(["http/1.1"])
    return context


def no_password() -> bytes:
    """Answers for a key that is encrypted, so that nobody is asked on a terminal."""
    raise ValueError("the key is encrypted")


@contextlib.contextmanager
def as_file(data: bytes) -> Iterator[str]:
    """`data` behind a path, since OpenSSL takes no bytes; it stays in memory."""
    descriptor = os.memfd_create("podgate-client", os.MFD_CLOEXEC)
    try:
        os.write(descriptor, data)
        yield f"/proc/self/fd/{descriptor}"
    finally:
        os.close(descriptor)


@dataclass(slots=True)
class Credentials:
    """Access that is read again when its files change, from any thread."""

    source: Source
    access: Access | None = None
    seen: tuple[Any, ...] = ()
    lock: threading.Lock = field(default_factory=threading.Lock)

    def current(self) -> Access:
        """The access as it is now; AccessError when there is none."""
        with self.lock:
            if self.access is None or self.seen != self.mark():
                self.access = None
                self.access = self.source.read()
                self.seen = self.mark()
            return self.access

    def mark(self) -> tuple[Any, ...]:
        """What tells that a file was written or exchanged, kubelet's symlink swap included."""
        return tuple(mark_of(path) for path in self.source.files)


def mark_of(path: Path) -> tuple[int, int, int] | None:
    """Inode, time and size behind a path; None when nothing is there."""
    try:
        seen = path.stat()
    except OSError:
        return None
    return seen.st_ino, seen.st_mtime_ns, seen.st_size


def credentials_of(
    kubeconfig: Path | None, environ: Mapping[str, str], folder: Path = SERVICE_ACCOUNT
) -> Credentials | None:
    """The kubeconfig's credentials, else those of the Pod's service account, else None."""
    if kubeconfig is not None:
        return Credentials(Kubeconfig(kubeconfig))
    host, port = environ.get("KUBERNETES_SERVICE_HOST"), environ.get("KUBERNETES_SERVICE_PORT")
    if not host or not port or not (folder / "token").is_file():
        return None
    return Credentials(ServiceAccount(host, port, folder))


@dataclass(slots=True)
class Entry:
    """Labels, when they were asked for, and when they may be asked for again."""

    labels: Mapping[str, str]
    asked: float
    renewable: float


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of a look-up: `found`, `not-found`, `denied`, `timeout` or `failed`, and why."""

    outcome: str
    labels: Mapping[str, str] = field(default_factory=dict)
    why: str = ""


@dataclass(slots=True)
class Namespaces:
    """The labels of namespaces, at most KEPT of them; `counted` is told of each look-up.

    Belongs to one event loop; `known` alone may be called from other threads.
    """

    credentials: Credentials | None
    counted: Callable[[str], None] = lambda _: None
    clock: Callable[[], float] = time.monotonic
    kept: dict[str, Entry] = field(default_factory=dict)
    running: dict[str, asyncio.Task[Answer]] = field(default_factory=dict)
    turns: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(CONNECTIONS))

    def known(self, name: str) -> Mapping[str, str] | None:
        """Labels that need no question, at once."""
        entry = self.kept.get(name)
        return entry.labels if entry is not None and self.clock() - entry.asked <= FRESH else None

    async def labels(self, name: str, seconds: float) -> Mapping[str, str] | str:
        """Labels after at most `seconds`, or why they are not known.

        Labels that are old but usable are given at once and renewed behind the back.
        """
        if self.credentials is None:
            return NO_ACCESS
        if NAMESPACE.fullmatch(name) is None:
            return "no namespace can have this name"
        entry, now = self.kept.get(name), self.clock()
        if entry is not None and now - entry.asked <= USABLE:
            due = now - entry.asked > FRESH and now >= entry.renewable
            if due and name not in self.running and len(self.running) < RENEWALS:
                self.start(self.credentials, name)
            return entry.labels
        task = self.running.get(name) or self.start(self.credentials, name)
        try:
            async with asyncio.timeout(seconds):
                answer = await asyncio.shield(task)
        except TimeoutError:
            return f"the API server did not answer within the {seconds:.1f} s that the caller waits"
        return answer.labels if answer.outcome == "found" else answer.why

    def start(self, credentials: Credentials, name: str) -> asyncio.Task[Answer]:
        """A look-up that all who ask meanwhile wait for."""
        task = asyncio.get_running_loop().create_task(self.look_up(credentials, name))
        self.running[name] = task
        task.add_done_callback(lambda _: self.running.pop(name, None))
        return task

    async def look_up(self, credentials: Credentials, name: str) -> Answer:
        """Ask once, within PATIENCE, and keep what was said."""
        asked = self.clock()
        try:
            async with asyncio.timeout(PATIENCE), self.turns:
                access = await asyncio.to_thread(credentials.current)
                answer = await asked_of(access, name)
        except TimeoutError:
            answer = Answer("timeout", why=f"the API server did not answer in {PATIENCE:g} s")
        except AccessError as error:
            answer = Answer("failed", why=str(error))
        except (OSError, ValueError, httptools.HttpParserError) as error:
            answer = Answer("failed", why=f"asking the API server failed: {reason_of(error)}")
        self.counted(answer.outcome)
        self.remember(name, answer, asked)
        return answer

    def remember(self, name: str, answer: Answer, asked: float) -> None:
        """Keep labels, forget a namespace that has gone; a failure leaves the old ones."""
        old = self.kept.get(name)
        if answer.outcome == "found":
            self.kept.pop(name, None)  # so that the oldest come first
            while len(self.kept) >= KEPT:
                del self.kept[next(iter(self.kept))]
            self.kept[name] = Entry(answer.labels, asked, asked)
            return
        log.warning("looking up namespace %s: %s", name, answer.why)
        if answer.outcome == "not-found":
            self.kept.pop(name, None)
        elif old is not None:
            old.renewable = self.clock() + AGAIN


def reason_of(error: Exception) -> str:
    """What went wrong with a connection, in a few words."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate does not verify ({error.verify_message})"
    if isinstance(error, ssl.SSLError):
        return str(error.reason or "TLS failed")
    if isinstance(error, OSError) and error.errno and error.errno > 0:
        return os.strerror(error.errno)
    return str(error) or type(error).__name__


@dataclass(slots=True)
class Response:
    """What httptools tells of an answer."""

    body: bytearray = field(default_factory=bytearray)
    complete: bool = False

    def on_body(self, data: bytes) -> None:
        """A piece of the body."""
        self.body += data

    def on_message_complete(self) -> None:
        """The end of the answer."""
        self.complete = True


async def asked_of(access: Access, name: str) -> Answer:
    """What the API server says of a namespace.

    It may look into its cache, which it can also while etcd stands still or is busy. A namespace that
    is not in there yet is asked for again, from etcd.
    """
    path = path_of("api", "v1", "namespaces", name)
    answer = read_answer(name, *await get(access, f"{path}?resourceVersion=0"))
    if answer.outcome != "not-found":
        return answer
    return read_answer(name, *await get(access, path))


async def get(access: Access, path: str) -> tuple[int, bytes]:
    """Status and body of one GET for metadata on a connection of its own."""
    return await request(access, "GET", path, accept=ACCEPT)


async def request(
    access: Access,
    method: str,
    path: str,
    body: bytes = b"",
    *,
    content: str = "application/json",
    accept: str = "application/json",
) -> tuple[int, bytes]:
    """Status and body of one request on a connection of its own; `content` is the body's type."""
    reader, writer = await opened(access)
    try:
        writer.write(head_of(access, method, path, body, content, accept) + body)
        response = Response()
        parser = httptools.HttpResponseParser(response)
        while not response.complete:
            data = await reader.read(65536)
            if not data:
                raise ValueError("the connection ended before the answer did")
            parser.feed_data(data)
            if len(response.body) > LONGEST_ANSWER:
                raise TooLongError(f"the answer is longer than {LONGEST_ANSWER} bytes")
        return parser.get_status_code(), bytes(response.body)
    finally:
        writer.transport.abort()


async def opened(access: Access) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A new connection to the API server, verified."""
    return await asyncio.open_connection(
        access.host,
        access.port,
        ssl=access.context,
        server_hostname=access.server_name or access.host,
    )


def path_of(*elements: str) -> str:
    """The path of these elements, each quoted; ValueError for one that would name another path."""
    if any(each in ("", ".", "..") for each in elements):
        raise ValueError(f"{texts.shown('/'.join(elements))} is no path of the API server")
    return "".join(f"/{quote(each, safe=':')}" for each in elements)


def head_of(
    access: Access,
    method: str,
    path: str,
    body: bytes = b"",
    content: str = "application/json",
    accept: str = "application/json",
) -> bytes:
    """The head of a request that is the only one on its connection.

    ValueError for a path that would end the request line, whoever forgot to quote a name in it.
    """
    if TARGET.fullmatch(path) is None:
        raise ValueError(f"{texts.shown(path)} is no path of a request")
    host = f"[{access.host}]" if ":" in access.host else access.host
    lines = [
        f"{method} {access.prefix}{path} HTTP/1.1",
        f"Host: {host}:{access.port}",
        f"Accept: {accept}",
        "User-Agent: podgate",
        "Connection: close",
        *([f"Authorization: Bearer {access.token}"] if access.token else []),
        *([f"Content-Type: {content}", f"Content-Length: {len(body)}"] if body else []),
    ]
    return "".join(f"{line}\r\n" for line in [*lines, ""]).encode("ascii")


def read_answer(name: str, status: int, body: bytes) -> Answer:
    """What an answer of the API server says of a namespace."""
    if status == 200:
        found = orjson.loads(body)
        metadata = found.get("metadata") if isinstance(found, dict) else None
        labels = (metadata.get("labels") or {}) if isinstance(metadata, dict) else None
        if isinstance(metadata, dict) and metadata.get("name") == name and isinstance(labels, dict):
            texts = {key: value for key, value in labels.items() if isinstance(value, str)}
            return Answer("found", {**texts, NAME_LABEL: name})
        return Answer("failed", why="the API server answered with something that is no namespace")
    if status == 404 and is_status(body):
        return Answer("not-found", why="the API server that is asked has no such namespace")
    if status == 401:
        return Answer("denied", why="the API server does not accept the credentials (401)")
    if status == 403:
        return Answer("denied", why=f"the API server forbids it (403); {MAY_NOT}")
    return Answer("failed", why=f"the API server answered with HTTP {status}")


def is_status(body: bytes) -> bool:
    """Whether a refusal is the API server's own, and not that of something in between."""
    try:
        found = orjson.loads(body)
    except ValueError:
        return False
    return isinstance(found, dict) and found.get("kind") == "Status"
