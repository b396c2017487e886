"""`podgate serve` as a process of its own, and the policies that it serves."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import ssl
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from certs import files
from certs.development import ensure_development_certificates
from tests.conftest import REPOSITORY
from tests.e2e.testbed import releases
from tests.ports import free_port

PATIENCE = 30.0
MINOR = "PODGATE_KUBERNETES_MINOR"
# The code of this checkout: an environment that several share has the command of one of them.
PODGATE = (sys.executable, "-c", "from webhook.cli.main import main; main()")


@dataclass(frozen=True, slots=True)
class Certificates:
    """A CA and a leaf for loopback, in one folder."""

    folder: Path

    @classmethod
    def make(cls, folder: Path) -> Certificates:
        """Make them, for a day."""
        now = datetime.now(UTC)
        ensure_development_certificates(folder, ["localhost"], ["127.0.0.1"], now, days=1)
        return cls(folder)

    @property
    def ca(self) -> Path:
        """The CA's certificate."""
        return self.folder / files.AUTHORITY

    @property
    def certificate(self) -> Path:
        """The server's certificate."""
        return self.folder / files.CERTIFICATE

    @property
    def key(self) -> Path:
        """The server's key."""
        return self.folder / files.KEY


@dataclass(slots=True)
class Served:
    """A running `podgate serve`; `history` keeps the policies of every catalog by generation."""

    folder: Path
    certificates: Certificates
    url: str
    command: Sequence[str]
    settings: Mapping[str, str]
    process: subprocess.Popen[bytes]
    history: dict[int, Path] = field(default_factory=dict)

    @property
    def policies(self) -> Path:
        """The folder that it reads its policies from."""
        return self.folder / "policies"

    def log(self) -> str:
        """What it has said so far."""
        return (self.folder / "podgate.log").read_text("utf-8")

    def readiness(self) -> dict[str, Any]:
        """The answer of /readyz; it raises OSError while nobody listens."""
        context = ssl.create_default_context(cafile=self.certificates.ca)
        with urllib.request.urlopen(f"{self.url}/readyz", context=context, timeout=5) as answer:
            return dict(json.load(answer))

    def metrics(self) -> str:
        """What /metrics says."""
        context = ssl.create_default_context(cafile=self.certificates.ca)
        with urllib.request.urlopen(f"{self.url}/metrics", context=context, timeout=5) as answer:
            return str(answer.read(), "utf-8")

    def wait_for_catalog(self, generation: int) -> None:
        """Wait until the catalog of that generation is in use; its policies are remembered."""
        end = time.monotonic() + PATIENCE
        while True:
            with contextlib.suppress(OSError):
                if int(self.readiness()["catalog"]) >= generation:
                    break
            assert self.process.poll() is None, f"podgate ended:\n{self.log()}"
            assert "problems in the documents" not in self.log(), self.log()
            assert time.monotonic() < end, f"no catalog {generation}:\n{self.log()}"
            time.sleep(0.05)
        kept = self.folder / f"policies-{generation}"
        shutil.copytree(self.policies, kept)
        self.history[generation] = kept

    def rewrite(self, name: str, text: str) -> None:
        """Replace one policy file, at once and whole, and wait until podgate uses it."""
        before = int(self.readiness()["catalog"])
        partial = self.policies / f".{name}"
        partial.write_text(text, "utf-8")
        partial.replace(self.policies / name)
        self.wait_for_catalog(before + 1)

    def start_again(self) -> None:
        """Start one that was stopped, at the same place, and wait until it is ready."""
        self.process = started(self.command, self.folder, self.settings)
        end = time.monotonic() + PATIENCE
        while True:
            with contextlib.suppress(OSError):
                if self.readiness():
                    return
            assert time.monotonic() < end, f"podgate does not come back:\n{self.log()}"
            time.sleep(0.05)

    def stop(self) -> None:
        """End it with SIGTERM, by its process id, and wait."""
        if self.process.poll() is None:
            os.kill(self.process.pid, signal.SIGTERM)
        try:
            self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def environment(settings: Mapping[str, str] | None = None) -> dict[str, str]:
    """This environment without settings of podgate but these and the minor of the test bed."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PODGATE_")}
    return {**kept, MINOR: releases.chosen().minor, **(settings or {})}


def started(
    command: Sequence[str], folder: Path, settings: Mapping[str, str]
) -> subprocess.Popen[bytes]:
    """A process that logs into a folder, behind what is there."""
    with (folder / "podgate.log").open("ab") as log:
        return subprocess.Popen(
            command,
            cwd=REPOSITORY,
            env=environment(settings),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )


@contextlib.contextmanager
def serving(
    folder: Path,
    policies: Path,
    certificates: Certificates,
    settings: Mapping[str, str] | None = None,
    workers: int = 1,
) -> Iterator[Served]:
    """Serve a copy of `policies` from `folder` until the block ends; `settings` are variables.

    With one worker /readyz speaks for all of them; with more `wait_for_catalog` asks one of them.
    """
    shutil.copytree(policies, folder / "policies")
    port = free_port()
    flags = {
        "--listen": f"127.0.0.1:{port}",
        "--metrics-listen": "same",
        "--tls-cert": certificates.certificate,
        "--tls-key": certificates.key,
        "--policies": folder / "policies",
        "--workers": workers,
        "--drain": 0,
        "--log-format": "text",
    }
    command = [*PODGATE, "serve", *(str(part) for pair in flags.items() for part in pair)]
    process = started(command, folder, settings or {})
    url = f"https://127.0.0.1:{port}"
    served = Served(folder, certificates, url, command, settings or {}, process)
    try:
        served.wait_for_catalog(1)
        yield served
    finally:
        served.stop()


def offline(
    policies: Path,
    files: Sequence[Path],
    namespace: str,
    settings: Mapping[str, str] | None = None,
) -> tuple[list[dict[str, Any]], str]:
    """What `podgate apply` says of manifests: an object per document, and its standard error."""
    command = ["apply", "--policies", policies, "--namespace", namespace, "--output", "json"]
    done = subprocess.run(
        [str(part) for part in (*PODGATE, *command, *files)],
        cwd=REPOSITORY,
        env=environment(settings),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in (0, 1), f"exit code {done.returncode}:\n{done.stderr}"
    return [json.loads(line) for line in done.stdout.splitlines()], done.stderr
