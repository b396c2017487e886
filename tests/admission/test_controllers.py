"""Who is a controller (semantics §11.4): exact users by owner kind; everybody else is a person."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import yaml

from tests.admission.test_exemptions import owned
from tests.building import (
    catalog,
    deployment,
    edited,
    job,
    pod,
    policy,
    reasons,
    request,
    served,
)
from webhook.admission.judge import decide_review
from webhook.admission.request_class import classify_request
from webhook.catalog.catalog import Catalog
from webhook.decision.messages import problem_text
from webhook.documents.yaml_source import read_documents
from webhook.evaluation.outcome import Allowed, Decision
from webhook.evaluation.references import References
from webhook.evaluation.request import Request, RequestClass, Stage
from webhook.evaluation.trusted_controllers import TrustedControllers, parse_controllers

FIXED = """
defaults:
  security: {allowPrivilegeEscalation: false}
  workingDir: /w
  environmentVariables: {instances: [{name: A, value: b}, {name: C, value: d}]}
rules:
  security: {allowPrivilegeEscalation: {canEdit: false}}
  environmentVariables: {instances: {locked: [A]}}
"""
SCALARS = """
defaults: {security: {allowPrivilegeEscalation: false}, workingDir: /w}
rules: {security: {allowPrivilegeEscalation: {canEdit: false}}}
"""
# The API server accepts these names from credentials that are no listed controller's.
STRANGERS = [
    "eve",
    "",
    "system:serviceaccount:team:builder",
    "system:serviceaccount:team-two:builder",
    "system:serviceaccount:kube-system:builder",
    "system:serviceaccount:kube-system:cronjob-controller",
    "system:serviceaccount:kube-system:deployment-controller:x",
    "system:serviceaccount:team-two:kube-system:deployment-controller",
    "system:admin",
    "system:anonymous",
    "system:masters",
    "system:node:worker-1",
    "system:bootstrap:abcdef",
    "system:kube-scheduler",
    "system:apiserver",
]


def answer(rules: Catalog, asked: Request) -> Decision:
    return decide_review(asked, rules, References())


def main_of(document: Any) -> Any:
    found = document["spec"]["template"]["spec"]["containers"][0]
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize("user", STRANGERS)
@pytest.mark.parametrize(
    "owner",
    [
        ("Deployment", "apps/v1"),
        ("Thing", "example.com/v1"),
        ("JobSet", "jobset.x-k8s.io/v1alpha2"),
    ],
)
def test_a_person_with_a_controller_reference_gets_required_defaults_only(
    user: str, owner: tuple[str, str]
) -> None:
    rules = catalog(FIXED)
    asked = request(owned(served(deployment()), *owner), user=user)
    assert classify_request(asked, rules) is RequestClass.OWNED
    decision = answer(rules, asked)
    assert isinstance(decision, Allowed)
    main = main_of(decision.object)
    assert main["securityContext"] == {"allowPrivilegeEscalation": False}
    assert main["env"] == [{"name": "A", "value": "b"}]
    assert "workingDir" not in main
    # Asked again about its own result, it writes nothing, and the validating pass agrees.
    again = answer(rules, replace(asked, object=decision.object))
    assert isinstance(again, Allowed)
    assert not again.patch
    final = replace(asked, object=decision.object, stage=Stage.VALIDATE)
    assert isinstance(answer(rules, final), Allowed)
    # Without the mutating pass, the object is refused.
    assert reasons(answer(rules, replace(asked, stage=Stage.VALIDATE))) == [
        ("environmentVariables", "locked"),
        ("security.allowPrivilegeEscalation", "canEdit"),
    ]


def test_the_tenants_second_namespace_is_no_way_round_locked_defaults() -> None:
    """Finding A4: any `system:` user of another namespace was taken for a controller."""
    rules = catalog(FIXED)
    user = "system:serviceaccount:team-two:builder"
    forged = owned(served(deployment()), "Deployment", "apps/v1")
    written = answer(rules, request(forged, user=user))
    assert isinstance(written, Allowed)
    assert main_of(written.object)["securityContext"] == {"allowPrivilegeEscalation": False}
    skipped = answer(rules, request(forged, user=user, stage=Stage.VALIDATE))
    assert ("security.allowPrivilegeEscalation", "canEdit") in reasons(skipped)
    # Its Pods need the values themselves, whatever owner they name.
    for owner in (("ReplicaSet", "apps/v1"), ("Thing", "example.com/v1")):
        child = owned(served(pod()), *owner)
        assert classify_request(request(child, user=user), rules) is RequestClass.FULL
        final = request(child, user=user, stage=Stage.VALIDATE)
        assert ("security.allowPrivilegeEscalation", "canEdit") in reasons(answer(rules, final))


@pytest.mark.parametrize("user", ["eve", "system:serviceaccount:team-two:builder"])
def test_an_update_keeps_its_required_values_and_gets_no_others(user: str) -> None:
    rules = catalog(FIXED)
    bare = owned(served(deployment()), "Thing", "example.com/v1")
    first = answer(rules, request(bare, user=user))
    assert isinstance(first, Allowed)
    newer = edited(bare, lambda each: main_of(each).update(image="registry.example.com/main:2"))
    decision = answer(rules, request(newer, first.object, user=user))
    assert isinstance(decision, Allowed)
    assert main_of(decision.object)["securityContext"] == {"allowPrivilegeEscalation": False}
    assert "workingDir" not in main_of(decision.object)
    last = request(newer, first.object, user=user, stage=Stage.VALIDATE)
    assert ("security.allowPrivilegeEscalation", "canEdit") in reasons(answer(rules, last))
    # What was there before without the values changes its labels and is not touched.
    labelled = edited(bare, lambda each: each["metadata"].update(finalizers=["a"]))
    untouched = answer(rules, request(labelled, bare, user=user))
    assert isinstance(untouched, Allowed)
    assert not untouched.patch


def test_a_required_value_with_a_default_is_written_too() -> None:
    """Validation would refuse the lack of it."""
    rules = catalog("defaults: {workingDir: /w, tty: true}\nrules: {workingDir: {required: true}}")
    decision = answer(rules, request(owned(served(job()), "Thing", "example.com/v1"), user="eve"))
    assert isinstance(decision, Allowed)
    assert main_of(decision.object)["workingDir"] == "/w"
    assert [each.field for each in decision.changes] == ["workingDir"]


def test_an_imposed_asset_is_written_into_a_persons_owned_object() -> None:
    volume = policy(
        "defaults: {storage: {hostPath: {instances: [{name: h, path: /data, mountPath: /d}]}}}\n"
        "rules: {storage: {hostPath: {instances: {locked: [h]}}}}"
    )
    decision = answer(
        catalog(volume),
        request(owned(served(deployment()), "Thing", "example.com/v1"), user="eve"),
    )
    assert isinstance(decision, Allowed)
    assert [each["name"] for each in main_of(decision.object)["volumeMounts"]] == ["h"]


# Mirror pods


def mirror() -> Any:
    def change(each: Any) -> None:
        each["metadata"]["annotations"] = {"kubernetes.io/config.mirror": "abc"}

    return owned(edited(served(pod()), change), "Node", "v1")


def test_mirror_pods_are_never_patched() -> None:
    rules = catalog(SCALARS)
    node = "system:node:worker-1"
    for stage in Stage:
        asked = request(mirror(), user=node, stage=stage)
        assert classify_request(asked, rules) is RequestClass.UNPATCHED
        decision = answer(rules, asked)
        assert isinstance(decision, Allowed)
        assert not decision.patch
    # What they say is evaluated all the same.
    loud = edited(
        mirror(),
        lambda each: each["spec"]["containers"][0].update(
            securityContext={"allowPrivilegeEscalation": True}
        ),
    )
    assert reasons(answer(rules, request(loud, user=node))) == [
        ("security.allowPrivilegeEscalation", "canEdit")
    ]


@pytest.mark.parametrize(
    ("user", "annotation"),
    [
        ("eve", True),
        ("system:serviceaccount:team:builder", True),
        ("system:serviceaccount:kube-system:node-controller", True),
        ("xsystem:node:worker-1", True),
        ("system:nodes", True),
        ("system:node:worker-1", False),
    ],
)
def test_the_annotation_of_mirror_pods_alone_excuses_nobody(user: str, annotation: bool) -> None:
    document = mirror() if annotation else owned(served(pod()), "Node", "v1")
    asked = request(document, user=user)
    assert classify_request(asked, catalog(FIXED)) is RequestClass.FULL


# The setting


OPERATOR = "system:serviceaccount:things-system:things-operator"
LISTED = [{"users": [OPERATOR], "kinds": [{"group": "example.com", "kind": "Thing"}]}]


def parsed(listed: Any, ungoverned: tuple[str, ...] = ()) -> tuple[TrustedControllers, list[str]]:
    text = yaml.safe_dump(listed).encode()
    documents, faults = read_documents(text, "controllers.yaml", kubernetes=False)
    assert not faults
    found, problems = parse_controllers(documents[0], frozenset(ungoverned))
    return found, [problem_text(each) for each in problems]


def trusting(text: str, listed: Any, ungoverned: tuple[str, ...] = ()) -> Catalog:
    rules = catalog(text)
    found, problems = parsed(listed, ungoverned)
    assert not problems
    rules.config = replace(rules.config, controllers=found)
    return rules


def test_a_trusted_controllers_objects_are_evaluated_and_never_patched() -> None:
    """Its own kind has no definition, so nobody has evaluated what the object is made from."""
    rules = trusting(SCALARS, LISTED)
    document = owned(served(deployment()), "Thing", "example.com/v1")
    for stage in Stage:
        asked = request(document, user=OPERATOR, stage=stage)
        assert classify_request(asked, rules) is RequestClass.UNPATCHED
        decision = answer(rules, asked)
        assert isinstance(decision, Allowed)
        assert not decision.patch
    for other in (
        request(document, user="eve"),
        request(document, user=OPERATOR + "2"),
        request(owned(served(deployment()), "Thing", "example.org/v1"), user=OPERATOR),
        request(owned(served(deployment()), "Other", "example.com/v1"), user=OPERATOR),
    ):
        assert classify_request(other, rules) is RequestClass.OWNED
    loud = edited(document, lambda each: each["spec"]["template"]["spec"].update(hostNetwork=True))
    held = trusting("rules: {security: {hostNetwork: {canEdit: false}}}", LISTED)
    assert reasons(answer(held, request(loud, user=OPERATOR))) == [
        ("security.hostNetwork", "canEdit")
    ]


def test_a_trusted_controller_of_a_governed_kind_is_like_those_of_its_profile() -> None:
    """The same operator, installed into another namespace than its project's."""
    user = "system:serviceaccount:batch-operators:jobset"
    listed = [{"users": [user], "kinds": [{"group": "jobset.x-k8s.io", "kind": "JobSet"}]}]
    child = request(owned(served(job()), "JobSet", "jobset.x-k8s.io/v1alpha2"), user=user)
    assert classify_request(child, catalog(FIXED)) is RequestClass.OWNED
    assert classify_request(child, trusting(FIXED, listed)) is RequestClass.EXEMPT
    other = request(owned(served(job()), "CronJob", "batch/v1"), user=user)
    assert classify_request(other, trusting(FIXED, listed)) is RequestClass.OWNED


