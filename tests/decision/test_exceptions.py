"""PolicyException: what it excuses, whom, until when, and what is wrong with one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.building import catalog, container, pod_spec, policy
from tests.definitions import document
from webhook.decision.decide import decide
from webhook.evaluation.exception import parse_exception
from webhook.evaluation.outcome import Allowed, Denied
from webhook.evaluation.references import References
from webhook.evaluation.request import Request, RequestClass

NOW = "2026-11-22T10:00:00Z"
LIMITS = policy(
    """
rules:
  security: {hostIpc: {canEdit: false}}
  scale: {replicas: {max: 3}}
""",
    "limits",
)


def exception(*rules: dict[str, Any], name: str = "big", **spec: Any) -> dict[str, Any]:
    listed = rules or ({"field": "security.hostIpc", "rule": "canEdit", "value": True},)
    objects = [{"group": "apps", "kind": "Deployment", "namespace": "team", "name": "web"}]
    body = {"until": "2026-12-01T00:00:00Z", "objects": objects, "rules": list(listed), **spec}
    return {
        "apiVersion": "podgate.dev/v1alpha1",
        "kind": "PolicyException",
        "metadata": {"name": name, "namespace": "podgate-exceptions"},
        "spec": body,
    }


def request(**changes: Any) -> Request:
    template = {"spec": pod_spec(container(), hostIPC=True)}
    body = {"metadata": {"name": "web"}, "spec": {"replicas": 2, "template": template}}
    asked = Request("apps", "v1", "Deployment", "CREATE", body, namespace="team", name="web")
    return replace(asked, **{"time": NOW, **changes})


@pytest.mark.parametrize(
    ("time", "excused"),
    [(NOW, True), ("2026-12-01T00:00:00Z", False), ("2027-01-01T00:00:00Z", False), ("", False)],
)
def test_it_holds_until_its_date_and_never_where_the_time_is_unknown(
    time: str, excused: bool
) -> None:
    found = catalog(LIMITS, exception())
    decision = decide(request(time=time), found, NOTHING)
    assert isinstance(decision, Allowed) is excused


NOTHING = References()


def test_what_is_excused_is_in_the_decision() -> None:
    decision = decide(request(), catalog(LIMITS, exception()), NOTHING)
    assert isinstance(decision, Allowed)
    ((violation, name),) = decision.excused
    assert (name, violation.field, violation.rule) == ("big", "security.hostIpc", "canEdit")
    assert [each.reason for each in decision.warnings if each.reason == "excused"] == ["excused"]


@pytest.mark.parametrize(
    "changes",
    [{"namespace": "other"}, {"kind": "StatefulSet"}],
)
def test_another_object_is_not_excused(changes: dict[str, Any]) -> None:
    decision = decide(request(**changes), catalog(LIMITS, exception()), NOTHING)
    assert isinstance(decision, Denied)


def test_only_the_policy_that_is_named() -> None:
    rule = {"field": "security.hostIpc", "rule": "canEdit", "value": True, "policy": "others"}
    assert isinstance(decide(request(), catalog(LIMITS, exception(rule)), NOTHING), Denied)


CLOSED = policy(
    """
rules:
  storage: {hostPath: {instances: {canAdd: false}}, nfs: {instances: {canAdd: false}}}
  environmentVariables: {instances: {canAdd: false}}
