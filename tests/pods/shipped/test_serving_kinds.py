"""What is particular about kinds of serving, NVIDIA and pipelines."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.e2e.testbed import upstream
from tests.e2e.testbed.missing import MissingTestbed
from tests.pods.shipped import serving
from tests.pods.test_shipped_workloads import (
    at,
    component_programs,
    definition,
    placed,
    profile_programs,
    simple_paths,
    texts,
)
from webhook.access.selector import PodQuery
from webhook.pods.assemble import FragmentPod
from webhook.pods.assemblers.registry import ASSEMBLERS
from webhook.pods.assemblers.tekton import put_base
from webhook.pods.coverage import find_uncovered
from webhook.pods.definition import Definition
from webhook.pods.locate import locate
from webhook.pods.replicas import read_scales

LLM = "llminferenceservice.serving.kserve.io"
CONFIG = "llminferenceserviceconfig.serving.kserve.io"
TASK_RUN = "taskrun.tekton.dev@v1"
PIPELINE_RUN = "pipelinerun.tekton.dev@v1"
SCHEDULED = "scheduledworkflow.kubeflow.org"
MILVUS = "milvus.milvus.io"


def places(name: str) -> set[str]:
    """The pod locations and places of fields of a kind, as text."""
    found = definition(name)
    programs = [e for each in found.interface.components for e in component_programs(each)]
    return {each.text for each in (*programs, *profile_programs(found.profile))}


def test_a_configuration_has_the_places_of_the_service_that_takes_from_it() -> None:
    absent = {text.replace(" // 1)", " // 0)") for text in places(LLM)}
    service = {re.sub(r"pipeline // 0", "pipeline // 1", text) for text in absent}
    assert places(CONFIG) == service


@pytest.mark.parametrize(
    ("label", "component"),
    [
        ("llminferenceservice-workload", "main"),
        ("llminferenceservice-workload-leader", "main"),
        ("llminferenceservice-workload-worker", "workers"),
        ("llminferenceservice-workload-prefill", "prefill"),
        ("llminferenceservice-workload-leader-prefill", "prefill"),
        ("llminferenceservice-workload-worker-prefill", "prefill-workers"),
        ("llminferenceservice-router-scheduler", "scheduler"),
        ("tokenizer", "tokenizer"),
        ("something-else", None),
    ],
)
def test_each_pod_of_a_service_is_of_one_component(label: str, component: str | None) -> None:
    pod = PodQuery({"metadata": {"labels": {"app.kubernetes.io/component": label}}})
    structure = definition(LLM).interface.spec.structure_definition
    found = [e.name for e in structure.child_components if pod.is_of_type(e.pod_selector)]
    assert found == ([component] if component else [])


def test_steps_take_what_they_lack_from_the_template_of_steps() -> None:
    template = {
        "image": "base",
        "computeResources": {"limits": {"cpu": "2", "memory": "1Gi"}},
        "securityContext": {"privileged": True, "runAsUser": 1},
        "env": [{"name": "A", "value": "base"}, {"name": "B", "value": "base"}],
        "volumeMounts": [{"name": "v", "mountPath": "/v"}],
    }
    own = {
        "name": "own",
        "image": "own",
        "computeResources": {"limits": {"cpu": "1"}},
        "securityContext": {"runAsUser": 2},
        "env": [{"name": "A", "value": "own"}],
        "volumeMounts": [{"name": "w", "mountPath": "/w"}],
    }
    spec = {"taskSpec": {"steps": [own, {"name": "bare"}], "stepTemplate": template}}
    found = placed(TASK_RUN, spec)["task"]
    first, second = found.spec["containers"]
    assert (first["image"], second["image"]) == ("own", "base")
    assert first["resources"] == {"limits": {"cpu": "1", "memory": "1Gi"}}
    assert first["securityContext"] == {"privileged": True, "runAsUser": 2}
    assert [(each["name"], each["value"]) for each in first["env"]] == [("A", "own"), ("B", "base")]
    assert [each["name"] for each in first["volumeMounts"]] == ["v", "w"]
    parts = found.fragments
    assert parts is not None
    task = ("spec", "taskSpec")
    path = ("spec", "containers", 0)
    base, step = (*task, "stepTemplate"), (*task, "steps", 0)
    for inner, real in (
        (("image",), (*step, "image")),
        (("resources", "limits", "cpu"), (*step, "computeResources", "limits", "cpu")),
        (("resources", "limits", "memory"), (*base, "computeResources", "limits", "memory")),
        (("securityContext", "privileged"), (*base, "securityContext", "privileged")),
        (("securityContext", "runAsUser"), (*step, "securityContext", "runAsUser")),
        (("env", 0), (*step, "env", 0)),
        (("env", 1), (*base, "env", 1)),
        (("volumeMounts", 0), (*base, "volumeMounts", 0)),
        (("volumeMounts", 1), (*step, "volumeMounts", 0)),
        (("volumeMounts", 2), (*step, "volumeMounts", 1)),
    ):
        assert parts.report((*path, *inner)) == real
    assert parts.writable((*path, "env", 1)) is None


def test_amounts_of_a_whole_task_stand_for_those_of_its_steps() -> None:
    steps = [{"name": "a", "computeResources": {"limits": {"cpu": "1"}}}, {"name": "b"}]
    whole = {"requests": {"cpu": "4"}}
    found = placed(TASK_RUN, {"taskSpec": {"steps": steps}, "computeResources": whole})["task"]
    assert [each.get("resources") for each in found.spec["containers"]] == [whole, None]


def test_amounts_by_name_go_over_those_of_the_step_and_need_none() -> None:
    steps = [{"name": "a", "computeResources": {"limits": {"cpu": "1", "memory": "1Gi"}}}]
    over = [
        {"name": "a", "computeResources": {"limits": {"cpu": "8"}}},
        {"name": "elsewhere", "computeResources": {"limits": {"nvidia.com/gpu": "1"}}},
    ]
    found = placed(TASK_RUN, {"taskSpec": {"steps": steps}, "stepSpecs": over})["task"]
    amounts = {each["name"]: each["resources"]["limits"] for each in found.spec["containers"]}
    assert amounts == {"a": {"cpu": "8", "memory": "1Gi"}, "elsewhere": {"nvidia.com/gpu": "1"}}


def test_sidecars_take_nothing_from_steps() -> None:
    task = {
        "steps": [{"name": "a"}],
        "stepTemplate": {"image": "base"},
        "sidecars": [{"name": "s", "image": "side", "computeResources": {"limits": {"cpu": "1"}}}],
    }
    spec = {"taskSpec": task, "podTemplate": {"env": [{"name": "E", "value": "1"}]}}
    step, sidecar = placed(TASK_RUN, spec)["task"].spec["containers"]
    assert step["env"] == [{"name": "E", "value": "1"}]
    assert "env" not in sidecar
    assert sidecar["resources"] == {"limits": {"cpu": "1"}}


def test_steps_that_are_none_are_left_as_they_are() -> None:
    spec = {
        "taskSpec": {"steps": ["odd"], "stepTemplate": {"image": "base"}},
        "podTemplate": {"env": [{"name": "E"}]},
        "computeResources": {"limits": {"cpu": "1"}},
    }
    assert placed(TASK_RUN, spec)["task"].spec["containers"] == ["odd"]
    bare = {"taskSpec": {"steps": [{"name": "a"}], "stepTemplate": "odd"}}
    assert placed(TASK_RUN, bare)["task"].spec["containers"] == [{"name": "a"}]


def test_a_template_of_steps_alone_is_judged_where_it_stands() -> None:
    found = placed(TASK_RUN, {"taskSpec": {"stepTemplate": {"image": "base"}}})["task"]
    assert found.spec["containers"] == [{"image": "base"}]
    assert found.fragments is not None
    place = ("spec", "taskSpec", "stepTemplate", "image")
    assert found.fragments.report(("spec", "containers", 0, "image")) == place


def test_what_a_template_of_steps_adds_to_a_container_of_no_place_is_read_only() -> None:
    parts = FragmentPod((), ASSEMBLERS[""], (), ())
    pod: dict[str, Any] = {"metadata": {}, "spec": {"containers": [{"name": "a"}]}}
    mounts = [{"name": "v", "mountPath": "/v"}]
    put_base(parts, pod, ("spec", "containers"), ("base",), {"volumeMounts": mounts})
    assert pod["spec"]["containers"] == [{"name": "a", "volumeMounts": mounts}]
    assert parts.writable(("spec", "containers", 0, "volumeMounts", 0)) is None


def test_workspaces_are_volumes_and_their_templates_claims() -> None:
    claim = {"spec": {"resources": {"requests": {"storage": "1Gi"}}}}
    workspaces = [{"name": "a", "emptyDir": {}}, {"name": "b", "volumeClaimTemplate": claim}]
    found = placed(TASK_RUN, {"taskRef": {"name": "t"}, "workspaces": workspaces})["task"]
    assert found.spec["volumes"] == [{"name": "a", "emptyDir": {}}]
    assert [value for _, value in found.claims] == [claim]


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
def test_what_is_read_of_a_task_in_a_run_is_in_the_schema_of_tasks(version: str) -> None:
    try:
        body = upstream.crd("tekton", "tasks.tekton.dev")["spec"]
    except MissingTestbed as error:
        pytest.skip(f"{error.reason} {error.how_to_get_it}")
    (schema,) = (
        each["schema"]["openAPIV3Schema"] for each in body["versions"] if each["name"] == version
    )
    read = {
        path.replace(".spec.taskSpec.", ".spec.", 1)
        for text in texts(definition(f"taskrun.tekton.dev@{version}"))
        for path in simple_paths(text)
        if path.startswith(".spec.taskSpec.")
    }
    assert {".spec.steps", ".spec.sidecars", ".spec.stepTemplate", ".spec.volumes"} <= read
    assert [path for path in read if at(schema, path) is None] == []


def examples(project: str, kinds: set[str]) -> Iterator[tuple[str, Any]]:
    """The objects of some kinds among the samples of a pinned archive, with their files' names."""
    try:
        files = upstream.samples(project)
    except MissingTestbed as error:
        pytest.skip(f"{error.reason} {error.how_to_get_it}")
    for path in files:
        try:
            documents = list(yaml.load_all(path.read_text("utf-8"), yaml.CSafeLoader))
        except yaml.YAMLError:
            continue  # templates of other programs
        for each in documents:
            if isinstance(each, dict) and each.get("kind") in kinds:
                yield path.name, each


