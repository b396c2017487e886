"""Ten kinds of object around a pod, and the pods that come of each."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from tests import building

Json = dict[str, Any]


class Kind(NamedTuple):
    """How an object of a kind has a pod, and where its pods are."""

    wrap: Callable[[Json], Json]
    templates: Callable[[Json], list[Json]]


def pod_of(template: Json) -> Json:
    """A pod as evaluators take it."""
    return {"metadata": template.get("metadata", {}), "spec": template["spec"]}


def at(*steps: str | int) -> Callable[[Json], list[Json]]:
    """The pod of the template at a path."""

    def templates(body: Any) -> list[Json]:
        for step in steps:
            body = body[step]
        return [pod_of(body)]

    return templates


def each_of(*several: Callable[[Json], list[Json]]) -> Callable[[Json], list[Json]]:
    """The pods of several templates."""
    return lambda body: [pod for templates in several for pod in templates(body)]


def template_of(pod: Json) -> Json:
    """A template of a pod."""
    return {"metadata": pod.get("metadata", {}), "spec": pod["spec"]}


def bare(pod: Json) -> Json:
    """The Pod itself."""
    return {"apiVersion": "v1", "kind": "Pod", **template_of(pod)}


def deployment(pod: Json) -> Json:
    """A Deployment of the pod."""
    body = {"selector": {"matchLabels": {"app": "a"}}, "template": template_of(pod)}
    return building.shell("apps/v1", "Deployment", body)


def stateful_set(pod: Json) -> Json:
    """A StatefulSet of the pod."""
    body = {"serviceName": "a", "selector": {"matchLabels": {"app": "a"}}}
    return building.shell("apps/v1", "StatefulSet", {**body, "template": template_of(pod)})


def job(pod: Json) -> Json:
    """A Job of the pod."""
    return building.shell("batch/v1", "Job", {"template": template_of(pod)})


def cron_job(pod: Json) -> Json:
    """A CronJob of the pod."""
    body = {"schedule": "0 0 * * *", "jobTemplate": {"spec": {"template": template_of(pod)}}}
    return building.shell("batch/v1", "CronJob", body)


def job_set(pod: Json) -> Json:
    """A JobSet of the pod."""
    body = {"name": "w", "template": {"spec": {"template": template_of(pod)}}}
    return building.shell("jobset.x-k8s.io/v1alpha2", "JobSet", {"replicatedJobs": [body]})


def pytorch_job(pod: Json) -> Json:
    """A PyTorchJob whose workers are the pod."""
    body = {"Worker": {"replicas": 2, "template": template_of(pod)}}
    return building.shell("kubeflow.org/v1", "PyTorchJob", {"pytorchReplicaSpecs": body})


def ray_cluster(pod: Json) -> Json:
    """A RayCluster whose head and workers are the pod."""
    head = {"rayStartParams": {}, "template": template_of(pod)}
    group = {"groupName": "g", **copy.deepcopy(head)}
    body = {"headGroupSpec": head, "workerGroupSpecs": [group]}
    return building.shell("ray.io/v1", "RayCluster", body)


def leader_worker_set(pod: Json) -> Json:
    """A LeaderWorkerSet whose leader and workers are the pod."""
    body = {"leaderTemplate": template_of(pod), "workerTemplate": template_of(copy.deepcopy(pod))}
    spec = {"replicas": 1, "leaderWorkerTemplate": {"size": 2, **body}}
    return building.shell("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", spec)


def inference_service(pod: Json) -> Json:
    """An InferenceService whose predictor is the pod."""
    annotations = pod.get("metadata", {}).get("annotations")
    beside = {"annotations": annotations} if annotations else {}
    body = {"predictor": {**beside, **pod["spec"]}}
    return building.shell("serving.kserve.io/v1beta1", "InferenceService", body)


def of_predictor(body: Json) -> list[Json]:
    """The pod of an InferenceService's predictor."""
    spec = {**body["spec"]["predictor"]}
    annotations = spec.pop("annotations", None)
    return [{"metadata": {"annotations": annotations} if annotations else {}, "spec": spec}]


LWS = ("spec", "leaderWorkerTemplate")
KINDS: Mapping[str, Kind] = {
    "Pod": Kind(bare, lambda body: [pod_of(body)]),
    "Deployment": Kind(deployment, at("spec", "template")),
    "StatefulSet": Kind(stateful_set, at("spec", "template")),
    "Job": Kind(job, at("spec", "template")),
    "CronJob": Kind(cron_job, at("spec", "jobTemplate", "spec", "template")),
    "JobSet": Kind(job_set, at("spec", "replicatedJobs", 0, "template", "spec", "template")),
    "PyTorchJob": Kind(pytorch_job, at("spec", "pytorchReplicaSpecs", "Worker", "template")),
    "RayCluster": Kind(
        ray_cluster,
        each_of(
            at("spec", "headGroupSpec", "template"),
            at("spec", "workerGroupSpecs", 0, "template"),
        ),
    ),
    "LeaderWorkerSet": Kind(
        leader_worker_set, each_of(at(*LWS, "leaderTemplate"), at(*LWS, "workerTemplate"))
    ),
    "InferenceService": Kind(inference_service, of_predictor),
}
