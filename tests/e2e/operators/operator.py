"""How an operator is started outside a cluster, and the process once it runs."""

from __future__ import annotations

import contextlib
import http.client
import os
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from tests.e2e.served import free_port
from tests.e2e.testbed import processes

if TYPE_CHECKING:
    from tests.e2e.operators.bed import Bed

READY_WITHIN = 90.0


@dataclass(frozen=True, slots=True)
class Place:
    """What an operator is given: a folder, a kubeconfig as itself, the API server, loopback ports."""

    folder: Path
    kubeconfig: Path
    server: str
    webhook: int = field(default_factory=free_port)
    health: int = field(default_factory=free_port)
    metrics: int = field(default_factory=free_port)

    @property
    def serving_certificates(self) -> Path:
        """Where controller-runtime looks for the certificate of its webhook server."""
        return self.folder / "k8s-webhook-server" / "serving-certs"


def nothing(_: Bed, __: Place) -> None:
    """Prepare nothing."""


def plain(_: Place) -> Mapping[str, str]:
    """No variables but those of every operator."""
    return {}


@dataclass(frozen=True, slots=True)
class Operator:
    """An operator as its project installs it: service account, arguments, what it needs first.

    `program` and `project` are keys of `testbed.programs` and `testbed.upstream`; `prepare` makes
    what must be in the cluster before it starts; `needs` are projects whose CRDs it wants too, of
    its own it wants those that pass `crds`. `ready` is the path that answers 200 on the health port;
    one that `serves` webhooks listens for them too.
    """

    name: str
    namespace: str
    account: str
    arguments: Callable[[Place], Sequence[object]]
    environment: Callable[[Place], Mapping[str, str]] = plain
    prepare: Callable[[Bed, Place], None] = nothing
    crds: Callable[[str], bool] = lambda _: True
    needs: tuple[str, ...] = ()
    ready: str = "/readyz"
    serves: bool = False

    @property
    def user(self) -> str:
        """The user name that the API server knows it by."""
        return f"system:serviceaccount:{self.namespace}:{self.account}"


@dataclass(slots=True)
class Running:
    """A process that the tests started and end, by its id."""

    name: str
    folder: Path
    process: subprocess.Popen[bytes]

    @classmethod
    def start(
        cls, name: str, command: Sequence[object], folder: Path, **environment: str
    ) -> Running:
        """Start `command` in `folder`; it ends with this process, should that be killed."""
        with (folder / f"{name}.log").open("wb") as log:
            process = subprocess.Popen(
                [str(part) for part in command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=folder,
                env={**os.environ, **environment},
                start_new_session=True,
                preexec_fn=processes.die_with_parent,
            )
        return cls(name, folder, process)

    @property
    def log_file(self) -> Path:
        """Where it says what it does."""
        return self.folder / f"{self.name}.log"

    def log(self) -> str:
        """What it has said so far."""
        return self.log_file.read_text("utf-8", "replace")

    def wait_until(self, ready: Callable[[], bool]) -> None:
        """Wait until it is `ready`; AssertionError with the end of its log."""
        end = time.monotonic() + READY_WITHIN
        while not ready():
            told = processes.tail(self.log_file)
            assert self.process.poll() is None, f"{self.name} ended:\n{told}"
            assert time.monotonic() < end, f"{self.name} is not ready:\n{told}"
            time.sleep(0.1)

    def stop(self) -> None:
        """End it with SIGTERM, and wait."""
        self.process.terminate()
        try:
            self.process.wait(processes.PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def listens(port: int) -> bool:
    """Whether somebody takes connections on a loopback port."""
    try:
        socket.create_connection(("127.0.0.1", port), timeout=5).close()
    except OSError:
        return False
    return True


def answers(port: int, path: str) -> bool:
    """Whether `path` on a loopback port answers 200."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    with contextlib.closing(connection):
        try:
            connection.request("GET", path)
            return connection.getresponse().status == http.HTTPStatus.OK
        except (OSError, http.client.HTTPException):
            return False
