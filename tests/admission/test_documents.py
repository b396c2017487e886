"""Our own kinds as they are written: every problem at once, and only what the change brings."""

from __future__ import annotations

import copy
from typing import Any

import orjson
import pytest

from tests.building import asset, catalog, policy, shipped, table
from tests.conformance.fixtures import compile_jq
from tests.decision.test_exceptions import exception
from tests.definitions import base
from webhook.admission.own_documents import review_document
from webhook.admission.review import respond
from webhook.catalog.build import Choices, Documents, assemble, parse_documents
from webhook.catalog.catalog import Catalog
from webhook.catalog.watched_documents import Fixed, WatchedDocuments
from webhook.decision.messages import warning_text
from webhook.documents.source import SourceDocument
from webhook.evaluation.outcome import Allowed, Decision, Denied
from webhook.evaluation.request import Request, Stage
from webhook.policy.envelope import Context


def request(document: dict[str, Any], old: dict[str, Any] | None = None) -> Request:
    group, _, version = document["apiVersion"].rpartition("/")
    metadata = document["metadata"]
    return Request(
        group,
        version,
        document["kind"],
        "UPDATE" if old else "CREATE",
        document,
        old=old,
        uid="u",
        namespace=metadata.get("namespace", ""),
        name=metadata.get("name", ""),
        stage=Stage.DOCUMENTS,
    )


def judge(document: dict[str, Any], *, old: Any = None, known: Catalog | None = None) -> Decision:
    context = Context(exceptions_namespace="podgate-exceptions")
    return review_document(request(document, old), known or catalog(), context, compile_jq)


def reasons(decision: Decision) -> list[str]:
    assert isinstance(decision, Denied)
    return sorted({each.reason for each in decision.problems})


def test_all_problems_of_a_policy_are_in_one_answer() -> None:
    bad = policy("rules: {imagee: {options: [x]}, compute: {cpuCoreRequest: {min: 3, max: 2}}}")
    decision = judge(bad)
    assert reasons(decision) == ["min-above-max", "unknown-field"]
    status = orjson.loads(respond(request(bad), decision))["response"]["status"]
    first, *lines = status["message"].splitlines()
    assert first == "podgate refused this document: 2 problems"
    assert any("did you mean image" in each for each in lines)
    assert {each["field"] for each in status["details"]["causes"]} == {
        "spec.rules.imagee",
        "spec.rules.compute.cpuCoreRequest.min",
    }


def test_a_good_policy_passes_with_warnings_for_other_spellings() -> None:
    assert isinstance(judge(policy("rules: {image: {options: [x]}}")), Allowed)
    decision = judge(policy("rules: {Image: {options: [x]}}"))
    assert isinstance(decision, Allowed)
    assert decision.warnings


def test_a_policy_that_contradicts_one_in_force_is_refused_and_its_own_next_version_is_not() -> (
    None
):
    one = policy("rules: {image: {options: [x]}}", "one")
    known = catalog(one)
    assert reasons(judge(policy("rules: {image: {options: [y]}}", "two"), known=known)) == [
        "conflict"
    ]
    newer = policy("rules: {image: {options: [y]}}", "one")
    assert isinstance(judge(newer, old=one, known=known), Allowed)


def test_what_was_wrong_before_is_not_told_to_somebody_else() -> None:
    known = catalog(policy("rules: {compute: {cpuCoreRequest: {max: 4}}}", "one"))
    assert isinstance(judge(policy("rules: {image: {options: [y]}}", "two"), known=known), Allowed)


def test_an_asset_has_to_be_there_before_it_is_imposed() -> None:
    imposing = policy("imposedAssets: [data]")
    assert reasons(judge(imposing)) == ["unknown-asset"]
    known = catalog(asset("data", "/data", "/mnt"))
    assert isinstance(judge(imposing, known=known), Allowed)


def living(*documents: dict[str, Any]) -> Catalog:
    """A catalog of objects of the cluster."""
    fixed = Fixed(shipped(), Documents(), Choices(), table())
    keys = (
        (e["kind"], e["metadata"].get("namespace", ""), e["metadata"]["name"]) for e in documents
    )
    found = WatchedDocuments().take(dict(zip(keys, documents, strict=True)), fixed).catalog
    assert found is not None
    return found


