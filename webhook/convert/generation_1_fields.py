"""TABLE of the fields of the first generation: their successors, or why there is none."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

DURATION = re.compile(r"(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?")

TYPES: Mapping[str, str] = {
    "InteractivePolicy": "workspace",
    "TrainingPolicy": "training",
    "DistributedPolicy": "distributed",
    "InferencePolicy": "inference",
    "DeploymentPolicy": "inference",
}
"""The workload type of each kind of policy."""


def seconds(raw: Any) -> Any:
    """Convert a duration such as 1h30m to seconds. Plain numbers are seconds already."""
    match = DURATION.fullmatch(raw) if isinstance(raw, str) else None
    if match is None or not any(match.groups()):
        return raw
    hours, minutes, rest = (int(number or 0) for number in match.groups())
    return hours * 3600 + minutes * 60 + rest


def words(raw: Any) -> Any:
    """Convert a text of several words to a list."""
    return [each for each in re.split(r"[\s,;]+", raw) if each] if isinstance(raw, str) else raw


def is_true(raw: Any) -> bool:
    """Convert a boolean, also as text."""
    return raw in (True, "true")


def preemptibility(raw: Any) -> Any:
    """Convert whether a workload can be preempted."""
    return "preemptible" if is_true(raw) else "non-preemptible"


def not_preemptible(raw: Any) -> Any:
    """Convert whether a workload cannot be preempted."""
    return "non-preemptible" if is_true(raw) else "preemptible"


def affinity(raw: Any) -> Any:
    """Convert hard and soft to Required and Preferred."""
    known = {"hard": "Required", "required": "Required", "soft": "Preferred"}
    return known.get(str(raw).lower(), "Preferred" if str(raw).lower() == "preferred" else raw)


def source_of_ids(raw: Any) -> Any:
    """Convert whether the submitter's ids are used to the source of ids."""
    return "fromIdpToken" if is_true(raw) else "fromTheImage"


def framework(raw: Any) -> Any:
    """Return the framework of a distributed job in today's letter case."""
    known = {"mpi": "MPI", "pytorch": "PyTorch", "tf": "TF", "xgboost": "XGBoost", "jax": "JAX"}
    return known.get(str(raw).lower().removesuffix("job"), raw)


@dataclass(frozen=True, slots=True)
class Successor:
    """One row: today's field, its level, the conversion of values; or `why` there is none."""

    name: str
    to: str = ""
    level: str = ""
    rewrite: Callable[[Any], Any] | None = None
    why: str = ""


