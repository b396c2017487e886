"""Kinds between a workload and its pods: a definition each, or what comes of them is evaluated."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import yaml

from tests.admission.test_exemptions import owned
from tests.building import policy, reasons, request, served, shipped, table
from tests.definitions import document
from webhook.admission.judge import decide_review
from webhook.admission.request_class import classify_request
from webhook.catalog.build import Choices, assemble
from webhook.catalog.catalog import Catalog
from webhook.catalog.definitions import UNDEFINED_KIND
from webhook.documents.problem import Problem
from webhook.evaluation.outcome import Allowed
from webhook.evaluation.references import References
from webhook.evaluation.request import RequestClass, Stage
from webhook.objects.path import read
from webhook.sources.load import Sources, load

OPERATOR = "system:serviceaccount:things-system:things-operator"
RULES = "rules: {security: {hostNetwork: {canEdit: false}}}"


def interface(kind: str, path: str | None = ".spec.template") -> dict[str, Any]:
    """An interface of example.com/v1 whose pods are at a path, None for a kind without."""
    root: dict[str, Any] = {
        "name": kind.lower(),
        "kind": {"group": "example.com", "version": "v1", "kind": kind},
        "statusDefinition": {"statusMappings": {}},
    }
    if path is not None:
        root["specDefinition"] = {"podTemplateSpecPath": path}
    return {
        "apiVersion": "optimization.nvidia.com/v1alpha1",
        "kind": "ResourceInterface",
        "metadata": {"name": f"{kind.lower()}.example.com"},
        "spec": {"structureDefinition": {"rootComponent": root}},
    }


def profile(kind: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "podgate.dev/v1alpha1",
        "kind": "WorkloadProfile",
        "metadata": {"name": f"{kind.lower()}.example.com"},
        "spec": {
            "group": "example.com",
            "kind": kind,
            "versions": ["v1"],
            "resource": f"{kind.lower()}s",
            "controllers": [OPERATOR],
            **spec,
        },
    }


THING = profile(
    "Thing",
    components={"thing": {"role": "worker", "children": "derived"}},
    intermediateKinds=[{"group": "example.com", "kind": "Part"}],
)


def assembled(*documents: dict[str, Any]) -> tuple[Catalog, list[Problem]]:
    given = [document(each) for each in (*documents, policy(RULES))]
    rules, problems = assemble(shipped(), given, Choices(), table())
    assert rules is not None, problems
    return rules, [each for each in problems if each.reason == UNDEFINED_KIND]


def child(owner: str, **spec: Any) -> Any:
    body = {"containers": [{"name": "main", "image": "r.example.com/a:1"}], **spec}
    made = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": body}
    return request(owned(served(made), owner, "example.com/v1"), user=OPERATOR)


def test_shipped_profiles_leave_no_gap() -> None:
    catalog, problems = load(Sources())
    assert catalog is not None
    assert not [each for each in problems if each.reason == UNDEFINED_KIND]
    named = {
        kind
        for definitions in catalog.definitions.values()
        for each in definitions
        for one in (each.profile, *each.profile.others.values())
        for kind in (
            *one.intermediate_kinds,
            *(kind for component in one.components.values() for kind in component.makes),
        )
    }
    assert len(named) > 15
    assert named <= set(catalog.definitions)


def test_what_comes_of_an_undefined_kind_is_evaluated() -> None:
    """Finding A2: a tenant edits the object between, and its controller passes the pods on."""
    rules, problems = assembled(interface("Thing"), THING)
    assert [(each.severity, each.path) for each in problems] == [
        ("warning", "spec.intermediateKinds")
    ]
    assert "Part.example.com" in problems[0].found
    for owner in ("Part", "Thing"):
        assert classify_request(child(owner), rules) is RequestClass.CHILD
        passed = decide_review(child(owner), rules, References())
        assert isinstance(passed, Allowed)
        assert not passed.patch
        for privileged in (
            {"hostNetwork": True},
            {"containers": [{"name": "a", "image": "b", "securityContext": {"privileged": True}}]},
        ):
            decision = decide_review(child(owner, **privileged), rules, References())
            assert reasons(decision) in (
                [("security.hostNetwork", "canEdit")],
                [("security.privileged", "canEdit")],
            )


def test_a_definition_of_the_intermediate_kind_closes_the_gap() -> None:
    rules, problems = assembled(interface("Thing"), THING, interface("Part"), profile("Part"))
    assert not problems
    assert classify_request(child("Thing"), rules) is not RequestClass.CHILD
    edited = {
        "apiVersion": "example.com/v1",
        "kind": "Part",
        "metadata": {"name": "p", "namespace": "team"},
        "spec": {"template": {"spec": {"hostNetwork": True, "containers": []}}},
    }
    for body in (edited, owned(edited, "Thing", "example.com/v1")):
        decision = decide_review(request(body, user="eve"), rules, References())
        assert reasons(decision) == [("security.hostNetwork", "canEdit")]


def test_a_definition_that_states_no_pods_closes_nothing() -> None:
    """Nothing of the pods was evaluated, so what the controller makes of it is."""
    rules, problems = assembled(interface("Thing"), THING, interface("Part", None), profile("Part"))
    assert not problems
    assert classify_request(child("Part"), rules) is RequestClass.CHILD
    decision = decide_review(child("Part", hostNetwork=True), rules, References())
    assert reasons(decision) == [("security.hostNetwork", "canEdit")]


def test_one_version_with_a_gap_is_enough_for_it() -> None:
    """The kinds that only one version of a profile names count for that version."""
    several = profile(
        "Thing",
        versions=["v1", "v2"],
        components={"thing": {"role": "worker"}},
        perVersion={"v2": {"intermediateKinds": [{"group": "example.com", "kind": "Part"}]}},
    )
    second = copy.deepcopy(interface("Thing"))
    second["metadata"]["name"] = "thing.v2.example.com"
    second["spec"]["structureDefinition"]["rootComponent"]["kind"]["version"] = "v2"
    rules, problems = assembled(interface("Thing"), second, several)
    assert len(problems) == 1
    found = {
        each.profile.versions: each.profile for each in rules.definitions["example.com", "Thing"]
    }
    assert {each: bool(one.undefined_kinds) for each, one in found.items()} == {
        ("v1",): False,
        ("v2",): True,
    }


BETWEEN = [
    ("grove.io/v1alpha1", "PodClique", ("spec", "podSpec")),
    ("nvidia.com/v1alpha1", "DynamoComponentDeployment", ("spec", "extraPodSpec")),
    ("nvidia.com/v1beta1", "DynamoComponentDeployment", ("spec", "podTemplate", "spec")),
    ("apps/v1", "ReplicaSet", ("spec", "template", "spec")),
    ("apps/v1", "StatefulSet", ("spec", "template", "spec")),
    ("batch/v1", "Job", ("spec", "template", "spec")),
    ("serving.knative.dev/v1", "Revision", ("spec",)),
    ("serving.knative.dev/v1", "Configuration", ("spec", "template", "spec")),
]
"""Kinds between, with the path of their pod spec."""


@pytest.mark.parametrize(("version", "kind", "path"), BETWEEN)
@pytest.mark.parametrize("stage", [Stage.MUTATE, Stage.VALIDATE])
@pytest.mark.parametrize("user", ["eve", "system:serviceaccount:team-two:builder", "system:admin"])
def test_a_tenant_who_edits_an_object_between_is_evaluated(
    version: str, kind: str, path: tuple[str, ...], stage: Stage, user: str
) -> None:
    rules, _ = assembled()
    old = yaml.safe_load(f"{{apiVersion: {version}, kind: {kind}, metadata: {{name: a}}}}")
    node = old
    for step in path:
        node = node.setdefault(step, {})
    node |= {"terminationGracePeriodSeconds": 30, "containers": [{"name": "main", "image": "r:1"}]}
    old = owned(old, "Deployment", "apps/v1")
    new = copy.deepcopy(old)
    pods = read(new, path)
    pods["hostNetwork"] = True
    pods["containers"][0]["securityContext"] = {"privileged": True}
    decision = decide_review(request(new, old, user=user, stage=stage), rules, References())
    found = {field for field, _ in reasons(decision)}
    assert {"security.hostNetwork", "security.privileged"} <= found


def test_the_cliques_of_a_scaling_group_are_evaluated_anew() -> None:
    """The group states no pods, so nothing of them was evaluated with it."""
    rules, _ = assembled()
    clique = {
        "apiVersion": "grove.io/v1alpha1",
        "kind": "PodClique",
        "metadata": {"name": "a", "namespace": "team"},
        "spec": {"podSpec": {"hostNetwork": True, "containers": [{"name": "a", "image": "b"}]}},
    }
    operator = "system:serviceaccount:grove-system:grove-operator"
    made = owned(clique, "PodCliqueScalingGroup", "grove.io/v1alpha1")
    asked = request(made, user=operator)
    assert classify_request(asked, rules) is RequestClass.CHILD
    decision = decide_review(asked, rules, References())
    assert reasons(decision) == [("security.hostNetwork", "canEdit")]
