"""What a hostile client does: each scene gives what it saw, and raises Miss for what should not be."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import ssl
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.drill_server.stand import Stand
from tests.drill_server.stream import review

HEAD = b"POST /mutate?timeout=10s HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\n"
CHUNKED = HEAD + b"transfer-encoding: chunked\r\n\r\n"
LONG = b"9" * 16_000
CLOSED = (OSError, ssl.SSLError, EOFError)


class Miss(AssertionError):  # noqa: N818 - a word of the table
    """The server did what it must not."""


def expect(is_right: bool, told: str) -> None:
    """Raise Miss unless something is so."""
    if not is_right:
        raise Miss(told)


def eventually(is_right: Callable[[], bool], seconds: float, told: str) -> None:
    """Raise Miss unless something becomes so in time."""
    until = time.monotonic() + seconds
    while not is_right():
        expect(time.monotonic() < until, told)
        time.sleep(0.1)


@contextlib.contextmanager
def secured(stand: Stand, seconds: float = 15.0) -> Iterator[ssl.SSLSocket]:
    """One connection."""
    context = stand.context()
    with (
        socket.create_connection(("127.0.0.1", stand.port), timeout=seconds) as plain,
        context.wrap_socket(plain, server_hostname="localhost") as made,
    ):
        yield made


def said(stand: Stand, parts: Iterable[bytes]) -> bytes:
    """The answer to what is sent, until the server closes."""
    found = b""
    with contextlib.suppress(*CLOSED), secured(stand) as made:
        with contextlib.suppress(*CLOSED):
            for part in parts:
                made.sendall(part)
        while data := made.recv(65536):
            found += data
    return found


def statuses(stand: Stand, attempts: list[list[bytes]]) -> Counter[str]:
    """How often each status was answered; `none` where the connection just ended."""
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda each: said(stand, each), attempts))
    return Counter(each.split(b" ", 2)[1].decode() if each else "none" for each in answers)


def counted(stand: Stand, cause: str, before: int, least: int) -> None:
    """Raise Miss unless so many connections more were counted."""
    eventually(
        lambda: stand.ended_for(cause) - before >= least,
        15,
        f"fewer than {least} connections more are counted as {cause}",
    )


def whole(body: bytes, more: bytes = b"") -> bytes:
    """A request with a length."""
    return HEAD + more + b"content-length: %d\r\n\r\n" % len(body) + body


def long_heads(stand: Stand, scale: int) -> str:
    """Request targets, headers, trailers and chunk extensions without end."""
    before = stand.ended_for("too-long")
    each = [
        [b"POST /mutate?timeout=" + LONG + b"s HTTP/1.1\r\n\r\n"],
        [b"GET /", *[b"a" * 4_000] * 20],
        [HEAD, b"x: ", *[b"y" * 4_000] * 20],
        [HEAD, *[b"x-%d: %s\r\n" % (number, b"y" * 200) for number in range(500)]],
        [CHUNKED, b"1;", *[b"e" * 4_000] * 20],
        [CHUNKED, b"1\r\n{\r\n0\r\n", *[b"x: %s\r\n" % (b"y" * 200)] * 500],
        [b"\r\n" * 20_000],
    ]
    found = statuses(stand, each * scale)
    expect(set(found) <= {"414", "431", "none"}, f"answers {found}")
    expect(found["414"] >= scale, f"answers {found}")
    counted(stand, "too-long", before, len(each) * scale)
    return f"{dict(found)}"


def garbage(stand: Stand, scale: int) -> str:
    """What is not HTTP after the handshake, and what is not TLS before it."""
    before, hands = stand.ended_for("malformed"), stand.ended_for("handshake")
    each = [
        [os.urandom(2_000)],
        [b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"],
        [HEAD + b"content-length: 5\r\ntransfer-encoding: chunked\r\n\r\n"],
        [HEAD + b"content-length: 1\r\ncontent-length: 2\r\n\r\n{}"],
        [CHUNKED, b"zz\r\n"],
        [b"GET /\xff HTTP/1.1\r\n\r\n"],
    ]
    found = statuses(stand, each * scale)
    expect(set(found) <= {"400", "none"}, f"answers {found}")
    counted(stand, "malformed", before, len(each) * scale)
    for data in (b"GET / HTTP/1.1\r\n\r\n", os.urandom(500)) * scale:
        with (
            contextlib.suppress(OSError),
            socket.create_connection(("127.0.0.1", stand.port), timeout=10) as plain,
        ):
            plain.sendall(data)
            while plain.recv(4096):
                pass
    counted(stand, "handshake", hands, scale)
    return f"{dict(found)}, and {2 * scale} without TLS"


def splitting(stand: Stand, scale: int) -> str:
    """Names in a review that would end a request line of ours."""
    bad = "a HTTP/1.1\r\nHost: b\r\n\r\nDELETE /api/v1/namespaces/b"
    changes: list[dict[str, object]] = [
        {"namespace": bad},
        {"namespace": "../b"},
        {"name": bad, "operation": "UPDATE"},
        {"subResource": bad},
        {"resource": {"group": "", "version": bad, "resource": "pods"}},
        {"kind": {"group": bad, "version": "v1", "kind": "Pod"}},
    ]
    bodies = [review("split", privileged=False, **each) for each in changes]  # type: ignore[arg-type]
    sent = [[whole(each, b"connection: close\r\n")] for each in bodies]
    found = statuses(stand, sent * scale)
    expect(set(found) == {"400"}, f"answers {found}")
    return f"{dict(found)}"


def pipelining(stand: Stand, scale: int) -> str:
    """Hundreds of requests before the first answer is read."""
    one = whole(review("pipe", privileged=False))
    total, before = 0, stand.ended_for("malformed")
    for _ in range(scale):
        answer = said(stand, [one * 300])
        total += answer.count(b"HTTP/1.1 ")
        expect(answer.count(b"HTTP/1.1 ") <= 1, "more than one of many requests was answered")
    counted(stand, "malformed", before, scale)
    return f"{300 * scale} requests on {scale} connections, {total} answered"


def unfinished_bodies(stand: Stand, scale: int) -> str:
    """Bodies of nearly 7 MB that never end."""
    context, held = stand.context(), []
    block = b"x" * 65536
    try:
        for _ in range(12 * scale):
            with contextlib.suppress(*CLOSED):
                plain = socket.create_connection(("127.0.0.1", stand.port), timeout=5)
                made = context.wrap_socket(plain, server_hostname="localhost")
                held.append(made)
                made.sendall(HEAD + b"content-length: 7000000\r\n\r\n")
                for _ in range(106):
                    made.sendall(block)
        time.sleep(3)
    finally:
        for made in held:
            made.close()
    expect(stand.highest < 300 * 2**20, f"a worker took {stand.highest >> 20} MB")
    return f"{len(held)} of 6.9 MB; the largest worker {stand.highest >> 20} MB"


def idle(stand: Stand, scale: int) -> str:
    """Connections that shake hands and then say nothing, and some that do not even do that."""
    limit = 200 * scale
    before = {each: stand.ended_for(each) for each in ("address", "full", "slow", "handshake")}
    context, held = stand.context(), []
    try:
        for number in range(limit):
            with contextlib.suppress(*CLOSED):
                plain = socket.create_connection(("127.0.0.1", stand.port), timeout=5)
                if number % 5:
                    plain = context.wrap_socket(plain, server_hostname="localhost")
                held.append(plain)
        time.sleep(11)
        still = 0
        for each in held:
            with contextlib.suppress(*CLOSED):
                each.setblocking(False)
                try:
                    still += bool(each.recv(1))
                except (BlockingIOError, ssl.SSLWantReadError):
                    still += 1
        expect(still == 0, f"{still} idle connections are there after 11 s")
        after = sum(stand.ended_for(each) - count for each, count in before.items())
        expect(after >= len(held), f"{len(held)} connections were ended, {after} are counted")
    finally:
        for each in held:
            each.close()
    return f"{len(held)} connections, all ended and counted"


def slow(stand: Stand, scale: int) -> str:
    """Heads that come a byte at a time."""
    before, context, held = stand.ended_for("slow"), stand.context(), []
    try:
        for _ in range(5 * scale):
            plain = socket.create_connection(("127.0.0.1", stand.port), timeout=5)
            held.append(context.wrap_socket(plain, server_hostname="localhost"))
        for byte in (HEAD * 2)[:24]:
            for each in held:
                with contextlib.suppress(*CLOSED):
                    each.sendall(bytes([byte]))
            time.sleep(0.5)
        counted(stand, "slow", before, len(held))
    finally:
        for each in held:
            each.close()
    return f"{len(held)} connections, all ended and counted"


CAUSES = ("address", "full", "slow", "handshake", "descriptors", "malformed", "too-long")


def floods(stand: Stand, scale: int) -> str:
    """As many connections and bad requests as two threads can make; each is answered or counted."""
    until = time.monotonic() + 2 * scale
    before = {each: stand.ended_for(each) for each in CAUSES}

    def connect() -> int:
        count = 0
        while time.monotonic() < until and count < 5_000:
            with contextlib.suppress(OSError):
                socket.create_connection(("127.0.0.1", stand.port), timeout=5).close()
                count += 1
            time.sleep(0.002)
        return count

    def ask() -> Counter[str]:
        found: Counter[str] = Counter()
        while time.monotonic() < until and found.total() < 2_000:
            answer = said(stand, [HEAD + b"connection: close\r\ncontent-length: 2\r\n\r\n{}"])
            found[answer.split(b" ", 2)[1].decode() if answer else "none"] += 1
        return found

    with ThreadPoolExecutor(2) as pool:
        making, asking = pool.submit(connect), pool.submit(ask)
        made, asked = making.result(), asking.result()
    expect(set(asked) <= {"400", "503", "none"}, f"answers {asked}")
    least = made + asked.total() - asked["400"]

    def ended() -> int:
        return sum(stand.ended_for(each) - count for each, count in before.items())

    eventually(lambda: ended() >= least, 15, f"{least} connections were ended, fewer are counted")
    return f"{made} connections, {asked.total()} requests, {ended()} counted"


HEAVY = {
    "maps": b'{"":0}',
    "lists": b"[]",
    "texts": b'"a"',
    "keys": b'{"a":1,"b":2}',
}


def heavy_bodies(stand: Stand, scale: int) -> str:
    """Bodies that decode to many times their size, several at once."""
    start, end = review("heavy", privileged=False).split(b'"object":{', 1)
    sent = []
    for piece in HEAVY.values():
        for size in (300_000, 900_000, 6_900_000):
            filled = b",".join([piece] * (size // (len(piece) + 1)))
            body = start + b'"object":{"x":[' + filled + b"]," + end
            sent.append([whole(body, b"connection: close\r\n")])
    found = statuses(stand, sent * scale)
    expect(set(found) <= {"200", "503"}, f"answers {found}")
    expect(found["200"] > 0, f"answers {found}")
    return f"{dict(found)}; the largest worker {stand.highest >> 20} MB"


def signals(stand: Stand, scale: int) -> str:
    """Signals that mean nothing."""
    workers = stand.workers()
    for _ in range(scale):
        for number in (signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2):
            for process in (stand.supervisor(), *workers):
                os.kill(process, number)
    time.sleep(1)
    expect(stand.workers() == workers, "a signal ended a process")
    return f"{scale} times three signals to three processes"


def killed(stand: Stand, scale: int) -> str:
    """A worker that is killed."""
    victim, *_ = stand.workers()
    os.kill(victim, signal.SIGKILL)
    eventually(lambda: replaced(stand, victim), 15, "a killed worker is not replaced")
    eventually(lambda: loaded(stand), 30, "the new worker has no catalog")
    return "replaced"


def stopped(stand: Stand, scale: int) -> str:
    """A worker that stands still."""
    victim, *_ = stand.workers()
    os.kill(victim, signal.SIGSTOP)
    begun = time.monotonic()
    eventually(lambda: replaced(stand, victim), 25, "a stopped worker is not replaced in 25 s")
    seconds = time.monotonic() - begun
    eventually(lambda: loaded(stand), 30, "the new worker has no catalog")
    return f"replaced after {seconds:.0f} s"


def replaced(stand: Stand, victim: int) -> bool:
    """Whether there are two workers, none of them this one."""
    workers = stand.workers()
    return len(workers) == 2 and victim not in workers


def loaded(stand: Stand) -> bool:
    """Whether both workers have a catalog: the metric is the lowest of those that have counters."""
    files = [f"gauge_livemin_{each}.db" for each in stand.workers()]
    if not all(list(stand.volume().glob(f"podgate-metrics-*/{each}")) for each in files):
        return False
    return stand.metrics()["podgate_catalog_generation{}"] >= 1


def full_volume(stand: Stand, scale: int) -> str:
    """No room for counters and snapshots, and a worker that starts then."""
    if not stand.has_volume:
        return "left out: this machine gives us no volume of our own"
    filler = stand.volume() / "filler"
    with contextlib.suppress(OSError), filler.open("wb", buffering=0) as file:
        while True:
            file.write(b"x" * 4_096)
    try:
        for number in range(20):  # kinds that nobody has seen need counters
            kind = {"group": "", "version": "v1", "kind": f"Drill{number}"}
            body = review("full", privileged=False, kind=kind)
            said(stand, [whole(body, b"connection: close\r\n")])
            if number == 3:
                victim, *_ = stand.workers()
                os.kill(victim, signal.SIGKILL)
                eventually(lambda: replaced(stand, victim), 15, "a worker is not replaced")  # noqa: B023
        expect(stand.get("/metrics")[0] == 200, "there are no metrics")
    finally:
        filler.unlink()
    return "one worker was killed and replaced meanwhile"


def odd_files(stand: Stand, scale: int) -> str:
    """Files that are no files any more; the policy stays in force, as the stream sees."""
    failing = 'podgate_reload_failing{what="catalog"}'
    place = stand.policies / "drill.yaml"
    text = place.read_bytes()
    makers: list[tuple[str, Callable[[Path], object]]] = [
        ("a dangling link", lambda path: path.symlink_to("nowhere")),
        ("a pipe", os.mkfifo),
        ("a folder", Path.mkdir),
        ("a loop", lambda path: path.symlink_to(path)),
        ("garbage", lambda path: path.write_bytes(b"\0{")),
    ]
    for told, make in makers[: 1 + scale]:
        place.unlink()
        make(place)
        eventually(lambda: stand.metrics()[failing] == 1, 15, f"{told} is not reported")
        place.rmdir() if place.is_dir() and not place.is_symlink() else place.unlink()
        place.write_bytes(text)
        eventually(lambda: stand.metrics()[failing] == 0, 15, f"after {told} it stays faulty")
    return ", ".join(told for told, _ in makers[: 1 + scale])


SCENES: tuple[tuple[str, Callable[[Stand, int], str]], ...] = (
    ("long heads", long_heads),
    ("garbage", garbage),
    ("request splitting", splitting),
    ("pipelining", pipelining),
    ("unfinished bodies", unfinished_bodies),
    ("heavy bodies", heavy_bodies),
    ("idle connections", idle),
    ("slow connections", slow),
    ("floods", floods),
    ("signals", signals),
    ("a killed worker", killed),
    ("a stopped worker", stopped),
    ("odd files", odd_files),
    ("a full volume", full_volume),  # the last, as workers stay without their counters
)
CUTTING = {"a killed worker", "a stopped worker", "a full volume"}
