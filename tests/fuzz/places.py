"""The places of pods that violations are put into: of CRDs, of built-in kinds, and by hand.

Those of CRDs are in places.json, so that a seed means the same objects in every checkout.
`python -m tests.fuzz.places` makes that file again from the CRDs at hand.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.fuzz import schemas

FILE = Path(__file__).with_name("places.json")
GOLDEN = Path(__file__).parent.parent / "golden"
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
TEMPLATE_OF_ARGO = {"name": "main", "container": {"image": IMAGE}}
STEPS = {"steps": [{"name": "main", "image": IMAGE}]}
NEEDED: dict[str, tuple[tuple[str, Any], ...]] = {
    "Workflow": (("spec.templates", [TEMPLATE_OF_ARGO]),),
    "WorkflowTemplate": (("spec.templates", [TEMPLATE_OF_ARGO]),),
    "ClusterWorkflowTemplate": (("spec.templates", [TEMPLATE_OF_ARGO]),),
    "CronWorkflow": (("spec.workflowSpec.templates", [TEMPLATE_OF_ARGO]),),
    "SparkApplication": (("spec.image", IMAGE),),
    "ScheduledSparkApplication": (("spec.template.image", IMAGE),),
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
    from tests.core.test_bypass import built

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
    from tests.core import test_shipped_workloads as shipped

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
    from tests.core.test_shipped_workloads import CUSTOM
    from tests.corpus import shared_data

    folder = shared_data()
    assert folder is not None, "the CRDs of some kinds are in the shared folder"
    lines = ",\n".join(json.dumps(row, sort_keys=True) for row in rows_of(CUSTOM, folder))
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


BOTH = {"containers": frozenset(ALL_CONTAINER), "initContainers": frozenset(ALL_CONTAINER)}
LABELS = {"app": "a"}


def built_in() -> Iterator[Place]:
    """The pods of Kubernetes' own kinds."""
    for name, steps, own in (
        ("v1 Pod", (), {}),
        ("v1 PodTemplate", ("template",), {}),
        ("v1 ReplicationController", ("spec", "template"), {"selector": LABELS}),
        ("apps/v1 Deployment", ("spec", "template"), {"selector": {"matchLabels": LABELS}}),
        ("apps/v1 ReplicaSet", ("spec", "template"), {"selector": {"matchLabels": LABELS}}),
        ("apps/v1 StatefulSet", ("spec", "template"), {"selector": {"matchLabels": LABELS}}),
        ("apps/v1 DaemonSet", ("spec", "template"), {"selector": {"matchLabels": LABELS}}),
        ("batch/v1 Job", ("spec", "template"), {}),
        (
            "batch/v1 CronJob",
            ("spec", "jobTemplate", "spec", "template"),
            {"schedule": "0 0 * * *"},
        ),
    ):
        version, kind = name.split()
        body: Any = {"metadata": {"labels": LABELS}, "spec": {}}
        if not steps:
            body["metadata"] = {}
        for step in reversed(steps):
            body = {step: body}
        if own:
            body["spec"] |= own
        body |= {"apiVersion": version, "kind": kind}
        body["metadata"] = {**body.get("metadata", {}), "name": "a", "namespace": "team"}
        pod = frozenset(ALL_POD) - {"volumeClaimTemplates"}
        yield Place(name, ".".join(steps) or ".", "template", steps, pod, BOTH, json.dumps(body))
        if kind == "StatefulSet":
            claims = frozenset({"volumeClaimTemplates"})
            full = json.loads(json.dumps(body))
            full["spec"]["template"]["spec"] = {"containers": [{"name": "a", "image": IMAGE}]}
            yield Place(name, "spec", "pod", ("spec",), claims, {}, json.dumps(full))
        if kind == "Pod":
            lists = {"ephemeralContainers": frozenset(ALL_CONTAINER)}
            lists["ephemeralContainers"] -= {"ports", "resources.limits", "resources.requests"}
            text = json.dumps(body)
            yield Place(name, ".", "template", (), frozenset(), lists, text, "ephemeralcontainers")


PLAIN = ("image", "env", "resources.limits", "resources.requests")
NIM = ("tolerations", "nodeSelector", "affinity")
OF_PODS = tuple(each for each in ALL_POD if each != "volumeClaimTemplates")
TEMPLATE = ("template", OF_PODS, {key: tuple(each) for key, each in BOTH.items()})
POD = ("pod", OF_PODS, {key: tuple(each) for key, each in BOTH.items()})
CONTAINER = ("pod", (), {"": ALL_CONTAINER})
IMAGE_ONLY = ("pod", (), {"": ("image",)})


def of_pod(*needs: str, container: tuple[str, ...] = ()) -> tuple[str, Any, Any]:
    """A place with some fields of a pod, and perhaps of its container."""
    return "pod", needs, {"": container} if container else {}