def test_an_asset_that_is_imposed_may_not_become_one_that_cannot_be() -> None:
    data, imposing = asset("data", "/data", "/mnt"), policy("imposedAssets: [data]", "imposing")
    secret = copy.deepcopy(data)
    secret["spec"] = {
        "meta": {**data["spec"]["meta"], "kind": "secret-volume"},
        "spec": {"secret": "s", "mountPath": "/mnt"},
    }
    decision = judge(secret, old=data, known=living(data, imposing))
    assert reasons(decision) == ["asset-with-credential"]
    assert isinstance(decision, Denied)
    assert "ClusterWorkloadPolicy imposing" in decision.problems[0].found
    assert isinstance(judge(secret, old=data, known=living(data)), Allowed)
    moved = copy.deepcopy(data)
    moved["spec"]["spec"]["path"] = "/other"
    assert isinstance(judge(moved, old=data, known=living(data, imposing)), Allowed)


def test_two_assets_of_the_cluster_have_two_ids() -> None:
    data = asset("data", "/data", "/mnt")
    other = copy.deepcopy(data)
    other["metadata"]["name"] = "other"
    assert reasons(judge(other, known=living(data))) == ["duplicate-asset"]
    assert isinstance(judge(data, known=living(data)), Allowed)


def test_a_policy_whose_scope_changes_is_not_held_against_itself() -> None:
    before = policy("defaults: {imagePullPolicy: Always}", "pull", scope="department")
    before["spec"]["namespaceSelector"] = {"matchLabels": {"department": "vision"}}
    newer = policy("rules: {imagePullPolicy: {options: [{value: Never}]}}", "pull", scope="tenant")
    decision = judge(newer, old=before, known=living(before))
    assert isinstance(decision, Allowed)
    assert decision.warnings == ()


def test_definitions_profiles_and_exceptions_are_judged_too() -> None:
    interface = base()
    assert isinstance(judge(interface), Allowed)
    interface["spec"]["structureDefinition"]["rootComponent"]["specDefinition"] = {
        "podTemplateSpecPath": ".spec | ("
    }
    assert "not-jq" in reasons(judge(interface))
    profile = {
        "apiVersion": "podgate.dev/v1alpha1",
        "kind": "WorkloadProfile",
        "metadata": {"name": "x"},
        "spec": {"group": "a.example.com", "kind": "A", "versions": ["v1"]},
    }
    assert reasons(judge(profile)) == ["missing-field"]
    assert isinstance(judge(exception()), Allowed)
    away = exception()
    away["metadata"]["namespace"] = "team"
    assert reasons(judge(away)) == ["not-home"]


@pytest.mark.parametrize("part", ["metadata", "status"])
def test_what_is_not_the_spec_is_nobodys_business(part: str) -> None:
    broken = policy("rules: {imagee: {options: [x]}}")
    newer = copy.deepcopy(broken)
    newer.setdefault(part, {})["finalizers" if part == "metadata" else "x"] = ["a"]
    assert isinstance(judge(newer, old=broken), Allowed)


def test_a_generated_name_is_no_fault() -> None:
    made = policy("rules: {image: {options: [x]}}")
    made["metadata"] = {"generateName": "p-"}
    assert isinstance(judge(made), Allowed)


def test_other_groups_are_not_judged() -> None:
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {}}
    decision = judge(pod)
    assert isinstance(decision, Allowed)
    assert not decision.is_evaluated


@pytest.mark.parametrize(
    "source",
    ["policies/images.yaml", "ConfigMap podgate-system/team, key a.yaml, WorkloadPolicy images"],
)
def test_a_name_that_a_file_or_a_configmap_has_is_a_warning(source: str) -> None:
    known = policy("rules: {image: {options: [x]}}", "images")
    given = parse_documents([SourceDocument(source, 1, known, {}, {})], Context())
    taken, _ = assemble(shipped(), given, Choices(), table())
    decision = judge(known, known=taken)
    assert isinstance(decision, Allowed)
    (told,) = decision.warnings
    assert told.reason == "hidden"
    assert source in warning_text(told)
    other = judge(policy("rules: {image: {options: [x]}}", "others"), known=taken)
    assert isinstance(other, Allowed)
    assert not other.warnings
