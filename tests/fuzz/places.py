"""The places of pods in CRDs that violations are put into.

They are in places.json, so that a seed means the same objects in every checkout.
`python -m tests.fuzz.places` makes that file again from the CRDs at hand.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.fuzz import schemas

FILE = Path(__file__).with_name("places.json")
ALL_POD = schemas.POD
ALL_CONTAINER = schemas.CONTAINER
NOT_PODS = {
    "artifactGC": "of the pods that collect artifacts, which are judged themselves",
    "executor": "of Argo's own container; the pods are judged",
    "storage": "where KServe's logger writes; its credentials, no pod's account",
    "steps.[]": "a step of an inference graph: `nodeName` is another node of the graph",
    "lora.adapters": "models, no pods",
    "value": "a parameter is text or data",
    "withItems": "a parameter is text or data",
    "dnsConfig": "a field of a pod, whose type has no containers",
    "hostAliases.[]": "a field of a pod, whose type has no containers",
    "topologySpreadConstraints.[]": "a field of a pod, whose type has no containers",
    "volumeClaimTemplate": "a claim, which no rule of this table bounds",
    "plugin.config": "settings of a plug-in of the rollout's controller",
    "trafficRouting.plugins": "settings of a plug-in of the rollout's controller",
    "templateDefaults.plugin": "what a plug-in of the agent is given",
    "templates.[].plugin": "what a plug-in of the agent is given",
    "config.inline": "settings of a scheduler, no pod",
    "eppConfig.config": "settings of a scheduler, no pod",
}
"""Ends of places that only look like those of pods, with the reason."""


@dataclass(frozen=True, slots=True, eq=False)
class Place:
    """A place of a kind; `what` is template, pod (with what of a container it offers) or open."""

    kind: str
    where: str
    what: str
    slot: tuple[str | int, ...]
    pod: frozenset[str]
    containers: Mapping[str, frozenset[str]]
    text: str
    subresource: str = ""
    cluster: bool = False

    def document(self) -> Any:
        """A new object with nothing in the place but what its schema and its operator require."""
        found = json.loads(self.text)
        complete(found, self.slot)
        return found


IMAGE = "registry.example.com/app:1"
TEMPLATE_OF_ARGO: dict[str, Any] = {"name": "main", "container": {"image": IMAGE}}
STEPS = {"steps": [{"name": "main", "image": IMAGE}]}
NEEDED: dict[str, tuple[tuple[str, Any], ...]] = {
    "Workflow": (("spec.templates", [TEMPLATE_OF_ARGO]),),
    "WorkflowTemplate": (("spec.templates", [TEMPLATE_OF_ARGO]),),
    "ClusterWorkflowTemplate": (("spec.templates", [TEMPLATE_OF_ARGO]),),
    "CronWorkflow": (("spec.workflowSpec.templates", [TEMPLATE_OF_ARGO]),),
    "MPIJob": (("spec.mpiReplicaSpecs.Worker.replicas", 1),),
    "TaskRun": (("spec.taskSpec", STEPS),),
    "PipelineRun": (("spec.pipelineSpec", {"tasks": [{"name": "main", "taskSpec": STEPS}]}),),
    **{
        kind: (
            (f"{where}.enableInTreeAutoscaling", True),
            (f"{where}.headGroupSpec.template.spec.containers", [{"name": "head", "image": IMAGE}]),
        )
        for kind, where in (
            ("RayCluster", "spec"),
            ("RayJob", "spec.rayClusterSpec"),
            ("RayCronJob", "spec.jobTemplate.rayClusterSpec"),
            ("RayService", "spec.rayClusterConfig"),
        )
    },
}
"""What makes fields of these kinds a pod: without it nothing runs."""


def complete(document: Any, slot: tuple[str | int, ...]) -> None:
    """Give an object what it needs for the place to become part of a pod."""
    for where, value in NEEDED.get(document["kind"], ()):
        *above, last = where.split(".")
        node = document
        for step in above:
            node = node.setdefault(step, {})
        if last not in node and tuple(where.split(".")) != slot[: len(above) + 1]:
            node[last] = json.loads(json.dumps(value))
    fill_lists(document, slot)
    if "templates" in slot or "templateDefaults" in slot:
        size = (
            slot.index("templates") + 2
            if "templates" in slot
            else slot.index("templateDefaults") + 1
        )
        template = at(document, slot[:size])
        if not {"container", "script", "containerSet"} & set(template):
            template["container"] = dict(TEMPLATE_OF_ARGO["container"])


def fill_lists(document: Any, slot: tuple[str | int, ...]) -> None:
    """Containers where a schema only requires a list of them, and images beside the place."""
    todo: list[Any] = [document]
    while todo:
        node = todo.pop()
        if isinstance(node, dict):
            image = node.get("image")
            if isinstance(image, dict) and "repository" in image:
                image |= {"repository": IMAGE.partition(":")[0], "tag": IMAGE.partition(":")[2]}
            if node.get("containers") == []:
                node["containers"] = [{"name": "main", "image": IMAGE}]
            todo += node.values()
        elif isinstance(node, list):
            todo += node
    if slot and isinstance(slot[-1], int) and slot[-2] in {"sidecars", "initContainers", "steps"}:
        for each in at(document, slot[:-1]):
            each.setdefault("image", IMAGE)


def at(node: Any, slot: tuple[str | int, ...]) -> Any:
    """What is at a place of a document."""
    for step in slot:
        node = node[step]
    return node


def place_of(found: schemas.Found, schema: Any, kind: str, version: str) -> dict[str, Any]:
    """A place as the file has it, with the smallest object around it."""
    from tests.decision.test_bypass import built

    body = built(schema, found.steps, {})
    body |= {"apiVersion": version, "kind": kind, "metadata": {"name": "a", "namespace": "team"}}
    names: dict[str, str | int] = {schemas.EACH: 1, schemas.KEY: "worker"}
    slot = [names.get(step, step) for step in found.steps]
    if schemas.KEY in found.steps:
        rename_roles(body, found.steps, slot)
    lists, pod = dict(found.containers), found.pod
    if "image" in lists.get("", ()):
        pod = tuple(e for e in pod if not e.startswith(("securityContext.", "resources.")))
    else:
        lists.pop("", None)
    return {
        "kind": f"{version} {kind}",
        "where": ".".join(found.steps).replace(".[]", "[]").replace(".{}", "{}"),
        "what": found.what,
        "slot": slot,
        "lacks": sorted(set(ALL_POD) - set(pod)),
        "containers": {key: sorted(set(ALL_CONTAINER) - set(each)) for key, each in lists.items()},
        "object": body,
    }


def rename_roles(body: Any, steps: schemas.Steps, slot: list[str | int]) -> None:
    """Give the elements of a map of roles names that an operator knows."""
    depth = steps.index(schemas.KEY)
    roles = at(body, tuple(slot[:depth]))
    if steps[depth - 1].endswith("ReplicaSpecs"):
        first = "Launcher" if steps[depth - 1].startswith("mpi") else "Master"
        roles[first] = roles.pop("Worker")
        roles["Worker"] = roles.pop("worker")
        slot[depth] = "Worker"


def rows_of(names: Iterable[str], folder: Path) -> list[dict[str, Any]]:
    """The places of some shipped kinds, as the CRDs at hand have them."""
    from tests.pods import test_shipped_workloads as shipped

    rows = []
    for name in names:
        profile = shipped.definition(name).profile
        for version, schema in shipped.schemas(folder, profile).items():
            rows += [
                place_of(found, schema, profile.kind, f"{profile.group}/{version}")
                for found in schemas.places(schema)
                if not is_aside(".".join(found.steps))
            ]
    return sorted(rows, key=lambda row: (row["kind"], row["where"]))


def write() -> None:
    """Make the file of places again."""
    from tests.pods.test_shipped_workloads import CUSTOM
    from tests.upstream import data

    lines = ",\n".join(json.dumps(row, sort_keys=True) for row in rows_of(CUSTOM, data.folder()))
    FILE.write_text(f"[\n{lines}\n]\n")


def is_aside(where: str) -> bool:
    """Whether a place only looks like one of a pod."""
    return any(where.endswith(f".{end}") for end in NOT_PODS)


def of_crds() -> Iterator[Place]:
    """The places in the file."""
    for row in json.loads(FILE.read_text()):
        yield Place(
            row["kind"],
            row["where"],
            row["what"],
            tuple(row["slot"]),
            frozenset(ALL_POD) - frozenset(row["lacks"]),
            {
                key: frozenset(ALL_CONTAINER) - frozenset(lacks)
                for key, lacks in row["containers"].items()
            },
            json.dumps(row["object"]),
            cluster=row["kind"].rpartition(" ")[2].startswith("Cluster"),
        )


if __name__ == "__main__":
    write()
