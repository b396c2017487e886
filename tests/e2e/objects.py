"""Looks at objects with no code of podgate: where their pods are, and what a server added."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from typing import Any

Json = dict[str, Any]

GENERATED = (
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "managedFields",
    "generation",
    "selfLink",
)
JOB_LABELS = (
    "batch.kubernetes.io/controller-uid",
    "batch.kubernetes.io/job-name",
    "controller-uid",
    "job-name",
)
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
TOKEN = re.compile(r"kube-api-access-\w{5}")


def pods_in(value: Any, place: str = "") -> Iterator[tuple[str, Json, Json]]:
    """Every pod in an object, however deep: its place, its metadata and its spec."""
    if isinstance(value, dict):
        spec = value.get("spec")
        if isinstance(spec, dict) and isinstance(spec.get("containers"), list):
            yield place, value.get("metadata") or {}, spec
            return
        for key, inner in value.items():
            yield from pods_in(inner, f"{place}.{key}" if place else key)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from pods_in(inner, f"{place}[{index}]")


def essence(stored: Json) -> Json:
    """A stored object without what every server makes up anew for each object."""
    found: Json = copy.deepcopy(stored)
    found.pop("status", None)
    metadata = found["metadata"]
    for key in (*GENERATED, "namespace", "name"):
        metadata.pop(key, None)
    notes = metadata.get("annotations", {})
    notes.pop(LAST_APPLIED, None)
    if not notes:
        metadata.pop("annotations", None)
    if found["kind"] == "Job":
        without_job_labels(found)
    for _, _, spec in pods_in(found):
        without_token(spec)
    return found


def without_job_labels(job: Json) -> None:
    """The selector and labels that tie a Job to its pods carry its uid."""
    job["spec"].pop("selector", None)
    for metadata in (job["metadata"], job["spec"]["template"].get("metadata", {})):
        labels = metadata.get("labels", {})
        for key in JOB_LABELS:
            labels.pop(key, None)
        if not labels:
            metadata.pop("labels", None)
    if not job["spec"]["template"].get("metadata"):
        job["spec"]["template"].pop("metadata", None)


def without_token(spec: Json) -> None:
    """The ServiceAccount plugin gives its volume a random name."""
    for volume in spec.get("volumes", ()):
        volume["name"] = TOKEN.sub("kube-api-access", volume["name"])
    for key in ("containers", "initContainers"):
        for container in spec.get(key, ()):
            for mount in container.get("volumeMounts", ()):
                mount["name"] = TOKEN.sub("kube-api-access", mount["name"])


def version_of(stored: Json) -> tuple[str, int]:
    """What tells whether an object was written again."""
    metadata = stored["metadata"]
    return str(metadata["resourceVersion"]), int(metadata.get("generation", 0))


def at(document: Any, place: str) -> Any:
    """The value at a dotted place such as `spec.containers.0.image`; None when absent."""
    for step in place.split("."):
        if isinstance(document, list):
            document = document[int(step)] if int(step) < len(document) else None
        elif isinstance(document, dict):
            document = document.get(step)
        else:
            return None
    return document
