"""Manifests and policies with a distinct marker at every place whose value is never printed.

Those places are the values of env, command, args and annotations, those of users and those of
policies (semantics.md, section 3). Keys and names are no secrets, and carry no marker.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable, Iterator
from typing import Any

MARKER = re.compile(r"hunter2[-a-z0-9]*")
GIT_IMAGE = "registry.example.com/base/git-sync"
APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def mark(place: str) -> str:
    """The marker of a place."""
    return f"hunter2-{place}"


def markers_in(text: str) -> list[str]:
    """Every marker in a text, each once."""
    return sorted(set(MARKER.findall(text)))


def variable(name: str, place: str) -> dict[str, Any]:
    """An env entry."""
    return {"name": name, "value": mark(f"{place}-env-{name.lower().replace('_', '-')}")}


def container(name: str, **more: Any) -> dict[str, Any]:
    """A container with markers in everything that it is told."""
    probe = {"exec": {"command": ["test", mark(f"{name}-probe")]}}
    names = ("TOKEN", "FLAVOUR", "HOME", "GPU_MEMORY_LIMIT", "RUNAI_GPU_LIMIT", "OTHER")
    return {
        "name": name,
        "image": "registry.example.com/app:1",
        "command": ["sh", "-c", mark(f"{name}-command")],
        "args": ["--token", mark(f"{name}-args")],
        "env": [variable(each, name) for each in names],
        "livenessProbe": probe,
        "readinessProbe": probe,
        "lifecycle": {"preStop": probe},
        **more,
    }


def checkout(name: str) -> dict[str, Any]:
    """A container of git-sync with credentials in its environment."""
    variables = ("GITSYNC_REPO", "GITSYNC_REF", "GITSYNC_USERNAME", "GITSYNC_PASSWORD")
    env = [variable(each, name) for each in variables]
    return container(name, image=f"{GIT_IMAGE}:v4", command=[], args=[], env=env)


def pod_spec() -> dict[str, Any]:
    """A pod spec with containers of every list."""
    return {
        "containers": [container("main"), container("beside")],
        "initContainers": [
            container("prepare"),
            container("proxy", restartPolicy="Always"),
            checkout("code"),
        ],
    }


POD_ANNOTATIONS = (
    "team.example.com/note",
    "gpu-fraction",
    "gpu-memory",
    "gpu-fraction-num-devices",
    "gpu-fraction-container-name",
    "gpu-fraction.limit",
    "gpu-memory.limit",
    "kai.scheduler/container.main.gpu-memory.request",
    "kai.scheduler/node-pools",
    "kubectl.kubernetes.io/default-container",
    "autoscaling.knative.dev/min-scale",
)
OWN_ANNOTATIONS = (
    *POD_ANNOTATIONS,
    "podgate.dev/exclude",
    "podgate.dev/exposed-urls",
    "podgate.dev/related-urls",
    "podgate.dev/preemptibility",
)


def annotations(names: tuple[str, ...], place: str) -> dict[str, Any]:
    """Annotations with a marker each; of podgate's own it is malformed JSON."""
    return {name: mark(f"{place}-annotation-{index}") for index, name in enumerate(names)}


def template() -> dict[str, Any]:
    """A pod template."""
    return {"metadata": {"annotations": annotations(POD_ANNOTATIONS, "pod")}, "spec": pod_spec()}


def workload(api: str, kind: str, spec: dict[str, Any], *, applied: str = "") -> dict[str, Any]:
    """A workload whose last-applied annotation repeats it, or holds another text."""
    found = {
        "apiVersion": api,
        "kind": kind,
        "metadata": {"name": "planted", "annotations": annotations(OWN_ANNOTATIONS, "workload")},
        "spec": spec,
    }
    known = applied or json.dumps(found)
    found["metadata"]["annotations"][APPLIED] = known.replace("hunter2-", "hunter2-applied-")
    return found


def deployment() -> dict[str, Any]:
    """A Deployment."""
    labels = {"app": "planted"}
    made = template()
    made["metadata"]["labels"] = labels
    spec = {"selector": {"matchLabels": labels}, "template": made}
    return workload("apps/v1", "Deployment", spec)


def pod() -> dict[str, Any]:
    """A Pod, with an ephemeral container as on an update, and no readable last-applied."""
    spec = pod_spec()
    spec["ephemeralContainers"] = [container("debugger")]
    return workload("v1", "Pod", spec, applied="{" + mark("broken"))


def pytorch_job() -> dict[str, Any]:
    """A PyTorchJob with two roles."""
    parts = {name: {"replicas": 1, "template": template()} for name in ("Master", "Worker")}
    for part in parts.values():
        part["template"]["spec"]["containers"][0]["name"] = "pytorch"
    return workload("kubeflow.org/v1", "PyTorchJob", {"pytorchReplicaSpecs": parts})


