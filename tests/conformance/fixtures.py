"""The objects and definitions that the conformance list describes, and jq for what is not native."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any

import jq

from webhook.access.object import Bound, bind
from webhook.access.selector import PodQuery
from webhook.interface.document import InterfaceSpec, Mode
from webhook.jq.expressions import Evaluator, JqError, JqSyntaxError, Run

VERSION = "jobs.example.com/v1"


def compile_jq(text: str) -> Run:
    """A text as libjq evaluates it; for tests, without a deadline."""
    try:
        program = jq.compile(text)
    except ValueError as error:
        raise JqSyntaxError(str(error)) from error

    def run(document: Any) -> Iterable[Any]:
        try:
            return list(program.input_value(document))
        except ValueError as error:
            raise JqError(str(error)) from error

    return run


def evaluator(limit: int = 1000) -> Evaluator:
    """Native paths and jq."""
    return Evaluator(compile_jq, limit)


def spec_of(root: dict[str, Any], *children: dict[str, Any], gang: Any = None) -> InterfaceSpec:
    """A definition that nobody has validated."""
    root = {"statusDefinition": {"statusMappings": {}}, **copy.deepcopy(root)}
    data: dict[str, Any] = {
        "structureDefinition": {"rootComponent": root, "childComponents": list(children)}
    }
    if gang is not None:
        data["optimizationInstructions"] = {"gangScheduling": gang}
    return InterfaceSpec.model_validate(data)


def bound(spec: InterfaceSpec, document: Any, mode: Mode = "parity") -> Bound:
    """A definition on an object, with jq."""
    return bind(spec, document, evaluator(), mode)


def pod(document: Any, mode: Mode = "parity") -> PodQuery:
    """Questions to a pod, with jq."""
    return PodQuery(document, evaluator(), mode)


def container(name: str, image: str, **rest: Any) -> dict[str, Any]:
    """A container."""
    return {"name": name, "image": image, **rest}


def amounts(cpu: str, memory: str, gpu: int = 0) -> dict[str, Any]:
    """Quantities of resources."""
    found: dict[str, Any] = {"cpu": cpu, "memory": memory}
    return {**found, "nvidia.com/gpu": gpu} if gpu else found


def trainer(role: str, index: str, requests: Any, limits: Any, env: Any = None) -> dict[str, Any]:
    """A template of PyFlow."""
    main = container(
        "trainer",
        "tensorflow/tensorflow:2.8.0-gpu",
        command=["python", "/app/train.py", "--backend=nccl"],
        resources={"requests": requests, "limits": limits},
    )
    if env:
        main["env"] = env
    return {
        "metadata": {"labels": {"app": "pyflow", "role": role, "index": index}},
        "spec": {"restartPolicy": "Never", "containers": [main]},
    }


def named(kind: str, name: str, labels: dict[str, str], **rest: Any) -> dict[str, Any]:
    """An object."""
    metadata = {"name": name, "namespace": "default", "labels": labels}
    return {"apiVersion": VERSION, "kind": kind, "metadata": metadata, **rest}


def kind_of(kind: str) -> dict[str, str]:
    """A kind of the fixtures' group."""
    return {"group": "jobs.example.com", "version": "v1", "kind": kind}


def pyflow() -> dict[str, Any]:
    """PyFlow: one template per role."""
    port = [{"name": "MASTER_PORT", "value": "23456"}]
    master = trainer("master", "0", amounts("1", "2Gi"), amounts("2", "4Gi", 1), port)
    worker = trainer("worker", "1", amounts("2", "4Gi"), amounts("4", "8Gi", 1))
    return named(
        "PyFlow",
        "pyflow-example",
        {"app": "pyflow", "type": "ml-training"},
        spec={
            "master": {"replicas": 1, "template": master},
            "worker": {"minReplicas": 1, "maxReplicas": 5, "template": worker},
        },
        status={"conditions": [{"type": "Running", "status": "True"}]},
    )


def by_role(role: str) -> dict[str, Any]:
    """A type selector by label."""
    return {"componentTypeSelector": {"keyPath": ".metadata.labels.role", "value": role}}


CONDITIONS = {"path": ".status.conditions", "typeFieldName": "type", "statusFieldName": "status"}
RUNNING = [{"byConditions": [{"type": "Running", "status": "True"}]}]


