"""TLS for the server: one context whose certificate is replaced when its files change."""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import ssl
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

log = logging.getLogger("podgate.tls")

Mark = tuple[tuple[int, int, int, int] | None, ...]
CONSTRUCTED, PRIMITIVE = 0x30, (0x17, 0x18)


class TlsError(Exception):
    """Why a certificate, key or client CA cannot be used."""


@dataclass(frozen=True, slots=True)
class Files:
    """The paths of the certificate chain, its key and, for mutual TLS, the clients' CA."""

    certificate: Path
    key: Path
    client_ca: Path | None = None
    min_version: str = "1.2"

    def mark(self) -> Mark:
        """A value that changes when a file was written or replaced, including the kubelet's symlink swap."""
        return tuple(mark_of(path) for path in (self.certificate, self.key, self.client_ca) if path)


def mark_of(path: Path) -> tuple[int, int, int, int] | None:
    """Device, inode, time and size behind a path, links followed; None if nothing is there."""
    try:
        seen = path.stat()
    except OSError:
        return None
    return seen.st_dev, seen.st_ino, seen.st_mtime_ns, seen.st_size


def now_utc() -> datetime:
    """The clock that a server uses."""
    return datetime.now(UTC)


@dataclass(slots=True)
class Certificate:
    """The served certificate. `context` is for the listener and stays the same object.

    Each pair has its own context, to which every handshake is passed when it begins. Loading a new
    pair into the old context does not work: OpenSSL keeps one pair per type of key, and never
    forgets a client CA. `failures` counts refused pairs.
    """

    files: Files
    now: Callable[[], datetime] = now_utc
    failures: int = 0
    not_after: datetime = field(init=False)
    fingerprint: str = field(init=False)
    context: ssl.SSLContext = field(init=False)
    current: ssl.SSLContext = field(init=False)
    seen: Mark = field(init=False)

    def __post_init__(self) -> None:
        """Load for the first time; raises TlsError if that fails."""
        self.seen = self.files.mark()
        self.current, self.not_after, self.fingerprint = load_context(self.files)
        self.context = load_context(self.files).context
        self.context.sni_callback = self.pass_on

    def pass_on(self, handshake: ssl.SSLObject, name: str | None, context: ssl.SSLContext) -> None:
        """Pass a new handshake to the newest pair."""
        handshake.context = self.current

    def refresh(self) -> bool:
        """Load the pair if its files changed; log a bad one and keep the old one."""
        mark = self.files.mark()
        if mark == self.seen:
            return False
        try:
            context, until, fingerprint = self.better()
        except TlsError as error:
            if mark == self.files.mark():  # the file may be half-written: check again
                self.seen = mark
                self.failures += 1
                log.error("the old certificate stays: %s", error)  # noqa: TRY400
            return False
        self.seen, self.current, self.not_after = mark, context, until
        self.fingerprint = fingerprint
        log.info("a new certificate is served, valid until %s", until.isoformat())
        return True

    def better(self) -> Loaded:
        """Load the files; raise TlsError also if the new pair has expired and the old one has not."""
        found = load_context(self.files)
        if found.until <= self.now() < self.not_after:
            raise TlsError(f"{self.files.certificate} ended on {found.until:%Y-%m-%d %H:%M} UTC")
        return found

    def days_left(self) -> float:
        """Days until the served certificate expires; negative after that."""
        return (self.not_after - self.now()).total_seconds() / 86_400


class Loaded(NamedTuple):
    """A context, the expiry of its certificate, and the certificate's SHA-256 in lower-case hex."""

    context: ssl.SSLContext
    until: datetime
    fingerprint: str


def load_context(files: Files) -> Loaded:
    """Load a context from the files; raises TlsError if they are bad."""
    context = server_context(files.min_version, asks_clients=files.client_ca is not None)
    chain, key = content(files.certificate), content(files.key)
    until = not_after(chain, files.certificate)
    with as_file(chain) as chain_path, as_file(key) as key_path:
        try:
            context.load_cert_chain(chain_path, key_path, password=no_password)
        except (ssl.SSLError, ValueError) as error:
            pair = f"{files.certificate} and {files.key}"
            raise TlsError(f"{pair} are no usable pair: {reason_of(error)}") from error
    if files.client_ca is not None:
        trust(context, files.client_ca)
    return Loaded(context, until, fingerprint_of(chain))


