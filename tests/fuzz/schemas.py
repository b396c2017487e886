"""Finds the places of pods in a CRD's schema, without any of podgate's own readers.

A place is a node with fields of a pod, a pod template or a container. What it offers is a list of
paths below it, such as `securityContext.privileged`, that a violation may need.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

Schema = Mapping[str, Any]
Steps = tuple[str, ...]

EACH, KEY = "[]", "{}"
CONTEXT = (
    "allowPrivilegeEscalation",
    "capabilities",
    "privileged",
    "procMount",
    "readOnlyRootFilesystem",
    "runAsGroup",
    "runAsNonRoot",
    "runAsUser",
    "seccompProfile",
)
CONTAINER = (
    "args",
    "command",
    "env",
    "image",
    "imagePullPolicy",
    "lifecycle",
    "ports",
    "resources.claims",
    "resources.limits",
    "resources.requests",
    "stdin",
    "tty",
    "volumeMounts",
    "workingDir",
    *(f"securityContext.{each}" for each in CONTEXT),
)
SOURCES = (
    "configMap",
    "csi",
    "emptyDir",
    "ephemeral",
    "flexVolume",
    "gitRepo",
    "hostPath",
    "image",
    "iscsi",
    "nfs",
    "persistentVolumeClaim",
    "projected",
    "secret",
)
POD = (
    "affinity",
    "hostIPC",
    "hostNetwork",
    "hostPID",
    "imagePullSecrets",
    "nodeName",
    "nodeSelector",
    "priorityClassName",
    "resourceClaims",
    "resources.limits",
    "runtimeClassName",
    "schedulerName",
    "securityContext.runAsGroup",
    "securityContext.runAsNonRoot",
    "securityContext.runAsUser",
    "securityContext.seccompProfile",
    "securityContext.supplementalGroups",
    "securityContext.sysctls",
    "serviceAccount",
    "serviceAccountName",
    "terminationGracePeriodSeconds",
    "tolerations",
    "volumeClaimTemplates",
    *(f"volumes.[].{each}" for each in SOURCES),
)
TYPES = {
    "hostIPC": "boolean",
    "hostNetwork": "boolean",
    "hostPID": "boolean",
    "image": "string",
    "nodeName": "string",
    "schedulerName": "string",
    "serviceAccount": "string",
    "serviceAccountName": "string",
    "tolerations": "array",
    "env": "array",
    "resources": "object",
}
SURE = frozenset({"containers", "initContainers", "image"})
"""What makes a node a pod or a container even if nothing else does."""


@dataclass(frozen=True, slots=True)
class Found:
    """A node of a schema with what it offers of a pod, and of a container in each list."""

    steps: Steps
    what: str
    pod: tuple[str, ...]
    containers: Mapping[str, tuple[str, ...]]


def node_at(node: Any, steps: Steps) -> Any:
    """The schema some steps below a node, None where there is none; an open node has everything."""
    for step in steps:
        if not isinstance(node, dict):
            return None
        if is_open(node) and step not in (node.get("properties") or {}):
            return node
        if step == EACH:
            node = node.get("items")
        elif step == KEY:
            node = node.get("additionalProperties")
        else:
            node = (node.get("properties") or {}).get(step)
    return node


def is_open(node: Schema) -> bool:
    """Whether the API server keeps what the schema does not describe."""
    return bool(
        node.get("x-kubernetes-preserve-unknown-fields")
        or node.get("x-kubernetes-embedded-resource")
    )


def offered(node: Schema, needs: tuple[str, ...]) -> tuple[str, ...]:
    """Those of the needed paths that a node has, of the type that a pod has there."""
    return tuple(each for each in needs if has(node, each))


def has(node: Schema, need: str) -> bool:
    """Whether a node has a path of that type."""
    steps = tuple(need.split("."))
    found = node_at(node, steps)
    if not isinstance(found, dict):
        return False
    wanted = TYPES.get(steps[-1] if len(steps) == 1 else "")
    return wanted is None or found.get("type") in (wanted, None)


def described(node: Any) -> Any:
    """The node if its schema describes fields of its own."""
    return node if isinstance(node, dict) and node.get("properties") else None


def places(schema: Schema) -> Iterator[Found]:
    """Every node with fields of a pod or of a container, the outer ones first."""
    todo: list[tuple[Steps, Any]] = [((), schema)]
    while todo:
        steps, node = todo.pop()
        if not isinstance(node, dict) or steps in {("metadata",), ("status",)}:
            continue
        known: frozenset[str] = frozenset()
        template = node_at(described(node) or {}, ("spec",))
        is_pod = described(template) and "containers" in template["properties"]
        if is_pod and set(node["properties"]) <= {"metadata", "spec"}:
            yield found(steps, "template", template)
            continue
        if described(node):
            known = frozenset(node["properties"]) & OWN
            place = found(steps, "pod", node)
            if is_place(place):
                yield place
            else:
                known = frozenset()
        elif is_open(node):
            yield Found(steps, "open", (), {})
        todo += reversed([((*steps, to), each) for to, each in below(node) if to not in known])


OWN = frozenset(each.partition(".")[0] for each in (*CONTAINER, *POD)) | {
    "containers",
    "initContainers",
    "ephemeralContainers",
    "livenessProbe",
    "readinessProbe",
    "startupProbe",
    "envFrom",
}


def found(steps: Steps, what: str, node: Schema) -> Found:
    """What a node offers."""
    lists = {"": offered(node, CONTAINER)} if what == "pod" else {}
    for name in ("containers", "initContainers"):
        inner = node_at(node, (name, EACH))
        if isinstance(inner, dict):
            lists[name] = offered(inner, CONTAINER)
    return Found(
        steps, what, offered(node, POD), {key: each for key, each in lists.items() if each}
    )


def is_place(place: Found) -> bool:
    """Whether a node states something of a pod: a container, or a field that has one meaning."""
    names = {each.partition(".")[0] for each in place.pod}
    return bool(
        "image" in place.containers.get("", ())
        or set(place.containers) & {"containers", "initContainers"}
        or names & (set(TYPES) - {"resources", "env"})
        or any(each.startswith("volumes.") for each in place.pod)
        or any("privileged" in each for each in place.containers.get("", ()))
    )


def below(node: Schema) -> Iterator[tuple[str, Any]]:
    """The schemas one step further down."""
    yield from (node.get("properties") or {}).items()
    yield EACH, node.get("items")
    yield KEY, node.get("additionalProperties")