def pyflow_spec(mappings: Any = None) -> InterfaceSpec:
    """The definition of PyFlow."""
    init = [{"byConditions": [{"type": "Initializing", "reason": "Init"}]}]
    mappings = mappings or {"initializing": init, "running": RUNNING}
    status = {"conditionsDefinition": CONDITIONS, "statusMappings": mappings}
    return spec_of(
        {"name": "pyflow", "kind": kind_of("PyFlow"), "statusDefinition": status},
        {
            "name": "master",
            "ownerRef": "pyflow",
            "specDefinition": {"podTemplateSpecPath": ".spec.master.template"},
            "scaleDefinition": {"replicasPath": ".spec.master.replicas"},
            "podSelector": by_role("master"),
        },
        {
            "name": "worker",
            "ownerRef": "pyflow",
            "specDefinition": {"podTemplateSpecPath": ".spec.worker.template"},
            "scaleDefinition": {
                "minReplicasPath": ".spec.worker.minReplicas",
                "maxReplicasPath": ".spec.worker.maxReplicas",
            },
            "podSelector": by_role("worker"),
        },
    )


def job(name: str, replicas: int, script: str, requests: Any, limits: Any) -> dict[str, Any]:
    """One job of JobGroup."""
    main = container(
        name,
        f"{name}:latest",
        command=["python", script],
        resources={"requests": requests, "limits": limits},
    )
    return {
        "name": name,
        "replicas": replicas,
        "metadata": {"labels": {"app": "jobgroup", "job-name": name, "role": name}},
        "spec": {"restartPolicy": "Never", "containers": [main]},
    }


def jobgroup() -> dict[str, Any]:
    """JobGroup: an array, pod spec and metadata apart."""
    jobs = [
        job("indexer", 2, "/app/index.py", amounts("500m", "1Gi"), amounts("1", "2Gi")),
        job("processor", 3, "/app/process.py", amounts("1", "2Gi"), amounts("2", "4Gi")),
    ]
    return named(
        "JobGroup",
        "jobgroup-example",
        {"app": "jobgroup", "type": "batch-processing"},
        spec={"replicatedJobs": jobs},
        status={"conditions": [{"type": "Running", "status": "True"}]},
    )


JOB = {
    "name": "job",
    "ownerRef": "jobgroup",
    "instanceIdPath": ".spec.replicatedJobs[].name",
    "specDefinition": {
        "podSpecPath": ".spec.replicatedJobs[].spec",
        "metadataPath": ".spec.replicatedJobs[].metadata",
    },
    "scaleDefinition": {"replicasPath": ".spec.replicatedJobs[].replicas"},
    "podSelector": {"componentTypeSelector": {"keyPath": ".metadata.labels.job-name"}},
}


def jobgroup_spec() -> InterfaceSpec:
    """The definition of JobGroup."""
    status = {"conditionsDefinition": CONDITIONS, "statusMappings": {"running": RUNNING}}
    root = {"name": "jobgroup", "kind": kind_of("JobGroup"), "statusDefinition": status}
    return spec_of(root, JOB)


def service(
    name: str,
    tier: str,
    main: dict[str, Any],
    resources: dict[str, Any],
    scale: tuple[int, int, int],
    **rest: Any,
) -> dict[str, Any]:
    """One service of Reactor."""
    return {
        "labels": {"app": "reactor", "service-name": name, "tier": tier},
        "containers": [main],
        "mainContainer": {"name": "", "resources": {}},
        "resources": resources,
        **dict(zip(("replicas", "minReplicas", "maxReplicas"), scale, strict=True)),
        **rest,
    }