BY_HAND: dict[str, dict[str, tuple[str, Any, Any]]] = {
    "cloneset": {"spec.template": TEMPLATE},
    "kruise-statefulset": {"spec.template": TEMPLATE},
    "notebook": {"spec.template": TEMPLATE},
    "podcliqueset": {"spec.template.cliques.1.spec.podSpec": POD},
    "dynamographdeployment": {"spec.components.1.podTemplate": TEMPLATE},
    "seldondeployment": {
        "spec.predictors.0.componentSpecs.1": TEMPLATE,
        "spec.predictors.0.explainer.containerSpec": CONTAINER,
    },
    "minicluster": {
        "spec.containers.1": of_pod(
            container=("image", "resources.limits", "securityContext.privileged")
        ),
        "spec.services.0": IMAGE_ONLY,
        "spec.flux.container": IMAGE_ONLY,
        "spec": of_pod("resourceClaims"),
    },
    "nimpipeline": {"spec.services.1.spec": of_pod(*NIM, "runtimeClassName", "schedulerName")},
    "nimservice": {"spec": of_pod(*NIM, "runtimeClassName", "schedulerName")},
    "nemocustomizer": {"spec": of_pod(*NIM)},
    "nemodatastore": {"spec": of_pod(*NIM)},
    "nemoentitystore": {"spec": of_pod(*NIM)},
    "nemoevaluator": {"spec": of_pod(*NIM)},
    "nemoguardrail": {"spec": of_pod(*NIM)},
    "nimbuild": {"spec": of_pod("tolerations", "nodeSelector")},
    "devworkspace": {
        "spec.template.components.1.container": IMAGE_ONLY,
        "spec.template.components.2.container": IMAGE_ONLY,
    },
    "devworkspacetemplate": {"spec.components.0.container": IMAGE_ONLY},
    "sandbox": {"spec.podTemplate": TEMPLATE},
    "sandboxtemplate": {"spec.podTemplate": TEMPLATE},
    "volcano-cronjob": {"spec.jobTemplate.spec.tasks.1.template": TEMPLATE},
    "scheduledworkflow": {
        "spec.workflow.spec.templates.0.container": CONTAINER,
        "spec.workflow.spec": of_pod(
            "hostNetwork", "serviceAccountName", "tolerations", "schedulerName"
        ),
    },
    "slurm-accounting": {"spec.template": TEMPLATE, "spec.slurmdbd": CONTAINER},
    "slurm-controller": {"spec.template": TEMPLATE, "spec.slurmctld": CONTAINER},
    "slurm-loginset": {"spec.template": TEMPLATE, "spec.login": CONTAINER},
    "slurm-nodeset": {"spec.template": TEMPLATE, "spec.slurmd": CONTAINER},
    "slurm-restapi": {"spec.template": TEMPLATE, "spec.slurmrestd": CONTAINER},
    "milvus": {
        "spec.components": of_pod(
            "hostNetwork", "schedulerName", "serviceAccountName", "tolerations", container=PLAIN
        ),
        "spec.components.queryNode": of_pod(
            "hostNetwork", "schedulerName", "serviceAccountName", "tolerations", container=PLAIN
        ),
        "spec.components.queryNode.sidecars.0": CONTAINER,
    },
    "taskrun": {"spec.taskSpec.steps.1": CONTAINER, "spec.taskSpec.sidecars.0": CONTAINER},
    "sparkconnect": {"spec.server.template": TEMPLATE, "spec.executor.template": TEMPLATE},
    "inferencegraph": {"spec": of_pod("nodeName", "serviceAccountName", "tolerations")},
    "trainjob": {"spec.trainer": IMAGE_ONLY},
    "virtualmachine": {
        "spec.template.spec": of_pod("tolerations", "nodeSelector", "schedulerName")
    },
    "virtualmachineinstance": {"spec": of_pod("tolerations", "nodeSelector", "schedulerName")},
    "virtualmachineinstancereplicaset": {
        "spec.template.spec": of_pod("tolerations", "nodeSelector", "schedulerName")
    },
    "virtualmachinepool": {
        "spec.virtualMachineTemplate.spec.template.spec": of_pod(
            "tolerations", "nodeSelector", "schedulerName"
        )
    },
}
"""Places in our own golden cases, of kinds whose CRD is in no archive."""
NAMED = {"nimservice": "a-home-directory-has-no-place"}


def without_claims(node: Any) -> None:
    """Take volumes of claims out of an object, which some rules of the table forbid."""
    if isinstance(node, dict):
        if isinstance(node.get("volumes"), list):
            node["volumes"] = [e for e in node["volumes"] if "persistentVolumeClaim" not in e]
        for each in node.values():
            without_claims(each)
    elif isinstance(node, list):
        for each in node:
            without_claims(each)


def by_hand() -> Iterator[Place]:
    """The places in golden cases."""
    for folder, places in BY_HAND.items():
        file = min((GOLDEN / folder).glob(NAMED.get(folder, "*baseline*") + "/case.yaml"))
        text = re.sub(r"(registry\.example\.com)/(train|tool|disk)", r"\1/app", file.read_text())
        text = text.replace(
            "nvcr.io/nim/meta/llama, tag: '1.12'", "registry.example.com/app, tag: '1'"
        )
        document = yaml.safe_load(text)["object"]
        document["metadata"]["namespace"] = "team"
        without_claims(document)
        for where, (what, pod, lists) in places.items():
            slot = tuple(int(each) if each.isdigit() else each for each in where.split("."))
            yield Place(
                f"{document['apiVersion']} {document['kind']}",
                where,
                what,
                slot,
                frozenset(pod),
                {key: frozenset(each) for key, each in lists.items()},
                json.dumps(document),
            )


@functools.cache
def every() -> tuple[Place, ...]:
    """Every place of every kind."""
    return (*built_in(), *by_hand(), *of_crds())


if __name__ == "__main__":
    write()
