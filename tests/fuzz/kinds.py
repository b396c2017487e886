"""Every place: of Kubernetes' own kinds, of CRDs, and by hand of kinds whose CRD is in no archive."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from tests.fuzz.places import ALL_CONTAINER, ALL_POD, IMAGE, Place, of_crds

GOLDEN = Path(__file__).parent.parent / "golden"
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


def nested(steps: tuple[str, ...], value: dict[str, Any]) -> dict[str, Any]:
    """A value below some maps."""
    for step in reversed(steps):
        value = {step: value}
    return value


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


DYNAMO = {"replicas": 1, "extraPodSpec": {"mainContainer": {"image": IMAGE}}}
TASK = {"name": "a", "replicas": 1, "template": {"spec": {}}}
STEP = {"name": "main", "image": IMAGE}
STEP_TEMPLATE = tuple(
    each
    for each in ALL_CONTAINER
    if each in {"image", "imagePullPolicy"} or each.startswith("securityContext.")
)
"""Not `env`: a variable of the template does nothing where each step has one of that name."""
IN_STEP = {"name": "main", "steps": [[{"name": "a", "inline": {"container": {}}}]]}
IN_TASK = {"name": "main", "dag": {"tasks": [{"name": "a", "inline": {"container": {}}}]}}
PLUGIN = {"spec": {"sidecar": {"container": {"name": "a"}}}}
NIM_PICKER = {
    "image": {"repository": "registry.example.com/app", "tag": "1"},
    "expose": {"router": {"eppConfig": {"containerSpec": {}}}},
}
OF_MILVUS = ("hostNetwork", "schedulerName", "serviceAccountName", "tolerations")
COMPONENTS_OF_MILVUS = (
    *("proxy", "dataNode", "indexNode", "dataCoord", "indexCoord", "queryCoord", "rootCoord"),
    *("mixCoord", "standalone", "streamingNode", "cdc"),
)
SMALL: tuple[tuple[str, dict[str, Any], str, tuple[str, Any, Any]], ...] = (
    ("grove.io/v1alpha1 PodClique", {"roleName": "a", "replicas": 1}, "spec.podSpec", POD),
    ("grove.io/v1alpha1 PodCliqueScalingGroup", {"replicas": 1}, "spec", of_pod()),
    ("nvidia.com/v1alpha1 DynamoComponentDeployment", DYNAMO, "spec.extraPodSpec", POD),
    (
        "nvidia.com/v1alpha1 DynamoComponentDeployment",
        DYNAMO,
        "spec.extraPodSpec.mainContainer",
        CONTAINER,
    ),
    ("nvidia.com/v1beta1 DynamoComponentDeployment", {"name": "a"}, "spec.podTemplate", TEMPLATE),
    (
        "nvidia.com/v1alpha1 DynamoGraphDeployment",
        {"services": {"a": DYNAMO}},
        "spec.services.a.extraPodSpec",
        POD,
    ),
    (
        "flow.volcano.sh/v1alpha1 JobFlow",
        {"flows": [{"name": "a", "patch": {"jobSpec": {"tasks": [TASK]}}}]},
        "spec.flows.0.patch.jobSpec.tasks.0.template",
        TEMPLATE,
    ),
    (
        "extensions.agents.x-k8s.io/v1beta1 SandboxClaim",
        {"additionalPodMetadata": {"labels": LABELS}, "lifecycle": {}},
        "spec",
        of_pod(container=("env",)),
    ),
    ("extensions.agents.x-k8s.io/v1beta1 SandboxWarmPool", {"replicas": 1}, "spec", of_pod()),
    *(
        (
            f"tekton.dev/{version} TaskRun",
            {"taskSpec": {"steps": [STEP]}},
            "spec.taskSpec.stepTemplate",
            ("pod", (), {"": STEP_TEMPLATE}),
        )
        for version in ("v1", "v1beta1")
    ),
    *(
        (
            f"tekton.dev/{version} PipelineRun",
            {"pipelineSpec": {part: [{"name": "a", "taskSpec": {"steps": [STEP, STEP]}}]}},
            f"spec.pipelineSpec.{part}.0.taskSpec.steps.1",
            CONTAINER,
        )
        for version in ("v1", "v1beta1")
        for part in ("tasks", "finally")
    ),
    *(
        (f"serving.kserve.io/{version} LLMInferenceServiceConfig", {}, where, POD)
        for version in ("v1alpha1", "v1alpha2")
        for where in ("spec.router.scheduler.tokenizer.template",)
    ),
    (
        "apps.nvidia.com/v1alpha1 NIMService",
        NIM_PICKER,
        "spec.expose.router.eppConfig.containerSpec",
        CONTAINER,
    ),
    (
        "apps.nvidia.com/v1alpha1 NIMPipeline",
        {"services": [{"name": "a", "enabled": True, "spec": NIM_PICKER}]},
        "spec.services.0.spec.expose.router.eppConfig.containerSpec",
        CONTAINER,
    ),
    (
        "machinelearning.seldon.io/v1 SeldonDeployment",
        {"predictors": [{"name": "a", "graph": {"name": "a"}, "replicas": 1}]},
        "spec.predictors.0.svcOrchSpec",
        of_pod(container=("resources.limits", "resources.requests")),
    ),
    *(
        (
            "milvus.io/v1beta1 Milvus",
            {"components": {"image": IMAGE}},
            f"spec.components.{component}",
            of_pod(*OF_MILVUS, container=PLAIN),
        )
        for component in COMPONENTS_OF_MILVUS
    ),
    (
        "milvus.io/v1beta1 Milvus",
        {"components": {"queryNode": {"groups": [{"name": "a", "labels": LABELS}]}}},
        "spec.components.queryNode",
        of_pod(*OF_MILVUS, container=PLAIN),
    ),
    *(
        (
            "milvus.io/v1beta1 Milvus",
            {"dependencies": {store: {"inCluster": {"values": {}}}}},
            f"spec.dependencies.{store}.inCluster.values{part}",
            of_pod(container=("resources.limits", "resources.requests")),
        )
        for store, part in (
            ("etcd", ""),
            ("storage", ""),
            *(("pulsar", f".{each}") for each in ("proxy", "broker", "bookkeeper", "zookeeper")),
        )
    ),
    *(
        (
            f"{group} {kind}",
            nested(within, {"templates": [template], "entrypoint": "main"} | more),
            ".".join(("spec", *within, *where.split("."))),
            CONTAINER,
        )
        for group, kind, within in (
            ("argoproj.io/v1alpha1", "Workflow", ()),
            ("argoproj.io/v1alpha1", "WorkflowTemplate", ()),
            ("argoproj.io/v1alpha1", "ClusterWorkflowTemplate", ()),
            ("argoproj.io/v1alpha1", "CronWorkflow", ("workflowSpec",)),
            ("kubeflow.org/v1beta1", "ScheduledWorkflow", ("workflow", "spec")),
        )
        for template, more, where in (
            (IN_STEP, {}, "templates.0.steps.0.0.inline.container"),
            (IN_TASK, {}, "templates.0.dag.tasks.0.inline.container"),
            (IN_STEP, {"executorPlugins": [PLUGIN]}, "executorPlugins.0.spec.sidecar.container"),
            (IN_STEP, {}, "templateDefaults.container"),
        )
        if (kind, "executorPlugins" in more) != ("Workflow", True)
    ),
)
"""Objects of kinds that neither a CRD at hand nor a golden case gives, each with one place."""


def small() -> Iterator[Place]:
    """The places of objects that are written here."""
    for name, spec, where, (what, pod, lists) in SMALL:
        version, _, kind = name.rpartition(" ")
        body: Any = {"apiVersion": version, "kind": kind}
        body |= {"metadata": {"name": "a", "namespace": "team"}}
        body["spec"] = json.loads(json.dumps(spec))
        slot = tuple(int(each) if each.isdigit() else each for each in where.split("."))
        node = body
        for step in slot:
            node = node[step] if isinstance(step, int) else node.setdefault(step, {})
        offers = {key: frozenset(each) for key, each in lists.items()}
        cluster = kind.startswith("Cluster")
        text = json.dumps(body)
        yield Place(name, where, what, slot, frozenset(pod), offers, text, cluster=cluster)


TWINS = {
    "apps.kruise.io/v1alpha1 StatefulSet": "apps.kruise.io/v1beta1 StatefulSet",
    "kubeflow.org/v1alpha1 Notebook": "kubeflow.org/v1 Notebook",
    "kubeflow.org/v1alpha1 ScheduledWorkflow": "kubeflow.org/v1beta1 ScheduledWorkflow",
    "kubeflow.org/v1beta1 Notebook": "kubeflow.org/v1 Notebook",
    "machinelearning.seldon.io/v1alpha2 SeldonDeployment": "machinelearning.seldon.io/v1 SeldonDeployment",
    "machinelearning.seldon.io/v1alpha3 SeldonDeployment": "machinelearning.seldon.io/v1 SeldonDeployment",
    "slinky.slurm.net/v1alpha1 NodeSet": "slinky.slurm.net/v1beta1 NodeSet",
}
"""Versions without an object of their own, and the version of the kind that has the same layout."""


def twins(places: Iterable[Place]) -> Iterator[Place]:
    """The places of versions that are like another one."""
    for place in places:
        for twin in (each for each, other in TWINS.items() if other == place.kind):
            document = json.loads(place.text) | {"apiVersion": twin.partition(" ")[0]}
            yield replace(place, kind=twin, text=json.dumps(document))


@functools.cache
def every() -> tuple[Place, ...]:
    """Every place of every kind."""
    found = (*built_in(), *by_hand(), *small(), *of_crds())
    return (*found, *twins(found))
