"""Items of pods and of annotations: updates, our own output again, and what Kubernetes adds."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.building import (
    annotated,
    catalog,
    container,
    deployment,
    edited,
    job,
    mutated,
    pod,
    policy,
    reasons,
    refused,
    result,
    validated,
)
from webhook.decision.messages import change_text, refusal
from webhook.evaluation.outcome import Allowed, Denied

URLS = "podgate.dev/exposed-urls"
EVERYTHING = """
defaults:
  annotations: {instances: [{name: example.com/team, value: S3CRET}]}
  labels: {instances: [{name: team, value: vision}]}
  imagePullSecrets: [registry-a]
  ports: {instances: [{name: web, container: 8080, serviceType: ClusterIP}]}
  exposedUrls: {instances: [{name: nb, container: 8888}], attributes: {toolType: jupyter}}
  relatedUrls: {instances: [{name: wiki, url: 'https://wiki.example.com', type: docs}]}
"""
CLOSED = """
rules:
  annotations: {instances: {canAdd: false}}
  labels: {instances: {canAdd: false}}
  imagePullSecrets: {instances: {canAdd: false}, options: [registry-a], canEdit: false}
  ports: {instances: {canAdd: false}, attributes: {container: {min: 1024}}}
  exposedUrls: {instances: {canAdd: false}, attributes: {container: {min: 1024}}}
