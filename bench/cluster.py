"""Gate T8: latency added through a real API server, podgate beside a hook that decides nothing."""

from __future__ import annotations

import base64
import json
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from bench.api import Caller
from bench.https import free_port, null_command, podgate_command, served
from bench.objects import deployment
from bench.timing import Gate, bootstrap
from certs.development import ensure_development_certificates
from tests.e2e.testbed.cluster import Cluster

PAIRS = 2000
POLICIES = str(Path(__file__).resolve().parent / "policies" / "five-and-four.yaml")
NAMESPACES = ("bench-none", "bench-null", "bench-writer", "bench-ours")


def configurations(name: str, url: str, paths: tuple[str, str], ca: bytes) -> list[dict[str, Any]]:
    """A mutating and a validating configuration for Deployments of one namespace."""
    found = []
    for kind, path in zip(("Mutating", "Validating"), paths, strict=True):
        found.append(
            {
                "apiVersion": "admissionregistration.k8s.io/v1",
                "kind": f"{kind}WebhookConfiguration",
                "metadata": {"name": name},
                "webhooks": [
                    {
                        "name": f"{kind.lower()}.{name}.example.com",
                        "admissionReviewVersions": ["v1"],
                        "sideEffects": "None",
                        "failurePolicy": "Fail",
                        "clientConfig": {
                            "url": url + path,
                            "caBundle": base64.b64encode(ca).decode(),
                        },
                        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": name}},
                        "rules": [
                            {
                                "apiGroups": ["apps"],
                                "apiVersions": ["v1"],
                                "operations": ["CREATE", "UPDATE"],
                                "resources": ["deployments"],
                            }
                        ],
                    }
                ],
            }
        )
    return found


class Creator:
    """Dry-run creates of one Deployment on one keep-alive connection."""

    def __init__(self, cluster: Cluster) -> None:
        self.call = Caller(cluster)

    def create(self, namespace: str) -> float:
        """One dry-run create; seconds it took."""
        body = deployment()
        body["metadata"]["namespace"] = namespace
        path = f"/apis/apps/v1/namespaces/{namespace}/deployments?dryRun=All"
        sent = json.dumps(body).encode()
        started = time.perf_counter()
        status, answer = self.call("POST", path, sent)
        spent = time.perf_counter() - started
        assert status == 201, answer[:500]
        return spent


def gates() -> Iterator[Gate]:
    """T8 with its confidence interval."""
    with tempfile.TemporaryDirectory() as name, Cluster() as cluster:
        folder = Path(name)
        ensure_development_certificates(folder, ["localhost"], ["127.0.0.1"], datetime.now(UTC), 30)
        ours, null = free_port(), free_port()
        with (
            served(podgate_command(folder, ours, POLICIES), ours),
            served(null_command(folder, null), null),
        ):
            register(cluster, folder, ours, null)
            yield from measured(Creator(cluster))


def register(cluster: Cluster, folder: Path, ours: int, null: int) -> None:
    """Namespaces, and each hook for its own."""
    for namespace in NAMESPACES:
        cluster.kubectl("create", "namespace", namespace)
    ca = (folder / "ca.crt").read_bytes()
    hooks = [
        *configurations("bench-null", f"https://127.0.0.1:{null}", ("/hook", "/hook"), ca),
        *configurations("bench-writer", f"https://127.0.0.1:{null}", ("/writer", "/hook"), ca),
        *configurations("bench-ours", f"https://127.0.0.1:{ours}", ("/mutate", "/validate"), ca),
    ]
    cluster.kubectl("apply", "-f", "-", input=yaml.safe_dump_all(hooks))
    time.sleep(3)


def measured(creator: Creator) -> Iterator[Gate]:
    """Interleaved creates without a hook, with two null hooks, with ours; added latencies compared.

    The second null hook writes four constant places, since applying a patch costs the API server
    time that no webhook can save.
    """
    for namespace in NAMESPACES * 30:
        creator.create(namespace)
    added: dict[str, list[float]] = {namespace: [] for namespace in NAMESPACES}
    for index in range(PAIRS):
        order = NAMESPACES if index % 2 else NAMESPACES[::-1]
        spent = {namespace: creator.create(namespace) for namespace in order}
        for namespace, seconds in spent.items():
            bare = 0.0 if namespace == "bench-none" else spent["bench-none"]
            added[namespace].append(seconds - bare)
    for name, what, baseline, limit in (
        ("T8", "a hook that decides nothing", "bench-null", 1.5),
        ("T8w", "a hook that writes four constants", "bench-writer", 1.5),
    ):
        figure, low, high = bootstrap(added["bench-ours"], added[baseline], 500)
        middle = {key: sorted(values)[PAIRS // 2] * 1e3 for key, values in added.items()}
        detail = (
            f"{figure:.2f} [{low:.2f}, {high:.2f}]: adds {middle['bench-ours']:.2f} ms beside "
            f"{middle[baseline]:.2f} ms to {middle['bench-none']:.2f} ms, {PAIRS} pairs"
        )
        yield Gate(name, f"latency added through the API server ÷ {what}", high, limit, detail)
