"""Kinds of serving, NVIDIA and pipelines: objects with every pod location, statuses, children."""

from __future__ import annotations

from typing import Any

CONTAINER = {"name": "a", "image": "a", "env": []}
INIT = {"name": "b", "image": "b", "env": []}
POD = {"containers": [CONTAINER], "initContainers": [INIT]}
LLM = {"template": POD, "worker": POD}
IMAGE = {"repository": "r", "tag": "1", "pullPolicy": "Always", "pullSecrets": ["s"]}
NEMO = {
    "image": IMAGE,
    "command": ["run"],
    "env": [],
    "labels": {"a": "b"},
    "userID": 1000,
    "replicas": 2,
}
STEP_TEMPLATE = {"image": "c", "env": []}
TASK = {
    "steps": [
        {"name": "a", "image": "a", "computeResources": {"requests": {"cpu": "1"}}},
        {"name": "b", "image": "b", "script": "x"},
        {"name": "c", "ref": {"name": "elsewhere"}},
    ],
    "sidecars": [{"name": "d", "image": "d", "command": ["x"]}],
    "stepTemplate": STEP_TEMPLATE,
    "volumes": [{"name": "v", "emptyDir": {}}],
}
POD_TEMPLATE = {
    "nodeSelector": {"a": "b"},
    "securityContext": {"runAsUser": 1},
    "env": [{"name": "E", "value": "1"}],
    "volumes": [{"name": "w", "hostPath": {"path": "/"}}],
}
WORKSPACES = [{"name": "s", "secret": {"secretName": "s"}}, {"name": "t", "emptyDir": {}}]
PIPELINE = {
    "tasks": [{"name": "a", "taskSpec": TASK}, {"name": "b", "taskRef": {"name": "elsewhere"}}],
    "finally": [{"name": "c", "taskSpec": TASK}],
}
MILVUS_COMPONENTS = (
    "standalone proxy mixCoord dataNode queryNode streamingNode indexNode rootCoord dataCoord"
    " queryCoord indexCoord cdc"
)
MILVUS_COMPONENT = {
    "image": "a",
    "env": [],
    "replicas": 2,
    "sidecars": [CONTAINER],
    "initContainers": [INIT],
    "volumes": [{"name": "v", "emptyDir": {}}],
}
PINNED = {
    "revision.serving.knative.dev": "knative",
    "inferencegraph.serving.kserve.io": "kserve",
    "llminferenceserviceconfig.serving.kserve.io": "kserve",
    "taskrun.tekton.dev@v1": "tekton",
    "taskrun.tekton.dev@v1beta1": "tekton",
    "pipelinerun.tekton.dev@v1": "tekton",
    "pipelinerun.tekton.dev@v1beta1": "tekton",
}
# Newer than the release whose CRD is pinned.
NOT_PINNED = {
    "llminferenceserviceconfig.serving.kserve.io": (r"\.tokenizer\.", r"\.kvCacheOffloading\.")
}
NEWER_DEFAULTS = {
    "llminferenceserviceconfig.serving.kserve.io": {
        ".spec.scaling.minReplicas",
        ".spec.prefill.scaling.minReplicas",
    }
}
SAME_LAYOUT = {
    "scheduledworkflow.kubeflow.org": ("workflow.argoproj.io", ".spec.workflow.spec.", ".spec."),
}
WITHOUT_CRD = {
    "nimbuild.apps.nvidia.com",
    "nemocustomizer.apps.nvidia.com",
    "nemodatastore.apps.nvidia.com",
    "nemoentitystore.apps.nvidia.com",
    "nemoevaluator.apps.nvidia.com",
    "nemoguardrail.apps.nvidia.com",
    "milvus.milvus.io",
}
IN_PIECES = {"ScheduledWorkflow"}
FULL_OBJECTS: dict[str, dict[str, Any]] = {
    "revision.serving.knative.dev": POD,
    "llminferenceserviceconfig.serving.kserve.io": {
        **LLM,
        "prefill": LLM,
        "router": {"scheduler": {"template": POD, "tokenizer": {"template": POD}}},
    },
    "inferencegraph.serving.kserve.io": {
        "nodes": {"root": {"routerType": "Sequence", "steps": [{"serviceName": "a"}]}},
        "tolerations": [{"operator": "Exists"}],
        "minReplicas": 1,
    },
    "nimbuild.apps.nvidia.com": {"nimCacheRef": "a", "image": IMAGE, "env": []},
    "nemocustomizer.apps.nvidia.com": {
        **NEMO,
        "trainingConfig": {"image": IMAGE, "env": [], "networkConfig": [{"name": "N"}]},
        "modelDownloadJobs": {"image": "a", "imagePullPolicy": "Always"},
        "nemoDatastoreTools": {"image": "a"},
    },
    "nemodatastore.apps.nvidia.com": {**NEMO, "sidecarContainers": [CONTAINER]},
    "nemoentitystore.apps.nvidia.com": NEMO,
    "nemoevaluator.apps.nvidia.com": {**NEMO, "evaluationImages": {"rag": "a", "mtBench": "b"}},
    "nemoguardrail.apps.nvidia.com": {**NEMO, "configStore": {"pvc": {"name": "c"}}},
    "milvus.milvus.io": {
        "components": {
            **dict.fromkeys(MILVUS_COMPONENTS.split(), MILVUS_COMPONENT),
            "image": "a",
            "env": [],
            "toolImage": "a",
            "dummyImage": "a",
            "queryNode": {
                **MILVUS_COMPONENT,
                "groups": [{"name": "g", "replicas": 1}, {"name": "h", "replicas": 2}],
            },
        },
        "dependencies": {"etcd": {"inCluster": {"values": {"resources": {}, "replicaCount": 3}}}},
    },
    "taskrun.tekton.dev": {
        "taskSpec": TASK,
        "podTemplate": POD_TEMPLATE,
        "stepSpecs": [{"name": "b", "computeResources": {"limits": {"cpu": "2"}}}],
        "workspaces": WORKSPACES,
    },
    "pipelinerun.tekton.dev@v1": {
        "pipelineSpec": PIPELINE,
        "taskRunTemplate": {"podTemplate": POD_TEMPLATE},
        "taskRunSpecs": [{"pipelineTaskName": "b", "podTemplate": POD_TEMPLATE}],
        "workspaces": WORKSPACES,
    },
    "pipelinerun.tekton.dev@v1beta1": {
        "pipelineSpec": PIPELINE,
        "podTemplate": POD_TEMPLATE,
        "taskRunSpecs": [{"pipelineTaskName": "b", "taskPodTemplate": POD_TEMPLATE}],
        "workspaces": WORKSPACES,
    },
}


