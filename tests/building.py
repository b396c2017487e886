"""Builds catalogs, objects and requests for tests of decisions, from inline YAML and manifests."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import jsonpatch
import yaml

from webhook.catalog.build import Choices, Documents, assemble, parse_documents
from webhook.catalog.catalog import Catalog
from webhook.decision.decide import decide
from webhook.documents.source import SourceDocument
from webhook.documents.yaml_source import read_documents
from webhook.evaluation.intent import LAST_APPLIED
from webhook.evaluation.outcome import Allowed, Decision, Denied
from webhook.evaluation.references import References
from webhook.evaluation.request import Request, Stage
from webhook.evaluation.server_defaults import ServerDefaults
from webhook.policy.combine import GUARDED
from webhook.policy.envelope import Context
from webhook.sources import files
from webhook.sources.load import DEFAULT_MINOR, server_defaults, shipped_paths

Change = Callable[[Any], Any]


@lru_cache(maxsize=1)
def shipped() -> Documents:
    """The shipped documents, read once."""
    documents, problems = files.read_all(shipped_paths())
    assert not problems
    return parse_documents(documents, Context(), shipped=True)


@lru_cache(maxsize=1)
def table() -> ServerDefaults:
    """What the API server fills in."""
    found = server_defaults(DEFAULT_MINOR)
    assert isinstance(found, ServerDefaults)
    return found


def policy(
    body: str,
    name: str = "rules",
    scope: str = "cluster",
    namespace: str = "",
    **spec: Any,
) -> dict[str, Any]:
    """A policy document around a body of defaults, rules and imposedAssets."""
    metadata = {"name": name}
    kind = "ClusterWorkloadPolicy"
    if namespace:
        kind, metadata["namespace"] = "WorkloadPolicy", namespace
    else:
        spec["scope"] = scope
    return {
        "apiVersion": "podgate.dev/v1alpha1",
        "kind": kind,
        "metadata": metadata,
        "spec": {**spec, **(yaml.safe_load(body) or {})},
    }


def asset(name: str, path: str, mount: str, scope: str = "cluster") -> dict[str, Any]:
    """A host path that policies may impose; its id is its name."""
    return {
        "apiVersion": "podgate.dev/v1alpha1",
        "kind": "WorkloadAsset",
        "metadata": {"name": name},
        "spec": {
            "meta": {"id": name, "name": name, "kind": "hostPath", "scope": scope},
            "spec": {"path": path, "mountPath": mount, "readOnly": True},
        },
    }


def catalog(*documents: dict[str, Any] | str, combination: str = GUARDED) -> Catalog:
    """A catalog of the shipped documents and these; a text is the body of a cluster policy."""
    given: list[SourceDocument] = []
    for index, each in enumerate(documents):
        data = policy(each, f"rules-{index}") if isinstance(each, str) else each
        found, faults = read_documents(yaml.safe_dump(data), f"given-{index}.yaml")
        assert not faults, faults
        given += found
    built, problems = assemble(shipped(), given, Choices(combination), table())
    assert built is not None, [each for each in problems if each.severity == "error"]
    return built


def container(name: str = "main", **more: Any) -> dict[str, Any]:
    """A container, its image with a tag."""
    return {"name": name, "image": f"registry.example.com/{name}:1", **more}


def pod_spec(*containers: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A pod spec of these containers, one main container when there are none."""
    return {"containers": list(containers) or [container()], **more}


def template(spec: dict[str, Any]) -> dict[str, Any]:
    """A pod template."""
    return {"metadata": {"labels": {"app": "web"}}, "spec": spec}


def shell(api_version: str, kind: str, spec: dict[str, Any]) -> dict[str, Any]:
    """An object of a kind around its spec."""
    return {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {"name": "web", "namespace": "team"},
        "spec": spec,
    }


def deployment(*containers: dict[str, Any], replicas: int = 1, **spec: Any) -> dict[str, Any]:
    """A Deployment as a user writes it."""
    body = {
        "replicas": replicas,
        "selector": {"matchLabels": {"app": "web"}},
        "template": template(pod_spec(*containers, **spec)),
    }
    return shell("apps/v1", "Deployment", body)


def pod(*containers: dict[str, Any], **spec: Any) -> dict[str, Any]:
    """A Pod as a user writes it."""
    return shell("v1", "Pod", pod_spec(*containers, **spec))


def job(*containers: dict[str, Any], **spec: Any) -> dict[str, Any]:
    """A Job as a user writes it."""
    spec.setdefault("restartPolicy", "Never")
    return shell("batch/v1", "Job", {"template": template(pod_spec(*containers, **spec))})


def cronjob(*containers: dict[str, Any], **spec: Any) -> dict[str, Any]:
    """A CronJob as a user writes it."""
    body = {"schedule": "0 0 * * *", "jobTemplate": {"spec": job(*containers, **spec)["spec"]}}
    return shell("batch/v1", "CronJob", body)