def fingerprint_of(chain: bytes) -> str:
    """The SHA-256 of the first certificate of a valid chain."""
    text = chain.decode("ascii", "replace")
    end = "-----END CERTIFICATE-----"
    first = text[text.index("-----BEGIN CERTIFICATE-----") : text.index(end) + len(end)]
    return hashlib.sha256(ssl.PEM_cert_to_DER_cert(first)).hexdigest()


# Go's client suites for TLS 1.2 without CBC; this does not set suites of TLS 1.3.
SUITES = "ECDHE+AESGCM:ECDHE+CHACHA20"
VERSIONS = {"1.2": ssl.TLSVersion.TLSv1_2, "1.3": ssl.TLSVersion.TLSv1_3}


def server_context(min_version: str = "1.2", *, asks_clients: bool) -> ssl.SSLContext:
    """A server context: HTTP/1.1, no session tickets (they cost time and save none), no CBC suites.

    With `asks_clients` a client without a certificate of the client CA is rejected.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = VERSIONS[min_version]
    context.set_ciphers(SUITES)
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_TICKET
    context.num_tickets = 0
    context.set_alpn_protocols(["http/1.1"])
    if asks_clients:
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def trust(context: ssl.SSLContext, path: Path) -> None:
    """Trust the authorities in a file for client certificates."""
    try:
        context.load_verify_locations(cadata=content(path).decode("ascii", "replace"))
    except (ssl.SSLError, ValueError) as error:
        raise TlsError(f"{path} has no usable CA certificate: {reason_of(error)}") from error


def reason_of(error: Exception) -> str:
    """OpenSSL's short reason, else the message of the error."""
    return getattr(error, "reason", None) or str(error)


def no_password() -> bytes:
    """Answer for an encrypted key, so that OpenSSL does not prompt on a terminal."""
    raise ValueError("the key is encrypted; give it without a password")


def content(path: Path) -> bytes:
    """The bytes of a small file; raises TlsError if it cannot be read."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise TlsError(f"{path} cannot be read: {error.strerror}") from error


@contextlib.contextmanager
def as_file(data: bytes) -> Iterator[str]:
    """A path for `data`, since OpenSSL takes no bytes; it stays in memory, keys included."""
    descriptor = os.memfd_create("podgate-tls", os.MFD_CLOEXEC)
    try:
        os.write(descriptor, data)
        yield f"/proc/self/fd/{descriptor}"
    finally:
        os.close(descriptor)


def not_after(chain: bytes, path: Path) -> datetime:
    """The expiry of the first certificate of a PEM text; raises TlsError if it cannot be read.

    Reading one date by hand saves 17 MB per worker for a library that parses all of X.509.
    """
    begin, end = b"-----BEGIN CERTIFICATE-----", b"-----END CERTIFICATE-----"
    try:
        start = chain.index(begin)
        pem = chain[start : chain.index(end, start) + len(end)]
        return end_of_validity(ssl.PEM_cert_to_DER_cert(pem.decode("ascii")))
    except (ValueError, IndexError) as error:
        raise TlsError(f"{path} has no readable PEM certificate") from error


def end_of_validity(der: bytes) -> datetime:
    """`notAfter` of a DER certificate (RFC 5280 §4.1); ValueError or IndexError when malformed."""
    _, certificate, _ = element(der, 0)
    _, body, _ = element(certificate, 0)
    position = 0
    tag, _, after = element(body, 0)
    if tag == 0xA0:  # the version, absent in version 1
        position = after
    for _ in range(3):  # serial number, signature algorithm, issuer
        _, _, position = element(body, position)
    tag, validity, _ = element(body, position)
    if tag != CONSTRUCTED:
        raise ValueError("validity is no sequence")
    _, _, second = element(validity, 0)
    tag, moment, _ = element(validity, second)
    if tag not in PRIMITIVE:
        raise ValueError("notAfter is no time")
    text = moment.decode("ascii")
    if tag == PRIMITIVE[0]:  # UTCTime has two digits for the year
        text = ("20" if text[:2] < "50" else "19") + text
    return datetime.strptime(text, "%Y%m%d%H%M%SZ").replace(tzinfo=UTC)


def element(data: bytes, at: int) -> tuple[int, bytes, int]:
    """Tag and content of the DER element at `at`, and where the next one begins."""
    tag, length, begin = data[at], data[at + 1], at + 2
    if length & 0x80:
        size = length & 0x7F
        length = int.from_bytes(data[begin : begin + size], "big")
        begin += size
    if begin + length > len(data):
        raise ValueError("an element is longer than what contains it")
    return tag, data[begin : begin + length], begin + length
