"""TABLE of shapes: every list and map that a user can fill, each with any number of entries."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from typing import Any

from tests.building import KINDS, container, deployment, pod_spec, shell, template
from webhook.evaluation.intent import LAST_APPLIED

Change = Callable[[dict[str, Any], int], None]
"""Puts so many entries into a pod template, or into a whole object."""


def statefulset(*containers: dict[str, Any], **spec: Any) -> dict[str, Any]:
    """A StatefulSet as a user writes it."""
    body = deployment(*containers, **spec)["spec"]
    return shell("apps/v1", "StatefulSet", {**body, "serviceName": "web"})


def workflow(*containers: dict[str, Any], **spec: Any) -> dict[str, Any]:
    """An Argo Workflow with one template, which states its pod piece by piece."""
    pod = pod_spec(*containers, **spec)
    names = ("tolerations", "nodeSelector", "affinity", "volumes", "initContainers", "hostAliases")
    one = {name: pod[name] for name in names if name in pod}
    first, *others = pod["containers"]
    one |= {"name": "main", "container": first, "sidecars": others}
    return shell("argoproj.io/v1alpha1", "Workflow", {"entrypoint": "main", "templates": [one]})


def appwrapper(*containers: dict[str, Any], **spec: Any) -> dict[str, Any]:
    """An AppWrapper around a Deployment."""
    wrapped = {"template": deployment(*containers, **spec)}
    return shell("workload.codeflare.dev/v1beta2", "AppWrapper", {"components": [wrapped]})


MAKERS: dict[str, Callable[..., dict[str, Any]]] = {
    **KINDS,
    "StatefulSet": statefulset,
    "Workflow": workflow,
    "AppWrapper": appwrapper,
}


def first(pod: dict[str, Any]) -> dict[str, Any]:
    """The first container of a pod template."""
    found: dict[str, Any] = pod["spec"]["containers"][0]
    return found


def in_container(part: str, entry: Callable[[int], Any]) -> Change:
    """Fills a list of the first container."""

    def fill(pod: dict[str, Any], size: int) -> None:
        first(pod).setdefault(part, []).extend(entry(index) for index in range(size))

    return fill


def in_spec(part: str, entry: Callable[[int], Any]) -> Change:
    """Fills a list of the pod spec."""

    def fill(pod: dict[str, Any], size: int) -> None:
        pod["spec"].setdefault(part, []).extend(entry(index) for index in range(size))

    return fill


def at(*steps: str | int, entry: Callable[[int], Any]) -> Change:
    """Fills a list deep in the pod template; missing maps are made."""

    def fill(pod: dict[str, Any], size: int) -> None:
        node: Any = pod
        for step in steps[:-1]:
            node = node[step] if isinstance(step, int) else node.setdefault(step, {})
        node.setdefault(steps[-1], []).extend(entry(index) for index in range(size))

    return fill


def map_at(*steps: str | int, key: str, value: Any) -> Change:
    """Fills a map deep in the pod template; `key` has a place for the number."""

    def fill(pod: dict[str, Any], size: int) -> None:
        node: Any = pod
        for step in steps:
            node = node[step] if isinstance(step, int) else node.setdefault(step, {})
        node.update({key.format(index): value for index in range(size)})

    return fill


def volumes(source: Callable[[int], dict[str, Any]], *, mounted: bool = True) -> Change:
    """Volumes of one type; the first container mounts each."""

    def fill(pod: dict[str, Any], size: int) -> None:
        held = pod["spec"].setdefault("volumes", [])
        mounts = first(pod).setdefault("volumeMounts", [])
        start = len(held)
        for index in range(start, start + size):
            held.append({"name": f"v{index}", **source(index)})
            if mounted:
                mounts.append({"name": f"v{index}", "mountPath": f"/mnt/{index}"})

    return fill


def one_volume(pod: dict[str, Any], size: int) -> None:
    """One volume that is mounted many times."""
    pod["spec"].setdefault("volumes", []).append({"name": "one", "hostPath": {"path": "/models"}})
    mounts = first(pod).setdefault("volumeMounts", [])
    mounts += [{"name": "one", "mountPath": f"/one/{index}"} for index in range(size)]


def devices(pod: dict[str, Any], size: int) -> None:
    """Claims that are used as raw devices."""
    held = pod["spec"].setdefault("volumes", [])
    found = first(pod).setdefault("volumeDevices", [])
    for index in range(size):
        claim = {"persistentVolumeClaim": {"claimName": f"d{index}"}}
        held.append({"name": f"d{index}", **claim})
        found.append({"name": f"d{index}", "devicePath": f"/dev/x{index}"})


def claimed(pod: dict[str, Any], size: int) -> None:
    """Devices by claims, each used by the container."""
    held = pod["spec"].setdefault("resourceClaims", [])
    used = first(pod).setdefault("resources", {}).setdefault("claims", [])
    for index in range(size):
        held.append({"name": f"c{index}", "resourceClaimTemplateName": f"gpu-{index}"})
        used.append({"name": f"c{index}"})


def term(index: int) -> dict[str, Any]:
    """A term of a node affinity."""
    asked = {"key": "zone", "operator": "In", "values": [f"z{index}"]}
    return {"matchExpressions": [asked]}


def pod_term(index: int) -> dict[str, Any]:
    """A term of a pod affinity."""
    return {"topologyKey": f"k{index}", "labelSelector": {"matchLabels": {"app": f"a{index}"}}}


def more(index: int) -> dict[str, Any]:
    """A further container that wants one thing of everything."""
    return container(
        f"c{index}",
        env=[{"name": "MODE", "value": "slow"}],
        securityContext={"privileged": True, "capabilities": {"add": ["SYS_ADMIN"]}},
        resources={"requests": {"cpu": "1"}, "limits": {"cpu": "2", "memory": "1Gi"}},
        ports=[{"containerPort": 8000 + index % 50000, "hostPort": 9000 + index % 50000}],
    )


NODE = ("spec", "affinity", "nodeAffinity")
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
CAPABILITIES = ("spec", "containers", 0, "securityContext", "capabilities")

POD: dict[str, Change] = {
    "containers": in_spec("containers", more),
    "init containers": in_spec("initContainers", more),
    "containers of one name": in_spec("containers", lambda index: more(0)),
    "env": in_container("env", lambda index: {"name": f"E{index}", "value": str(index)}),
    "env of one name": in_container("env", lambda index: {"name": "MODE", "value": str(index)}),
    "env from secrets": in_container(
        "env",
        lambda index: {
            "name": f"S{index}",
            "valueFrom": {"secretKeyRef": {"name": f"s{index}", "key": "k"}},
        },
    ),
    "envFrom": in_container("envFrom", lambda index: {"configMapRef": {"name": f"m{index}"}}),
    "ports": in_container("ports", lambda index: {"containerPort": 1 + index, "hostPort": index}),
    "named ports": in_container(
        "ports", lambda index: {"name": f"p{index}", "containerPort": 1 + index}
    ),
    "command": in_container("command", lambda index: f"word-{index}"),
    "args": in_container("args", lambda index: f"--option-{index}"),
    "probe": at(
        *("spec", "containers", 0, "readinessProbe", "exec", "command"),
        entry=lambda index: f"word-{index}",
    ),
    "headers": at(
        *("spec", "containers", 0, "readinessProbe", "httpGet", "httpHeaders"),
        entry=lambda index: {"name": f"H{index}", "value": "v"},
    ),
    "capabilities": at(*CAPABILITIES, "add", entry=lambda index: f"CAP_{index}"),
    "dropped capabilities": at(*CAPABILITIES, "drop", entry=lambda index: f"CAP_{index}"),
    "sysctls": at(
        *("spec", "securityContext", "sysctls"),
        entry=lambda index: {"name": f"net.{index}", "value": "1"},
    ),
    "groups": at("spec", "securityContext", "supplementalGroups", entry=lambda index: index),
    "limits": map_at(
        *("spec", "containers", 0, "resources", "limits"), key="example.com/r{}", value="1"
    ),
    "host paths": volumes(lambda index: {"hostPath": {"path": f"/data/{index}"}}),
    "host paths of the policy": volumes(lambda index: {"hostPath": {"path": "/models"}}),
    "unmounted host paths": volumes(
        lambda index: {"hostPath": {"path": f"/data/{index}"}}, mounted=False
    ),
    "empty dirs": volumes(lambda index: {"emptyDir": {"sizeLimit": "1Gi"}}),
    "memory": volumes(lambda index: {"emptyDir": {"medium": "Memory", "sizeLimit": "1Gi"}}),
    "config maps": volumes(lambda index: {"configMap": {"name": f"m{index}"}}),
    "secrets": volumes(lambda index: {"secret": {"secretName": f"s{index}"}}),
    "nfs": volumes(lambda index: {"nfs": {"server": "nfs.example.com", "path": f"/{index}"}}),
    "claims": volumes(lambda index: {"persistentVolumeClaim": {"claimName": f"c{index}"}}),
    "ephemeral claims": volumes(
        lambda index: {
            "ephemeral": {
                "volumeClaimTemplate": {
                    "spec": {
                        "accessModes": ["ReadWriteOnce"],
                        "resources": {"requests": {"storage": "1Gi"}},
                    }
                }
            }
        }
    ),
    "drivers": volumes(lambda index: {"csi": {"driver": "s3.csi.aws.com"}}),
    "projected": at(
        "spec",
        "volumes",
        entry=lambda index: {
            "name": f"p{index}",
            "projected": {"sources": [{"configMap": {"name": "m"}}]},
        },
    ),
    "mounts of one volume": one_volume,
    "devices": devices,
    "resource claims": claimed,
    "tolerations": in_spec("tolerations", lambda index: {"key": f"k{index}", "operator": "Exists"}),
    "tolerations of one key": in_spec(
        "tolerations", lambda index: {"key": "k", "value": f"v{index}", "effect": "NoSchedule"}
    ),
    "tolerations of devices": in_spec(
        "tolerations",
        lambda index: {
            "key": f"x.example.com/{index}",
            "operator": "Exists",
            "effect": "NoSchedule",
        },
    ),
    "pull secrets": in_spec("imagePullSecrets", lambda index: {"name": f"s{index}"}),
    "spread": in_spec(
        "topologySpreadConstraints",
        lambda index: {
            "maxSkew": 1,
            "topologyKey": f"k{index}",
            "whenUnsatisfiable": "DoNotSchedule",
        },
    ),
    "aliases": in_spec("hostAliases", lambda index: {"ip": f"10.0.0.{index}", "hostnames": ["h"]}),
    "gates": in_spec("schedulingGates", lambda index: {"name": f"g{index}"}),
    "node selector": map_at("spec", "nodeSelector", key="key-{}", value="v"),
    "node affinity": at(*NODE, REQUIRED, "nodeSelectorTerms", entry=term),
    "expressions": lambda pod, size: at(
        *NODE,
        REQUIRED,
        "nodeSelectorTerms",
        entry=lambda _: {
            "matchExpressions": [
                {"key": f"k{index}", "operator": "In", "values": ["a"]} for index in range(size)
            ]
        },
    )(pod, 1),
    "preferences": at(
        *NODE, PREFERRED, entry=lambda index: {"weight": 1, "preference": term(index)}
    ),
    "pod affinity": at("spec", "affinity", "podAffinity", REQUIRED, entry=pod_term),
    "pod labels": map_at("metadata", "labels", key="team.example.com/l{}", value="v"),
    "pod annotations": map_at("metadata", "annotations", key="team.example.com/a{}", value="v"),
}
"""Lists and maps of a pod template."""


def metadata(part: str, key: str, value: Any) -> Change:
    """Fills a map of an object's own metadata."""

    def fill(body: dict[str, Any], size: int) -> None:
        held = body["metadata"].setdefault(part, {})
        held.update({key.format(index): value for index in range(size)})

    return fill