def test_all_service_accounts_of_a_namespace_only_where_it_is_not_governed() -> None:
    listed = [{**LISTED[0], "users": ["system:serviceaccount:things-system:*"]}]
    _, problems = parsed(listed)
    assert len(problems) == 1
    assert "things-system" in problems[0]
    rules = trusting(FIXED, listed, ("things-system",))
    document = owned(served(deployment()), "Thing", "example.com/v1")
    assert classify_request(request(document, user=OPERATOR), rules) is RequestClass.UNPATCHED
    for user in (
        "system:serviceaccount:things-system:",
        "system:serviceaccount:things-system:a:b",
        "system:serviceaccount:things-system2:x",
        "system:serviceaccount:team:things-system:x",
        "things-system:x",
    ):
        assert classify_request(request(document, user=user), rules) is RequestClass.OWNED, user


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"users": ["system:serviceaccount:kube-system:*"]}, "kube-system"),
        ({"users": ["system:serviceaccount:team:*"]}, "team"),
        ({"users": ["system:serviceaccount:*:x"]}, "user"),
        ({"users": ["system:serviceaccount:*"]}, "user"),
        ({"users": ["system:serviceaccount:free:x*"]}, "user"),
        ({"users": ["system:node:*"]}, "user"),
        ({"users": ["*"]}, "user"),
        ({"users": ["system:anonymous"]}, "user"),
        ({"users": [""]}, "user"),
        ({"users": [7]}, "user"),
        ({"users": []}, "users"),
        ({"users": OPERATOR}, "users"),
        ({"kinds": []}, "kinds"),
        ({"kinds": [{"group": "example.com", "kind": "*"}]}, "kinds"),
        ({"kinds": ["Thing"]}, "kinds"),
        ({"name": "x"}, "unknown"),
    ],
)
def test_faults_of_the_setting_are_reported_with_their_place(
    change: dict[str, Any], told: str
) -> None:
    found, problems = parsed([{**LISTED[0], **change}], ("free", "kube-system"))
    assert found == TrustedControllers()
    assert len(problems) == 1
    assert told in problems[0]
    assert problems[0].startswith("controllers.yaml:")


def test_a_setting_that_is_no_list_is_reported() -> None:
    assert parsed({"users": []})[1]
    assert parsed(["x"])[1]