"""
FIELDS = {"annotations", "labels", "imagePullSecrets", "ports", "exposedUrls"}


def full(kind: Any = job) -> Any:
    """An object with something in each of the places."""
    document = kind(container(ports=[{"containerPort": 80}]))
    document["metadata"]["annotations"] = {URLS: '[{"name":"mine","container":80}]'}
    target = document if kind is pod else document["spec"]["template"]
    metadata = target.setdefault("metadata", {})
    metadata.setdefault("annotations", {})["example.com/note"] = "S3CRET"
    metadata["labels"] = {"mine": "x"}
    target["spec"]["imagePullSecrets"] = [{"name": "mine"}]
    return document


@pytest.mark.parametrize("kind", [pod, job])
def test_our_own_output_is_complete(kind: Any) -> None:
    rules = catalog(policy(EVERYTHING))
    once = result(rules, kind(container()))
    again = mutated(rules, once)
    assert isinstance(again, Allowed)
    assert not again.patch
    assert isinstance(validated(rules, once), Allowed)


@pytest.mark.parametrize("kind", [pod, job])
def test_everything_is_judged_on_create(kind: Any) -> None:
    found = {field.partition(".")[0] for field, _ in refused(catalog(policy(CLOSED)), full(kind))}
    assert found == FIELDS


def test_what_was_there_is_no_violation() -> None:
    old = full()
    new = edited(old, lambda each: each["spec"]["template"]["spec"].update(priority=1))
    rules = catalog(policy(CLOSED))
    for decide in (mutated, validated):
        decision = decide(rules, new, old)
        assert isinstance(decision, Allowed), reasons(decision)


def test_strict_policies_judge_what_was_there() -> None:
    old = full(deployment)
    new = edited(old, lambda each: each["spec"].update(minReadySeconds=5))
    rules = catalog(policy(CLOSED, existing="strict"))
    assert {field.partition(".")[0] for field, _ in refused(rules, new, old)} == FIELDS


def test_an_unreadable_annotation_that_was_there_is_no_violation() -> None:
    rules = catalog(policy(CLOSED))
    old = job(container())
    old["metadata"]["annotations"] = {URLS: "["}
    new = edited(old, lambda each: each["spec"].update(backoffLimit=1))
    assert isinstance(mutated(rules, new, old), Allowed)
    worse = edited(old, lambda each: each["metadata"]["annotations"].update({URLS: "[S3CRET"}))
    assert refused(rules, worse, old) == [("exposedUrls", "wrong-type")]


@pytest.mark.parametrize(
    "text",
    [
        "[",
        "7",
        '"S3CRET"',
        '{"name": "x"}',
        "[[]]",
        '[{"name": {"a": "S3CRET"}}]',
        "[NaN]",
        "[" * 5000,
    ],
)
def test_text_that_is_no_list_of_items_is_told_without_it(text: str) -> None:
    document = job(container())
    document["metadata"]["annotations"] = {URLS: text}
    decision = mutated(catalog(policy(EVERYTHING)), document)
    assert reasons(decision) == [("exposedUrls", "wrong-type")]
    assert isinstance(decision, Denied)
    assert "S3CRET" not in refusal(decision.violations)


@pytest.mark.parametrize(
    "value", [7, "x", [None], [7], [{"name": 7}], [{"containerPort": "x"}], {}]
)
@pytest.mark.parametrize("where", ["ports", "imagePullSecrets", "annotations", "labels"])
def test_odd_values_raise_nothing(where: str, value: Any) -> None:
    document = pod(container())
    holder = {"ports": document["spec"]["containers"][0], "imagePullSecrets": document["spec"]}
    holder.get(where, document["metadata"])[where] = value
    for rules in (catalog(policy(EVERYTHING)), catalog(policy(CLOSED))):
        assert isinstance(mutated(rules, document), Allowed | Denied)
        assert isinstance(validated(rules, document), Allowed | Denied)


def test_values_of_annotations_are_never_told() -> None:
    rules = catalog(
        policy(
            f"{EVERYTHING}\nrules: {{annotations: {{instances: {{canAdd: false, "
            "locked: [example.com/team]}}}"
        )
    )
    document = pod(container())
    document["metadata"]["annotations"] = {"example.com/team": "S3CRET2", "x": "S3CRET3"}
    decision = mutated(rules, document)
    assert isinstance(decision, Denied)
    assert len(decision.violations) == 2
    assert "S3CRET" not in refusal(decision.violations)
    allowed = mutated(rules, pod(container()))
    assert isinstance(allowed, Allowed)
    secrets = [each for each in allowed.changes if each.field == "annotations"]
    assert secrets
    assert not any("S3CRET" in change_text(each) for each in secrets)


def test_the_bookkeeping_of_kubectl_is_no_annotation_of_the_users() -> None:
    rules = catalog(policy(CLOSED))
    assert isinstance(mutated(rules, annotated(pod(container()))), Allowed)
    restarted = edited(
        deployment(container()),
        lambda each: each["spec"]["template"]["metadata"].update(
            labels={}, annotations={"kubectl.kubernetes.io/restartedAt": "2025-01-31T12:00:00Z"}
        ),
    )
    assert isinstance(mutated(rules, restarted), Allowed)


def test_ports_of_the_nodes_network_are_not_tampered_with() -> None:
    rules = catalog(policy(f"{EVERYTHING}\nrules: {{ports: {{instances: {{locked: [web]}}}}}}"))
    port = {"containerPort": 8080, "hostPort": 8080, "name": "web", "protocol": "TCP"}
    assert isinstance(mutated(rules, pod(container(ports=[port]), hostNetwork=True)), Allowed)
    assert refused(rules, pod(container(ports=[port]))) == [("ports", "locked")]


def test_a_dropped_default_comes_back_as_it_was() -> None:
    rules = catalog(policy(EVERYTHING))
    old = result(rules, job(container()))
    urls = json.loads(old["metadata"]["annotations"][URLS])
    assert urls == [{"name": "nb", "container": 8888, "toolType": "jupyter"}]
    new = edited(old, lambda each: each["metadata"].pop("annotations"))
    new["spec"]["template"]["spec"].pop("imagePullSecrets")
    new["spec"]["template"]["spec"]["containers"][0].pop("ports")
    suspended = {**old, "spec": {**old["spec"], "suspend": True}}
    assert result(rules, new, suspended)["metadata"] == old["metadata"]


def test_exclude_rules_bind_the_annotation() -> None:
    rules = catalog(
        policy(
            "defaults: {tolerations: {instances: [{key: gpu, operator: Exists, effect: Any}]}}\n"
            "rules: {tolerations: {attributes: {exclude: {canEdit: false}}}}"
        )
    )
    document = pod(container())
    document["metadata"]["annotations"] = {
        "podgate.dev/exclude": '{"tolerations": ["gpu+Exists++Any"]}'
    }
    assert isinstance(mutated(rules, pod(container())), Allowed)
    assert refused(rules, document)
