"""Fake nodes: kwok plays the kubelets, the real scheduler puts pods on them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.e2e.operators.operator import Running, answers
from tests.e2e.served import free_port
from tests.e2e.testbed import programs

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
        "spec": {"taints": [SPOT]},
        "status": {"capacity": room, "allocatable": room},
    }


def start(bed: Bed, folder: Path) -> None:
    """Start the scheduler and kwok, and make two nodes."""
    found = programs.find("kube-scheduler", "kwok")
    bed.running["kube-scheduler"] = Running.start(
        "kube-scheduler",
        [
            found["kube-scheduler"],
            f"--kubeconfig={bed.cluster.kubeconfig(SCHEDULER)}",
            "--leader-elect=false",
            "--secure-port=0",
        ],
        folder,
    )
    port = free_port()
    bed.running["kwok"] = Running.start(
        "kwok",
        [
            found["kwok"],
            f"--kubeconfig={bed.cluster.kubeconfig()}",
            f"--config={Path(__file__).with_name('kwok.yaml')}",
            "--manage-all-nodes",
            "--node-ip=127.0.0.1",
            "--cidr=10.64.0.1/16",
            f"--server-address=127.0.0.1:{port}",
        ],
        folder,
    )
    bed.running["kwok"].wait_until(lambda: answers(port, "/healthz"))
    # The API server taints new nodes as not ready, and no controller here takes that back.
    taints = {"spec": {"taints": [SPOT]}}
    for name in ("node-a", "node-b"):
        bed.apply(node(name))
        content = "application/merge-patch+json"
        bed.gate.api.request("PATCH", f"/api/v1/nodes/{name}", taints, content)