def excluded(body: dict[str, Any], size: int) -> None:
    """An annotation that leaves out items, most of them unknown."""
    names = [f"n{index}" for index in range(size)]
    text = json.dumps(dict.fromkeys(("environmentVariables", "storage.hostPath"), names))
    body["metadata"].setdefault("annotations", {})["podgate.dev/exclude"] = text


def applied(body: dict[str, Any], size: int) -> None:
    """What kubectl keeps of the manifest: the object itself."""
    text = json.dumps(body)
    body["metadata"].setdefault("annotations", {})[LAST_APPLIED] = text


def managed(body: dict[str, Any], size: int) -> None:
    """Who manages what: many entries, and one that names every item of every list."""
    entry = {"manager": "m", "operation": "Apply", "apiVersion": body["apiVersion"]}
    sets = [fields_of(body)] + [{"f:metadata": {"f:labels": {f"f:l{i}": {}}}} for i in range(size)]
    body["metadata"]["managedFields"] = [
        {**entry, "manager": f"m{index}", "fieldsV1": each} for index, each in enumerate(sets)
    ]


def fields_of(node: Any) -> Any:
    """The field set of a whole value, lists of maps by one of their keys."""
    if isinstance(node, dict):
        return {f"f:{key}": fields_of(value) for key, value in node.items()}
    found: dict[str, Any] = {}
    for index, item in enumerate(node if isinstance(node, list) else ()):
        key = next(
            (k for k in ("name", "key", "containerPort") if isinstance(item, dict) and k in item),
            "",
        )
        text = f"k:{json.dumps({key: item[key]})}" if key else f"i:{index}"
        found[text] = {".": {}, **fields_of(item)} if isinstance(item, dict) else {}
    return found


