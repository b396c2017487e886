"""The batch and distributed kinds: objects with every pod location, statuses, children."""

from __future__ import annotations

from typing import Any

POD = {
    "containers": [{"name": "a", "image": "a", "ports": []}],
    "initContainers": [{"name": "b", "image": "b"}],
    "ephemeralContainers": [{"name": "c", "image": "c"}],
}
TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": POD}
TASKS = [{"name": "a", "replicas": 2, "template": TEMPLATE}, {"replicas": 1, "template": TEMPLATE}]
VOLCANO_JOB = {"tasks": TASKS, "volumes": [{"mountPath": "/data", "volumeClaimName": "c"}]}
RAY_CLUSTER = {
    "headGroupSpec": {"template": TEMPLATE},
    "workerGroupSpecs": [
        {"groupName": "a", "template": TEMPLATE},
        {"groupName": "b", "template": TEMPLATE},
    ],
    "autoscalerOptions": {"image": "a", "env": []},
    "historyServerOptions": {"collectorOptions": {"image": "a", "env": []}},
}
GROUP = {"leaderTemplate": TEMPLATE, "workerTemplate": TEMPLATE}

PINNED = {
    "disaggregatedset.disaggregatedset.x-k8s.io": "lws",
    "jobflow.flow.volcano.sh": "volcano",
    "jobtemplate.flow.volcano.sh": "volcano",
    "raycronjob.ray.io": "kuberay-newer",
    "scheduledsparkapplication.sparkoperator.k8s.io": "spark-operator",
    "sparkconnect.sparkoperator.k8s.io": "spark-operator",
    "trainingruntime.trainer.kubeflow.org": "trainer",
}
# All of these are newer than the release whose CRD is pinned.
NOT_PINNED = {
    "clustertrainingruntime.trainer.kubeflow.org": (r"\.volumeClaimPolicies\[\]",),
    "trainjob.trainer.kubeflow.org": (r"\.podTemplateOverrides\[\]", r"\.runtimePatches\[\]"),
    "disaggregatedset.disaggregatedset.x-k8s.io": (r"^\.spec\.slices$",),
    "jobflow.flow.volcano.sh": (r"^\.spec\.flows\[\]\.patch\.",),
    "raycronjob.ray.io": (r"\.historyServerOptions\.", r"\.gcsFaultToleranceOptions\.(ba|st)"),
}
SAME_LAYOUT = {
    "cronjob.batch.volcano.sh": ("job.batch.volcano.sh", ".spec.jobTemplate.spec.", ".spec."),
}
MINICLUSTER = "minicluster.flux-framework.org"
WITHOUT_CRD = {MINICLUSTER}
IN_PIECES = {"JobFlow", "MiniCluster"}
FLUX_CONTAINER = {
    "name": "a",
    "image": "a",
    "command": "lmp -in x",
    "environment": {"A": "b"},
    "secrets": {"C": {"name": "s", "key": "k"}},
    "ports": [80],
    "imagePullSecret": "p",
    "securityContext": {"privileged": True, "addCapabilities": ["SYS_PTRACE"]},
    "volumes": {"data": {"path": "/data", "hostPath": "/srv"}},
}
FULL_OBJECTS: dict[str, dict[str, Any]] = {
    "cronjob.batch.volcano.sh": {"jobTemplate": {"spec": VOLCANO_JOB}},
    "disaggregatedset.disaggregatedset.x-k8s.io": {
        "slices": 2,
        "roles": [
            {"name": "prefill", "spec": {"replicas": 2, "leaderWorkerTemplate": GROUP}},
            {"name": "decode", "spec": {"leaderWorkerTemplate": GROUP}},
        ],
    },
    "jobflow.flow.volcano.sh": {
        "flows": [{"name": "a"}, {"name": "b", "patch": {"jobSpec": VOLCANO_JOB}}]
    },
    "jobtemplate.flow.volcano.sh": VOLCANO_JOB,
    MINICLUSTER: {
        "size": 4,
        "containers": [FLUX_CONTAINER, {"name": "b", "image": "b", "environment": {}}],
        "services": [FLUX_CONTAINER],
        "flux": {"container": {"image": "view", "securityContext": {}}},
        "pod": {"labels": {"a": "b"}, "hostPID": True, "tolerations": []},
    },
    "raycronjob.ray.io": {
        "jobTemplate": {"rayClusterSpec": RAY_CLUSTER, "submitterPodTemplate": TEMPLATE}
    },
    "sparkconnect.sparkoperator.k8s.io": {
        "image": "a",
        "server": {"template": TEMPLATE},
        "executor": {"instances": 2, "cores": 1, "memory": "1g", "template": TEMPLATE},
    },
}


