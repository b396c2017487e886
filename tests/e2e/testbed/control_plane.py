"""The command lines of etcd, the API server and the controller manager."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.e2e.testbed.binaries import Binaries
from tests.ports import free_port

SERVICE_NETWORK = "10.0.0.0/24"
MANAGER = "system:kube-controller-manager"

# What turns workloads into Pods, and a namespace into one that Pods can be made in.
CONTROLLERS = (
    "deployment-controller",
    "replicaset-controller",
    "statefulset-controller",
    "daemonset-controller",
    "job-controller",
    "cronjob-controller",
    "replicationcontroller-controller",
    "horizontal-pod-autoscaler-controller",
    "serviceaccount-controller",
    "serviceaccount-token-controller",
    "namespace-controller",
    "garbage-collector-controller",
    "root-ca-certificate-publisher-controller",
    # Without it the ClusterRoles view, edit and admin stay empty.
    "clusterrole-aggregation-controller",
    # It makes the ResourceClaims of pods that name a template.
    "resourceclaim-controller",
)


@dataclass(frozen=True, slots=True)
class Ports:
    """Loopback ports of one cluster."""

    etcd: int
    etcd_peer: int
    api_server: int


def free_ports() -> Ports:
    """Return three loopback ports that were free a moment ago."""
    numbers = set[int]()
    while len(numbers) < 3:
        numbers.add(free_port())
    return Ports(*numbers)


def server_url(ports: Ports) -> str:
    """Return the address of the API server."""
    return f"https://127.0.0.1:{ports.api_server}"


def etcd(binaries: Binaries, folder: Path, ports: Ports) -> list[str]:
    """Return the command of an etcd that keeps its data below `folder`, not flushed to disk."""
    client = f"http://127.0.0.1:{ports.etcd}"
    peer = f"http://127.0.0.1:{ports.etcd_peer}"
    return [
        str(binaries.etcd),
        f"--data-dir={folder / 'etcd'}",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=default={peer}",
        "--unsafe-no-fsync",
        "--log-level=warn",
    ]


def api_server(
    binaries: Binaries, folder: Path, ports: Ports, more: Sequence[str] = ()
) -> list[str]:
    """Return the command of an API server with RBAC and all default admission plugins.

    `folder` holds what `identity` wrote; `more` are flags of the caller, which come last.
    """
    return [
        str(binaries.kube_apiserver),
        f"--etcd-servers=http://127.0.0.1:{ports.etcd}",
        f"--cert-dir={folder}",
        f"--tls-cert-file={folder / 'server.crt'}",
        f"--tls-private-key-file={folder / 'server.key'}",
        f"--secure-port={ports.api_server}",
        "--bind-address=127.0.0.1",
        "--advertise-address=127.0.0.1",
        # From 1.37 on nothing publishes a loopback address as the endpoint of the API server.
        "--endpoint-reconciler-type=none",
        f"--service-account-key-file={folder / 'service-account.key'}",
        f"--service-account-signing-key-file={folder / 'service-account.key'}",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--token-auth-file={folder / 'tokens.csv'}",
        "--authorization-mode=RBAC",
        "--allow-privileged",
        f"--service-cluster-ip-range={SERVICE_NETWORK}",
        *more,
    ]


def controller_manager(binaries: Binaries, folder: Path) -> list[str]:
    """Return the command of a controller manager whose controllers use their own accounts."""
    return [
        str(binaries.kube_controller_manager),
        f"--kubeconfig={folder / 'controller-manager.kubeconfig'}",
        f"--controllers={','.join(CONTROLLERS)}",
        "--use-service-account-credentials",
        f"--root-ca-file={folder / 'ca.crt'}",
        f"--service-account-private-key-file={folder / 'service-account.key'}",
        "--leader-elect=false",
        "--secure-port=0",
    ]
