"""Runs the admission webhook of NVIDIA's driver, and asks it about configurations of claims."""

from __future__ import annotations

import contextlib
import http.client
import json
import re
import ssl
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.devices.driver_parameters import Generated
from tests.e2e.testbed import identity, processes, programs
from tests.ports import free_port

Json = dict[str, Any]
GROUP, CLAIM = "resource.k8s.io", "ResourceClaim"
CRASHED = "crashed"
"""The answer to a configuration at which the webhook panics."""
FAULT = re.compile(
    r"(?:^\d+ configs failed to validate: |; )"
    r"(?:error decoding object|expected a recognized configuration type|error normalizing config|object)"
    r" at spec\.(?:spec\.)?devices\.config\[(\d+)\]\.opaque\.parameters"
)
SECONDS = 30


class DriverWebhook:
    """The webhook of one driver version with its feature gates, on a port of this machine."""

    def __init__(self, port: int, authority: Path) -> None:
        """Connect when something is asked first."""
        context = ssl.create_default_context(cafile=str(authority))
        self._connection = http.client.HTTPSConnection(
            "localhost", port, timeout=SECONDS, context=context
        )

    def is_ready(self) -> bool:
        """Return whether it answers."""
        with contextlib.suppress(OSError, http.client.HTTPException):
            self._connection.request("GET", "/readyz")
            return self._connection.getresponse().read() == b"ok"
        self._connection.close()
        return False

    def answer(self, body: bytes) -> Json | None:
        """Return the response to a review, None if the webhook panics. Raises ValueError if not 200."""
        headers = {"Content-Type": "application/json"}
        try:
            self._connection.request("POST", "/validate-resource-claim-parameters", body, headers)
            response = self._connection.getresponse()
        except (http.client.RemoteDisconnected, ConnectionResetError):
            # What a server of Go does when a handler panics.
            self._connection.close()
            return None
        text = response.read()
        if response.status != http.client.OK:
            raise ValueError(f"{response.status}: {text.decode()}")
        found: Json = json.loads(text)["response"]
        return found

    def judge(
        self, configs: Sequence[Generated], kind: str = CLAIM, version: str = "v1"
    ) -> list[str]:
        """Return what the webhook refuses in each configuration: "" nothing, or CRASHED."""
        answer = self.answer(review(configs, kind, version))
        if answer is None:
            if len(configs) == 1:
                return [CRASHED]
            half = len(configs) // 2
            return [
                answer
                for some in (configs[:half], configs[half:])
                for answer in self.judge(some, kind, version)
            ]
        if answer["allowed"]:
            return [""] * len(configs)
        message = answer["status"]["message"]
        faults = [int(each) for each in FAULT.findall(message)]
        assert len(faults) == int(message.split(" ", 1)[0]), message
        return [message if index in faults else "" for index in range(len(configs))]


def review(configs: Sequence[Generated], kind: str = CLAIM, version: str = "v1") -> bytes:
    """Return the body of a review of a new claim or template with these configurations.

    Their parameters are in it byte by byte as they are.
    """
    opaque = (
        f'"driver": {json.dumps(each.driver)}'
        + ("" if each.parameters is None else f', "parameters": {each.parameters}')
        for each in configs
    )
    listed = ", ".join(f'{{"opaque": {{{each}}}}}' for each in opaque)
    spec = f'{{"devices": {{"config": [{listed}]}}}}'
    if kind != CLAIM:
        spec = f'{{"spec": {spec}}}'
    body = (
        f'{{"apiVersion": "{GROUP}/{version}", "kind": "{kind}",'
        ' "metadata": {"name": "claim", "namespace": "team"},'
        f' "spec": {spec}}}'
    )
    request = {
        "uid": "1",
        "operation": "CREATE",
        "name": "claim",
        "namespace": "team",
        "kind": {"group": GROUP, "version": version, "kind": kind},
        "resource": {"group": GROUP, "version": version, "resource": f"{kind.lower()}s"},
        "userInfo": {"username": "somebody"},
    }
    head = json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"})
    return f'{head[:-1]}, "request": {json.dumps(request)[:-1]}, "object": {body}}}}}'.encode()


@contextlib.contextmanager
def running(version: str, gates: Mapping[str, bool], folder: Path) -> Iterator[DriverWebhook]:
    """Run the webhook of a driver version until the end of the block; raises MissingTestbed.

    It cannot be told to listen on loopback alone.
    """
    name = f"dra-webhook-{version}"
    program = programs.find(name)[name]
    identity.write_certificates(folder)
    port = free_port()
    command = [
        str(program),
        f"--port={port}",
        f"--tls-cert-file={folder / 'server.crt'}",
        f"--tls-private-key-file={folder / 'server.key'}",
    ]
    if gates:
        listed = ",".join(f"{gate}={str(on).lower()}" for gate, on in gates.items())
        command.append(f"--feature-gates={listed}")
    log = folder / "webhook.log"
    with (
        log.open("wb") as output,
        subprocess.Popen(
            command, stdout=output, stderr=output, preexec_fn=processes.die_with_parent
        ) as process,
    ):
        try:
            webhook = DriverWebhook(port, folder / "ca.crt")
            end = time.monotonic() + SECONDS
            while not webhook.is_ready():
                if process.poll() is not None or time.monotonic() > end:
                    raise RuntimeError(f"the driver's webhook: {processes.tail(log)}")
                time.sleep(0.02)
            yield webhook
        finally:
            process.terminate()
