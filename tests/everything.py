"""Policies that use every field at once, made from the field table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from webhook.evaluation.installation import InstallationConfig
from webhook.policy import values
from webhook.policy.row import Attribute, Field
from webhook.policy.table import TABLE

WORDS = InstallationConfig(
    git_image="registry.example.com/git-sync:v4.4.0",
    s3_drivers={"s3.csi.aws.com": "bucketName"},
    data_volumes={"7f0d7c1e-58c5-4b0b-9d46-0f1f8c6b2a77": "shared-data"},
)
"""The words that fields of git, S3 and data volumes need."""

SCALARS: dict[str, Any] = {
    "image": "registry.example.com/base:1",
    "command": "run --all",
    "args": "--epochs 3",
    "nodePools": ["pool-a", "pool-b"],
    "nodeAffinityRequired": {
        "nodeSelectorTerms": [
            {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a", "b"]}]}
        ]
    },
    "podAffinity.key": "topology.kubernetes.io/zone",
    "security.supplementalGroups": "100,200",
    "security.capabilities": ["NET_BIND_SERVICE"],
    "security.uidGidSource": "custom",
    "security.sysctls": ["net.ipv4.tcp_syncookies"],
    "security.volumeTypes": ["emptyDir", "configMap"],
    "security.procMount": "Default",
    "security.serviceAccountName": "runner",
    "scheduling.nodeName": "",
    "compute.cpuCoreRequest": 0.5,
    "compute.cpuCoreLimit": 4,
    "compute.gpuDevicesRequest": 1,
    "compute.gpuPortionRequest": 0.5,
    "compute.gpuPortionLimit": 0.7,
    "compute.gpuMemoryRequest": "4Gi",
    "compute.gpuMemoryLimit": "8Gi",
    "compute.cpuMemoryRequest": "512M",
    "compute.cpuMemoryLimit": "8Gi",
    "compute.migProfile": "1g.5gb",
    "priorityClass": "low",
    "autoscaling.metric": "concurrency",
    "autoscaling.minReplicas": 0,
    "modelStore.pvc.claimInfo.size": "10Gi",
    "probes.readiness.handler.httpGet.port": 8080,
}
TRUE = frozenset(
    {"security.runAsNonRoot", "createHomeDir", "compute.largeShmRequest", "tty", "stdin"}
)

ITEMS: dict[str, list[dict[str, Any]]] = {
    "environmentVariables": [{"name": "MODE", "value": "fast"}],
    "labels": [{"name": "team.example.com/name", "value": "vision"}],
    "annotations": [{"name": "team.example.com/contact", "value": "vision-team"}],
    "imagePullSecrets": [{"name": "registry"}],
    "ports": [{"name": "metrics", "container": 9400, "serviceType": "ClusterIP"}],
    "exposedUrls": [{"name": "web", "container": 8080}],
    "relatedUrls": [{"name": "docs", "url": "https://docs.example.com", "type": "docs"}],
    "tolerations": [{"key": "dedicated", "operator": "Exists", "effect": "NoSchedule"}],
    "compute.extendedResources": [{"resource": "example.com/fpga", "quantity": "1"}],
    "storage.hostPath": [{"name": "models", "path": "/models", "mountPath": "/models"}],
    "storage.nfs": [
        {"name": "sets", "server": "nfs.example.com", "path": "/sets", "mountPath": "/sets"}
    ],
    "storage.pvc": [
        {"name": "cache", "claimName": "cache", "existingPvc": True, "path": "/cache"},
        {
            "name": "scratch",
            "ephemeral": True,
            "path": "/scratch",
            "claimInfo": {"size": "10Gi", "accessModes": {"readWriteOnce": True}},
        },
    ],
    "storage.configMapVolume": [
        {"name": "conf", "configMap": "conf", "mountPath": "/etc/conf", "defaultMode": "0440"}
    ],
    "storage.secretVolume": [{"name": "keys", "secret": "keys", "mountPath": "/etc/keys"}],
    "storage.emptyDirVolume": [{"name": "tmp", "path": "/var/tmp/own", "sizeLimit": "1Gi"}],
    "storage.git": [
        {
            "name": "code",
            "repository": "https://git.example.com/code",
            "branch": "main",
            "path": "/src",
        }
    ],
    "storage.s3": [{"name": "bucket", "bucket": "data", "path": "/s3"}],
    "storage.dataVolume": [{"id": "7f0d7c1e-58c5-4b0b-9d46-0f1f8c6b2a77", "mountPath": "/shared"}],
}


NO_DEFAULT = frozenset(
    {
        "scale.replicas",
        "total.gpuDevices",
        "total.devices",
        "devices.alternatives",
        "devices.perClaim",
        "devices.perPod",
        # Beside users, groups are one too many.
        "servingPort.authorizedGroups",
    }
)

# Values that are written where the table's own would be what an absent field means anyway, and
# that a server would take.
TELLING: dict[str, Any] = {
    "workingDir": "/workspace",
    "sshAuthMountPath": "/home/mpi/.ssh",
    "mpiLauncherCreationPolicy": "WaitForWorkersReady",
    "startupPolicy": "LeaderReady",
    "servingPort.clusterLocalAccessOnly": True,
    "terminateAfterPreemption": True,
    "scheduling.nodeName": "node-1",
    "security.readOnlyRootFilesystem": True,
    "security.hostIpc": True,
    "security.hostPid": True,
    "security.hostNetwork": True,
    "probes.readiness.handler.httpGet.path": "/ready",
    "probes.readiness.handler.httpGet.host": "localhost",
    "probes.readiness.successThreshold": 1,
    "servingPort.container": 8080,
    "servingPort.port": 8080,
    "servingPort.grpcPort": 8081,
    "servingPort.metricsPort": 8082,
    "servingPort.exposedUrl": "llama.example.com",
    "servingPort.exposeExternally": True,
    "servingPort.exposedProtocol": "grpc",
    "autoscaling.minReplicas": 1,
    "modelStore.pvc.claimInfo.accessModes.readWriteOnce": True,
}


def put(tree: dict[str, Any], path: str, value: Any) -> None:
    """Set one leaf of a tree of nested sections."""
    *sections, last = path.split(".")
    for section in sections:
        tree = tree.setdefault(section, {})
    tree[last] = value


def default_of(row: Field) -> Any:
    """A default that the field takes."""
    if row.path in SCALARS:
        return SCALARS[row.path]
    if row.enum:
        return [row.enum[0]] if row.value == "array" else row.enum[0]
    match row.value:
        case "quantity":
            return "1Gi"
        case "boolean":
            return row.path in TRUE
        case "integer" | "number":
            return 9 if row.path.rpartition(".")[2].startswith("max") else 3
        case "array":
            return ["one"]
        case _:
            return "some"


def defaults() -> dict[str, Any]:
    """A default of every field that can be written."""
    tree: dict[str, Any] = {}
    for path, row in TABLE.fields.items():
        if row.items is not None:
            put(tree, path, {"instances": ITEMS[path]})
        elif row.path not in NO_DEFAULT:
            put(tree, path, default_of(row))
    return tree


def telling_defaults(more: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The same, with values that leave a mark in the object."""
    tree = defaults()
    for path, value in {**TELLING, **(more or {})}.items():
        put(tree, path, value)
    return tree