def conditions(kind: str, status: str, reason: str = "") -> dict[str, Any]:
    """A status with one condition."""
    return {"conditions": [{"type": kind, "status": status, "reason": reason}]}


NEMO_KINDS = ("customizer", "datastore", "entitystore", "evaluator", "guardrail")
STATUSES: list[tuple[str, dict[str, Any], set[str]]] = [
    ("revision.serving.knative.dev", {}, {"initializing"}),
    ("revision.serving.knative.dev", conditions("Ready", "Unknown"), {"initializing"}),
    ("revision.serving.knative.dev", conditions("Ready", "True"), {"running"}),
    ("revision.serving.knative.dev", conditions("Ready", "False"), {"failed"}),
    ("inferencegraph.serving.kserve.io", {}, {"initializing"}),
    ("inferencegraph.serving.kserve.io", conditions("Ready", "True"), {"running"}),
    ("llminferenceserviceconfig.serving.kserve.io", conditions("Ready", "True"), set()),
    (
        "llminferenceservice.serving.kserve.io",
        conditions("Ready", "False", "Progressing"),
        {"initializing"},
    ),
    (
        "llminferenceservice.serving.kserve.io",
        conditions("Ready", "False", "MinimumReplicasUnavailable"),
        {"initializing"},
    ),
    (
        "llminferenceservice.serving.kserve.io",
        conditions("Ready", "False", "Error"),
        {"failed"},
    ),
    ("nimbuild.apps.nvidia.com", {"state": "InProgress"}, {"running"}),
    ("nimbuild.apps.nvidia.com", {"state": "Ready"}, {"completed"}),
    ("nimbuild.apps.nvidia.com", {"state": "Failed"}, {"failed"}),
    *((f"nemo{each}.apps.nvidia.com", {"state": "Ready"}, {"running"}) for each in NEMO_KINDS),
    *(
        (f"nemo{each}.apps.nvidia.com", {"state": "NotReady"}, {"initializing"})
        for each in NEMO_KINDS
    ),
    ("milvus.milvus.io", {}, {"initializing"}),
    ("milvus.milvus.io", {"status": "Healthy"}, {"running"}),
    ("milvus.milvus.io", {"status": "Unhealthy"}, {"degraded"}),
    ("milvus.milvus.io", {"status": "Stopped"}, {"suspended"}),
    *(
        (f"{kind}.tekton.dev@{version}", *told)
        for kind in ("taskrun", "pipelinerun")
        for version in ("v1", "v1beta1")
        for told in (
            ({}, {"initializing"}),
            (conditions("Succeeded", "Unknown", "Started"), {"initializing"}),
            (conditions("Succeeded", "Unknown", "Running"), {"running"}),
            (conditions("Succeeded", "True", "Succeeded"), {"completed"}),
            (conditions("Succeeded", "False", "TaskRunTimeout"), {"failed"}),
        )
    ),
    (
        "pipelinerun.tekton.dev@v1",
        conditions("Succeeded", "Unknown", "PipelineRunPending"),
        {"suspended"},
    ),
    ("scheduledworkflow.kubeflow.org", conditions("Enabled", "True"), {"initializing"}),
    ("scheduledworkflow.kubeflow.org", conditions("Running", "True"), {"running"}),
    ("scheduledworkflow.kubeflow.org", conditions("Disabled", "True"), {"suspended"}),
    ("scheduledworkflow.kubeflow.org", conditions("Error", "True"), {"failed"}),
]
KSERVE = "system:serviceaccount:kserve:kserve-controller-manager"
NIM = "system:serviceaccount:nim-operator:k8s-nim-operator"
MILVUS = "system:serviceaccount:milvus-operator:milvus-operator"
TEKTON = "system:serviceaccount:tekton-pipelines:tekton-pipelines-controller"
SCHEDULES = "system:serviceaccount:kubeflow:ml-pipeline-scheduledworkflow"
EXEMPT = [
    (
        "serving.knative.dev/v1 Configuration",
        "serving.knative.dev/v1 Revision",
        "system:serviceaccount:knative-serving:controller",
    ),
]
JUDGED = [
    ("serving.kserve.io/v1alpha1 InferenceGraph", "apps/v1 Deployment", KSERVE),
    ("serving.kserve.io/v1alpha1 InferenceGraph", "serving.knative.dev/v1 Service", KSERVE),
    ("apps.nvidia.com/v1alpha1 NIMBuild", "v1 Pod", NIM),
    *((f"apps.nvidia.com/v1alpha1 Nemo{e.title()}", "apps/v1 Deployment", NIM) for e in NEMO_KINDS),
    ("milvus.io/v1beta1 Milvus", "apps/v1 Deployment", MILVUS),
    ("milvus.io/v1beta1 Milvus", "apps/v1 StatefulSet", MILVUS),
]


