"""`python -m tests.reviews.recording.applied`: write the reviews of our own objects in samples/ anew.

kubectl sends what is in applied.yaml to a real API server, where a webhook keeps what it is asked.
"""

from __future__ import annotations

import base64
import contextlib
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from tests.e2e.objects import Json
from tests.e2e.testbed.cluster import Cluster
from tests.e2e.tls_server import TlsServer
from tests.reviews.recording.scene import ALICE
from tests.reviews.samples import FOLDER
from tests.upstream import data

OBJECTS = Path(__file__).with_suffix(".yaml")
SPACE = "team-a"
IN_EFFECT = 3.0
"""Seconds until the API server calls a new webhook."""
WAYS = {"apply": (), "serverSide": ("--server-side",)}


def sendings() -> Iterator[tuple[int, tuple[str, ...], Json | None, Json]]:
    """The number of each review, options of `kubectl apply`, what is there before, and the object."""
    for each in yaml.safe_load(OBJECTS.read_text("utf-8")):
        for way, options in WAYS.items():
            if way in each:
                yield each[way], options, each.get("before"), each["object"]


@contextlib.contextmanager
def overheard(cluster: Cluster) -> Iterator[list[Json]]:
    """A webhook that lets everything pass; the list grows by each review of the namespace."""
    seen: list[Json] = []

    def answer(_path: str, body: bytes) -> tuple[int, bytes]:
        review = json.loads(body)
        seen.append(review)
        allowed = {"uid": review["request"]["uid"], "allowed": True}
        return 200, json.dumps({**review, "response": allowed}).encode()

    server = TlsServer(cluster.folder / "server.crt", cluster.folder / "server.key", answer)
    bundle = base64.b64encode(cluster.ca_file.read_bytes()).decode()
    everything = {"apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"]}
    hook = {
        "name": "overhears.podgate.dev",
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "clientConfig": {"url": server.url, "caBundle": bundle},
        "rules": [{**everything, "operations": ["CREATE", "UPDATE"]}],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": SPACE}},
    }
    configuration = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": "overhears"},
        "webhooks": [hook],
    }
    with server.running():
        cluster.kubectl("apply", "--filename=-", input=json.dumps(configuration))
        time.sleep(IN_EFFECT)
        yield seen


def review_of(cluster: Cluster, seen: list[Json], options: tuple[str, ...], sent: Json) -> Json:
    """The review that one `kubectl apply` of Alice's makes; what validation says of it is no matter."""
    seen.clear()
    command = ("apply", "--filename=-", f"--namespace={SPACE}", *options)
    done = cluster.kubectl(*command, user=ALICE, input=json.dumps(sent), check=False)
    by_alice = [each for each in seen if each["request"]["userInfo"]["username"] == ALICE]
    assert len(by_alice) == 1, (sent["metadata"], done.stderr)
    return by_alice[0]


def record() -> None:
    """Write every review."""
    crds: list[Any] = [
        yaml.safe_load(file.read_text("utf-8"))
        for file in sorted((data.folder() / "crds").glob("*.yaml"))
        if not file.stem.startswith("mpijobs.kubeflow.org") or file.stem.endswith("v2beta1")
    ]
    with Cluster(users={ALICE: ("dev",)}) as cluster:
        cluster.apply_crds(crds)
        cluster.kubectl("create", "namespace", SPACE)
        cluster.wait_namespace_ready(SPACE)
        role = ("clusterrolebinding", ALICE, "--clusterrole=cluster-admin", f"--user={ALICE}")
        cluster.kubectl("create", *role)
        with overheard(cluster) as seen:
            for number, options, before, sent in sendings():
                if before is not None:
                    review_of(cluster, seen, options, before)
                write(number, review_of(cluster, seen, options, sent))
                place = (f"--namespace={SPACE}", "--ignore-not-found", "--now")
                cluster.kubectl("delete", "--filename=-", *place, input=json.dumps(sent))


def write(number: int, review: Json) -> None:
    """Write a review in place of the one of this number."""
    request = review["request"]
    for old in FOLDER.glob(f"{number:04d}-*"):
        old.unlink()
    name = f"{number:04d}-mutate-{request['operation']}-{request['kind']['kind']}.json".lower()
    text = json.dumps(review, separators=(",", ":"), ensure_ascii=False)
    (FOLDER / name).write_text(f"{text}\n", "utf-8")


if __name__ == "__main__":
    record()