def found_for(data: Any) -> Definition | None:
    """The definition for an object of one of our kinds."""
    group, _, version = str(data["apiVersion"]).rpartition("/")
    stem = f"{data['kind'].lower()}.{group}"
    for name in (f"{stem}@{version}", stem):
        try:
            found = definition(name)
        except (FileNotFoundError, ValueError):
            continue
        return found if version in found.versions else None
    return None


@pytest.mark.parametrize(
    ("project", "kinds", "least"),
    [
        ("tekton", {"TaskRun", "PipelineRun"}, 149),
        ("kserve", {"InferenceGraph", "InferenceService", "LLMInferenceService"}, 104),
        ("knative", {"Configuration", "Service"}, 21),
    ],
)
def test_the_samples_of_a_project_leave_nothing_uncovered(
    project: str, kinds: set[str], least: int
) -> None:
    count = 0
    for file, data in examples(project, kinds):
        found = found_for(data)
        if found is None:
            continue
        count += 1
        locations = locate(found, data)
        assert locations, file
        assert find_uncovered(data, locations, found) == [], file
        assert all(each.replicas is not None for each in read_scales(found, data)), file
    assert count >= least


def test_a_workflow_as_text_has_no_place_here_and_its_children_are_judged() -> None:
    text = '{"templates": [{"name": "a", "container": {"image": "a", "command": ["x"]}}]}'
    data = {"spec": {"workflow": {"spec": text}}}
    found = definition(SCHEDULED)
    assert locate(found, data) == []
    assert find_uncovered(data, [], found) == []
    assert list(read_scales(found, data)) == []
    assert {each.children for each in found.profile.components.values()} == {"merged"}
    assert ("argoproj.io", "Workflow") in found.profile.intermediate_kinds


