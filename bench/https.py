"""Gates over HTTPS: server CPU per request, a whole admission beside a null handler of one server."""

from __future__ import annotations

import contextlib
import os
import socket
import ssl
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from http.client import HTTPSConnection
from pathlib import Path

from bench.inprocess import POLICIES, review
from bench.timing import Gate
from certs.development import ensure_development_certificates

ROUNDS = 5
REQUESTS = 400
TICKS = os.sysconf("SC_CLK_TCK")


def free_port() -> int:
    """A loopback port that nobody has."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def cpu_seconds(pid: int) -> float:
    """User and system time of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


class Client:
    """One keep-alive connection that posts one body, or those it is given."""

    def __init__(self, port: int, ca: Path, path: str, body: bytes) -> None:
        context = ssl.create_default_context(cafile=str(ca))
        self.connection = HTTPSConnection("localhost", port, context=context, timeout=10)
        self.path, self.body = path, body

    def post(self, body: bytes = b"") -> float:
        """One request; seconds it took."""
        started = time.perf_counter()
        headers = {"Content-Type": "application/json"}
        self.connection.request("POST", self.path, body or self.body, headers)
        response = self.connection.getresponse()
        response.read()
        assert response.status == 200, response.status
        return time.perf_counter() - started


@contextlib.contextmanager
def served(command: list[str], port: int) -> Iterator[int]:
    """A server process on a port, ready; stopped by its process id."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            time.sleep(0.1)
        else:
            raise SystemExit("a server of the benchmark did not start")
        time.sleep(1.5)
        yield process.pid
    finally:
        process.terminate()
        try:
            process.wait(15)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def podgate_command(folder: Path, port: int, policies: str) -> list[str]:
    """podgate serve with one worker."""
    return [
        *(sys.executable, "-m", "webhook", "--listen", f"127.0.0.1:{port}"),
        *("--metrics-listen", "same", "--workers", "1", "--log-level", "error", "--drain", "0"),
        *("--tls-cert", str(folder / "tls.crt"), "--tls-key", str(folder / "tls.key")),
        *("--policies", policies),
    ]


def null_command(folder: Path, port: int) -> list[str]:
    """The null handler on the same server stack."""
    return [sys.executable, "-m", "bench.null", str(port), str(folder)]


def gates() -> Iterator[Gate]:
    """T2: CPU per request; T2b: latency at concurrency 1."""
    body = review("raycluster-create")
    with tempfile.TemporaryDirectory() as name:
        folder, now = Path(name), datetime.now(UTC)
        ensure_development_certificates(folder, ["localhost"], ["127.0.0.1"], now, 30)
        ours, null = free_port(), free_port()
        with (
            served(podgate_command(folder, ours, POLICIES), ours) as our_pid,
            served(null_command(folder, null), null) as null_pid,
        ):
            clients = (
                (our_pid, Client(ours, folder / "ca.crt", "/mutate?timeout=10s", body)),
                (null_pid, Client(null, folder / "ca.crt", "/null", body)),
            )
            yield from measured(clients, len(body))


def measured(clients: tuple[tuple[int, Client], ...], size: int) -> Iterator[Gate]:
    """Interleaved rounds over both servers."""
    cpu: tuple[list[float], list[float]] = ([], [])
    latency: tuple[list[float], list[float]] = ([], [])
    for _, client in clients:
        for _ in range(50):
            client.post()
    for _ in range(ROUNDS):
        for index, (pid, client) in enumerate(clients):
            before = cpu_seconds(pid)
            times = [client.post() for _ in range(REQUESTS)]
            cpu[index].append((cpu_seconds(pid) - before) / REQUESTS)
            latency[index].append(statistics.median(times))
    ours, null = statistics.median(cpu[0]), statistics.median(cpu[1])
    detail = f"{size / 1000:.0f} KB: {ours * 1e6:.0f} µs beside {null * 1e6:.0f} µs CPU"
    yield Gate("T2", "server CPU per admission ÷ null handler", ours / max(null, 1e-9), 7.0, detail)
    one, two = statistics.median(latency[0]), statistics.median(latency[1])
    detail = f"p50 {one * 1e3:.2f} ms beside {two * 1e3:.2f} ms"
    yield Gate("T2b", "latency at concurrency 1 ÷ null handler", one / two, 5.5, detail)
