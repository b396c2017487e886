"""A release of the chart on a real API server, its Pods played by processes of this machine.

There is no kubelet here. Each process has the arguments and variables of its container, the token of its
own account, and files in place of what would be mounted. The API server reaches the webhook through the
chart's Service by the addresses of its endpoints, as `--enable-aggregator-routing` has it.
"""

from __future__ import annotations

import base64
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
from tests.e2e.served import PODGATE, environment, free_port
from tests.e2e.testbed import identity
from tests.e2e.testbed.cluster import Cluster

SOON = 45.0


def own_address() -> str:
    """An address of this machine that is not loopback: endpoints may have no other. Nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        one.connect(("192.0.2.1", 9))
        return str(one.getsockname()[0])


class Release:
    """Install, run, exercise, remove; `values` are those of the chart."""

    def __init__(self, cluster: Cluster, api: Api, folder: Path, values: Json) -> None:
        self.cluster, self.api, self.folder, self.values = cluster, api, folder, values
        self.address = own_address()
        self.running: dict[str, subprocess.Popen[bytes]] = {}
        self.objects = rendered(values)

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

    def start_webhook(self, number: int, port: int, metrics: int) -> None:
        """Start one webhook as soon as its certificate can be mounted, and make it an endpoint."""
        tls = self.mounted()
        swapped = {
            "--listen": f"{self.address}:{port}",
            "--metrics-listen": f"{self.address}:{metrics}",
            "--workers": "1",
            "--tls-cert": str(tls / "tls.crt"),
            "--tls-key": str(tls / "tls.key"),
        }
        self.start("podgate-admission", f"webhook-{number}", swapped)
        self.put_endpoint("podgate", "webhook", number, port)
        self.put_endpoint("podgate-metrics", "metrics", number, metrics)

    def mounted(self) -> Path:
        """The folder where kubelet would have mounted the Secret."""
        path = f"/api/v1/namespaces/{NAMESPACE}/secrets/podgate-tls"
        data: dict[str, str] = {}

        def there() -> bool:
            data.update((self.api.find(path) or {}).get("data") or {})
            return "tls.crt" in data

        self.soon(there, "no Secret with a certificate")
        folder = self.folder / "tls"
        folder.mkdir(exist_ok=True)
        for name in ("tls.crt", "tls.key"):
            (folder / name).write_bytes(base64.b64decode(data[name]))
        return folder

    def put_endpoint(self, service: str, port: str, number: int, where: int) -> None:
        """One ready endpoint, as the controller of endpoints would write it."""
        body = {
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": {
                "name": f"{service}-{number}",
                "namespace": NAMESPACE,
                "labels": {"kubernetes.io/service-name": service},
            },
            "addressType": "IPv4",
            "ports": [{"name": port, "port": where, "protocol": "TCP"}],
            "endpoints": [{"addresses": [self.address], "conditions": {"ready": True}}],
        }
        path = f"/apis/discovery.k8s.io/v1/namespaces/{NAMESPACE}/endpointslices"
        self.api.request("POST", path, body)

    def end(self, name: str) -> None:
        """End one process and wait for it."""
        process = self.running.pop(name)
        os.kill(process.pid, signal.SIGTERM)
        process.wait(40)

    def stop(self) -> None:
        """End all of them."""
        for name in [*self.running]:
            self.end(name)

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