def pytorchjob(
    *containers: dict[str, Any], workers: int = 2, master: bool = True, **spec: Any
) -> dict[str, Any]:
    """A PyTorchJob whose master and workers run the same pod."""
    one = {"template": template(pod_spec(*containers, **spec))}
    replicas = {"Master": {"replicas": 1, **copy.deepcopy(one)}} if master else {}
    replicas["Worker"] = {"replicas": workers, **copy.deepcopy(one)}
    return shell("kubeflow.org/v1", "PyTorchJob", {"pytorchReplicaSpecs": replicas})


def raycluster(
    *containers: dict[str, Any], groups: tuple[str, ...] = ("small",), **spec: Any
) -> dict[str, Any]:
    """A RayCluster whose head and groups run the same pod."""
    one = template(pod_spec(*containers, **spec))
    body = {
        "headGroupSpec": {"rayStartParams": {}, "template": copy.deepcopy(one)},
        "workerGroupSpecs": [
            {
                "groupName": name,
                "replicas": 1,
                "minReplicas": 0,
                "maxReplicas": 2,
                "rayStartParams": {},
                "template": copy.deepcopy(one),
            }
            for name in groups
        ],
    }
    return shell("ray.io/v1", "RayCluster", body)


def jobset(
    *containers: dict[str, Any], jobs: tuple[str, ...] = ("workers",), **spec: Any
) -> dict[str, Any]:
    """A JobSet whose jobs run the same pod."""
    one = job(*containers, **spec)["spec"]
    replicated = [
        {"name": name, "replicas": 1, "template": {"spec": copy.deepcopy(one)}} for name in jobs
    ]
    return shell("jobset.x-k8s.io/v1alpha2", "JobSet", {"replicatedJobs": replicated})


KINDS: Mapping[str, Callable[..., dict[str, Any]]] = {
    "Pod": pod,
    "Deployment": deployment,
    "Job": job,
    "CronJob": cronjob,
    "JobSet": jobset,
    "PyTorchJob": pytorchjob,
    "RayCluster": raycluster,
}


def served(document: Any) -> Any:
    """The object as the API server shows it to webhooks: its defaults filled in."""
    group, _, _ = str(document["apiVersion"]).rpartition("/")
    return table().kind(group, str(document["kind"])).apply(document)


def annotated(document: Any, manifest: Any = None) -> Any:
    """The object with the annotation of client-side apply, of itself or of another manifest."""
    result = copy.deepcopy(document)
    text = json.dumps(document if manifest is None else manifest)
    result["metadata"].setdefault("annotations", {})[LAST_APPLIED] = text
    return result


def edited(document: Any, change: Change) -> Any:
    """A copy of the object after a change in place."""
    result = copy.deepcopy(document)
    change(result)
    return result


def request(document: Any, old: Any = None, **more: Any) -> Request:
    """A request of somebody in namespace team; with an old object it is an update."""
    group, _, version = str(document["apiVersion"]).rpartition("/")
    more.setdefault("operation", "CREATE" if old is None else "UPDATE")
    more.setdefault("namespace", "team")
    return Request(
        group,
        version,
        str(document["kind"]),
        object=document,
        old=old,
        user=more.pop("user", "someone@example.com"),
        **more,
    )


def mutated(rules: Catalog, document: Any, old: Any = None, **more: Any) -> Decision:
    """The decision of the mutating pass; the object is left as it was and the patch leads on."""
    kept = copy.deepcopy((document, old))
    decision = decide(request(document, old, **more), rules, References())
    assert kept == (document, old)
    if isinstance(decision, Allowed):
        assert jsonpatch.apply_patch(document, list(decision.patch)) == decision.object
    return decision


def validated(rules: Catalog, document: Any, old: Any = None, **more: Any) -> Decision:
    """The decision of the validating pass; it writes nothing."""
    more["stage"] = Stage.VALIDATE
    decision = mutated(rules, document, old, **more)
    assert isinstance(decision, Denied) or not decision.patch
    return decision


def result(rules: Catalog, document: Any, old: Any = None, **more: Any) -> Any:
    """What becomes of an object that must pass: both passes, and the first one twice."""
    decision = mutated(rules, document, old, **more)
    assert isinstance(decision, Allowed), reasons(decision)
    again = mutated(rules, decision.object, old, **more)
    assert isinstance(again, Allowed), reasons(again)
    assert not again.patch
    final = validated(rules, decision.object, old, **more)
    assert isinstance(final, Allowed), reasons(final)
    return decision.object


def refused(rules: Catalog, document: Any, old: Any = None, **more: Any) -> list[tuple[str, str]]:
    """Field and reason of every violation of an object that both passes must refuse."""
    decision = mutated(rules, document, old, **more)
    assert isinstance(decision, Denied), decision
    final = validated(rules, document, old, **more)
    assert isinstance(final, Denied), decision.violations
    return reasons(decision)


def reasons(decision: Decision) -> list[tuple[str, str]]:
    """Field and reason of every violation, sorted, each once."""
    assert isinstance(decision, Denied), decision
    return sorted({(each.field, each.reason) for each in decision.violations})
