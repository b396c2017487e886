"""Kinds that are served in several versions: judged as converted, and told where nobody knows one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.admission.test_review import asked, body, parsed, response
from tests.building import catalog, edited, pytorchjob, raycluster, reasons, request
from tests.cli.running import podgate
from webhook.admission import review
from webhook.admission.judge import decide_review
from webhook.decision.messages import warning_text
from webhook.evaluation.outcome import Allowed
from webhook.evaluation.references import References
from webhook.evaluation.request import Stage

RULES = "defaults: {workingDir: /w}\nrules: {image: {options: [{value: good}]}}"


def converted() -> dict[str, Any]:
    """A RayCluster written in v1alpha1, as the API server shows it to a webhook of v1."""
    document = raycluster()
    return asked(
        kind={"group": "ray.io", "version": "v1", "kind": "RayCluster"},
        resource={"group": "ray.io", "version": "v1", "resource": "rayclusters"},
        requestKind={"group": "ray.io", "version": "v1alpha1", "kind": "RayCluster"},
        requestResource={"group": "ray.io", "version": "v1alpha1", "resource": "rayclusters"},
        object=document,
    )


def test_an_object_written_in_another_version_is_judged_and_patched_as_it_was_converted() -> None:
    found = parsed(body(converted()))
    assert (found.version, found.object["apiVersion"]) == ("v1", "ray.io/v1")
    refused = decide_review(found, catalog(RULES), References())
    assert reasons(refused) == [("image", "options")]
    passed = decide_review(found, catalog("defaults: {workingDir: /w}"), References())
    assert isinstance(passed, Allowed)
    answer = response(review.respond(found, passed))
    assert answer["allowed"] is True
    for change in passed.changes:
        assert change.path[0] == "spec"


@pytest.mark.parametrize("version", ["v1", "v1alpha1"])
def test_both_versions_of_one_layout_are_judged_alike(version: str) -> None:
    document = {**raycluster(), "apiVersion": f"ray.io/{version}"}
    for stage in Stage:
        decision = decide_review(request(document, stage=stage), catalog(RULES), References())
        assert reasons(decision) == [("image", "options")]


def test_an_update_from_one_version_to_the_other_ratchets() -> None:
    """The old object is converted too; what is the same in it is no violation."""
    old = {**raycluster(), "apiVersion": "ray.io/v1"}
    new = edited(old, lambda each: each["metadata"].update(labels={"a": "b"}))
    assert isinstance(decide_review(request(new, old), catalog(RULES), References()), Allowed)


def test_a_version_that_nobody_has_a_definition_for_is_told_on_the_object() -> None:
    document = {**pytorchjob(), "apiVersion": "kubeflow.org/v2"}
    decision = decide_review(request(document), catalog(RULES), References())
    assert isinstance(decision, Allowed)
    assert not decision.is_evaluated
    (warning,) = decision.warnings
    assert warning.reason == "unknown-version"
    told = warning_text(warning)
    assert "PyTorchJob.kubeflow.org/v2" in told
    assert "known are v1" in told
    # Even where it seems to hold no pods: other versions of the kind do.
    bare = {"apiVersion": "kubeflow.org/v2", "kind": "PyTorchJob", "metadata": {}, "spec": {}}
    decision = decide_review(request(bare), catalog(RULES), References())
    assert [each.reason for each in decision.warnings] == ["unknown-version"]


def crd(*versions: tuple[str, bool]) -> dict[str, Any]:
    """A CRD of PyTorchJobs in some versions, served or not, whose schema has pods."""
    containers = {
        "type": "array",
        "items": {
            "type": "object",
            "properties": {
                "name": {"type": "string"},
                "image": {"type": "string"},
                "command": {"type": "array", "items": {"type": "string"}},
            },
        },
    }
    pod = {"type": "object", "properties": {"containers": containers}}
    schema = {
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "properties": {"template": {"type": "object", "properties": {"spec": pod}}},
            }
        },
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "pytorchjobs.kubeflow.org"},
        "spec": {
            "group": "kubeflow.org",
            "names": {"kind": "PyTorchJob", "plural": "pytorchjobs"},
            "scope": "Namespaced",
            "versions": [
                {
                    "name": name,
                    "served": served,
                    "storage": not index,
                    "schema": {"openAPIV3Schema": schema},
                }
                for index, (name, served) in enumerate(versions)
            ],
        },
    }


def test_registration_tells_of_versions_that_are_served_and_unknown(tmp_path: Path) -> None:
    file = tmp_path / "crds.yaml"
    file.write_text(json.dumps(crd(("v1", True), ("v2", True), ("v0", False))))
    done = podgate("registration", "--url", "https://podgate.example.com", "--crds", str(file))
    assert done.exit_code == 0, done.stderr
    assert "PyTorchJob.kubeflow.org/v2" in done.stderr
    assert "no definition is for this version" in done.stderr
    assert "/v0" not in done.stderr
    rules = [
        rule
        for document in yaml.safe_load_all(done.stdout)
        for hook in document["webhooks"]
        for rule in hook["rules"]
        if "pytorchjobs" in rule["resources"]
    ]
    assert rules
    assert all(rule["apiVersions"] == ["v1"] for rule in rules)
