"""Fields of the workload as a whole: retries, lifetime, priority, numbers of pods."""

from __future__ import annotations

from webhook.policy.row import (
    BATCH_TYPES,
    DISTRIBUTED,
    GROUPS,
    NIM,
    PREEMPTIBILITY,
    PRIORITY,
    SCALE,
    TOTAL_GPUS,
    WORKLOAD,
    Binding,
    Field,
)

PRIORITIES = {
    "very-low": 25,
    "low": 40,
    "train": 50,
    "medium-low": 65,
    "build-preemptible": 75,
    "interactive-preemptible": 75,
    "medium": 80,
    "medium-high": 90,
    "build": 100,
    "high": 125,
    "inference": 125,
    "very-high": 150,
}
"""The platform's priority classes. A cluster can have others."""


def of_workers(path: str, value: str, note: str, enum: tuple[str, ...] = ()) -> Field:
    """A field of distributed workloads. It is set at the level of the workers."""
    return Field(
        path,
        value,
        Binding.WORKLOAD,
        WORKLOAD,
        types=DISTRIBUTED,
        levels=("worker",),
        enum=enum,
        note=note,
    )


def of_workload(
    path: str, value: str, types: tuple[str, ...], note: str, enum: tuple[str, ...] = ()
) -> Field:
    """A field whose path is in the profile of the kind."""
    return Field(path, value, Binding.WORKLOAD, WORKLOAD, types=types, enum=enum, note=note)


WORKLOADS: tuple[Field, ...] = (
    Field(
        "priorityClass",
        "string",
        Binding.WORKLOAD,
        PRIORITY,
        spellings=(("medium- low", "medium-low"),),
        note="Scheduling priority; any name of a PriorityClass.",
    ),
    Field(
        "preemptibility",
        "string",
        Binding.WORKLOAD,
        PREEMPTIBILITY,
        enum=("preemptible", "non-preemptible", "semi-preemptible"),
        note="Whether workloads of higher priority can preempt it; semi: beyond its minimum.",
    ),
    Field(
        "category",
        "string",
        Binding.NOTHING,
        WORKLOAD,
        ("metadata", "labels", "podgate.dev/category"),
        note="Value for reports; kept in a label, not enforced elsewhere.",
    ),
    of_workload("backoffLimit", "integer", BATCH_TYPES, "Retries before the workload has failed."),
    of_workload(
        "autoDeletionTimeAfterCompletionSeconds",
        "integer",
        BATCH_TYPES,
        "Seconds after its end at which a workload is removed; 0 is at once.",
    ),
    Field(
        "terminateAfterPreemption",
        "boolean",
        Binding.WORKLOAD,
        WORKLOAD,
        aliases=("terminateAfterPreemtpion",),
        types=BATCH_TYPES,
        note="End the job instead of queueing it again after a preemption.",
    ),
    of_workload(
        "restartPolicy",
        "string",
        (*BATCH_TYPES, *GROUPS),
        "When a pod's containers are started again.",
        ("Always", "Never", "OnFailure"),
    ),
    of_workload("completions", "integer", ("training",), "Pods that have to succeed."),
    of_workload("parallelism", "integer", ("training",), "Pods that run at once."),
    of_workers(
        "cleanPodPolicy",
        "string",
        "Which pods are removed when a distributed job ends.",
        ("None", "All", "Running"),
    ),
    of_workers("numWorkers", "integer", "Worker pods of a distributed job."),
    of_workers(
        "distributedFramework",
        "string",
        "Framework of a distributed job; follows from its kind.",
        ("MPI", "PyTorch", "TF", "XGBoost", "JAX"),
    ),
    of_workers("slotsPerWorker", "integer", "MPI only: slots of each worker."),
    of_workers("minReplicas", "integer", "Fewest replicas of an elastic job."),
    of_workers("maxReplicas", "integer", "Most replicas of an elastic job."),
    of_workers("sshAuthMountPath", "string", "MPI v2beta1 only: directory of the SSH keys."),
    of_workers(
        "mpiLauncherCreationPolicy",
        "string",
        "MPI v2beta1 only: when the launcher is made.",
        ("AtStartup", "WaitForWorkersReady"),
    ),
    of_workload(
        "startupPolicy",
        "string",
        GROUPS,
        "When the workers of a group start.",
        ("LeaderCreated", "LeaderReady"),
    ),
    of_workload("workers", "integer", GROUPS, "Worker pods of each group; 0 is the leader alone."),
    of_workload("replicas", "integer", (*GROUPS, *NIM), "Number of groups, or of NIM pods."),
    of_workload("multiNode.workers", "integer", NIM, "Workers of a NIM service on several nodes."),
    of_workload("ngcAuthSecret", "string", NIM, "Secret with the NGC API key."),
    Field(
        "scale.replicas",
        "integer",
        Binding.WORKLOAD,
        SCALE,
        writes="never",
        rules=frozenset({"min", "max", "step"}),
        note="Pods, or groups, of each component; an autoscaler's maximum counts.",
    ),
    Field(
        "total.gpuDevices",
        "integer",
        Binding.WORKLOAD,
        TOTAL_GPUS,
        writes="never",
        rules=frozenset({"min", "max"}),
        note="GPUs of the whole workload: the sum of replicas times the GPUs of a pod.",
    ),
)