def nim_service() -> dict[str, Any]:
    """A NIMService, whose containers are in pieces."""
    held = container("main")
    spec = {
        "image": {"repository": "nvcr.io/nim/model", "tag": "1", "pullSecrets": ["ngc"]},
        "authSecret": "ngc",
        "replicas": 1,
        "storage": {"pvc": {"name": "models"}},
        "annotations": annotations(POD_ANNOTATIONS, "service"),
        "readinessProbe": {"probe": held["readinessProbe"]},
        "initContainers": [container("prepare"), checkout("code")],
        "sidecarContainers": [container("beside")],
        **{part: held[part] for part in ("command", "args", "env")},
    }
    return workload("apps.nvidia.com/v1alpha1", "NIMService", spec)


def ray_cluster() -> dict[str, Any]:
    """A RayCluster with a head and a group of workers."""
    spec = {
        "headGroupSpec": {"rayStartParams": {}, "template": template()},
        "workerGroupSpecs": [
            {"groupName": "cpu", "replicas": 1, "rayStartParams": {}, "template": template()}
        ],
    }
    return workload("ray.io/v1", "RayCluster", spec)


WORKLOADS: dict[str, Callable[[], dict[str, Any]]] = {
    "Deployment": deployment,
    "Pod": pod,
    "PyTorchJob": pytorch_job,
    "NIMService": nim_service,
    "RayCluster": ray_cluster,
}


def containers_of(document: Any) -> Iterator[dict[str, Any]]:
    """Every map with env, command and args: a container, or the spec of a NIMService."""
    if isinstance(document, dict):
        if {"env", "command", "args"} <= set(document):
            yield document
        for each in document.values():
            yield from containers_of(each)
    elif isinstance(document, list):
        for each in document:
            yield from containers_of(each)


def with_parts(part: str, value: Any) -> Callable[[dict[str, Any]], None]:
    """A change that gives every container this value in that part."""

    def change(document: dict[str, Any]) -> None:
        for each in list(containers_of(document)):
            each[part] = value

    return change


def with_annotations(value: Any) -> Callable[[dict[str, Any]], None]:
    """A change that puts a value in the place of every pod's annotations."""

    def change(document: dict[str, Any]) -> None:
        spec = document["spec"]
        if "annotations" in spec:
            spec["annotations"] = value
        for holder in templates_of(spec):
            holder["metadata"]["annotations"] = value
        if document["kind"] == "Pod":
            document["metadata"]["annotations"] = value

    return change


def templates_of(document: Any) -> Iterator[dict[str, Any]]:
    """Every pod template."""
    if isinstance(document, dict):
        if isinstance(document.get("template"), dict):
            yield document["template"]
        for each in document.values():
            yield from templates_of(each)
    elif isinstance(document, list):
        for each in document:
            yield from templates_of(each)


def own(key: str, value: Any) -> Callable[[dict[str, Any]], None]:
    """A change of one annotation of the workload."""

    def change(document: dict[str, Any]) -> None:
        document["metadata"]["annotations"][key] = value

    return change


WRONG: dict[str, Callable[[dict[str, Any]], None]] = {
    "env is text": with_parts("env", mark("env-text")),
    "env is a map": with_parts("env", {"TOKEN": mark("env-map")}),
    "env of texts": with_parts("env", [f"TOKEN={mark('env-entry')}"]),
    "env without name": with_parts("env", [{"value": mark("env-unnamed")}]),
    "env name is a list": with_parts("env", [{"name": [mark("env-name")], "value": "a"}]),
    "env value is a list": with_parts("env", [{"name": "TOKEN", "value": [mark("env-list")]}]),
    "env value is a map": with_parts("env", [{"name": "TOKEN", "value": {"a": mark("env-deep")}}]),
    "args is text": with_parts("args", mark("args-text")),
    "args of maps": with_parts("args", [{"token": mark("args-map")}]),
    "args of lists": with_parts("args", [[mark("args-list")], None, 7]),
    "command is text": with_parts("command", mark("command-text")),
    "command is a map": with_parts("command", {"token": mark("command-map")}),
    "annotations are text": with_annotations(mark("annotations-text")),
    "annotations are a list": with_annotations([mark("annotations-list")]),
    "annotation is a map": with_annotations({"team.example.com/note": {"a": mark("deep")}}),
    "annotation is a list": with_annotations({"gpu-fraction": [mark("listed")]}),
    "own annotations are text": lambda document: document["metadata"].update(
        annotations=mark("own-text")
    ),
    "own annotations are a list": lambda document: document["metadata"].update(
        annotations=[mark("own-list")]
    ),
    "exclude with strange fields": own(
        "podgate.dev/exclude", json.dumps({mark("exclude-field"): ["a"], "args": mark("keys")})
    ),
    "exclude with strange keys": own(
        "podgate.dev/exclude", json.dumps({"environmentVariables": [mark("exclude-key")]})
    ),
    "exclude with strange values": own(
        "podgate.dev/exclude", json.dumps({"environmentVariables": {"a": mark("exclude-map")}})
    ),
    "urls": own(
        "podgate.dev/exposed-urls",
        json.dumps([{"name": "board", "url": mark("url"), "container": mark("port")}]),
    ),
    "urls without names": own(
        "podgate.dev/exposed-urls",
        json.dumps([{"url": mark("url-unnamed")}, {"container": mark("port-unnamed")}]),
    ),
    "related urls": own(
        "podgate.dev/related-urls",
        json.dumps([{"name": "wiki", "url": mark("link"), "type": mark("link-type")}]),
    ),
}


