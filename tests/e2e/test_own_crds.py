"""Our own kinds on a real API server: what is let in, kept, refused and shown."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.running import podgate
from tests.decision.test_exceptions import exception
from tests.e2e.api import Api, Json, StatusError
from tests.e2e.testbed.cluster import Cluster
from tests.everything import defaults, rules
from webhook.interface import names
from webhook.sources.files import read_all
from webhook.sources.load import shipped_paths

pytestmark = pytest.mark.e2e

PATH = "/apis/podgate.dev/v1alpha1"
STRICT = "dryRun=All&fieldValidation=Strict"
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def api(bare: Cluster) -> Iterator[Api]:
    """The cluster with our kinds, brought by the command."""
    found = podgate("crds", "install", "--kubeconfig", str(bare.kubeconfig()))
    assert found.exit_code == 0, found.stderr
    bare.wait_established({each.full for each in names.OWN})
    with contextlib.closing(Api(bare)) as made:
        yield made


def cluster_policy(**spec: Any) -> Json:
    return {
        "apiVersion": "podgate.dev/v1alpha1",
        "kind": "ClusterWorkloadPolicy",
        "metadata": {"name": "p"},
        "spec": spec,
    }


def place(kind: str, namespace: str = "default") -> str:
    found = next(each for each in names.OWN if each.kind == kind)
    return (
        f"{PATH}/namespaces/{namespace}/{found.plural}"
        if found.namespaced
        else (f"{PATH}/{found.plural}")
    )


def created(api: Api, document: Json, query: str = STRICT) -> Json:
    found: Json = api.request("POST", f"{place(document['kind'])}?{query}", document)
    return found


def refused(api: Api, document: Json) -> str:
    with pytest.raises(StatusError) as error:
        created(api, document)
    return str(error.value)


def test_every_definition_is_structural_and_established(api: Api) -> None:
    for kind in names.OWN:
        found = api.request(
            "GET", f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{kind.full}"
        )
        conditions = {each["type"]: each["status"] for each in found["status"]["conditions"]}
        assert conditions["Established"] == "True"
        assert "NonStructuralSchema" not in conditions


def test_nothing_of_a_policy_with_every_field_is_dropped(api: Api) -> None:
    body = {"defaults": defaults(), "rules": rules()}
    made = created(api, cluster_policy(**body))
    assert {key: made["spec"][key] for key in body} == body


def test_other_spellings_and_mistakes_reach_podgate(api: Api) -> None:
    spec = {"rules": {"Compute": {"cpuCoreRequest": {"Max": 4}}, "imagee": {"options": ["a"]}}}
    made = created(api, cluster_policy(**spec))
    assert made["spec"]["rules"] == spec["rules"]


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ({"rules": {}, "workloadTypes": ["training"], "kinds": [{"kind": "Pod"}]}, "not both"),
        ({"rules": {}, "scope": "department"}, "namespaceSelector"),
        ({"rules": {}, "scope": "project"}, "Unsupported value"),
        ({"rules": {}, "enforcement": "Off"}, "Unsupported value"),
        ({"rules": {}, "containersss": "all"}, "unknown field"),
        ({"rules": {}, "workloadTypes": ["gaming"]}, "Unsupported value"),
    ],
)
def test_the_api_server_refuses_what_it_can_see(api: Api, spec: Json, told: str) -> None:
    assert told in refused(api, cluster_policy(**spec))


def test_shipped_profiles_and_the_system_policy_are_taken_whole(api: Api) -> None:
    documents, _ = read_all(shipped_paths())
    seen = set()
    for each in documents:
        if each.data["apiVersion"] != "podgate.dev/v1alpha1":
            continue
        made = created(api, each.data)
        assert made["spec"] == each.data["spec"], each.origin
        seen.add(each.data["kind"])
    assert seen == {"WorkloadProfile", "ClusterWorkloadPolicy"}


def test_exceptions_need_a_moment_and_objects(api: Api) -> None:
    good = exception()
    good["metadata"]["namespace"] = "default"
    made = created(api, good)
    assert made["spec"] == good["spec"]
    for change in ({"until": "tomorrow"}, {"objects": []}):
        bad = {**good, "spec": {**good["spec"], **change}}
        assert "spec." in refused(api, bad)


def test_kubectl_lists_and_explains_them(bare: Cluster, api: Api) -> None:
    made = cluster_policy(rules={"image": {"options": ["a"]}}, enforcement="Warn")
    created(api, made, "fieldValidation=Strict")
    try:
        shown = bare.kubectl("get", "cwpol", "p").stdout.splitlines()
        assert shown[0].split() == ["NAME", "SCOPE", "ENFORCEMENT", "READY", "AGE"]
        told = bare.kubectl("explain", "cwpol.spec.rules.compute.cpuCoreRequest").stdout
        assert "cpuCoreRequest" in told
        ready = {"type": "Ready", "status": "True", "reason": "InForce", "message": "ok"}
        condition = {**ready, "lastTransitionTime": "2026-11-22T00:00:00Z"}
        effective = {"scope": "cluster", "enforcement": "Warn"}
        status = {"status": {**effective, "conditions": [condition], "generationInForce": 3}}
        patch = "application/merge-patch+json"
        api.request("PATCH", f"{place(made['kind'])}/p/status", status, patch)
        waited = bare.kubectl("wait", "cwpol/p", "--for=condition=Ready", "--timeout=5s")
        assert "condition met" in waited.stdout
        shown = bare.kubectl("get", "cwpol", "p").stdout.splitlines()
        assert shown[1].split()[:4] == ["p", "cluster", "Warn", "True"]
    finally:
        api.request("DELETE", f"{place(made['kind'])}/p")


def test_the_examples_of_the_pages_are_taken(api: Api) -> None:
    folder = ROOT / "policies" / "examples"
    for file in sorted(folder.rglob("*.yaml")):
        for document in yaml.safe_load_all(file.read_text("utf-8")):
            ours = isinstance(document, dict) and str(document.get("apiVersion", "")).startswith(
                "podgate.dev/"
            )
            if ours and document["kind"] in {"ClusterWorkloadPolicy", "WorkloadAsset"}:
                assert created(api, document)["spec"] == document["spec"], file
