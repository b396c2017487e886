"""What is already there: `podgate audit`, a policy that is only proposed, and reports of the controller."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.building import policy
from tests.cli.running import podgate
from tests.cli.test_audit import CRDS, crd
from tests.e2e.api import Api, Json, StatusError
from tests.e2e.served import Certificates
from tests.e2e.test_controller import Controllers, soon
from tests.e2e.test_living_cluster import POLICIES, A, B, api, images, put  # noqa: F401 - fixture
from tests.e2e.testbed.cluster import Cluster

pytestmark = pytest.mark.e2e

SPACE = "audited"
REPORTS = "/apis/wgpolicyk8s.io/v1alpha2"


def pod(name: str, image: str) -> Json:
    spec = {"containers": [{"name": "m", "image": image}], "terminationGracePeriodSeconds": 30}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


@pytest.fixture(scope="module")
def space(api: Api) -> Iterator[str]:  # noqa: F811 - the fixture
    document = {"metadata": {"name": SPACE, "labels": {"podgate.dev/governed": "true"}}}
    api.request("POST", "/api/v1/namespaces", document)
    for name, image in (("good", A), ("bad", B)):
        made = pod(name, image)
        made["spec"]["serviceAccountName"] = "default"
        place = f"/api/v1/namespaces/{SPACE}/pods"
        for _ in range(100):
            with contextlib.suppress(StatusError):
                api.request("POST", place, made)
                break
    put(api, images(A))
    yield SPACE
    api.request("DELETE", f"{POLICIES}/images")
    api.request("DELETE", f"/api/v1/namespaces/{SPACE}")


def audit(cluster: Cluster, *more: str) -> Any:
    config = ("--kubeconfig", str(cluster.kubeconfig()), "-n", SPACE)
    return podgate("audit", *config, *more)


def test_what_breaks_a_rule_today_is_told(bare: Cluster, space: str) -> None:
    found = audit(bare)
    assert found.exit_code == 1, found.stderr
    assert f"Pod {space}/bad" in found.stdout
    assert "cluster policy images" in found.stdout
    assert f"Pod {space}/good" not in found.stdout
    assert found.stdout.splitlines()[-1].startswith("2 objects evaluated: 1 would today be")
    rows = [json.loads(line) for line in audit(bare, "-o", "json").stdout.splitlines()]
    assert [(each["name"], each["violations"][0]["policy"]) for each in rows] == [("bad", "images")]


def test_objects_of_a_kind_that_no_definition_covers_are_counted(
    bare: Cluster,
    api: Api,  # noqa: F811 - the fixture
    space: str,
) -> None:
    definition = crd("Reactor", ["v1"])
    name = definition["metadata"]["name"]
    api.request("POST", CRDS, definition)
    try:
        made = {
            "apiVersion": "example.com/v1",
            "kind": "Reactor",
            "metadata": {"name": "core"},
            "spec": {"template": {"spec": {"containers": [{"name": "m", "image": B}]}}},
        }

        for _ in range(100):
            # A kind that is not served yet is answered by a page of text.
            with contextlib.suppress(StatusError, ValueError):
                api.request("POST", f"/apis/example.com/v1/namespaces/{space}/reactors", made)
                break
            time.sleep(0.1)
        told = "not evaluated: 1 object of Reactor.example.com/v1: no definition covers this kind"
        found = audit(bare)
        assert told in found.stderr.splitlines()
        assert "1 unknown-kind" in found.stderr
    finally:
        api.request("DELETE", f"{CRDS}/{name}")


def test_a_policy_that_is_not_there_yet_tells_what_it_would_bring(
    bare: Cluster,
    api: Api,  # noqa: F811 - the fixture
    space: str,
    tmp_path: Path,
) -> None:
    file = tmp_path / "candidate.yaml"
    body = f"defaults: {{compute: {{cpuCoreRequest: 0.5}}}}\nrules: {{image: {{options: [{B}]}}}}"
    file.write_text(yaml.safe_dump(policy(body, "images")))
    found = audit(bare, "--candidate", str(file))
    assert found.exit_code == 1, found.stderr
    assert f"Pod {space}/good\n  refused: image" in found.stdout
    assert f"Pod {space}/bad\n  written: compute.cpuCoreRequest" in found.stdout
    assert api.request("GET", f"{POLICIES}/images")["spec"]["rules"] == images(A)["spec"]["rules"]
    file.write_text(yaml.safe_dump(policy("rules: {imagee: {options: [x]}}")))
    found = audit(bare, "--candidate", str(file))
    assert found.exit_code == 2
    assert "did you mean image" in found.stderr


def test_a_namespace_that_is_not_governed_is_told(bare: Cluster) -> None:
    found = podgate("audit", "--kubeconfig", str(bare.kubeconfig()), "-n", "kube-system")
    assert found.exit_code == 2
    assert found.stderr == "error: no governed namespace kube-system\n"


def test_what_another_webhook_added_is_listed_and_then_excused(
    bare: Cluster,
    api: Api,  # noqa: F811 - the fixture
    space: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The real controller adopts a Pod that has more than its template."""
    made = pod("adopted", A)
    made["metadata"]["labels"] = {"app": "adopted"}
    made["spec"]["serviceAccountName"] = "default"
    made["spec"]["containers"].append({"name": "spy", "image": "registry.example.com/spy:[1]"})
    api.request("POST", f"/api/v1/namespaces/{SPACE}/pods", made)
    template = {"metadata": {"labels": {"app": "adopted"}}, "spec": pod("", A)["spec"]}
    selector = {"matchLabels": {"app": "adopted"}}
    sets = f"/apis/apps/v1/namespaces/{SPACE}/replicasets"
    document = {
        "metadata": {"name": "adopting"},
        "spec": {"replicas": 1, "selector": selector, "template": template},
    }
    api.request("POST", sets, document)
    place = f"/api/v1/namespaces/{SPACE}/pods/adopted"

    def is_adopted() -> bool:
        return bool(api.request("GET", place)["metadata"].get("ownerReferences"))

    try:
        until = time.monotonic() + 60
        while not is_adopted():
            assert time.monotonic() < until, "the controller does not adopt the Pod"
            time.sleep(0.2)
        found = audit(bare, "--injected")
        assert found.exit_code == 1, found.output
        assert f"# Pod {SPACE}/adopted, which ReplicaSet adopting controls" in found.stdout
        listed = {"containers": [{"name": "spy", "image": "registry.example.com/spy:[[]1]"}]}
        assert yaml.safe_load(found.stdout) == listed
        file = tmp_path / "injected.yaml"
        file.write_text(found.stdout)
        monkeypatch.setenv("PODGATE_INJECTED", str(file))
        again = audit(bare, "--injected")
        assert (again.exit_code, again.stdout) == (0, ""), again.output
    finally:
        api.request("DELETE", f"{sets}/adopting")
        with contextlib.suppress(StatusError):
            api.request("DELETE", place)


