"""podgate audit: three outcomes of what is in a cluster, audit mode, and the exit code."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

import webhook.controller.audit
import webhook.controller.injections
from tests.cli.running import podgate
from tests.cli.test_audit_injected import Cluster, owned
from tests.cluster.test_kubernetes import FakeApi, api, ca, reply
from tests.listing import DEEP
from webhook.admission import timeouts
from webhook.cli.audit_report import ProgressBar
from webhook.evaluation.request import Request

__all__ = ["api", "ca"]

POLICY = """\
apiVersion: podgate.dev/v1alpha1
kind: ClusterWorkloadPolicy
metadata: {name: gpu}
spec: {enforcement: ENFORCEMENT, rules: {compute: {gpuDevicesRequest: {max: 4}}}}
"""
GPUS = {"name": "a", "image": "x", "resources": {"limits": {"nvidia.com/gpu": 8}}}


def pod(name: str, namespace: str, **metadata: Any) -> dict[str, Any]:
    """A Pod that asks for too many GPUs."""
    head = {"name": name, "namespace": namespace, "uid": name, **metadata}
    return {"metadata": head, "spec": {"containers": [GPUS]}}


def audit(api: FakeApi, folder: Path, enforcement: str, *more: str) -> Any:
    """The command by a policy in this mode."""
    file = folder / "policy.yaml"
    file.write_text(POLICY.replace("ENFORCEMENT", enforcement))
    config = ("--kubeconfig", str(api.kubeconfig()), "--policies", str(file))
    return podgate("audit", *config, *more)


def closing(stderr: str) -> str:
    """The closing line."""
    return next(line for line in stderr.splitlines() if "policies in force" in line)


def test_the_closing_line_counts_what_is_not_evaluated(api: FakeApi, tmp_path: Path) -> None:
    pods = [pod("mine", "team-a"), pod("theirs", "elsewhere"), owned("web-1", pod("", "")["spec"])]
    Cluster(api, pods)
    done = audit(api, tmp_path, "Enforce")
    assert done.exit_code == 1
    assert closing(done.stderr) == (
        "3 objects: 0 allowed, 1 refused, 2 not evaluated (1 exempt-sender, 1 ungoverned-namespace);"
        " policies in force: system policy system (built in), cluster policy gpu"
    )
    assert audit(api, tmp_path, "Enforce", "--fail-on", "none").exit_code == 0


@pytest.mark.parametrize("more", [(), ("--injected",)])
def test_the_progress_of_each_list_is_shown(
    api: FakeApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: tuple[str, ...]
) -> None:
    shown: list[tuple[str, int, int]] = []
    monkeypatch.setattr(ProgressBar, "show", lambda _, *each: shown.append(each))
    Cluster(api, [pod("mine", "team-a"), owned("web-1", pod("", "")["spec"])])
    audit(api, tmp_path, "Enforce", *more)
    assert ("Pod", 2, 2) in shown


def test_a_terminal_has_a_progress_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = io.StringIO()
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    with ProgressBar() as bar:
        bar.show("Pod", 500, 1200)
    assert "Pod" in terminal.getvalue()
    assert "500/1200" in terminal.getvalue()


def test_audit_mode_is_shown_in_text_and_json(api: FakeApi, tmp_path: Path) -> None:
    Cluster(api, [pod("mine", "team-a")])
    done = audit(api, tmp_path, "Audit")
    assert done.exit_code == 0
    assert "  audit: compute.gpuDevicesRequest" in done.stdout
    assert "1 violation in audit mode" in closing(done.stderr)
    (row,) = [
        json.loads(line) for line in audit(api, tmp_path, "Audit", "-o", "json").stdout.splitlines()
    ]
    assert (row["outcome"], [each["policy"] for each in row["audit"]]) == ("allowed", ["gpu"])
    assert audit(api, tmp_path, "Audit", "--strict").exit_code == 1


def test_a_cluster_without_governed_namespaces_is_a_warning(api: FakeApi, tmp_path: Path) -> None:
    cluster = Cluster(api, [])
    cluster.status["/api/v1/namespaces"] = 200
    found = cluster.answer

    def answer(handler: Any) -> bool:
        if handler.path.partition("?")[0] == "/api/v1/namespaces":
            reply(handler, 200, json.dumps({"items": [{"metadata": {"name": "a"}}]}).encode())
            return True
        return found(handler)

    api.act = answer
    done = audit(api, tmp_path, "Enforce")
    assert "warning: no namespace is governed" in done.stderr
    assert done.exit_code == 0
    assert audit(api, tmp_path, "Enforce", "--strict").exit_code == 1


BROKEN: dict[str, Any] = {
    "a spec that is a list": {"spec": []},
    "containers that are a map": {"spec": {"containers": {"a": 1}}},
    "an owner list that is text": {
        "metadata": {"ownerReferences": "web"},
        "spec": {"containers": [GPUS]},
    },
    "labels that are numbers": {"metadata": {"labels": [1]}, "spec": {"containers": [None]}},
    "a pod that is nested too deep": {"spec": {"containers": [], "volumes": timeouts.nest(150, 1)}},
    "a pod with so many levels that no list with it can be decoded": {"spec": {"volumes": DEEP}},
}


@pytest.mark.parametrize("name", BROKEN)
def test_an_object_that_nobody_can_read_is_a_finding_among_others(
    api: FakeApi, tmp_path: Path, name: str
) -> None:
    broken = BROKEN[name]
    head = {**pod("broken", "team-a")["metadata"], **broken.get("metadata", {})}
    Cluster(api, [pod("first", "team-a"), {**broken, "metadata": head}, pod("last", "team-a")])
    done = audit(api, tmp_path, "Enforce", "-o", "json")
    rows = {row["name"]: row["outcome"] for row in map(json.loads, done.stdout.splitlines())}
    assert (rows["first"], rows["last"]) == ("refused", "refused")
    assert rows["broken"] == "refused"
    assert done.exit_code == 1
    assert closing(done.stderr).startswith("3 objects: 0 allowed, 3 refused")


def fail_on(name: str, whole: Any) -> Any:
    """A function like `whole` that fails on the object of this name."""

    def failing(request: Request, *more: Any, **others: Any) -> Any:
        if request.name == name:
            raise KeyError("a bug")
        return whole(request, *more, **others)

    return failing


@pytest.mark.parametrize("output", ["text", "json"])
def test_a_fault_with_one_object_leaves_the_findings_on_the_others(
    api: FakeApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, output: str
) -> None:
    broken = fail_on("broken", webhook.controller.audit.decide_with_facts)
    monkeypatch.setattr(webhook.controller.audit, "decide_with_facts", broken)
    Cluster(api, [pod(name, "team-a") for name in ("first", "broken", "last")])
    done = audit(api, tmp_path, "Enforce", "-o", output)
    assert done.exit_code == 70
    assert "error: Pod team-a/broken: podgate has a fault: KeyError at " in done.stderr
    assert "a bug" not in done.output
    assert closing(done.stderr).startswith(
        "3 objects: 0 allowed, 2 refused, 1 not evaluated (1 fault)"
    )
    for each in ("first", "broken", "last"):
        assert each in done.stdout


def test_a_fault_with_one_object_leaves_the_list_for_the_others(
    api: FakeApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = webhook.controller.injections.decide
    monkeypatch.setattr(webhook.controller.injections, "decide", fail_on("broken", whole))
    spec = pod("", "")["spec"]
    Cluster(api, [owned(name, spec) for name in ("first", "broken", "last")])
    done = audit(api, tmp_path, "Enforce", "--injected", "-o", "json")
    assert done.exit_code == 70
    assert "error: Pod team-a/broken: podgate has a fault: KeyError at " in done.stderr
    assert [json.loads(each)["name"] for each in done.stdout.splitlines()] == ["first", "last"]


def crd(kind: str, versions: list[str], group: str = "example.com", **containers: Any) -> Any:
    """A CRD whose schema has a pod template, or what is given instead of its list of containers."""
    item = {
        "type": "object",
        "properties": {"name": {"type": "string"}, "image": {"type": "string"}},
    }
    spec = {"properties": containers or {"containers": {"type": "array", "items": item}}}
    template = {"type": "object", "properties": {"spec": {"type": "object", **spec}}}
    schema = {"properties": {"spec": {"type": "object", "properties": {"template": template}}}}
    plural = f"{kind.lower()}s"
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural},
            "versions": [
                {
                    "name": each,
                    "served": True,
                    "storage": each == versions[0],
                    "schema": {"openAPIV3Schema": {"type": "object", **schema}},
                }
                for each in versions
            ],
        },
    }


CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def serve(cluster: Cluster, crds: list[Any], objects: dict[str, list[str]]) -> None:
    """Let the cluster have CRDs, and objects by path, each in a namespace."""
    answers = {f"{CRDS}/{each['metadata']['name']}": each for each in crds}
    answers[CRDS] = {"items": [{"metadata": each["metadata"]} for each in crds]}
    for path, spaces in objects.items():
        items = [{"metadata": {"name": f"o{n}", "namespace": s}} for n, s in enumerate(spaces)]
        answers[path] = {"items": items}
    found = cluster.answer

    def answer(handler: Any) -> bool:
        path = handler.path.partition("?")[0]
        if path not in answers or cluster.status.get(path):
            return found(handler)
        reply(handler, 200, json.dumps(answers[path]).encode())
        return True

    cluster.api.act = answer


def test_kinds_with_pods_and_without_a_definition_are_counted(api: FakeApi, tmp_path: Path) -> None:
    crds = [
        crd("Reactor", ["v1", "v2"]),
        crd("Empty", ["v1"]),
        crd("Dashboard", ["v1"], title={"type": "string"}),
        crd("RayCluster", ["v9"], group="ray.io"),
    ]
    objects = {
        "/apis/example.com/v1/reactors": ["team-a", "team-a", "elsewhere"],
        "/apis/example.com/v2/reactors": ["team-a", "team-a", "elsewhere"],
        "/apis/example.com/v1/dashboards": ["team-a"],
        "/apis/ray.io/v9/rayclusters": ["team-a"],
    }
    serve(Cluster(api, [pod("mine", "team-a")]), crds, objects)
    done = audit(api, tmp_path, "Enforce", "--fail-on", "not-evaluated")
    lines = [each for each in done.stderr.splitlines() if each.startswith("not evaluated:")]
    assert lines == [
        "not evaluated: 2 objects of Reactor.example.com/v1: no definition covers this kind",
        "not evaluated: 1 object of RayCluster.ray.io/v9: no definition covers this version",
    ]
    told = "3 not evaluated (2 unknown-kind, 1 unknown-version)"
    assert told in closing(done.stderr)
    assert done.exit_code == 1


def test_crds_that_may_not_be_read_leave_the_rest_of_the_audit(
    api: FakeApi, tmp_path: Path
) -> None:
    cluster = Cluster(api, [pod("mine", "team-a")])
    serve(cluster, [crd("Reactor", ["v1"])], {"/apis/example.com/v1/reactors": ["team-a"]})
    cluster.status[CRDS] = 403
    done = audit(api, tmp_path, "Enforce")
    assert closing(done.stderr).startswith("1 object: 0 allowed, 1 refused, 0 not evaluated")
    assert "warning: objects of CustomResourceDefinition cannot be listed: GET " in done.stderr


def test_a_kind_that_may_not_be_listed_is_a_warning(api: FakeApi, tmp_path: Path) -> None:
    cluster = Cluster(api, [])
    cluster.status["/api/v1/pods"] = 403
    done = audit(api, tmp_path, "Enforce")
    assert "warning: objects of Pod cannot be listed: GET /api/v1/pods" in done.stderr
    assert done.exit_code == 0
    assert audit(api, tmp_path, "Enforce", "--strict").exit_code == 1


METRICS, APPS = "metrics.k8s.io", "apps.openshift.io"


def listed(kind: str, resource: str, scope: str = "Namespaced") -> dict[str, Any]:
    """A resource as aggregated discovery lists it."""
    named = {"group": "", "version": "", "kind": kind}
    return {"resource": resource, "responseKind": named, "scope": scope, "verbs": ["get", "list"]}


def api_group(name: str, *resources: dict[str, Any], freshness: str = "Current") -> dict[str, Any]:
    """A group with one version as aggregated discovery lists it."""
    version = {"version": "v1", "resources": list(resources), "freshness": freshness}
    return {"metadata": {"name": name}, "versions": [version]}


def refer(name: str) -> dict[str, Any]:
    """A reference as API servers publish one that has a default beside it."""
    return {"default": {}, "allOf": [{"$ref": f"#/components/schemas/{name}"}]}


def published(group: str, kind: str, spec: dict[str, Any]) -> dict[str, Any]:
    """The OpenAPI document of a version with one kind, whose template holds itself too."""
    names = [{"group": group, "version": "v1", "kind": kind}]
    template = {"properties": {"spec": spec, "again": refer("Template")}}
    inside = {"spec": {"properties": {"template": refer("Template")}}}
    whole = {"properties": inside, "x-kubernetes-group-version-kind": names}
    text = {"properties": {"name": {"type": "string"}, "image": {"type": "string"}}}
    return {"components": {"schemas": {"Whole": whole, "Template": template, "Container": text}}}


def serve_apis(cluster: Cluster, *groups: dict[str, Any]) -> dict[str, Any]:
    """Let the cluster have aggregated APIs; the answers by path, to which others can be added."""
    discovery = {"kind": "APIGroupDiscoveryList", "items": []}
    containers = {"type": "array", "items": refer("Container")}
    usage = {"type": "array", "items": {"properties": {"usage": {"type": "object"}}}}
    objects = {"items": [{"metadata": {"name": "a", "namespace": "team-a"}}]}
    answers = {
        "/api": discovery,
        "/apis": {**discovery, "items": list(groups)},
        f"/openapi/v3/apis/{APPS}/v1": published(
            APPS, "DeploymentPlan", {"properties": {"containers": containers}}
        ),
        f"/openapi/v3/apis/{METRICS}/v1": published(
            METRICS, "PodMetrics", {"properties": {"containers": usage}}
        ),
        f"/apis/{APPS}/v1/deploymentplans": objects,
        f"/apis/{METRICS}/v1/pods": objects,
    }
    serve(cluster, [], {})
    found = cluster.api.act

    def answer(handler: Any) -> bool:
        path = handler.path.partition("?")[0]
        if path not in answers:
            return found(handler)
        reply(handler, 200, json.dumps(answers[path]).encode())
        return True

    cluster.api.act = answer
    return answers


def test_kinds_of_aggregated_apis_with_pods_are_counted(api: FakeApi, tmp_path: Path) -> None:
    serve_apis(
        Cluster(api, [pod("mine", "team-a")]),
        api_group(APPS, listed("DeploymentPlan", "deploymentplans")),
        api_group(METRICS, listed("PodMetrics", "pods"), listed("NodeMetrics", "nodes", "Cluster")),
    )
    done = audit(api, tmp_path, "Enforce")
    lines = [each for each in done.stderr.splitlines() if each.startswith("not evaluated:")]
    assert lines == [
        f"not evaluated: 1 object of DeploymentPlan.{APPS}/v1: no definition covers this kind"
    ]
    assert "1 not evaluated (1 unknown-kind)" in closing(done.stderr)
    assert "warning" not in done.stderr


def test_what_is_not_known_of_an_aggregated_api_is_a_warning(api: FakeApi, tmp_path: Path) -> None:
    cluster = Cluster(api, [])
    answers = serve_apis(
        cluster,
        api_group(APPS, listed("DeploymentPlan", "deploymentplans")),
        api_group("gone.example.com", freshness="Stale"),
    )
    del answers[f"/openapi/v3/apis/{APPS}/v1"]
    done = audit(api, tmp_path, "Enforce")
    path = f"/openapi/v3/apis/{APPS}/v1"
    assert (
        f"warning: objects of {APPS}/v1 (DeploymentPlan) are not counted:"
        f" their schema is unknown: GET {path}: HTTP 404\n"
    ) in done.stderr
    assert (
        "warning: kinds of gone.example.com/v1 are not counted:"
        " the API that serves them does not answer\n"
    ) in done.stderr
    assert audit(api, tmp_path, "Enforce", "--strict").exit_code == 1


@pytest.mark.parametrize("body", [b'{"items": ' + b"[" * 3000, b"<html>", b"1"])
@pytest.mark.parametrize("more", [(), ("--injected",), ("-o", "json")], ids=" ".join)
def test_a_list_that_cannot_be_read_is_an_error_that_names_it(
    body: bytes, more: tuple[str, ...], api: FakeApi, tmp_path: Path
) -> None:
    found = Cluster(api, []).answer

    def answer(handler: Any) -> bool:
        if not handler.path.startswith("/api/v1/pods?"):
            return found(handler)
        reply(handler, 200, body)
        return True

    api.act = answer
    done = audit(api, tmp_path, "Enforce", *more)
    assert done.exit_code == 2
    assert done.stderr.startswith("error: GET /api/v1/pods: the API server's answer ")


def test_claims_are_checked_and_what_controllers_made_is_not(api: FakeApi, tmp_path: Path) -> None:
    parameters = {"apiVersion": "resource.nvidia.com/v1beta1", "kind": "ComputeDomainChannelConfig"}
    opaque = {"driver": "compute-domain.nvidia.com", "parameters": parameters}
    spec = {"devices": {"requests": [], "config": [{"opaque": opaque}]}}
    named = {"namespace": "team-a", "uid": "u"}
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "p", "controller": True}
    cluster = Cluster(api, [])
    resources = "/apis/resource.k8s.io/v1beta1"
    cluster.others[f"{resources}/resourceclaims"] = [
        {"metadata": {"name": "mine", **named}, "spec": spec},
        {"metadata": {"name": "of-a-pod", **named, "ownerReferences": [owner]}, "spec": spec},
    ]
    labels = {"resource.nvidia.com/computeDomain": "u"}
    cluster.others[f"{resources}/resourceclaimtemplates"] = [
        {"metadata": {"name": "of-a-domain", **named, "labels": labels}, "spec": {"spec": spec}},
        {"metadata": {"name": "other", **named}, "spec": {"spec": {"devices": {}}}},
    ]
    clique = {"metadata": {"name": "u.0", **named}, "daemons": []}
    cliques = "/apis/resource.nvidia.com/v1beta1/computedomaincliques"
    cluster.others[cliques] = [clique]
    done = audit(api, tmp_path, "Enforce", "-o", "json")
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    found = {each["name"]: (each["apiVersion"], each["violations"]) for each in rows}
    assert {name for name, (_, violations) in found.items() if violations} == {"mine"}
    version, (violation,) = found["mine"]
    assert version == "resource.k8s.io/v1beta1"
    assert (violation["field"], violation["reason"]) == ("devices.config", "required")
    assert closing(done.stderr).startswith(
        "5 objects: 2 allowed, 1 refused, 2 not evaluated (2 exempt-sender)"
    )
