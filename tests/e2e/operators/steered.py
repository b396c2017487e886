"""What an injector adds to what controllers make, as an annotation of the pod template asks it to."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping

from tests.e2e.injector import Patch
from tests.e2e.objects import Json

WISH, PLACE = "example.com/inject", "example.com/inject-into"
PYTHON = "registry.example.com/base/python:3.12"
PROXY: Json = {"name": "PROXY", "value": "http://proxy:3128"}
SPY: Json = {"name": "spy", "image": "registry.example.com/evil/spy:1"}
HOST: Json = {"name": "host", "hostPath": {"path": "/"}}
MESH: Json = {
    "name": "mesh-proxy",
    "image": "registry.example.com/mesh/proxy:1.24",
    "securityContext": {"runAsUser": 1337},
}
LOOKALIKE: Json = {**MESH, "command": ["mine"]}
RUN: Json = {"name": "mesh", "hostPath": {"path": "/run/mesh"}}
LISTED: Json = {
    "containers": [{**MESH, "image": "registry.example.com/mesh/proxy:*"}],
    "items": [
        {
            "field": "storage.hostPath",
            "content": {**RUN, "hostPath": {**RUN["hostPath"], "type": ""}},
        }
    ],
}


def add(spec: Json, field: str, item: Json) -> None:
    """Append an item to a list that may not be there."""
    spec[field] = [*spec.get(field, ()), item]


def add_mesh(spec: Json) -> None:
    """The sidecar and the volume that the settings list."""
    add(spec, "containers", MESH)
    add(spec, "volumes", RUN)


def change_variable(spec: Json) -> None:
    """Another value for the variable that the policy locks."""
    main = spec["containers"][0]
    others = [each for each in main["env"] if each["name"] != PROXY["name"]]
    main["env"] = [*others, {**PROXY, "value": "http://evil:3128"}]


INJECTIONS: dict[str, Callable[[Json], None]] = {
    "sidecar": lambda spec: add(spec, "containers", SPY),
    "lookalike": lambda spec: add(spec, "containers", LOOKALIKE),
    "init": lambda spec: add(spec, "initContainers", SPY),
    "volume": lambda spec: add(spec, "volumes", HOST),
    "variable": change_variable,
    "privilege": lambda spec: spec["containers"][0].update(securityContext={"privileged": True}),
    "listed": add_mesh,
}
TOLD = {
    "sidecar": r"image at {pod}\.containers\[\d+\]\.image: .*evil/spy:1",
    "lookalike": r"image at {pod}\.containers\[\d+\]\.image: .*mesh/proxy",
    "init": r"image at {pod}\.initContainers\[\d+\]\.image: .*evil/spy:1",
    "volume": r"storage\.hostPath at {pod}\.volumes\[\d+\]",
    "variable": r"environmentVariables at {pod}\.containers\[0\]",
    "privilege": r"security\.privileged at {pod}\.containers\[0\]\.securityContext\.privileged",
}
"""What the refusal says of each that nobody has listed: the field and its place in the pod."""


def injected(document: Json) -> Patch:
    """The patch that gives an object with a controller what its pod template's annotation asks for."""
    if not document["metadata"].get("ownerReferences"):
        return []
    spec = copy.deepcopy(document["spec"])
    pod = document if document["kind"] == "Pod" else spec["template"]
    annotations = pod["metadata"].get("annotations", {})
    if WISH not in annotations or annotations.get(PLACE, "Pod") != document["kind"]:
        return []
    INJECTIONS[annotations[WISH]](spec if document["kind"] == "Pod" else pod["spec"])
    return [{"op": "replace", "path": "/spec", "value": spec}]


def group_of(template: Json) -> Json:
    """The spec of what is made of one template and selects its pods by label."""
    return {"replicas": 1, "selector": {"matchLabels": template["metadata"]["labels"]}} | {
        "template": template
    }


def once(template: Json) -> Json:
    """The spec of a Job."""
    spec = {**template["spec"], "restartPolicy": "Never"}
    return {"template": {**template, "spec": spec}}


SPECS: dict[str, tuple[str, Callable[[Json], Json]]] = {
    "Deployment": ("apps/v1", group_of),
    "StatefulSet": ("apps/v1", lambda pod: {**group_of(pod), "serviceName": "any"}),
    "Job": ("batch/v1", once),
    "CronJob": (
        "batch/v1",
        lambda pod: {
            "schedule": "* * * * *",
            "concurrencyPolicy": "Forbid",
            "jobTemplate": {"spec": once(pod)},
        },
    ),
    "JobSet": (
        "jobset.x-k8s.io/v1alpha2",
        lambda pod: {"replicatedJobs": [{"name": "all", "template": {"spec": once(pod)}}]},
    ),
    "LeaderWorkerSet": (
        "leaderworkerset.x-k8s.io/v1",
        lambda pod: {"replicas": 1, "leaderWorkerTemplate": {"size": 2, "workerTemplate": pod}},
    ),
    "PyTorchJob": (
        "kubeflow.org/v1",
        lambda pod: {
            "pytorchReplicaSpecs": {
                role: {"replicas": 1, "template": pod} for role in ("Master", "Worker")
            }
        },
    ),
}
"""The version of each kind, and its spec for a pod template."""


def workload(
    kind: str, name: str, image: str = PYTHON, annotations: Mapping[str, str] | None = None
) -> Json:
    """A workload of a kind whose pod template has these annotations."""
    version, spec = SPECS[kind]
    container = {"name": "pytorch" if kind == "PyTorchJob" else "main", "image": image}
    return {
        "apiVersion": version,
        "kind": kind,
        "metadata": {"name": name},
        "spec": spec(
            {
                "metadata": {"labels": {"app": name}, "annotations": dict(annotations or {})},
                "spec": {"containers": [container]},
            }
        ),
    }
