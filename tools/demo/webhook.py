"""Runs `podgate serve` for the demos, and builds reviews as an API server sends them."""

from __future__ import annotations

import base64
import http.client
import json
import os
import re
import shutil
import ssl
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson

from certs.development import ensure_development_certificates
from certs.problem import CertificateProblem
from webhook.catalog.catalog import Catalog
from webhook.objects.draft import Draft
from webhook.objects.path import Path as ObjectPath
from webhook.objects.path import decode, read
from webhook.pods.definition import Definition

LOCAL = "127.0.0.1"
START_SECONDS = 30.0
STOP_SECONDS = 15.0
LOG_LINES = 25
DAYS = 30
SERVES = re.compile(rb"podgate serves https://[^ ]*:(\d+)")
MANAGER = "kubectl-client-side-apply"
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


class DemoError(Exception):
    """The reason why a demo cannot continue, with the end of the webhook's log."""


@dataclass(slots=True)
class Webhook:
    """A running `podgate serve`: its process, its folder with certificates and log, its port."""

    process: subprocess.Popen[bytes]
    folder: Path
    port: int
    seconds: float

    def post(self, stage: str, review: bytes) -> Answer:
        """Send a review as an API server does, trusting only the demo's own CA; return the answer."""
        context = ssl.create_default_context(cafile=str(self.folder / "ca.crt"))
        connection = http.client.HTTPSConnection(LOCAL, self.port, timeout=10, context=context)
        headers = {"Content-Type": "application/json", "User-Agent": "podgate-demo"}
        try:
            connection.connect()
            begun = time.perf_counter()
            connection.request("POST", f"/{stage}?timeout=10s", review, headers)
            response = connection.getresponse()
            body = response.read()
            seconds = time.perf_counter() - begun
        except (OSError, http.client.HTTPException) as error:
            raise DemoError(f"the webhook does not answer ({error})\n{self.log()}") from error
        finally:
            connection.close()
        if response.status != http.HTTPStatus.OK:
            raise DemoError(f"the webhook answered HTTP {response.status}\n{self.log()}")
        return Answer(orjson.loads(body)["response"], seconds)

    def log(self) -> str:
        """The end of the log, for an error."""
        return log_of(self.folder)

    def stop(self) -> int:
        """End this process, by its id, and wait for it; the exit code."""
        self.process.terminate()
        try:
            return self.process.wait(STOP_SECONDS)
        except BaseException as error:
            self.process.kill()
            code = self.process.wait()
            if isinstance(error, subprocess.TimeoutExpired):
                return code
            raise


@dataclass(frozen=True, slots=True)
class Answer:
    """The `response` of an AdmissionReview, and how long it took."""

    response: Mapping[str, Any]
    seconds: float

    @property
    def is_allowed(self) -> bool:
        """The verdict."""
        return bool(self.response["allowed"])

    @property
    def patch(self) -> list[dict[str, Any]]:
        """The decoded JSON patch; empty without one."""
        found: list[dict[str, Any]] = orjson.loads(
            base64.b64decode(self.response.get("patch") or "W10=")
        )
        return found

    @property
    def causes(self) -> list[dict[str, str]]:
        """The causes of a refusal."""
        details = self.response.get("status", {}).get("details", {})
        found: list[dict[str, str]] = details.get("causes", [])
        return found


@contextmanager
def running(policies: Sequence[Path]) -> Iterator[Webhook]:
    """Start a webhook in a temporary folder; stop and remove it at the end."""
    folder = Path(tempfile.mkdtemp(prefix="podgate-demo-"))
    try:
        make_certificates(folder)
        webhook = start(folder, policies)
        try:
            yield webhook
        finally:
            webhook.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def make_certificates(folder: Path) -> None:
    """A CA and a certificate for this machine's loopback address."""
    try:
        ensure_development_certificates(folder, ["localhost"], [LOCAL], datetime.now(UTC), DAYS)
    except CertificateProblem as problem:
        raise DemoError(f"no certificates in {folder}: {problem}") from problem


def start(folder: Path, policies: Sequence[Path], more: Sequence[str] = ()) -> Webhook:
    """Start `podgate serve` on a port that the system chooses, and wait until it is ready.

    It logs to `serve.log` in `folder`, which holds the certificates. DemoError with the end of
    that log when it does not start.
    """
    begun = time.monotonic()
    with (folder / "serve.log").open("wb") as log:
        process = subprocess.Popen(
            command(folder, policies, more),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env={key: value for key, value in os.environ.items() if key[:8] != "PODGATE_"},
            start_new_session=True,  # a Ctrl-C goes only to the demo, which then stops it
        )
    try:
        port = wait_ready(process, folder, begun + START_SECONDS)
    except BaseException:
        process.kill()
        process.wait()
        raise
    return Webhook(process, folder, port, time.monotonic() - begun)


