"""Pods that an object states piece by piece: every place of one leads to the object's own."""

from __future__ import annotations

from typing import Any

import pytest

from tests.building import catalog, mutated, validated
from webhook.evaluation.outcome import Allowed, Denied
from webhook.interface.fragment import FragmentSpec
from webhook.jq.path import Program, compile_query
from webhook.objects.draft import Draft
from webhook.objects.path import Path
from webhook.pods.assemble import FragmentPod, found_in, fragment_pod_at
from webhook.pods.assemblers.registry import ASSEMBLERS
from webhook.pods.fragments import join_image, split_image
from webhook.pods.location import FragmentLocation


def program(text: str) -> Program:
    made = compile_query(text)
    assert isinstance(made, Program)
    return made


PARTS = (
    FragmentSpec(("spec", "containers", 0, "image"), program(".spec.image"), "image"),
    FragmentSpec(("spec", "containers", 0, "env"), program(".spec.env")),
    FragmentSpec(("spec", "imagePullSecrets"), program(".spec.image.pullSecrets"), "names"),
    FragmentSpec(("spec", "securityContext", "runAsUser"), program(".spec.userID"), absent=1000),
    FragmentSpec(("spec", "volumes"), program(".spec.storage.hostPath"), "hostPath"),
    FragmentSpec(("spec", "containers"), program(".spec.sidecars"), "containers"),
)


def pod(document: Any) -> tuple[dict[str, Any], FragmentPod]:
    parts = fragment_pod_at(PARTS, ASSEMBLERS["nim"], (), found_in(PARTS, document, ()))
    assert parts is not None
    return parts.settle(found_in(PARTS, document, ())), parts


def assign(draft: Draft, parts: FragmentPod, path: Path, value: Any) -> None:
    for place, held in FragmentLocation(parts, path).assignments(value):
        draft.set(place, held)


def append(draft: Draft, parts: FragmentPod, path: Path, value: Any) -> None:
    location = FragmentLocation(parts, path)
    if location.exists:
        draft.append(location.report, location.item(value))


def test_what_the_object_says_is_in_the_pod_and_the_rest_is_not() -> None:
    made, _ = pod(
        {
            "spec": {
                "image": {"repository": "r/x", "tag": "1", "pullSecrets": ["a"]},
                "storage": {"hostPath": "/data"},
                "sidecars": [{"name": "s", "image": {"repository": "y", "pullPolicy": "Always"}}],
            }
        }
    )
    first, second = made["spec"]["containers"]
    assert first == {"image": "r/x:1"}
    assert second == {"name": "s", "image": "y", "imagePullPolicy": "Always"}
    assert made["spec"]["imagePullSecrets"] == [{"name": "a"}]
    assert made["spec"]["volumes"] == [{"name": "hostPath", "hostPath": {"path": "/data"}}]
    assert "securityContext" not in made["spec"]


def test_an_object_that_states_nothing_of_a_pod_has_none() -> None:
    assert (
        fragment_pod_at(PARTS, ASSEMBLERS["nim"], (), found_in(PARTS, {"spec": {"other": 1}}, ()))
        is None
    )


def test_values_that_the_operator_supplies_are_there_for_final_rules_only() -> None:
    document = {"spec": {"image": {"repository": "x"}}}
    made, parts = pod(document)
    whole = parts.effective(made)
    assert whole["spec"]["securityContext"] == {"runAsUser": 1000}
    assert "securityContext" not in made["spec"]