Piece = tuple[tuple[str | int, ...], str, str]
CONTAINERS, VOLUMES, SPEC = ("spec", "containers"), ("spec", "volumes"), ("spec",)
OF_POD_TEMPLATES = (
    "schedulerName nodeSelector affinity tolerations topologySpreadConstraints priorityClassName"
    " runtimeClassName securityContext hostNetwork automountServiceAccountToken dnsPolicy dnsConfig"
    " enableServiceLinks hostAliases imagePullSecrets"
)


def same(*places: str, at: str) -> set[Piece]:
    """Values of pod specs that stand as they are below a place."""
    return {((*SPEC, each), "same", f"{at}.{each}") for each in places}


def metadata(at: str) -> set[Piece]:
    """Labels and annotations of pods."""
    return {(("metadata", each), "same", f"{at}.{each}") for each in ("labels", "annotations")}


def steps(task: str, form: str) -> set[Piece]:
    """The containers of a task."""
    return {
        (CONTAINERS, form, f"{task}.steps"),
        (CONTAINERS, form, f"{task}.sidecars"),
        (CONTAINERS, "base", f"{task}.stepTemplate"),
        (VOLUMES, "items", f"{task}.volumes"),
    }


def run_values(template: str, account: str) -> set[Piece]:
    """What a run says of all its pods."""
    return {
        *metadata(".metadata"),
        *same(*OF_POD_TEMPLATES.split(), at=template),
        ((*SPEC, "serviceAccountName"), "same", account),
        (CONTAINERS, "over", f"{template}.env"),
        (VOLUMES, "more", f"{template}.volumes"),
    }