def with_conditions(**statuses: str) -> dict[str, Any]:
    return {"conditions": [{"type": key, "status": value} for key, value in statuses.items()]}


def ready(*counts: int) -> dict[str, Any]:
    return {"roleStatuses": [{"name": str(count), "readyReplicas": count} for count in counts]}


DISAGGREGATED = "disaggregatedset.disaggregatedset.x-k8s.io"
STATUSES: list[tuple[str, dict[str, Any], set[str]]] = [
    ("cronjob.batch.volcano.sh", {}, {"initializing"}),
    ("cronjob.batch.volcano.sh", {"active": [{}], "lastScheduleTime": "x"}, {"running"}),
    ("cronjob.batch.volcano.sh", {"lastScheduleTime": "x"}, {"running"}),
    (DISAGGREGATED, {}, {"initializing"}),
    (DISAGGREGATED, ready(0, 0), {"initializing"}),
    (DISAGGREGATED, ready(1, 2), {"running"}),
    (DISAGGREGATED, ready(1, 0), {"degraded"}),
    (DISAGGREGATED, with_conditions(Available="True", Progressing="False"), {"running"}),
    (DISAGGREGATED, with_conditions(Available="False", Progressing="True"), {"initializing"}),
    (DISAGGREGATED, with_conditions(Available="False", Progressing="False"), {"degraded"}),
    ("job.batch.volcano.sh", {}, {"initializing"}),
    ("job.batch.volcano.sh", {"state": {"phase": "Terminating"}}, {"failed"}),
    ("jobflow.flow.volcano.sh", {}, {"initializing"}),
    ("jobflow.flow.volcano.sh", {"state": {"phase": "Pending"}}, {"initializing"}),
    ("jobflow.flow.volcano.sh", {"state": {"phase": "Running"}}, {"running"}),
    ("jobflow.flow.volcano.sh", {"state": {"phase": "Succeed"}}, {"completed"}),
    ("jobflow.flow.volcano.sh", {"state": {"phase": "Failed"}}, {"failed"}),
    ("jobtemplate.flow.volcano.sh", {"jobDependsOnList": ["a"]}, set()),
    (MINICLUSTER, {}, {"initializing"}),
    (
        MINICLUSTER,
        with_conditions(JobRequested="True", JobRunning="False", JobFinished="False"),
        {"initializing"},
    ),
    (
        MINICLUSTER,
        with_conditions(JobRequested="True", JobRunning="True", JobFinished="False"),
        {"running"},
    ),
    (MINICLUSTER, with_conditions(JobRunning="True", JobFinished="True"), {"completed"}),
    ("raycronjob.ray.io", {}, {"initializing"}),
    ("raycronjob.ray.io", {"lastScheduleTime": "x"}, {"running"}),
    ("sparkconnect.sparkoperator.k8s.io", {}, {"initializing"}),
    ("sparkconnect.sparkoperator.k8s.io", {"state": "NotReady"}, {"initializing"}),
    ("sparkconnect.sparkoperator.k8s.io", {"state": "Ready"}, {"running"}),
    ("sparkconnect.sparkoperator.k8s.io", {"state": "Failed"}, {"failed"}),
    ("sparkconnect.sparkoperator.k8s.io", {"state": "Completed"}, {"completed"}),
]
LWS = "system:serviceaccount:lws-system:lws-controller-manager"
VOLCANO = "system:serviceaccount:volcano-system:volcano-controllers"
KUBERAY = "system:serviceaccount:ray-system:kuberay-operator"
EXEMPT = [
    (
        "disaggregatedset.x-k8s.io/v1 DisaggregatedSet",
        "leaderworkerset.x-k8s.io/v1 LeaderWorkerSet",
        LWS,
    ),
    ("batch.volcano.sh/v1alpha1 CronJob", "batch.volcano.sh/v1alpha1 Job", VOLCANO),
    ("ray.io/v1 RayCronJob", "ray.io/v1 RayJob", KUBERAY),
]
FLUX = "system:serviceaccount:operator-system:operator-controller-manager"
JUDGED = [
    ("flux-framework.org/v1alpha2 MiniCluster", "batch/v1 Job", FLUX),
    ("flux-framework.org/v1alpha2 MiniCluster", "v1 Pod", FLUX),
    ("flow.volcano.sh/v1alpha1 JobFlow", "batch.volcano.sh/v1alpha1 Job", VOLCANO),
    (
        "sparkoperator.k8s.io/v1alpha1 SparkConnect",
        "v1 Pod",
        "system:serviceaccount:spark-operator:spark-operator-controller",
    ),
]
