"""The seven kinds: how many pods each manifest has, and the changes that a user makes to it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

OLD, NEW = "registry.example.com/base/python:3.12", "registry.example.com/base/python:3.13"
IMAGE = "s#python:3.12#python:3.13#"
Patch = tuple[Any, str, Any]
"""The patch, a place that it changes, and the value there afterwards."""


@dataclass(frozen=True, slots=True)
class Workload:
    """One manifest. `main` is the place of its first container, `fields` what else is promised.

    `edit` is a sed script with the place it changes and the value there; `patches` are by type.
    """

    manifest: str
    kind: str
    name: str
    pods: int
    main: str
    edit: tuple[str, str, Any]
    patches: dict[str, Patch]
    fields: dict[str, Any] = field(default_factory=dict)
    built_in: bool = True
    images: bool = False
    replaceable: bool = True


def under(place: str, value: Any) -> Any:
    """A merge patch that sets one dotted place."""
    for step in reversed(place.split(".")):
        value = {step: value}
    return value


def pointer(place: str) -> str:
    """A dotted place as a JSON Pointer."""
    return "/" + place.replace(".", "/")


def replacing(place: str, value: Any) -> Patch:
    """A JSON patch that replaces one value."""
    return [{"op": "replace", "path": pointer(place), "value": value}], place, value


def image_patch(main: str) -> Patch:
    """A JSON patch of the first container's image."""
    return replacing(f"{main}.image", NEW)


def whole_list(main: str, container: str) -> Patch:
    """A merge patch, which gives the whole list of containers anew, without any default."""
    containers = main.rpartition(".")[0]
    return under(containers, [{"name": container, "image": NEW}]), f"{main}.image", NEW


def strategic_env(main: str) -> Patch:
    """A strategic merge patch of one container's variables, which keeps the others."""
    containers = main.rpartition(".")[0]
    change = [{"name": "main", "image": NEW, "env": [{"name": "MODE", "value": "test"}]}]
    return under(containers, change), f"{main}.image", NEW


POD, TEMPLATE = "spec.containers.0", "spec.template.spec.containers.0"
CRON = "spec.jobTemplate.spec.template.spec.containers.0"
WORKER = "spec.pytorchReplicaSpecs.Worker.template.spec.containers.0"
HEAD = "spec.headGroupSpec.template.spec.containers.0"
SET = "spec.replicatedJobs.0.template.spec.template.spec.containers.0"
SUSPENDED: Patch = ({"spec": {"suspend": True}}, "spec.suspend", True)
LABELLED: Patch = ({"metadata": {"labels": {"tier": "a"}}}, "metadata.labels.tier", "a")

WORKLOADS = (
    Workload(
        "pod",
        "Pod",
        "notebook",
        1,
        POD,
        (IMAGE, f"{POD}.image", NEW),
        {
            "strategic": (
                {"spec": {"containers": [{"name": "main", "image": NEW}]}},
                f"{POD}.image",
                NEW,
            ),
            "merge": LABELLED,
            "json": image_patch(POD),
        },
        images=True,
        # Volumes that an admission plugin added are missing in what is sent.
        replaceable=False,
    ),
    Workload(
        "deployment",
        "Deployment",
        "web",
        1,
        TEMPLATE,
        (IMAGE, f"{TEMPLATE}.image", NEW),
        {
            "strategic": strategic_env(TEMPLATE),
            "merge": whole_list(TEMPLATE, "main"),
            "json": image_patch(TEMPLATE),
        },
        images=True,
    ),
    Workload(
        "job",
        "Job",
        "train",
        1,
        TEMPLATE,
        ("s#parallelism: 1#parallelism: 2#", "spec.parallelism", 2),
        {
            "strategic": SUSPENDED,
            "merge": ({"spec": {"parallelism": 2}}, "spec.parallelism", 2),
            "json": replacing("spec.parallelism", 3),
        },
        {"spec.backoffLimit": 2},
        # Selector and labels that the server makes up are missing in what is sent.
        replaceable=False,
    ),
    Workload(
        "cronjob",
        "CronJob",
        "nightly",
        1,
        CRON,
        (IMAGE, f"{CRON}.image", NEW),
        {
            "strategic": strategic_env(CRON),
            "merge": whole_list(CRON, "main"),
            "json": image_patch(CRON),
        },
        {"spec.jobTemplate.spec.backoffLimit": 2},
        images=True,
    ),
    Workload(
        "pytorchjob",
        "PyTorchJob",
        "mnist",
        2,
        WORKER,
        (IMAGE, f"{WORKER}.image", NEW),
        {"merge": whole_list(WORKER, "pytorch"), "json": image_patch(WORKER)},
        {"spec.runPolicy.backoffLimit": 2},
        built_in=False,
    ),
    Workload(
        "raycluster",
        "RayCluster",
        "ray",
        3,
        HEAD,
        (IMAGE, f"{HEAD}.image", NEW),
        {"merge": whole_list(HEAD, "ray-head"), "json": image_patch(HEAD)},
        built_in=False,
    ),
    Workload(
        "jobset",
        "JobSet",
        "set",
        2,
        SET,
        ("s#^spec:#spec:\\n  suspend: true#", "spec.suspend", True),
        {
            "merge": SUSPENDED,
            "json": ([{"op": "add", "path": "/spec/suspend", "value": True}], "spec.suspend", True),
        },
        {
            "spec.replicatedJobs.0.template.spec.backoffLimit": 2,
            "spec.replicatedJobs.1.template.spec.backoffLimit": 2,
        },
        built_in=False,
    ),
)