def repeated(*steps: str) -> Change:
    """Repeats the last item of a list of the object, each under a name of its own."""

    def fill(body: dict[str, Any], size: int) -> None:
        node: Any = body
        for step in steps:
            node = node[step]
        for index in range(size):
            item = copy.deepcopy(node[-1])
            for key in ("name", "groupName"):
                if key in item:
                    item[key] = f"n{index}"
            node.append(item)

    return fill


OBJECT: dict[str, Change] = {
    "labels": metadata("labels", "team.example.com/l{}", "v"),
    "annotations": metadata("annotations", "team.example.com/a{}", "v"),
    "excluded items": excluded,
    "managed fields": managed,
}
"""Lists and maps around the pods."""

PARTS: dict[str, tuple[str, Change]] = {
    "worker groups": ("RayCluster", repeated("spec", "workerGroupSpecs")),
    "replicated jobs": ("JobSet", repeated("spec", "replicatedJobs")),
    "templates": ("Workflow", repeated("spec", "templates")),
    "components": ("AppWrapper", repeated("spec", "components")),
}
"""Lists of pods, each in one kind; a budget bounds them."""


def grown(kind: str, shape: str, size: int) -> dict[str, Any]:
    """An object of a kind with so many entries of one shape."""
    if shape in PARTS:
        body = MAKERS[kind]()
        PARTS[shape][1](body, size)
        return body
    pod = template(pod_spec())
    if shape in POD:
        POD[shape](pod, size)
    elif shape == "everything":
        for fill in POD.values():
            fill(pod, size)
    spec = pod["spec"]
    containers = spec.pop("containers")
    body = MAKERS[kind](*containers, **spec)
    for metadata_of_pod in pods_metadata(body):
        metadata_of_pod.update(copy.deepcopy(pod["metadata"]))
    for name, fill in OBJECT.items():
        if shape in (name, "everything"):
            fill(body, size)
    if shape == "everything":
        applied(body, size)
    return body


def pods_metadata(node: Any) -> Iterator[dict[str, Any]]:
    """The metadata of every pod template in an object."""
    if isinstance(node, dict):
        if "metadata" in node and "containers" in (node.get("spec") or {}):
            yield node["metadata"]
        for value in node.values():
            yield from pods_metadata(value)
    elif isinstance(node, list):
        for value in node:
            yield from pods_metadata(value)
