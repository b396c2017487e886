"""A running control plane, as tests see it."""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import yaml

from tests.e2e.testbed import binaries, cache, control_plane, identity, processes

REPOSITORY = cache.HERE.parents[2]
PROCESS_NAMES = ("etcd", "kube-apiserver", "kube-controller-manager", "supervisor")
USERS: Mapping[str, Sequence[str]] = {"admin": ("system:masters",), "alice": ("team-a",)}


class NotStartedError(Exception):
    """The message holds the end of the log of the process that failed."""


class KubectlError(subprocess.CalledProcessError):
    """A kubectl that failed, telling what it said."""

    def __str__(self) -> str:
        """Return the exit code with the end of standard error."""
        return f"{super().__str__()}\n{self.stderr[-2000:]}"


class Cluster:
    """etcd, API server and controller manager on free loopback ports.

    As a context manager it lives as long as the block, and never longer than this process. Data
    is kept in `folder`, which must not exist or be empty; by default in a temporary one. `users`
    (name to groups) are added to `USERS`; `api_server_flags` come after our own. A `detached`
    cluster stays up after this process and must be stopped by its recorded processes.
    """

    def __init__(
        self,
        folder: Path | None = None,
        *,
        users: Mapping[str, Sequence[str]] | None = None,
        api_server_flags: Sequence[str] = (),
        detached: bool = False,
    ) -> None:
        self._given_folder = folder
        self._users = {**USERS, **(users or {})}
        self._flags = tuple(api_server_flags)
        self._detached = detached
        self._tokens: dict[str, str] = {}
        self._supervisor: subprocess.Popen[str] | None = None
        self.folder = Path()
        self.server = ""
        self.processes: dict[str, processes.Recorded] = {}
        self.binaries: binaries.Binaries

    def __enter__(self) -> Self:
        """Start the cluster."""
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop the cluster."""
        self.stop()

    def start(self) -> Self:
        """Start, and return once the API server is ready.

        Raises NotStartedError, or missing.MissingTestbed when there are no binaries.
        """
        self.binaries = binaries.find()
        if self._given_folder is None:
            self.folder = Path(tempfile.mkdtemp(prefix="podgate-testbed-"))
        else:
            self.folder = self._given_folder.resolve()
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        ports = control_plane.free_ports()
        self.server = control_plane.server_url(ports)
        identity.write_certificates(self.folder)
        users = {**self._users, control_plane.MANAGER: ()}
        self._tokens = identity.write_tokens(self.folder, users)
        self._write_kubeconfig(control_plane.MANAGER, "controller-manager.kubeconfig")
        self._run_supervisor(self._plan(ports))
        return self

    def stop(self) -> None:
        """Stop the processes in order and wait for them; remove a temporary folder."""
        supervisor, self._supervisor = self._supervisor, None
        if supervisor is None:
            return
        for pipe in (supervisor.stdin, supervisor.stdout):
            if pipe:
                pipe.close()
        try:
            supervisor.wait(2 * processes.PATIENCE)
        except subprocess.TimeoutExpired:
            supervisor.kill()
            supervisor.wait()

    def restart(self, name: str) -> None:
        """Stop and start one process, and return once the API server is ready; NotStartedError."""
        assert self._supervisor is not None
        assert self._supervisor.stdin is not None
        self._supervisor.stdin.write(f"{name}\n")
        self._supervisor.stdin.flush()
        self._hear()

    @property
    def ca_file(self) -> Path:
        """The certificate that the API server's one is signed with."""
        return self.folder / "ca.crt"

    def token(self, user: str = "admin") -> str:
        """Return the bearer token of `user`."""
        return self._tokens[user]

    def kubeconfig(self, user: str = "admin") -> Path:
        """Return a kubeconfig file with which `user` reaches this cluster."""
        return self._write_kubeconfig(user, f"{user}.kubeconfig")

    def logs(self) -> dict[str, Path]:
        """Return the log file of each process by name."""
        return {name: self.folder / f"{name}.log" for name in PROCESS_NAMES}

    def kubectl(
        self,
        *arguments: str,
        user: str = "admin",
        input: str | None = None,  # noqa: A002 - the name subprocess.run uses
        check: bool = True,
    ) -> subprocess.CompletedProcess[str]:
        """Run kubectl as `user`, with `input` on its standard input.

        Raises KubectlError, which tells what kubectl said, when it fails and `check` is true.
        """
        done = subprocess.run(
            [str(self.binaries.kubectl), *arguments],
            env={
                **os.environ,
                "KUBECONFIG": str(self.kubeconfig(user)),
                "KUBECACHEDIR": str(self.folder / "kubectl-cache"),
                "KUBERC": "off",
            },
            input=input,
            stdin=subprocess.DEVNULL if input is None else None,
            capture_output=True,
            text=True,
            check=False,
        )
        if check and done.returncode:
            raise KubectlError(done.returncode, done.args, done.stdout, done.stderr)
        return done

    def apply_crds(self, crds: Sequence[Mapping[str, Any]]) -> None:
        """Apply CustomResourceDefinitions and wait until the server serves them."""
        # Client-side apply would copy a schema into an annotation, where large ones do not fit.
        server_side = ("apply", "--server-side", "--force-conflicts", "-f", "-")
        self.kubectl(*server_side, input=yaml.dump_all(crds, Dumper=yaml.CSafeDumper))
        self.wait_established({str(crd["metadata"]["name"]) for crd in crds})

    def wait_established(self, names: Collection[str]) -> None:
        """Wait until the server serves the CustomResourceDefinitions of these names."""
        # Dozens of large ones take their time on a machine that has other work.
        end = time.monotonic() + 4 * processes.PATIENCE
        # `kubectl wait` fails on a definition whose conditions are not there yet.
        while wanting := set(names) - self._established():
            if time.monotonic() > end:
                raise NotStartedError(f"not established: {', '.join(sorted(wanting))}")
            time.sleep(0.1)

    def wait_namespace_ready(self, name: str) -> None:
        """Wait until Pods can be made in namespace `name`: its default ServiceAccount exists."""
        wait = ("wait", "--for=create", "--timeout=60s", "serviceaccount/default")
        self.kubectl(*wait, f"--namespace={name}")

    def _established(self) -> set[str]:
        line = '{range .items[*]}{.metadata.name} {.status.conditions}{"\\n"}{end}'
        told = self.kubectl("get", "crd", f"-o=jsonpath={line}").stdout
        conditions = dict(one.split(" ", 1) for one in told.splitlines())
        return {
            name
            for name, found in conditions.items()
            for condition in json.loads(found or "null") or ()
            if condition["type"] == "Established" and condition["status"] == "True"
        }

    def _plan(self, ports: control_plane.Ports) -> dict[str, Any]:
        return {
            "folder": str(self.folder),
            "server": self.server,
            "detached": self._detached,
            "temporary": self._given_folder is None,
            "commands": {
                "etcd": control_plane.etcd(self.binaries, self.folder, ports),
                "kube-apiserver": control_plane.api_server(
                    self.binaries, self.folder, ports, self._flags
                ),
                "kube-controller-manager": control_plane.controller_manager(
                    self.binaries, self.folder
                ),
            },
        }

    def _run_supervisor(self, plan: dict[str, Any]) -> None:
        path = self.folder / "plan.json"
        path.write_text(json.dumps(plan, indent=2), "utf-8")
        with (self.folder / "supervisor.log").open("w", encoding="utf-8") as log:
            self._supervisor = subprocess.Popen(
                [sys.executable, "-m", "tests.e2e.testbed.supervisor", str(path)],
                cwd=REPOSITORY,
                stdin=subprocess.DEVNULL if self._detached else subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                # A Ctrl-C at the terminal must reach the tests, not the cluster below them.
                start_new_session=True,
            )
        self._hear()
        if self._detached:
            # Nobody waits for it; told so, the handle does not warn of a child left behind.
            if self._supervisor.stdout:
                self._supervisor.stdout.close()
            self._supervisor.returncode = 0
            self._supervisor = None

    def _hear(self) -> None:
        """Take in what the supervisor answers: the processes that run now."""
        assert self._supervisor is not None
        assert self._supervisor.stdout is not None
        answer = json.loads(self._supervisor.stdout.readline() or "{}")
        if "ready" not in answer:
            said = answer.get("failed") or "the supervisor ended"
            self.stop()
            raise NotStartedError(said)
        self.processes = {
            name: processes.Recorded(*recorded) for name, recorded in answer["ready"].items()
        }

    def _write_kubeconfig(self, user: str, name: str) -> Path:
        path = self.folder / name
        if not path.exists():
            identity.write_kubeconfig(
                path,
                server=self.server,
                ca_file=self.ca_file,
                user=user,
                token=self._tokens[user],
            )
        return path
