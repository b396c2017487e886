"""Home directory and shared memory: on every kind, together, and with values that are no mounts."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests import building
from webhook.evaluation.outcome import Allowed
from webhook.objects.path import read

DEFAULTS = "defaults: {createHomeDir: true, compute: {largeShmRequest: true}}\n"
FIXED = "rules: {createHomeDir: {canEdit: false}, compute: {largeShmRequest: {required: true}}}"
JUNK = [7, True, "x", [7], [None], {"a": 1}]


@pytest.mark.parametrize("kind", building.KINDS)
def test_both_directories_are_written_once_on_every_kind(kind: str) -> None:
    rules = building.catalog(DEFAULTS + FIXED)
    written = str(building.result(rules, building.served(building.KINDS[kind]())))
    assert "{'name': 'user-data', 'emptyDir': {}}" in written
    assert "{'name': 'dshm', 'mountPath': '/dev/shm'}" in written


def test_every_part_is_noted_where_it_is() -> None:
    rules = building.catalog(DEFAULTS)
    decision = building.mutated(rules, building.pod())
    assert isinstance(decision, Allowed)
    ours = [each for each in decision.changes if each.field != "terminationGracePeriodSeconds"]
    parts = [each for each in ours if isinstance(each.value, dict)]
    assert len(parts) == 5
    assert all(read(decision.object, each.path) == each.value for each in parts)


def test_variables_of_policies_and_users_may_refer_to_home() -> None:
    rules = building.catalog(
        DEFAULTS,
        "defaults: {environmentVariables: {instances: [{name: A, value: $(HOME)/a}]}}",
    )
    main = building.container(env=[{"name": "B", "value": "$(HOME)/b"}])
    written = building.result(rules, building.pod(main))["spec"]["containers"][0]["env"]
    assert [each["name"] for each in written][-1] == "B"
    assert {each["name"] for each in written} == {"A", "B", "HOME"}


def test_a_default_of_false_writes_nothing() -> None:
    rules = building.catalog("defaults: {createHomeDir: false}")
    written = building.result(rules, building.pod())["spec"]
    assert "volumes" not in written
    assert "env" not in written["containers"][0]


def test_a_home_directory_may_be_refused_by_a_default_of_false() -> None:
    rules = building.catalog(
        "defaults: {createHomeDir: false}\nrules: {createHomeDir: {canEdit: false}}"
    )
    main = building.container(
        env=[{"name": "HOME", "value": "/h"}], volumeMounts=[{"name": "h", "mountPath": "/h"}]
    )
    document = building.pytorchjob(main, volumes=[{"name": "h"}])
    assert building.refused(rules, document) == [("createHomeDir", "canEdit")]


def test_fixed_directories_that_are_missing_in_the_final_object_are_refused() -> None:
    decision = building.validated(building.catalog(DEFAULTS + FIXED), building.raycluster())
    assert building.reasons(decision) == [
        ("compute.largeShmRequest", "required"),
        ("createHomeDir", "canEdit"),
    ]


@pytest.mark.parametrize("junk", JUNK, ids=str)
@pytest.mark.parametrize("key", ["env", "volumeMounts"])
def test_values_of_other_types_are_decided_on(key: str, junk: Any) -> None:
    rules = building.catalog(DEFAULTS + FIXED)
    volumes = [{"name": "h", "emptyDir": {"medium": junk}}, {"name": junk, "emptyDir": junk}]
    for more in (
        {key: junk},
        {"env": [{"name": junk, "value": junk}, {"name": "HOME", "value": junk}]},
        {"volumeMounts": [{"name": junk, "mountPath": junk}]},
    ):
        parts = json.loads(json.dumps([more, volumes]))
        document = building.raycluster(building.container(**parts[0]), volumes=parts[1])
        building.mutated(rules, document)
        building.validated(rules, document)


@pytest.mark.parametrize("junk", JUNK, ids=str)
def test_volumes_of_other_types_are_decided_on(junk: Any) -> None:
    rules = building.catalog(DEFAULTS + FIXED)
    mounts = [{"name": "h", "mountPath": "/dev/shm"}]
    document = building.raycluster(building.container(volumeMounts=mounts), volumes=junk)
    building.mutated(rules, document)
    building.validated(rules, document)


def test_a_warning_names_each_pod_without_a_place_where_the_kind_has_several() -> None:
    parts = {each: {"storageUri": "hf://a"} for each in ("dataset", "model")}
    body = building.shell(
        "trainer.kubeflow.org/v1alpha1",
        "TrainJob",
        {"trainer": {"image": "a"}, "initializer": parts},
    )
    decision = building.mutated(building.catalog("defaults: {workingDir: /w}"), body)
    told = [each.path for each in decision.warnings if each.reason == "unmapped-default"]
    assert set(told) == {
        ("spec",),
        ("spec", "initializer", "dataset"),
        ("spec", "initializer", "model"),
    }