@pytest.mark.parametrize(
    ("inside", "outside"),
    [
        (("spec", "containers", 0, "image"), ("spec", "image", "repository")),
        (("spec", "containers", 0, "env", 0, "name"), ("spec", "env", 0, "name")),
        (("spec", "containers", 1, "env"), ("spec", "sidecars", 0, "env")),
        (("spec", "containers", 1, "image"), ("spec", "sidecars", 0, "image", "repository")),
        (("spec", "imagePullSecrets", 0, "name"), ("spec", "image", "pullSecrets", 0)),
        (("spec", "volumes", 0, "hostPath", "path"), ("spec", "storage", "hostPath")),
        (("spec", "hostNetwork"), ("spec",)),
    ],
)
def test_each_place_of_the_pod_is_one_of_the_object(inside: Path, outside: Path) -> None:
    document = {
        "spec": {
            "image": {"repository": "x", "pullSecrets": ["a"]},
            "env": [{"name": "A"}],
            "storage": {"hostPath": "/data"},
            "sidecars": [{"name": "s", "image": {"repository": "y"}}],
        }
    }
    _, parts = pod(document)
    assert FragmentLocation(parts, inside).report == outside


def test_writes_land_where_the_object_states_the_pieces() -> None:
    document: Any = {"spec": {"image": {"repository": "x"}}}
    _, parts = pod(document)
    draft = Draft(document)
    assign(draft, parts, ("spec", "containers", 0, "image"), "registry:5000/y:2")
    append(draft, parts, ("spec", "imagePullSecrets"), {"name": "key"})
    append(draft, parts, ("spec", "containers", 0, "env"), {"name": "A"})
    assign(draft, parts, ("spec", "hostNetwork"), True)
    append(draft, parts, ("spec", "volumes"), {"name": "lost"})
    assert draft.document == {
        "spec": {
            "image": {"repository": "registry:5000/y", "tag": "2", "pullSecrets": ["key"]},
            "env": [{"name": "A"}],
        }
    }
    assert document == {"spec": {"image": {"repository": "x"}}}


def test_reading_another_copy_leaves_the_places_as_they_are() -> None:
    document = {"spec": {"image": {"repository": "x"}, "sidecars": [{"name": "s"}]}}
    _, parts = pod(document)
    location = FragmentLocation(parts, ("spec", "containers", 1, "env"))
    for other in (None, {}, {"spec": {"env": [{"name": "A"}]}}):
        location.read_in(other)
        assert location.report == ("spec", "sidecars", 0, "env")


@pytest.mark.parametrize(
    "text", ["a", "a:1", "r:5000/a", "r:5000/a:1", "r/a@sha256:0123", "docker.io/library/a:1.2.3"]
)
def test_an_image_is_the_same_after_being_taken_apart(text: str) -> None:
    repository, tag = split_image(text)
    assert join_image({"repository": repository, "tag": tag}) == text


@pytest.mark.parametrize("value", [7, "text", [], {"repository": 3}, {"tag": "1"}])
def test_what_is_no_image_is_left_to_those_who_read_it(value: Any) -> None:
    assert join_image(value) in (value, None)


NIM = {
    "apiVersion": "apps.nvidia.com/v1alpha1",
    "kind": "NIMService",
    "metadata": {"name": "llama", "namespace": "team"},
    "spec": {"image": {"repository": "x", "tag": "1"}, "authSecret": "s"},
}


def test_a_key_of_the_object_that_looks_like_a_pod_is_none() -> None:
    rules = catalog("rules: {priorityClass: {required: true}}")
    for key in ("service", "service/", "0"):
        found = validated(rules, {**NIM, key: {"spec": {"priorityClassName": "train"}}})
        assert isinstance(found, Denied)
        assert [each.field for each in found.violations] == ["priorityClass"]


def test_paths_of_an_answer_are_keys_and_indices_of_the_object() -> None:
    defaults = """defaults:
      imagePullPolicy: Always
      compute: {cpuCoreRequest: 1, largeShmRequest: true}
      tolerations: {instances: [{name: a, key: a, operator: Exists}]}
    """
    written = mutated(catalog(defaults), NIM)
    assert isinstance(written, Allowed)
    refused = validated(
        catalog("rules: {image: {options: [y]}, security: {hostIpc: {required: true}}}"), NIM
    )
    assert isinstance(refused, Denied)
    told = [*written.changes, *written.warnings, *refused.violations]
    assert len(told) > 4
    for each in told:
        assert {type(step) for step in each.path} <= {str, int}
        assert each.path == () or type(each.path[0]) is str