def rule_of(row: Field | Attribute) -> dict[str, Any]:
    """A rule of a leaf that absent values keep; {} where it takes none."""
    legal = row.legal_rules
    if "step" in legal or legal == {"min", "max"}:
        return {"min": -1000000, "max": 1000000000}
    if "min" in legal:
        return {"max": "900Ti"}
    if "options" in legal:
        words = {values.GROUP_IDS: ["100"], values.FILE_MODE: ["0644"]}
        return {"options": list(row.enum) or words.get(row.reading(), ["some", "other"])}
    return {"canEdit": False} if "canEdit" in legal else {}


def rules(*, without: frozenset[str] = frozenset(), closed: bool = True) -> dict[str, Any]:
    """A rule on every leaf that takes one; `closed` closes the lists of items too."""
    tree: dict[str, Any] = {}
    for path, row in TABLE.fields.items():
        if path in without:
            continue
        if row.items is None:
            put(tree, path, rule_of(row))
            continue
        if closed:
            put(tree, f"{path}.instances", {"canAdd": False})
        for attribute in row.items.attributes:
            rule = rule_of(attribute)
            if rule:
                put(tree, f"{path}.attributes.{attribute.name}", rule)
    return tree


def policy(name: str, **body: Any) -> dict[str, Any]:
    """A policy for all kinds with that body."""
    return {
        "apiVersion": "podgate.dev/v1alpha1",
        "kind": "ClusterWorkloadPolicy",
        "metadata": {"name": name},
        "spec": body,
    }