""",
    "closed",
)
SHARED = {"name": "shm", "hostPath": {"path": "/dev/shm", "type": ""}}


@pytest.mark.parametrize(
    ("key", "volume", "excused"),
    [
        ("/dev/shm", SHARED, True),
        ("/dev/shm", {**SHARED, "name": "other"}, True),
        ("/dev/shm", {"name": "/dev/shm", "hostPath": {"path": "/", "type": ""}}, False),
        ("shm", {"name": "shm", "hostPath": {"path": "/", "type": ""}}, False),
    ],
)
def test_a_volume_is_excused_by_what_it_is_and_not_by_its_name(
    key: str, volume: dict[str, Any], excused: bool
) -> None:
    found = catalog(CLOSED, exception({"field": "storage.hostPath", "rule": "canAdd", "key": key}))
    mounts = [{"name": volume["name"], "mountPath": "/mnt"}]
    template = {"spec": pod_spec(container(volumeMounts=mounts), volumes=[volume])}
    asked = request(object={"metadata": {"name": "web"}, "spec": {"template": template}})
    assert isinstance(decide(asked, found, NOTHING), Allowed) is excused


@pytest.mark.parametrize(
    ("field", "key", "spec"),
    [
        (
            "storage.nfs",
            "nas+/data",
            pod_spec(volumes=[{"name": "n", "nfs": {"server": "nas", "path": "/data"}}]),
        ),
        ("environmentVariables", "A", pod_spec(container(env=[{"name": "A", "value": "x"}]))),
    ],
)
def test_items_of_several_parts_and_of_a_name_alone_are_excused_by_them(
    field: str, key: str, spec: dict[str, Any]
) -> None:
    body = {"metadata": {"name": "web"}, "spec": {"template": {"spec": spec}}}
    for told, allowed in ((key, True), ("other", False)):
        rule = {"field": field, "rule": "canAdd", "key": told}
        decision = decide(request(object=body), catalog(CLOSED, exception(rule)), NOTHING)
        assert isinstance(decision, Allowed) is allowed


def scale(replicas: int) -> Request:
    body = {"metadata": {"name": "web"}, "spec": {"replicas": replicas}}
    return Request(
        "autoscaling",
        "v1",
        "Scale",
        "UPDATE",
        body,
        old={"metadata": {"name": "web"}, "spec": {"replicas": 1}},
        resource="deployments",
        resource_group="apps",
        resource_version="v1",
        subresource="scale",
        namespace="team",
        name="web",
        time=NOW,
    )


def test_the_scale_of_the_object_is_excused_as_the_object() -> None:
    rule = {"field": "scale.replicas", "rule": "max", "value": 6}
    found = catalog(LIMITS, exception(rule))
    assert isinstance(decide(scale(6), found, NOTHING), Allowed)
    assert isinstance(decide(scale(7), found, NOTHING), Denied)


def test_what_a_controller_makes_is_excused_with_its_owner_and_nobody_else_is() -> None:
    found = catalog(LIMITS, exception())
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "controller": True}
    pod = {
        "metadata": {"name": "web-1", "ownerReferences": [owner]},
        "spec": pod_spec(container(), hostIPC=True),
    }
    asked = Request("", "v1", "Pod", "CREATE", pod, namespace="team", name="web-1", time=NOW)
    child = replace(asked, request_class=RequestClass.CHILD)
    assert isinstance(decide(child, found, NOTHING), Allowed)
    assert isinstance(decide(asked, found, NOTHING), Denied), "anybody writes owner references"


def problems(data: dict[str, Any], home: str = "") -> list[tuple[str, str]]:
    found, told = parse_exception(document(data), home)
    assert (found is None) == any(each.severity == "error" for each in told)
    return [(each.reason, each.path) for each in told]


@pytest.mark.parametrize(
    ("rule", "reason", "path"),
    [
        ({"field": "security.hostIpcs", "rule": "canEdit"}, "unknown-field", "spec.rules[0].field"),
        ({"field": "image", "rule": "option"}, "unknown-rule", "spec.rules[0].rule"),
        ({"field": "image", "rule": "options"}, "missing-value", "spec.rules[0]"),
        ({"field": "storage.hostPath", "rule": "canAdd"}, "missing-value", "spec.rules[0]"),
        (
            {"field": "compute.gpuDevicesRequest", "rule": "max", "value": "many"},
            "wrong-type",
            "spec.rules[0].value",
        ),
        (
            {"field": "compute.gpuDevicesRequest", "rule": "max", "value": [1, 2]},
            "one-bound",
            "spec.rules[0].value",
        ),
        (
            {"field": "environmentVariables.value", "rule": "options", "value": "b"},
            "secret-field",
            "spec.rules[0].field",
        ),
    ],
)
def test_a_faulty_rule_is_told_with_its_place(rule: dict[str, Any], reason: str, path: str) -> None:
    assert problems(exception(rule)) == [(reason, path)]


def test_of_a_list_each_faulty_element_is_told_as_it_is_written() -> None:
    rule = {"field": "devices.types", "rule": "options", "value": ["gpu", {"a": 1}]}
    _, told = parse_exception(document(exception(rule)))
    assert [each.found for each in told] == ["`{'a': 1}`"]


def test_every_problem_is_told_at_once() -> None:
    data = exception({"field": "x", "rule": "max"}, until="soon")
    del data["metadata"]["name"]
    data["metadata"]["namespace"] = "team"
    assert [reason for reason, _ in problems(data, "podgate-exceptions")] == [
        "missing-name",
        "not-home",
        "bad-time",
        "unknown-field",
    ]


def test_an_exception_names_objects_rules_and_its_end() -> None:
    data = exception()
    data["spec"] = {}
    assert problems(data) == [("missing-field", "spec")] * 3


def test_an_older_spelling_of_a_field_is_a_warning() -> None:
    found, told = parse_exception(document(exception({"field": "Image", "rule": "required"})))
    assert found is not None
    assert [each.severity for each in told] == ["warning"]