def test_a_component_of_milvus_is_its_own_value_else_that_of_all() -> None:
    components = {
        "image": "all",
        "nodeSelector": {"a": "all"},
        "env": [{"name": "A"}],
        "proxy": {"nodeSelector": {"a": "own"}, "env": [{"name": "B"}]},
        "queryNode": {"image": "own", "groups": [{"name": "g", "extraEnv": [{"name": "G"}]}]},
    }
    found = placed(MILVUS, {"components": components})
    assert set(found) == {"common", "proxy", "query-node", "query-node-group"}
    proxy, group = found["proxy"].spec, found["query-node-group"].spec
    assert proxy["containers"][0]["image"] == "all"
    assert proxy["nodeSelector"] == {"a": "own"}
    assert [each["name"] for each in proxy["containers"][0]["env"]] == ["A", "B"]
    assert group["containers"][0]["image"] == "own"
    assert group["nodeSelector"] == {"a": "all"}
    assert [each["name"] for each in group["containers"][0]["env"]] == ["A", "G"]


@pytest.mark.parametrize(
    ("stated", "maximum"),
    [({"replicas": -1}, 2**31 - 1), ({"replicas": -1, "hpa": {"maxReplicas": 5}}, 5), ({}, None)],
)
def test_replicas_that_an_autoscaler_decides_have_its_bound(
    stated: dict[str, Any], maximum: int | None
) -> None:
    data = {"spec": {"components": {"proxy": stated}}}
    scales = {each.component: each for each in read_scales(definition(MILVUS), data)}
    assert scales["proxy"].maximum == maximum


def test_every_image_of_a_nemo_kind_is_in_one_of_its_pods() -> None:
    name = "nemocustomizer.apps.nvidia.com"
    images = {
        component: each.spec["containers"][0]["image"]
        for component, each in placed(name, serving.FULL_OBJECTS[name]).items()
    }
    assert images == {"service": "r:1", "training": "r:1", "download": "a", "tools": "a"}
