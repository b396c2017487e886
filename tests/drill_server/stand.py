"""The server of a drill: processes, memory, metrics and probes as seen from outside."""

from __future__ import annotations

import contextlib
import http.client
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from certs import authority, files
from certs.names import Names
from certs.pair import KeyPair
from tests.generated import ROOT

POLICY = """\
apiVersion: podgate.dev/v1alpha1
kind: ClusterWorkloadPolicy
metadata: {name: drill}
spec:
  scope: cluster
  rules:
    security:
      privileged: {canEdit: false}
"""
SERIES = re.compile(r"^(podgate_\w+)(?:\{(.*)\})? (\S+)$", re.MULTILINE)
VOLUME = "/mnt"
MOUNTED = f'mount -t tmpfs -o size=2m drill {VOLUME} && exec "$0" "$@"'
UNSHARED = ("unshare", "--map-root-user", "--mount", "sh", "-c", MOUNTED)


def free_port() -> int:
    """A loopback port that nobody has."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def can_mount() -> bool:
    """Whether this machine lets us have a small volume of our own."""
    if shutil.which("unshare") is None:
        return False
    tried = subprocess.run([*UNSHARED, "true"], capture_output=True, check=False)
    return tried.returncode == 0


@dataclass(slots=True)
class Stand:
    """A running server; `close` ends what `started` has begun, and nothing else."""

    folder: Path
    ca: KeyPair
    port: int
    plain: int
    child: subprocess.Popen[bytes]
    has_volume: bool
    highest: int = 0
    unready: list[str] = field(default_factory=list)
    ended: threading.Event = field(default_factory=threading.Event)
    observer: threading.Thread | None = None

    def context(self) -> ssl.SSLContext:
        """How a client verifies it."""
        return ssl.create_default_context(cadata=self.ca.certificate_pem.decode())

    @property
    def policies(self) -> Path:
        """The folder of its policies."""
        return self.folder / "policies"

    def supervisor(self) -> int:
        """The process that forks the workers; `unshare` and `sh` replace themselves by it."""
        return self.child.pid

    def workers(self) -> list[int]:
        """The worker processes."""
        place = Path(f"/proc/{self.supervisor()}/task/{self.supervisor()}/children")
        return [int(each) for each in place.read_text("utf-8").split()]

    def volume(self) -> Path:
        """Its volume for temporary files, which only it has mounted."""
        inside = Path(f"/proc/{self.supervisor()}/root")
        return inside / VOLUME.lstrip("/") if self.has_volume else self.folder / "tmp"

    def get(self, path: str) -> tuple[int, str]:
        """Status and text of a page of the port for probes; tried again after a killed worker."""
        for attempt in range(3):
            connection = http.client.HTTPConnection("127.0.0.1", self.plain, timeout=5)
            with contextlib.closing(connection):
                try:
                    connection.request("GET", path)
                    answer = connection.getresponse()
                    return answer.status, answer.read().decode()
                except (OSError, http.client.HTTPException) as error:
                    if attempt == 2:
                        return 0, str(error)
        raise AssertionError

    def metrics(self) -> dict[str, float]:
        """Every series by name and labels."""
        status, text = self.get("/metrics")
        assert status == 200, text
        return {f"{name}{{{labels}}}": float(value) for name, labels, value in SERIES.findall(text)}

    def ended_for(self, cause: str) -> int:
        """How many connections it has ended for a cause."""
        return int(self.metrics()[f'podgate_connections_refused_total{{cause="{cause}"}}'])

    def observe(self) -> None:
        """Look at memory and readiness until the end."""
        while not self.ended.wait(0.25):
            for process in self.workers():
                with contextlib.suppress(OSError, ValueError, IndexError):
                    text = Path(f"/proc/{process}/status").read_text("utf-8")
                    found = int(text.partition("VmRSS:")[2].split()[0]) * 1024
                    self.highest = max(self.highest, found)
            status, text = self.get("/readyz")
            if status != 200:
                self.unready.append(f"{status} {text[:100]}")

    def close(self) -> int:
        """End it; its exit code."""
        self.ended.set()
        if self.observer is not None:
            self.observer.join(20)
        self.child.send_signal(signal.SIGTERM)
        try:
            return self.child.wait(40)
        except subprocess.TimeoutExpired:
            self.child.kill()
            return self.child.wait()


@contextlib.contextmanager
def started(*, concurrency: int, of_address: int) -> Iterator[Stand]:
    """A server with two workers and real policies, ready."""
    folder = Path(tempfile.mkdtemp(prefix="podgate-drill-"))
    ca = authority.create_authority(datetime.now(UTC), timedelta(days=2))
    names = Names.of(["localhost"], ["127.0.0.1"])
    pair = authority.issue_server(ca, names, datetime.now(UTC), timedelta(days=1))
    files.write_folder(folder / "tls", {"tls.crt": pair.certificate_pem, "tls.key": pair.key_pem})
    (folder / "policies").mkdir()
    (folder / "tmp").mkdir()
    (folder / "policies" / "drill.yaml").write_text(POLICY, "utf-8")
    port, plain, has_volume = free_port(), free_port(), can_mount()
    command = [sys.executable, "-m", "webhook", "--workers", "2", "--drain", "0"]
    command += ["--listen", f"127.0.0.1:{port}", "--metrics-listen", f"127.0.0.1:{plain}"]
    command += ["--tls-cert", str(folder / "tls/tls.crt"), "--tls-key", str(folder / "tls/tls.key")]
    command += ["--policies", str(folder / "policies"), "--log-level", "warning"]
    command += ["--concurrency", str(concurrency), "--connections-per-address", str(of_address)]
    environ = {**os.environ, "TMPDIR": VOLUME if has_volume else str(folder / "tmp")}
    with (folder / "log").open("wb") as log:
        whole = [*UNSHARED, *command] if has_volume else command
        child = subprocess.Popen(whole, cwd=ROOT, env=environ, stderr=log, stdout=log)
    stand = Stand(folder, ca, port, plain, child, has_volume)
    try:
        until = time.monotonic() + 60
        while stand.get("/readyz")[0] != 200 or len(stand.workers()) != 2:
            assert child.poll() is None, (folder / "log").read_text("utf-8")
            assert time.monotonic() < until, "the server of the drill does not begin"
            time.sleep(0.1)
        stand.observer = threading.Thread(target=stand.observe, daemon=True)
        stand.observer.start()
        yield stand
    finally:
        stand.close()
        shutil.rmtree(folder, ignore_errors=True)
