"""The process that starts the control plane, outlives no parent and ends it in the right order.

It is run as `python -m tests.e2e.testbed.supervisor PLAN`. When its standard input ends, it stops
the controller manager, the API server and etcd, each after the one before is gone: without etcd an
API server does not end, and with clients that watch it takes more than 20 s. The kernel ends the
three should the supervisor itself be killed. A line on its standard input is the name of a process
to stop and start again; it is answered by a line like the first.
"""

import contextlib
import http.client
import json
import os
import select
import shutil
import signal
import ssl
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from tests.e2e.testbed import processes

STOP_ORDER = ("kube-controller-manager", "kube-apiserver", "etcd")
STOP_WITHIN = 5.0
READY_WITHIN = 120.0


class NotReadyError(Exception):
    """The message says which process failed, with the end of its log."""


class Supervisor:
    """The processes of one plan: `folder`, `server`, `commands` by name.

    `told_to_stop` are file descriptors of which one becomes readable when it is time to end.
    """

    def __init__(self, plan: dict[str, Any], told_to_stop: list[int]) -> None:
        self.told_to_stop = told_to_stop
        self.folder = Path(plan["folder"])
        self.server = str(plan["server"])
        self.commands: dict[str, list[str]] = plan["commands"]
        self.running: dict[str, subprocess.Popen[bytes]] = {}

    def start_all(self) -> None:
        """Start etcd and the API server, and the controller manager once that one is ready.

        Raises NotReadyError.
        """
        for name in ("etcd", "kube-apiserver"):
            self._start(name)
        self._wait_ready()
        if "kube-controller-manager" in self.commands:
            self._start("kube-controller-manager")

    def stop_all(self) -> None:
        """Stop in `STOP_ORDER`, killing what has not ended after a while."""
        for name in STOP_ORDER:
            if name in self.running:
                self._stop(name)

    def restart(self, name: str) -> None:
        """Stop one process, and return once the API server is ready again. Raises NotReadyError."""
        self._stop(name)
        self._start(name)
        self._wait_ready()

    def wait(self, seconds: float | None = None) -> bool:
        """Tell whether it is time to end, waiting up to `seconds` for it."""
        return bool(select.select(self.told_to_stop, [], [], seconds)[0])

    def recorded(self) -> dict[str, list[Any]]:
        """Return process id and time of start of every process, and of the supervisor itself."""
        pids = {name: process.pid for name, process in self.running.items()}
        pids["supervisor"] = os.getpid()
        return {name: [pid, processes.started(pid)] for name, pid in pids.items()}

    def _stop(self, name: str) -> None:
        process = self.running[name]
        process.terminate()
        try:
            process.wait(STOP_WITHIN)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _start(self, name: str) -> None:
        with (self.folder / f"{name}.log").open("ab") as log:
            self.running[name] = subprocess.Popen(
                self.commands[name],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self.folder,
                preexec_fn=processes.die_with_parent,
            )

    def _wait_ready(self) -> None:
        end = time.monotonic() + READY_WITHIN
        port = int(self.server.rpartition(":")[2])
        context = ssl.create_default_context(cafile=self.folder / "ca.crt")
        while not _ready(port, context):
            for name, process in self.running.items():
                if process.poll() is not None or time.monotonic() > end:
                    why = f"ended with {process.returncode}" if process.returncode else "is not up"
                    log = processes.tail(self.folder / f"{name}.log")
                    raise NotReadyError(f"{name} {why}; the end of its log:\n{log}")
            if self.wait(0.05):
                raise NotReadyError("told to stop before the API server was ready")


def _ready(port: int, context: ssl.SSLContext) -> bool:
    connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=5, context=context)
    with contextlib.closing(connection):
        try:
            connection.request("GET", "/readyz")
            return connection.getresponse().status == http.HTTPStatus.OK
        except (OSError, http.client.HTTPException):
            return False


def _wakeup() -> int:
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: None)
    return reader


def main() -> None:
    """Run the plan named on the command line; tell `{"ready"}` or `{"failed"}` on stdout."""
    plan = json.loads(Path(sys.argv[1]).read_text("utf-8"))
    parent = [] if plan["detached"] else [sys.stdin.fileno()]
    supervisor = Supervisor(plan, [_wakeup(), *parent])
    try:
        supervisor.start_all()
        _answer({"ready": supervisor.recorded()})
        if plan["detached"]:
            os.close(1)
            supervisor.wait()
        else:
            _obey(supervisor)
    except NotReadyError as error:
        _answer({"failed": str(error)})
    finally:
        supervisor.stop_all()
        if plan["temporary"]:
            shutil.rmtree(supervisor.folder, ignore_errors=True)


def _obey(supervisor: Supervisor) -> None:
    """Restart what is named on standard input, line by line, until that ends or a signal comes."""
    while supervisor.wait() and _is_readable(0) and (name := os.read(0, 200).decode().strip()):
        supervisor.restart(name)
        _answer({"ready": supervisor.recorded()})


def _is_readable(descriptor: int) -> bool:
    return bool(select.select([descriptor], [], [], 0)[0])


def _answer(message: dict[str, Any]) -> None:
    # Whoever started us may be gone already.
    with contextlib.suppress(BrokenPipeError):
        os.write(1, json.dumps(message).encode() + b"\n")


if __name__ == "__main__":
    main()