def command(folder: Path, policies: Sequence[Path], more: Sequence[str]) -> list[str]:
    """The command line of the webhook."""
    given = [part for path in policies for part in ("--policies", str(path))]
    return [
        *(sys.executable, "-m", "webhook", "--listen", f"{LOCAL}:0", "--metrics-listen", "same"),
        *("--tls-cert", str(folder / "tls.crt"), "--tls-key", str(folder / "tls.key")),
        *("--workers", "1", "--drain", "0", *given, *more),
    ]


def wait_ready(process: subprocess.Popen[bytes], folder: Path, until: float) -> int:
    """Wait until the webhook logs that it serves and has policies; return the port."""
    while time.monotonic() < until:
        text = (folder / "serve.log").read_bytes()
        found = SERVES.search(text)
        if found:
            if b": no policies," in text:
                raise DemoError(f"the webhook has no usable policies\n{log_of(folder)}")
            return int(found[1])
        if process.poll() is not None:
            code = process.returncode
            raise DemoError(f"the webhook ended with exit code {code}\n{log_of(folder)}")
        time.sleep(0.05)
    seconds = int(START_SECONDS)
    raise DemoError(f"the webhook is not ready after {seconds} s\n{log_of(folder)}")


def log_of(folder: Path) -> str:
    """The end of the webhook's log."""
    text = ""
    with suppress(OSError):
        text = (folder / "serve.log").read_text("utf-8", "replace")
    lines = text.splitlines()[-LOG_LINES:]
    return "\n".join(["its log:", *(f"  {each}" for each in lines or ["(empty)"])])


def review_of(
    manifest: Mapping[str, Any], namespace: str, catalog: Catalog, *, dry_run: bool = False
) -> dict[str, Any]:
    """The AdmissionReview for `kubectl apply` of a new object.

    It carries what an API server puts there: its defaults, the CRD's, managedFields and kubectl's
    last-applied annotation.
    """
    group, _, version = str(manifest["apiVersion"]).rpartition("/")
    kind = {"group": group, "version": version, "kind": manifest["kind"]}
    definition = catalog.definition(group, str(manifest["kind"]), version)
    assert definition is not None
    resource = {"group": group, "version": version, "resource": definition.profile.resource}
    request = {
        "uid": str(uuid.uuid4()),
        "kind": kind,
        "resource": resource,
        "requestKind": kind,
        "requestResource": resource,
        "name": manifest["metadata"]["name"],
        "namespace": namespace,
        "operation": "CREATE",
        "userInfo": {"username": "alice", "groups": ["team-vision", "system:authenticated"]},
        "object": as_stored(manifest, namespace, catalog, definition),
        "oldObject": None,
        "dryRun": dry_run,
        "options": {
            "kind": "CreateOptions",
            "apiVersion": "meta.k8s.io/v1",
            "fieldManager": MANAGER,
        },
    }
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}


def as_stored(
    manifest: Mapping[str, Any], namespace: str, catalog: Catalog, definition: Definition
) -> dict[str, Any]:
    """The object as the API server sends it to webhooks."""
    applied = {**manifest, "metadata": {**manifest["metadata"], "namespace": namespace}}
    filled: dict[str, Any] = catalog.complete(definition, applied)
    applied["metadata"].setdefault("annotations", {})
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    entry = {
        "manager": MANAGER,
        "operation": "Update",
        "apiVersion": manifest["apiVersion"],
        "time": now,
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:spec": fields_of(filled["spec"])},
    }
    metadata = {
        **filled["metadata"],
        "annotations": {LAST_APPLIED: json.dumps(applied, separators=(",", ":")) + "\n"},
        "uid": str(uuid.uuid4()),
        "creationTimestamp": now,
        "generation": 1,
        "managedFields": [entry],
    }
    return {**filled, "metadata": metadata}


def fields_of(value: Any) -> dict[str, Any]:
    """The managedFields form of a value; named items by name, other lists as one."""
    if isinstance(value, dict):
        return {f"f:{key}": fields_of(member) for key, member in value.items()}
    named = isinstance(value, list) and all(isinstance(x, dict) and "name" in x for x in value)
    if not named:
        return {}
    return {f'k:{{"name":{json.dumps(x["name"])}}}': {".": {}, **fields_of(x)} for x in value}


def apply_patch(document: Any, operations: Sequence[Mapping[str, Any]]) -> Any:
    """The document with an RFC 6902 patch applied, as the API server does; add, replace, remove."""
    draft = Draft(document)
    for operation in operations:
        path = place_in(draft.document, str(operation["path"]))
        if operation["op"] == "remove":
            draft.remove(path)
        elif operation["op"] == "add" and path and isinstance(path[-1], int):
            draft.insert(path[:-1], path[-1], operation["value"])
        else:
            draft.set(path, operation["value"])
    return draft.document


def place_in(document: Any, text: str) -> ObjectPath:
    """A JSON pointer as a path: a step is an index where the document has a list."""
    path: ObjectPath = ()
    for step in decode(text):
        here = read(document, path)
        path = (*path, int(step) if isinstance(here, list) else step)
    return path
