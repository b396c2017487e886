"""Pods that an object states piece by piece: every place of one leads to the object's own."""

from __future__ import annotations

from typing import Any

import pytest

from webhook.interface.fragment import Part
from webhook.jq.path import Program, compile_query
from webhook.objects.draft import Draft
from webhook.objects.path import Path, read, real
from webhook.pods.assemble import found_in, joined_image, parts_of, split_image, step_of


def program(text: str) -> Program:
    made = compile_query(text)
    assert isinstance(made, Program)
    return made


PARTS = (
    Part(("spec", "containers", 0, "image"), program(".spec.image"), "image"),
    Part(("spec", "containers", 0, "env"), program(".spec.env")),
    Part(("spec", "imagePullSecrets"), program(".spec.image.pullSecrets"), "names"),
    Part(("spec", "securityContext", "runAsUser"), program(".spec.userID"), absent=1000),
    Part(("spec", "volumes"), program(".spec.storage.hostPath"), "hostPath"),
    Part(("spec", "containers"), program(".spec.sidecars"), "containers"),
)


def pod(document: Any) -> tuple[dict[str, Any], Path]:
    parts = parts_of(PARTS, (), found_in(PARTS, document, ()))
    assert parts is not None
    return parts.settle(found_in(PARTS, document, ())), (step_of("service/", parts),)


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
    assert parts_of(PARTS, (), found_in(PARTS, {"spec": {"other": 1}}, ())) is None


def test_values_that_the_operator_supplies_are_there_for_final_rules_only() -> None:
    document = {"spec": {"image": {"repository": "x"}}}
    made, (step,) = pod(document)
    whole = step.places.effective(made)  # type: ignore[union-attr]
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
    _, step = pod(document)
    assert real((*step, *inside)) == outside


def test_writes_land_where_the_object_states_the_pieces() -> None:
    document: Any = {"spec": {"image": {"repository": "x"}}}
    _, step = pod(document)
    draft = Draft(document)
    draft.set((*step, "spec", "containers", 0, "image"), "registry:5000/y:2")
    draft.append((*step, "spec", "imagePullSecrets"), {"name": "key"})
    draft.insert((*step, "spec", "containers", 0, "env"), 0, {"name": "A"})
    draft.set((*step, "spec", "hostNetwork"), True)
    draft.append((*step, "spec", "volumes"), {"name": "lost"})
    assert draft.document == {
        "spec": {
            "image": {"repository": "registry:5000/y", "tag": "2", "pullSecrets": ["key"]},
            "env": [{"name": "A"}],
        }
    }
    assert document == {"spec": {"image": {"repository": "x"}}}


def test_reading_another_copy_leaves_the_places_as_they_are() -> None:
    document = {"spec": {"image": {"repository": "x"}, "sidecars": [{"name": "s"}]}}
    _, step = pod(document)
    place = (*step, "spec", "containers", 1, "env")
    for other in (None, {}, {"spec": {"env": [{"name": "A"}]}}):
        read(other, place)
        assert real(place) == ("spec", "sidecars", 0, "env")


@pytest.mark.parametrize(
    "text", ["a", "a:1", "r:5000/a", "r:5000/a:1", "r/a@sha256:0123", "docker.io/library/a:1.2.3"]
)
def test_an_image_is_the_same_after_being_taken_apart(text: str) -> None:
    repository, tag = split_image(text)
    assert joined_image({"repository": repository, "tag": tag}) == text


@pytest.mark.parametrize("value", [7, "text", [], {"repository": 3}, {"tag": "1"}])
def test_what_is_no_image_is_left_to_those_who_read_it(value: Any) -> None:
    assert joined_image(value) in (value, None)
