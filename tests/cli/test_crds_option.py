"""--crds of the commands: what schemas show is told, and decides."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.running import podgate
from tests.pods.test_coverage import POD, objects

MANIFEST = {
    "apiVersion": "jobset.x-k8s.io/v1alpha2",
    "kind": "JobSet",
    "metadata": {"name": "a"},
    "spec": {"hidden": {"containers": [{"name": "a", "image": "a"}]}},
}


def crd(group: str, kind: str, version: str) -> dict[str, Any]:
    schema = objects(spec=objects(hidden=POD))
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{kind.lower()}s.{group}"},
        "spec": {
            "group": group,
            "names": {"kind": kind, "plural": f"{kind.lower()}s"},
            "versions": [{"name": version, "schema": {"openAPIV3Schema": schema}}],
        },
    }


@pytest.fixture
def crds(tmp_path: Path) -> str:
    folder = tmp_path / "crds"
    folder.mkdir()
    known = crd("jobset.x-k8s.io", "JobSet", "v1alpha2")
    (folder / "known.yaml").write_text(yaml.safe_dump(known))
    (folder / "other.json").write_text(json.dumps(crd("example.com", "Fleet", "v1")))
    (folder / "kustomization.yaml").write_text("kind: Kustomization\n")
    return str(folder)


@pytest.fixture
def manifest(tmp_path: Path) -> str:
    path = tmp_path / "object.yaml"
    path.write_text(yaml.safe_dump(MANIFEST))
    return str(path)


def test_apply_refuses_what_the_schema_shows_and_the_definition_misses(
    crds: str, manifest: str
) -> None:
    assert podgate("apply", manifest).exit_code == 0
    result = podgate("apply", manifest, "--crds", crds)
    assert result.exit_code == 1
    assert "spec.hidden" in result.stderr
    for told in (".spec.hidden", "Fleet.example.com/v1", "Kustomization instead of"):
        assert told in result.stderr


def test_review_and_explain_take_crds(crds: str, manifest: str, tmp_path: Path) -> None:
    body = {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "1",
            "kind": {"group": "jobset.x-k8s.io", "version": "v1alpha2", "kind": "JobSet"},
            "resource": {"group": "jobset.x-k8s.io", "version": "v1alpha2", "resource": "jobsets"},
            "operation": "CREATE",
            "namespace": "team",
            "userInfo": {"username": "someone"},
            "object": MANIFEST,
        },
    }
    path = tmp_path / "review.json"
    path.write_text(json.dumps(body))
    assert podgate("review", str(path)).exit_code == 0
    assert podgate("review", str(path), "--crds", crds).exit_code == 1
    assert podgate("explain", manifest).exit_code == 0
    assert podgate("explain", manifest, "--crds", crds).exit_code == 1


def test_lint_lists_what_crds_show(crds: str, tmp_path: Path) -> None:
    empty = tmp_path / "policy.yaml"
    empty.write_text(
        "apiVersion: podgate.dev/v1alpha1\nkind: ClusterWorkloadPolicy\nmetadata: {name: a}\n"
        "spec:\n  rules: {compute: {gpuDevicesRequest: {max: 4}}}\n"
    )
    result = podgate("lint", str(empty), "--crds", crds, "-o", "json")
    problems = json.loads(result.stdout)["problems"]
    assert {each["reason"] for each in problems} == {
        "kind-ungoverned",
        "not-a-crd",
        "place-uncovered",
    }
    assert result.exit_code == 0


def test_cases_are_run_with_crds(crds: str, tmp_path: Path) -> None:
    folder = tmp_path / "case"
    folder.mkdir()
    case = {
        "object": MANIFEST,
        "expect": {
            "allowed": False,
            "violations": [{"path": "spec.hidden", "reason": "uncovered"}],
        },
    }
    (folder / "case.yaml").write_text(yaml.safe_dump(case))
    assert podgate("test", str(folder)).exit_code == 1
    assert podgate("test", str(folder), "--crds", crds).exit_code == 0


def test_a_folder_that_is_not_there_is_told() -> None:
    for command in (("apply", "-"), ("lint", "-"), ("test", "tests/golden/podtemplate")):
        result = podgate(*command, "--crds", "/nowhere/crds", stdin="{}")
        assert result.exit_code == 2
        assert "/nowhere/crds" in result.stdout + result.stderr