def task_run(form: str, over: str) -> dict[str, set[Piece]]:
    """The pieces of a TaskRun; `over` ends the names of what goes over steps and sidecars."""
    return {
        "task": {
            *run_values(".spec.podTemplate", ".spec.serviceAccountName"),
            *steps(".spec.taskSpec", form),
            (SPEC, "mark", ".spec.taskRef"),
            (CONTAINERS, "amounts", f".spec.step{over}"),
            (CONTAINERS, "amounts", f".spec.sidecar{over}"),
            (CONTAINERS, "shared", ".spec.computeResources"),
            (VOLUMES, "workspaces", ".spec.workspaces"),
        }
    }


def pipeline_run(
    form: str, over: str, template: str, account: str, own: tuple[str, str]
) -> dict[str, set[Piece]]:
    """The pieces of a PipelineRun; `own` are pod template and account of single tasks."""
    common = {*run_values(template, account), (VOLUMES, "workspaces", ".spec.workspaces")}
    tasks = {
        name: {
            *common,
            *metadata(f".spec.pipelineSpec.{part}[].taskSpec.metadata"),
            *steps(f".spec.pipelineSpec.{part}[].taskSpec", form),
            (SPEC, "mark", f".spec.pipelineSpec.{part}[]"),
        }
        for name, part in (("task", "tasks"), ("finally", "finally"))
    }
    each = ".spec.taskRunSpecs[]"
    single = {
        *run_values(f"{each}.{own[0]}", f"{each}.{own[1]}"),
        *(run_values(template, account) - {(VOLUMES, "more", f"{template}.volumes")}),
        *metadata(f"{each}.metadata"),
        (SPEC, "mark", each),
        (CONTAINERS, "amounts", f"{each}.step{over}"),
        (CONTAINERS, "amounts", f"{each}.sidecar{over}"),
        (CONTAINERS, "shared", f"{each}.computeResources"),
        (VOLUMES, "items", f"{template}.volumes"),
    }
    return {"run": {*common, (SPEC, "mark", ".spec.pipelineRef")}, **tasks, "task-run": single}


PIECES = {
    "inferencegraph.serving.kserve.io": {
        "router": {
            *metadata(".metadata"),
            *same("affinity", "tolerations", "nodeSelector", "nodeName", at=".spec"),
            *same("serviceAccountName", at=".spec"),
            (SPEC, "mark", ".spec.nodes"),
            ((*CONTAINERS, 0, "resources"), "same", ".spec.resources"),
            ((*SPEC, "affinity", "podAffinity"), "same", ".spec.affinity.podAffinity"),
        }
    },
    "taskrun.tekton.dev@v1": task_run("steps", "Specs"),
    "taskrun.tekton.dev@v1beta1": task_run("also", "Overrides"),
    "pipelinerun.tekton.dev@v1": pipeline_run(
        "steps",
        "Specs",
        ".spec.taskRunTemplate.podTemplate",
        ".spec.taskRunTemplate.serviceAccountName",
        ("podTemplate", "serviceAccountName"),
    ),
    "pipelinerun.tekton.dev@v1beta1": pipeline_run(
        "also",
        "Overrides",
        ".spec.podTemplate",
        ".spec.serviceAccountName",
        ("taskPodTemplate", "taskServiceAccountName"),
    ),
}
"""The pieces of kinds without a sibling, by component, known by heart."""
BY_HEART = {
    "llminferenceserviceconfig.serving.kserve.io": {".spec.router.scheduler.tokenizer.template"}
}