def manifests(kind: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The planted workload of a kind, and the same with each wrong value."""
    yield "well formed", WORKLOADS[kind]()
    for name, change in WRONG.items():
        document = copy.deepcopy(WORKLOADS[kind]())
        change(document)
        yield name, document


def policy(name: str, body: dict[str, Any], **spec: Any) -> dict[str, Any]:
    """A cluster policy for every kind."""
    return {
        "apiVersion": "podgate.dev/v1alpha1",
        "kind": "ClusterWorkloadPolicy",
        "metadata": {
            "name": name,
            "annotations": {"note": mark("policy-annotation"), APPLIED: mark("policy-applied")},
        },
        "spec": {**spec, **body},
    }


def items(*names: str) -> list[dict[str, Any]]:
    """Items of a policy with a marker as value."""
    return [{"name": name, "value": mark(f"policy-{name.lower()[:9]}")} for name in names]


DEFAULTS = {
    "command": f"run {mark('policy-command')}",
    "args": f"--token {mark('policy-args')}",
    "environmentVariables": {"instances": items("TOKEN", "EXTRA")},
    "annotations": {"instances": items("team.example.com/note", "team.example.com/extra")},
}
LOCKED = {
    "defaults": DEFAULTS,
    "rules": {
        "command": {"canEdit": False},
        "args": {"canEdit": False},
        "environmentVariables": {"instances": {"canAdd": False, "locked": ["TOKEN", "EXTRA"]}},
        "annotations": {"instances": {"canAdd": False, "locked": ["team.example.com/note"]}},
    },
}
OPTIONS = {
    "rules": {
        "command": {"options": [mark("option-one"), {"value": mark("option-two")}]},
        "args": {"options": [{"value": mark("option-three"), "displayed": mark("displayed")}]},
    }
}
CLOSED = {
    "rules": {
        "command": {"blocked": True},
        "args": {"blocked": True},
        "createHomeDir": {"blocked": True},
        "compute": {
            "gpuDevicesRequest": {"max": 1, "required": True},
            "gpuPortionRequest": {"canEdit": False, "max": 0.5, "step": 0.1},
            "gpuMemoryRequest": {"canEdit": False, "max": "1Gi"},
            "gpuPortionLimit": {"max": 0.5, "canEdit": False},
            "gpuMemoryLimit": {"max": "1Gi", "canEdit": False},
        },
        "nodePools": {"options": ["a", "b"]},
        "storage": {
            "git": {
                "attributes": {
                    "repository": {"options": ["https://git.example.com/a"]},
                    "branch": {"canEdit": False},
                    "secretRef": {"secretKeyOfUser": {"canEdit": False}},
                },
                "instances": {"canAdd": False},
            }
        },
    }
}
URLS = {
    "rules": {
        "exposedUrls": {
            "attributes": {
                "url": {"options": ["https://a"]},
                "customUrl": {"canEdit": False},
                "container": {"max": 9000},
            },
            "instances": {"canAdd": False},
        },
        "relatedUrls": {
            "attributes": {"url": {"options": ["https://a"]}, "type": {"canEdit": False}},
        },
    }
}
COMPUTED = {
    "defaults": {**DEFAULTS, "compute": {"cpuCoreRequest": 1}},
    "rules": {
        "compute": {"cpuCoreLimit": {"defaultFrom": {"field": "compute.cpuCoreRequest"}}},
        "command": {"required": True},
        "args": {"required": True},
    },
}
POLICIES: dict[str, list[dict[str, Any]]] = {
    "locked": [policy("locked", LOCKED)],
    "options": [policy("options", OPTIONS)],
    "closed": [policy("closed", CLOSED)],
    "urls": [policy("urls", URLS)],
    "computed": [policy("computed", COMPUTED)],
    "tried": [
        policy("warned", LOCKED, enforcement="Warn"),
        policy("noted", CLOSED, enforcement="Audit"),
    ],
    "two scopes": [policy("broad", OPTIONS, scope="tenant"), policy("narrow", LOCKED)],
}
SETTINGS = {"PODGATE_GIT_IMAGES": GIT_IMAGE}