def report_crd() -> Json:
    """The least that a cluster with PolicyReports has."""
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    names = {"kind": "PolicyReport", "plural": "policyreports", "singular": "policyreport"}
    version = {
        "name": "v1alpha2",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": anything},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "policyreports.wgpolicyk8s.io"},
        "spec": {
            "group": "wgpolicyk8s.io",
            "scope": "Namespaced",
            "names": names,
            "versions": [version],
        },
    }


def test_the_controller_writes_one_report_for_each_namespace(
    bare: Cluster,
    api: Api,  # noqa: F811 - the fixture
    space: str,
    certificates: Certificates,
    tmp_path: Path,
) -> None:
    bare.apply_crds([report_crd()])
    controllers = Controllers(bare, "https://127.0.0.1:9", certificates, tmp_path)
    controllers.start("scanner", "http://127.0.0.1:9/statusz", "--scan-every", "2")
    place = f"{REPORTS}/namespaces/{space}/policyreports/podgate"
    try:
        soon(lambda: api.find(place), controllers.log)
        found = api.request("GET", place)
        assert (found["summary"]["pass"], found["summary"]["fail"]) == (1, 1)
        (result,) = found["results"]
        assert (result["policy"], result["rule"]) == ("images", "image/options")
        assert [each["name"] for each in result["resources"]] == ["bad"]
        put(api, images(A, B))
        soon(lambda: api.request("GET", place)["summary"]["pass"] == 2, controllers.log)
        assert api.request("GET", place)["results"] == []
    finally:
        controllers.stop()
        podgate("hooks", "remove", "--kubeconfig", str(bare.kubeconfig()))
        put(api, images(A))
