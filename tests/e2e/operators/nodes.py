"""Fake nodes: kwok plays the kubelets, the real scheduler puts pods on them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.e2e.api import Api
from tests.e2e.operators.operator import Running, answers
from tests.e2e.served import free_port
from tests.e2e.testbed import programs
from tests.e2e.testbed.cluster import Cluster

if TYPE_CHECKING:
    from tests.e2e.operators.bed import Bed

SCHEDULER = "system:kube-scheduler"
LABELS = {"type": "kwok", "run.ai/type": "cpu"}
SPOT = {"key": "example.com/spot", "value": "yes", "effect": "NoSchedule"}
"""Only pods with the policy's toleration can run."""


def node(name: str) -> dict[str, Any]:
    """A large node."""
    room = {"cpu": "64", "memory": "256Gi", "pods": "110", "nvidia.com/gpu": "64"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {**LABELS, "kubernetes.io/hostname": name}},
        "status": {"capacity": room, "allocatable": room},
    }


def start(bed: Bed, folder: Path) -> None:
    """Start the scheduler and kwok, and make two nodes."""
    bed.running |= programs_of(bed.cluster, folder)
    for name in ("node-a", "node-b"):
        join(bed.gate.api, name, [SPOT])


def programs_of(cluster: Cluster, folder: Path) -> dict[str, Running]:
    """The scheduler and kwok at work; the cluster must know the user `SCHEDULER`."""
    found = programs.find("kube-scheduler", "kwok")
    scheduler = Running.start(
        "kube-scheduler",
        [
            found["kube-scheduler"],
            f"--kubeconfig={cluster.kubeconfig(SCHEDULER)}",
            "--leader-elect=false",
            "--secure-port=0",
        ],
        folder,
    )
    port = free_port()
    kwok = Running.start(
        "kwok",
        [
            found["kwok"],
            f"--kubeconfig={cluster.kubeconfig()}",
            f"--config={Path(__file__).with_name('kwok.yaml')}",
            "--manage-all-nodes",
            "--node-ip=127.0.0.1",
            "--cidr=10.64.0.1/16",
            f"--server-address=127.0.0.1:{port}",
        ],
        folder,
    )
    kwok.wait_until(lambda: answers(port, "/healthz"))
    return {"kube-scheduler": scheduler, "kwok": kwok}


def join(api: Api, name: str, taints: list[dict[str, str]]) -> None:
    """A node joins."""
    api.request("POST", "/api/v1/nodes", node(name))
    # The API server taints new nodes as not ready, and no controller here takes that back.
    content = "application/merge-patch+json"
    api.request("PATCH", f"/api/v1/nodes/{name}", {"spec": {"taints": taints}}, content)
