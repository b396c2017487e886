"""An object and what the operator's conversion webhook makes of it are decided alike."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from tests.decision.test_operator_defaults import FUNCTIONS, POLICIES, TEAM, catalog_of
from webhook.cases.run_offline import evaluate_manifest
from webhook.evaluation.outcome import Allowed, Denied
from webhook.evaluation.references import References

Json = dict[str, Any]
MAIN = {
    "image": "registry.example.com/app:1",
    "resources": {"limits": {"cpu": "1", "memory": "2Gi"}, "requests": {"cpu": "1"}},
}
POD: Json = {
    "containers": [{"name": "main", **MAIN}],
    "terminationGracePeriodSeconds": 60,
    "serviceAccountName": "builder",
}
TEMPLATE = {"metadata": {"labels": {"app": "a"}}, "spec": POD}


def obj(version: str, kind: str, spec: Json) -> Json:
    """An object of a kind."""
    return {
        "apiVersion": version,
        "kind": kind,
        "metadata": {"name": "a"},
        "spec": copy.deepcopy(spec),
    }


def alike(group: str, kind: str, versions: tuple[str, ...], spec: Json) -> list[Json]:
    """The same spec in versions of one layout."""
    return [obj(f"{group}/{version}", kind, spec) for version in versions]


BESIDE = {"terminationGracePeriodSeconds": 60, "serviceAccountName": "builder"}
# What operators' own conversions return (tests/e2e/operators/test_operator_defaults.py compares it), and
# for operators that do not build there, by the files that docs/operator-defaults.md names.
CONVERSIONS = FUNCTIONS.with_name("converted.jsonl")
CONVERTED: dict[str, list[Json]] = {
    "dynamo-graph": [
        obj(
            "nvidia.com/v1alpha1",
            "DynamoGraphDeployment",
            {"services": {"a": {"replicas": 2, "extraPodSpec": {**BESIDE, "mainContainer": MAIN}}}},
        ),
        obj(
            "nvidia.com/v1beta1",
            "DynamoGraphDeployment",
            {"components": [{"name": "a", "replicas": 2, "podTemplate": {"spec": POD}}]},
        ),
    ],
    "dynamo-component": [
        obj(
            "nvidia.com/v1alpha1",
            "DynamoComponentDeployment",
            {"serviceName": "a", "replicas": 2, "extraPodSpec": {**BESIDE, "mainContainer": MAIN}},
        ),
        obj(
            "nvidia.com/v1beta1",
            "DynamoComponentDeployment",
            {"name": "a", "replicas": 2, "podTemplate": {"spec": POD}},
        ),
    ],
    "notebook": alike(
        "kubeflow.org", "Notebook", ("v1alpha1", "v1beta1", "v1"), {"template": {"spec": POD}}
    ),
    "llm": alike(
        "serving.kserve.io",
        "LLMInferenceService",
        ("v1alpha1", "v1alpha2"),
        {"model": {"uri": "hf://a"}, "replicas": 3, "template": POD},
    ),
    "seldon": alike(
        "machinelearning.seldon.io",
        "SeldonDeployment",
        ("v1alpha2", "v1alpha3", "v1"),
        {"predictors": [{"name": "p", "graph": {"name": "main"}, "componentSpecs": [TEMPLATE]}]},
    ),
}
for line in CONVERSIONS.read_text("utf-8").splitlines():
    row = json.loads(line)
    before = row["before"]
    name = f"{row['operator']}-{before['kind']}-{before['metadata']['name']}-{before['apiVersion']}"
    CONVERTED[name] = [before, row["after"]]


def outcome(found: Json, policy: str) -> Any:
    """What is decided, without paths, which differ between versions."""
    decision = evaluate_manifest(found, "f.yaml", catalog_of(policy), References(), TEAM).decision
    if isinstance(decision, Denied):
        return sorted((e.field, e.rule, e.value, str(e.allowed)) for e in decision.violations)
    assert isinstance(decision, Allowed)
    return sorted((each.field, json.dumps(each.value, sort_keys=True)) for each in decision.changes)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("name", CONVERTED)
def test_every_version_of_an_object_is_decided_alike(name: str, policy: str) -> None:
    first, *others = (outcome(each, policy) for each in CONVERTED[name])
    assert others
    assert all(each == first for each in others), (first, others)


@pytest.mark.parametrize("name", CONVERTED)
def test_the_policies_say_something_of_every_converted_kind(name: str) -> None:
    assert all(outcome(each, "defaults") or outcome(each, "maxima") for each in CONVERTED[name])