def reactor() -> dict[str, Any]:
    """Reactor: a map of fragments."""
    port = [{"containerPort": 8080, "protocol": "TCP"}]
    redis = [{"containerPort": 6379, "protocol": "TCP"}]
    api = container("api-server", "api:latest", ports=port, env=[{"name": "PORT", "value": "8080"}])
    worker = container(
        "worker", "worker:latest", env=[{"name": "WORKER_TYPE", "value": "processor"}]
    )
    cache = container("redis", "redis:7-alpine", ports=redis)
    services = {
        "api": service(
            "api",
            "frontend",
            api,
            {"requests": amounts("500m", "1Gi"), "limits": amounts("1", "2Gi")},
            (3, 2, 10),
            annotations={"service.beta.kubernetes.io/aws-load-balancer-type": "nlb"},
            mainContainer=container("api-server-main", "api:latest"),
        ),
        "worker": service(
            "worker",
            "backend",
            worker,
            {"requests": amounts("1", "2Gi"), "limits": amounts("2", "4Gi", 1)},
            (5, 3, 20),
            annotations={"prometheus.io/scrape": "true", "prometheus.io/port": "9090"},
        ),
        "cache": service(
            "cache",
            "middleware",
            cache,
            {"requests": amounts("250m", "512Mi"), "limits": amounts("500m", "1Gi")},
            (1, 1, 3),
        ),
    }
    return named(
        "Reactor",
        "reactor-example",
        {"app": "reactor", "type": "distributed-service"},
        spec={"services": services},
        status={"phase": "running", "conditions": [{"type": "Ready", "status": "True"}]},
    )


FRAGMENTS = {
    "labelsPath": "labels",
    "annotationsPath": "annotations",
    "containersPath": "containers",
    "containerPath": "mainContainer",
    "resourcesPath": "resources",
}
NUMBERS = {
    "replicasPath": "replicas",
    "minReplicasPath": "minReplicas",
    "maxReplicasPath": "maxReplicas",
}


def each_service(names: dict[str, str]) -> dict[str, str]:
    """Paths into every service."""
    return {key: f".spec.services | .[] | .{name}" for key, name in names.items()}


SERVICE = {
    "name": "service",
    "ownerRef": "reactor",
    "instanceIdPath": ".spec.services | to_entries[] | .key",
    "specDefinition": {"fragmentedPodSpecDefinition": each_service(FRAGMENTS)},
    "scaleDefinition": each_service(NUMBERS),
    "podSelector": {"componentTypeSelector": {"keyPath": ".metadata.labels.service-name"}},
}
BY_PHASE = {
    "initializing": [{"byPhase": "pending"}],
    "running": [{"byPhase": "running"}],
    "failed": [{"byPhase": "failed"}],
}


def reactor_spec(mappings: Any = None, **fragments: str) -> InterfaceSpec:
    """The definition of Reactor, with other mappings or further fragments where given."""
    status = {
        "phaseDefinition": {"path": ".status.phase"},
        "conditionsDefinition": {
            **CONDITIONS,
            "reasonFieldName": "reason",
            "messageFieldName": "message",
        },
        "statusMappings": BY_PHASE if mappings is None else mappings,
    }
    child = copy.deepcopy(SERVICE)
    paths: Any = child["specDefinition"]
    paths["fragmentedPodSpecDefinition"].update(each_service(fragments))
    root = {"name": "reactor", "kind": kind_of("Reactor"), "statusDefinition": status}
    return spec_of(root, child)


RUNNER_POD = {
    "metadata": {
        "name": "test-pod",
        "namespace": "default",
        "labels": {"app": "web", "component": "frontend"},
    },
    "spec": {
        "containers": [
            container("web", "nginx:1.20", ports=[{"containerPort": 80}, {"containerPort": 443}]),
            container("sidecar", "busybox:latest"),
        ]
    },
}
DEFAULTS = {
    "name": "test-pod",
    "labels": {"app": "myapp", "version": "v1.0"},
    "annotations": {"config": "production"},
    "spec": {"containers": [container("main", "nginx:latest")]},
}
ITEMS = {"items": [{"id": i, "name": f"item-{i}", "value": 10 * i} for i in range(100)]}
QUERIER_POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {
        "name": "test-pod",
        "namespace": "default",
        "labels": {
            "app": "pytorch",
            "version": "v1.0",
            "component": "worker",
            "environment": "production",
        },
        "annotations": {"config": "high-memory", "owner": "team-ai"},
    },
    "spec": {"containers": [container("main", "pytorch:latest")]},
}
INSTANCE_POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {
        "name": "test-pod",
        "labels": {"job-name": "indexer", "service-name": "api", "component": "worker"},
        "annotations": {"nvidia.com/dynamo-component": "worker-group-1"},
    },
    "spec": {"containers": [container("main", "pytorch:latest")]},
}