WORKER = "role:worker"
NO_POLICY = "the workload itself sets it; policies never could"
ROWS = (
    Successor("allowPrivilegeEscalation", "security.allowPrivilegeEscalation"),
    Successor("annotations", "annotations"),
    Successor("arguments", "args"),
    Successor("autoDeletionTimeAfterCompletionSeconds", "autoDeletionTimeAfterCompletionSeconds"),
    Successor("backoffLimit", "backoffLimit"),
    Successor("capabilities", "security.capabilities", rewrite=words),
    Successor("command", "command"),
    Successor("completions", "completions"),
    Successor("cpu", "compute.cpuCoreRequest"),
    Successor("cpuLimit", "compute.cpuCoreLimit"),
    Successor("createHomeDir", "createHomeDir"),
    Successor("environment", "environmentVariables"),
    Successor("exposedUrls", "exposedUrls"),
    Successor("extendedResources", "compute.extendedResources"),
    Successor("gitSync", "storage.git"),
    Successor("gpuLimit", "compute.gpuPortionLimit"),
    Successor("gpuMemory", "compute.gpuMemoryRequest"),
    Successor("hostIpc", "security.hostIpc"),
    Successor("hostNetwork", "security.hostNetwork"),
    Successor("image", "image"),
    Successor("imagePullPolicy", "imagePullPolicy"),
    Successor("isPrivateServiceUrl", "servingPort.clusterLocalAccessOnly"),
    Successor("jobType", "distributedFramework", WORKER, framework),
    Successor("labels", "labels"),
    Successor("largeShm", "compute.largeShmRequest"),
    Successor("maxScale", "autoscaling.maxReplicas"),
    Successor("memory", "compute.cpuMemoryRequest"),
    Successor("memoryLimit", "compute.cpuMemoryLimit"),
    Successor("metric", "autoscaling.metric"),
    Successor("migProfile", "compute.migProfile"),
    Successor("minScale", "autoscaling.minReplicas"),
    Successor("nodePool", "nodePools", rewrite=words),
    Successor("nodePools", "nodePools", rewrite=words),
    Successor("nodeType", "nodeType"),
    Successor("nonPreemptible", "preemptibility", rewrite=not_preemptible),
    Successor("parallelism", "parallelism"),
    Successor("podAffinitySchedulingRule", "podAffinity.type", rewrite=affinity),
    Successor("podAffinityTopology", "podAffinity.key"),
    Successor("ports", "ports"),
    Successor("preemptible", "preemptibility", rewrite=preemptibility),
    Successor("priorityClass", "priorityClass"),
    Successor("pvcs", "storage.pvc"),
    Successor("readOnlyRootFilesystem", "security.readOnlyRootFilesystem"),
    Successor("runAsGid", "security.runAsGid"),
    Successor("runAsNonRoot", "security.runAsNonRoot"),
    Successor("runAsUid", "security.runAsUid"),
    Successor("runAsUser", "security.uidGidSource", rewrite=source_of_ids),
    Successor("s3", "storage.s3"),
    Successor("s3s", "storage.s3"),
    Successor("slotsPerWorker", "slotsPerWorker", WORKER),
    Successor("stdin", "stdin"),
    Successor("supplementalGroups", "security.supplementalGroups"),
    Successor("target", "autoscaling.metricThreshold"),
    Successor("terminateAfterPreemption", "terminateAfterPreemption"),
    Successor("tolerations", "tolerations"),
    Successor("ttlAfterFinish", "autoDeletionTimeAfterCompletionSeconds", rewrite=seconds),
    Successor("tty", "tty"),
    Successor("workers", "numWorkers", WORKER),
    Successor("workingDir", "workingDir"),
    Successor("baseWorkload", why="there are no templates of workloads any more"),
    Successor("class", why="the class of the autoscaler cannot be chosen by policy"),
    Successor("ingressUrl", why="it was for internal use only"),
    Successor("jupyter", why="the tool of a port is set in ports or exposedUrls today"),
    Successor("metricName", why="write autoscaling.metric by hand"),
    Successor("mountPropagation", why="write storage.hostPath.attributes.mountPropagation by hand"),
    Successor("mpi", why="the framework is a property of the workload's kind today"),
    Successor("mpiJob", why="the framework is a property of the workload's kind today"),
    Successor("name", why=NO_POLICY),
    Successor("namePrefix", why=NO_POLICY),
    Successor("notebookToken", why="it has no successor"),
    Successor("podAffinity", why="podAffinity.type alone decides whether there is one today"),
    Successor("processes", why="write worker.numWorkers by hand"),
    Successor("pyTorchJob", why="the framework is a property of the workload's kind today"),
    Successor("runPolicy", why="write cleanPodPolicy and backoffLimit by hand"),
    Successor("serviceType", why="each port has its own serviceType today"),
    Successor("tensorboard", why="the tool of a port is set in ports or exposedUrls today"),
    Successor("tensorboardLogdir", why="it has no successor"),
    Successor("usage", why=NO_POLICY),
    Successor("userId", why=NO_POLICY),
    Successor("username", why=NO_POLICY),
)

TABLE: dict[str, Successor] = {row.name: row for row in ROWS}
GPU, VOLUMES = "gpu", "volumes"
SPECIAL = (GPU, VOLUMES)
"""Fields with several successors, which depend on the value."""
ROLES = ("master", "worker")

ATTRIBUTES: Mapping[str, str] = {
    "nfsServer": "server",
    "directory": "path",
    "tolerationSeconds": "seconds",
    "size": "claimInfo.size",
    "storageClass": "claimInfo.storageClass",
    "volumeMode": "claimInfo.volumeMode",
    "readWriteOnce": "claimInfo.accessModes.readWriteOnce",
    "readOnlyMany": "claimInfo.accessModes.readOnlyMany",
    "readWriteMany": "claimInfo.accessModes.readWriteMany",
    "secret": "secretRef.name",
}
"""Attributes of items that have another name today."""
SCALAR_ATTRIBUTES: Mapping[str, str] = {
    "environmentVariables": "value",
    "labels": "value",
    "annotations": "value",
    "compute.extendedResources": "quantity",
}
"""The attribute of an item's value that is not a map."""
