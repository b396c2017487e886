"""A release of the chart on a real API server, its Pods played by processes of this machine.

Each process has the arguments and variables of its container, the token of its own account, and files
in place of what would be mounted. The API server reaches the webhook through the chart's Service by the
addresses of its endpoints, as `--enable-aggregator-routing` has it.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from tests.e2e.api import Api, Json, StatusError
from tests.e2e.install.helm import CHART, NAMESPACE, ROOT, helm, is_hook, rendered
from tests.e2e.install.kubelet import Kubelet, Pod
from tests.e2e.served import PODGATE, environment, free_port
from tests.e2e.testbed import identity
from tests.e2e.testbed.cluster import Cluster

SOON = 45.0
GRACE = 60.0
"""Seconds that a Pod has to end; the chart says the same."""


def own_address() -> str:
    """An address of this machine that is not loopback: endpoints may have no other. Nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        one.connect(("192.0.2.1", 9))
        return str(one.getsockname()[0])


class Release:
    """Install, run, exercise, remove; `values` are those of the chart, `workers` of each webhook."""

    def __init__(
        self, cluster: Cluster, api: Api, folder: Path, values: Json, *, workers: int = 1
    ) -> None:
        self.cluster, self.api, self.folder, self.values = cluster, api, folder, values
        self.workers = workers
        self.address = own_address()
        self.running: dict[str, subprocess.Popen[bytes]] = {}
        self.objects = rendered(values)
        self.kubelet = Kubelet(cluster, folder / "tls")

    # Installing

    def install(self) -> None:
        """What `helm install` does: the Job of the definitions, then everything."""
        space = {"metadata": {"name": NAMESPACE}}
        self.api.request("POST", "/api/v1/namespaces", space)
        self.run_job("podgate-crds")
        self.helm("install", "podgate", str(CHART))

    def helm(self, *arguments: str) -> str:
        """One command of helm on this cluster; Jobs are played by `run_job`."""
        values = self.folder / "values.yaml"
        values.write_text(yaml.safe_dump(self.values), "utf-8")
        flags = ["--namespace", NAMESPACE, "--no-hooks"]
        if arguments[0] != "uninstall":
            flags += ["--values", str(values)]
        config = {"KUBECONFIG": str(self.cluster.kubeconfig()), "HOME": str(self.folder)}
        return helm(*arguments, *flags, environ={**os.environ, **config})

    def run_job(self, name: str) -> str:
        """Play one Job with its own account, which goes with it."""
        hooks = [
            each for each in self.objects if is_hook(each) and name in each["metadata"]["name"]
        ]
        (job,) = [each for each in hooks if each["kind"] == "Job"]
        rest = yaml.safe_dump_all(each for each in hooks if each is not job)
        self.cluster.kubectl("apply", "-f", "-", input=rest)
        (one,) = job["spec"]["template"]["spec"]["containers"]
        config = self.kubeconfig(job["spec"]["template"]["spec"]["serviceAccountName"])
        command = [*PODGATE, *one["args"], "--kubeconfig", str(config)]
        done = subprocess.run(
            command, cwd=ROOT, env=environment(), capture_output=True, text=True, check=False
        )
        self.cluster.kubectl("delete", "-f", "-", input=rest)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def kubeconfig(self, account: str) -> Path:
        """A kubeconfig with a fresh token of an account."""
        told = ("create", "token", account, "--namespace", NAMESPACE, "--duration", "1h")
        path = self.folder / f"{account}-{time.monotonic_ns()}.kubeconfig"
        identity.write_kubeconfig(
            path,
            server=self.cluster.server,
            ca_file=self.cluster.ca_file,
            user=account,
            token=self.cluster.kubectl(*told).stdout.strip(),
        )
        return path

    # Pods

    def container(self, deployment: str) -> tuple[str, Json]:
        """The account and the container of a Deployment, as the cluster has it."""
        path = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/{deployment}"
        spec = self.api.request("GET", path)["spec"]["template"]["spec"]
        return spec["serviceAccountName"], spec["containers"][0]

    def start(self, deployment: str, name: str, swapped: dict[str, str], *more: str) -> None:
        """Start a process as a container of a Deployment, some of its arguments exchanged."""
        account, one = self.container(deployment)
        arguments = []
        for each in one["args"]:
            flag, equals, _ = each.partition("=")
            arguments.append(f"{flag}={swapped[flag]}" if equals and flag in swapped else each)
        settings = {each["name"]: each["value"] for each in one.get("env") or ()}
        command = [*PODGATE, *arguments, *more, "--kubeconfig", str(self.kubeconfig(account))]
        with self.log(name).open("ab") as out:
            self.running[name] = subprocess.Popen(
                command,
                cwd=ROOT,
                env=environment({**settings, "HOSTNAME": name}),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
            )

    def start_controller(self, name: str) -> None:
        """Start one controller."""
        probes = {"--metrics-listen": f"127.0.0.1:{free_port()}"}
        self.start("podgate-controller", name, probes)

    def start_webhook(self, number: int) -> None:
        """Start one webhook as soon as its certificate can be mounted; it becomes an endpoint."""
        if not self.kubelet.mounted.wait(SOON):
            raise AssertionError(f"no Secret with a certificate\n{self.logs()}")
        pod = Pod(f"webhook-{number}", self.address, free_port(), free_port())
        tls = self.kubelet.folder
        swapped = {
            "--listen": f"{pod.address}:{pod.port}",
            "--metrics-listen": f"{pod.address}:{pod.metrics}",
            "--workers": str(self.workers),
            "--tls-cert": str(tls / "tls.crt"),
            "--tls-key": str(tls / "tls.key"),
        }
        self.start("podgate-admission", pod.name, swapped)
        self.kubelet.add(pod)

    def wait_ready(self, *numbers: int) -> None:
        """Wait until these webhooks are ready endpoints."""
        names = {f"webhook-{number}" for number in numbers}

        def ready() -> bool:
            return all(self.kubelet.is_endpoint(name) for name in names)

        self.soon(ready, f"not ready: {', '.join(sorted(names))}")

    def end(self, name: str) -> None:
        """Tell one process to end, and wait until it is gone."""
        self.tell_to_end(name)
        self.wait_gone(name)

    def tell_to_end(self, name: str) -> None:
        """What a deletion of its Pod does at once."""
        os.kill(self.running[name].pid, signal.SIGTERM)
        self.kubelet.tell_to_end(name)

    def wait_gone(self, name: str) -> None:
        """Wait until a process that was told to end has done so; it is no endpoint any more."""
        self.running.pop(name).wait(GRACE)
        self.kubelet.forget(name)

    def stop(self) -> None:
        """End all of them together."""
        for name in self.running:
            self.tell_to_end(name)
        for name in [*self.running]:
            self.wait_gone(name)

    def close(self) -> None:
        """End everything that runs for this release."""
        self.stop()
        self.kubelet.close()

    # Looking

    def log(self, name: str) -> Path:
        """Where a process writes."""
        return self.folder / f"{name}.log"

    def logs(self) -> str:
        """The end of what everybody said."""
        return "\n".join(
            f"== {each.name}\n{each.read_text()[-3000:]}"
            for each in sorted(self.folder.glob("*.log"))
        )

    def soon(self, holds: Callable[[], Any], why: str) -> None:
        """Wait until something holds."""
        until = time.monotonic() + SOON
        while True:
            try:
                if holds():
                    return
            except StatusError:
                pass
            assert time.monotonic() < until, f"{why}\n{self.logs()}"
            time.sleep(0.2)
