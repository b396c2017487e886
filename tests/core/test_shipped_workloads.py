"""The shipped definitions and profiles: correct against upstream's schemas and real manifests."""

from __future__ import annotations

import dataclasses
import functools
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.core.definitions import POLICIES, read_file, shipped
from webhook.adapters.yaml_source import read_documents
from webhook.core.workload.coverage import uncovered
from webhook.core.workload.interface import Component
from webhook.core.workload.locations import Definition, locate
from webhook.core.workload.profile import Profile
from webhook.core.workload.query import Program
from webhook.core.workload.scale import read_scales
from webhook.core.workload.schema_places import schema_places, unproven

jq: Any = pytest.importorskip("jq")

FILES = sorted(path.stem for path in POLICIES.glob("*.yaml"))
FIRST_KINDS = {
    "pod",
    "deployment.apps",
    "job.batch",
    "cronjob.batch",
    "pytorchjob.kubeflow.org",
    "raycluster.ray.io",
    "jobset.jobset.x-k8s.io",
}
CUSTOM = sorted(each for each in FIRST_KINDS if each.count(".") > 1)
CONDITIONS = {".status.conditions"}
JOB = {
    "parallelism",
    "completions",
    "backoffLimit",
    "ttlSecondsAfterFinished",
    "suspend",
    "template",
    "template.spec.restartPolicy",
    "selector",
    "completionMode",
    "backoffLimitPerIndex",
    "podFailurePolicy",
    "successPolicy",
    "managedBy",
}
BUILT_IN = {
    "pod": {
        ".",
        ".status.phase",
        ".spec",
        ".spec.restartPolicy",
        ".spec.containers[].image",
        ".spec.initContainers[].image",
        ".spec.activeDeadlineSeconds",
        ".spec.tolerations",
    },
    "deployment.apps": CONDITIONS
    | {
        ".spec.template",
        ".spec.replicas",
        ".spec.selector",
        ".spec.template.spec.restartPolicy",
    },
    "job.batch": CONDITIONS | {f".spec.{each}" for each in JOB},
    "cronjob.batch": {f".spec.jobTemplate.spec.{each}" for each in JOB}
    | {".spec.suspend", ".spec.jobTemplate.metadata.labels.priorityClassName"},
}
# What v1alpha1 of RayCluster lacks of the layout that it shares with v1.
OLDER_RAY = {
    ".spec.workerGroupSpecs[].numOfHosts",
    ".spec.historyServerOptions.collectorOptions",
    ".spec.managedBy",
    ".spec.gcsFaultToleranceOptions.backend",
    ".status.conditions",
}


@functools.cache
def definition(name: str) -> Definition:
    return shipped(name)


def component_programs(component: Component) -> Iterator[Program]:
    for each in (
        component.template,
        component.spec,
        component.metadata,
        component.replicas,
        component.minimum,
        component.maximum,
    ):
        if each is not None:
            yield each


def profile_programs(profile: Profile) -> Iterator[Program]:
    for component in profile.components.values():
        rules = component.scale
        yield from (e for e in (rules.minimum, rules.maximum, rules.maximum_only_with) if e)
    for held in profile.fields.values():
        yield from held.places
        yield from (held.only_with,) if held.only_with else ()
    yield from profile.second_priority_places
    yield from (each.place for each in profile.extra_containers)
    yield from (each.place for each in profile.not_pods)
    yield from (each.place for each in profile.shadow_defaults)
    for fixed in profile.immutable:
        yield fixed.place
        yield from fixed.exceptions
    yield from profile.open_subtrees or ()


def status_texts(found: Definition) -> Iterator[str]:
    root = found.interface.spec.structure_definition.root_component
    status = root.status_definition
    assert status is not None
    if status.phase_definition:
        yield status.phase_definition.path
    if status.conditions_definition:
        yield status.conditions_definition.path
    if root.suspend_definition:
        suspend = root.suspend_definition
        yield from (e.path for e in (*suspend.suspend_actions, *suspend.resume_actions))


def texts(found: Definition) -> Iterator[str]:
    for component in found.interface.components:
        yield from (each.text for each in component_programs(component))
        if component.ids is not None and "to_entries" not in component.ids.text:
            yield component.ids.text
    yield from (each.text for each in profile_programs(found.profile))
    yield from status_texts(found)


def simple_paths(text: str) -> Iterator[str]:
    """The paths of an expression as `.a.b[].c`, read independently of the compiler."""
    flat = re.sub(r"\s*\|\s*", "|", text.strip())
    base, *factors = re.split(r"\|?\((\.[^()]*?) // \d+\)(?: \* )?", flat)
    steps = base.replace("|.[]", "[]").replace("|.", ".")
    inner = [each for each in factors if each]
    if inner:
        yield from (steps + each for each in inner)
    elif not re.fullmatch(r"\d+", steps):
        yield steps


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (".a.b", [".a.b"]),
        (".a | .[] | .b", [".a[].b"]),
        ("1", []),
        (".g[] | (.r // 0) * (.h // 1)", [".g[].r", ".g[].h"]),
    ],
)
def test_the_reader_of_paths_in_this_test_reads_paths(text: str, wanted: list[str]) -> None:
    assert list(simple_paths(text)) == wanted


def at(schema: Any, path: str) -> Any:
    """The schema at a path, None where there is none; labels of any name are in metadata."""
    for step in re.findall(r'\["[^"]+"\]|\[\]|[^.\[\]]+', path):
        if step == "[]":
            schema = schema.get("items") or schema.get("additionalProperties")
        elif step == "metadata":
            return schema if "metadata" in schema.get("properties", {}) else None
        else:
            schema = schema.get("properties", {}).get(step)
        if not isinstance(schema, dict):
            return None
    return schema


@functools.cache
def crd(folder: Path, plural: str, group: str) -> Any:
    path = folder / "crds" / f"{plural}.{group}.yaml"
    documents, faults = read_documents(path.read_bytes(), path.name, kubernetes=True)
    assert not faults
    return documents[0].data


def schemas(folder: Path, profile: Profile) -> dict[str, Any]:
    versions = crd(folder, profile.resource, profile.group)["spec"]["versions"]
    return {each["name"]: each["schema"]["openAPIV3Schema"] for each in versions}


def test_the_first_kinds_are_shipped() -> None:
    assert set(FILES) >= FIRST_KINDS


@pytest.mark.parametrize("name", FILES)
def test_a_shipped_file_has_no_problem_and_is_named_after_its_kind(name: str) -> None:
    interface, profile, problems = read_file(POLICIES / f"{name}.yaml")
    assert problems == []
    assert name == ".".join(each for each in (profile.kind.lower(), profile.group) if each)
    assert interface.name == profile.name == name
    assert profile.open_subtrees is not None
    assert set(profile.components) == {each.name for each in interface.components if each.form}


@pytest.mark.parametrize("name", sorted(BUILT_IN))
def test_every_path_of_a_built_in_kind_is_a_place_of_it(name: str) -> None:
    found = {path for text in texts(definition(name)) for path in simple_paths(text)}
    assert found <= BUILT_IN[name]
    assert definition(name).profile.built_in


@pytest.mark.parametrize("name", CUSTOM)
def test_every_path_of_a_custom_kind_is_in_its_schema(name: str, shared_data: Path) -> None:
    found = definition(name)
    versions = schemas(shared_data, found.profile)
    assert set(found.versions) == set(versions)
    paths = {path for text in texts(found) for path in simple_paths(text)}
    for version, schema in versions.items():
        missing = {path for path in paths if at(schema, path) is None}
        assert missing == (OLDER_RAY if version == "v1alpha1" else set())


@pytest.mark.parametrize("name", CUSTOM)
def test_names_and_the_scale_subresource_are_the_crds(name: str, shared_data: Path) -> None:
    profile = definition(name).profile
    body = crd(shared_data, profile.resource, profile.group)["spec"]
    names = (body["group"], body["names"]["kind"], body["names"]["plural"])
    assert names == (profile.group, profile.kind, profile.resource)
    for version in body["versions"]:
        scale = version.get("subresources", {}).get("scale")
        assert (scale is not None) == (profile.scale_subresource is not None)
        if scale and profile.scale_subresource:
            assert f".{profile.scale_subresource.instance}." in scale["specReplicasPath"]


@pytest.mark.parametrize("name", CUSTOM)
def test_shadow_defaults_are_those_of_the_crd(name: str, shared_data: Path) -> None:
    profile = definition(name).profile
    listed = {
        path: each.value
        for each in profile.shadow_defaults
        if each.by == "crd"
        for path in simple_paths(each.place.text)
    }
    schema = schemas(shared_data, profile)[profile.versions[0]]
    assert {path: at(schema, path)["default"] for path in listed} == listed
    for text in texts(definition(name)):
        for path in simple_paths(text):
            if "default" in (at(schema, path) or {}):
                assert path in listed


@pytest.mark.parametrize("name", CUSTOM)
def test_a_definition_reaches_every_place_of_the_schema(name: str, shared_data: Path) -> None:
    for schema in schemas(shared_data, definition(name).profile).values():
        found = schema_places(schema)
        assert found
        assert unproven(found, definition(name)) == []


def test_a_definition_without_a_place_is_caught(shared_data: Path) -> None:
    ray = definition("raycluster.ray.io")
    bare = Definition(ray.interface, dataclasses.replace(ray.profile, extra_containers=()))
    schema = schemas(shared_data, ray.profile)["v1"]
    assert [each.text for each in unproven(schema_places(schema), bare)] == [
        ".spec.autoscalerOptions",
        ".spec.historyServerOptions.collectorOptions",
    ]


def by_kind() -> dict[tuple[str, str], Definition]:
    every = [definition(name) for name in FILES]
    return {(each.interface.group, each.interface.kind): each for each in every}


def known(data: Any) -> Definition | None:
    if not isinstance(data, dict) or not isinstance(data.get("apiVersion"), str):
        return None
    group, _, version = data["apiVersion"].rpartition("/")
    found = by_kind().get((group, str(data.get("kind"))))
    return found if found and version in found.versions else None


def pod_specs(node: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Every object with a list of containers, found by a plain walk."""
    if isinstance(node, dict):
        if isinstance(node.get("containers"), list):
            yield path
            return
        for key, value in node.items():
            yield from pod_specs(value, (*path, key))
    elif isinstance(node, list):
        for index, value in enumerate(node):
            yield from pod_specs(value, (*path, index))


def assert_located(found: Definition, data: Any) -> None:
    locations = locate(found, data)
    assert {each.spec_path for each in locations} == set(pod_specs(data))
    keys = [(each.component, each.instance) for each in locations]
    assert len(set(keys)) == len(keys)
    whole = Definition(found.interface, dataclasses.replace(found.profile, open_subtrees=None))
    assert uncovered(data, locations, whole) == []
    assert all(each.replicas is not None for each in read_scales(found, data))


def test_real_manifests_are_located_as_a_plain_walk_finds_them(shared_data: Path) -> None:
    counts = dict.fromkeys(by_kind(), 0)
    for path in sorted((shared_data / "manifests").rglob("*.y*ml")):
        documents, _ = read_documents(path.read_bytes(), path.name, kubernetes=True)
        for each in documents:
            if found := known(each.data):
                counts[found.interface.group, found.interface.kind] += 1
                assert_located(found, each.data)
    assert all(count for (_, kind), count in counts.items() if kind != "CronJob")


def test_recorded_reviews_are_located_as_a_plain_walk_finds_them(shared_data: Path) -> None:
    seen = set()
    for path in sorted((shared_data / "reviews").glob("*.json")):
        request = json.loads(path.read_bytes())["request"]
        for data in (request.get("object"), request.get("oldObject")):
            if found := known(data):
                seen.add(found.interface.kind)
                assert_located(found, data)
    assert seen >= {"PyTorchJob", "RayCluster", "JobSet", "Job", "Deployment", "Pod"}


FULL_POD = {
    "containers": [{"name": "a", "image": "a", "ports": []}],
    "initContainers": [{"name": "b", "image": "b"}],
    "ephemeralContainers": [{"name": "c", "image": "c"}],
}
FULL = {"metadata": {"labels": {"a": "b"}}, "spec": FULL_POD}
FULL_OBJECTS: dict[str, dict[str, Any]] = {
    "pod": FULL_POD,
    "deployment.apps": {"template": FULL},
    "job.batch": {"template": FULL},
    "cronjob.batch": {"jobTemplate": {"spec": {"template": FULL}}},
    "pytorchjob.kubeflow.org": {
        "pytorchReplicaSpecs": {
            "Master": {"template": FULL},
            "Worker": {"template": FULL},
            "worker": {"template": FULL},
            "Odd": {"template": FULL},
        }
    },
    "raycluster.ray.io": {
        "headGroupSpec": {"template": FULL},
        "workerGroupSpecs": [
            {"groupName": "a", "template": FULL},
            {"groupName": "b", "template": FULL},
        ],
        "autoscalerOptions": {"image": "a", "env": []},
        "historyServerOptions": {"collectorOptions": {"image": "a", "env": []}},
    },
    "jobset.jobset.x-k8s.io": {
        "replicatedJobs": [
            {"name": "a", "template": {"spec": {"template": FULL}}},
            {"name": "b", "template": {"spec": {"template": FULL}}},
        ]
    },
}


@pytest.mark.parametrize("name", FILES)
def test_an_object_with_every_pod_location_filled_leaves_nothing_uncovered(name: str) -> None:
    assert name in FULL_OBJECTS
    assert_located(definition(name), {"metadata": {}, "spec": FULL_OBJECTS[name]})


def status_of(found: Definition, data: Any) -> set[str]:
    """All statuses that match, evaluated with jq as the reference evaluates them."""
    root = found.interface.spec.structure_definition.root_component
    definition_ = root.status_definition
    assert definition_ is not None
    phase: Any = None
    conditions: dict[str, Any] = {}
    if definition_.phase_definition:
        phase = jq.compile(definition_.phase_definition.path).input_value(data).first()
    if definition_.conditions_definition:
        listed = jq.compile(definition_.conditions_definition.path).input_value(data).first()
        conditions = {each["type"]: each for each in listed or ()}
    matching = set()
    for name, matchers in definition_.status_mappings:
        for matcher in matchers:
            expression = matcher.by_expression
            holds = matcher.by_phase in (None, phase) and all(
                each.type in conditions
                and each.status in (None, conditions[each.type]["status"])
                and each.reason in (None, conditions[each.type].get("reason"))
                for each in matcher.by_conditions
            )
            if holds and expression:
                result = jq.compile(f"({expression.expression}) | tostring").input_value(data)
                holds = result.first() == expression.expected_result
            if holds:
                matching.add(name)
    return matching


def with_conditions(*types: str) -> dict[str, Any]:
    return {"conditions": [{"type": each, "status": "True"} for each in types]}


@pytest.mark.parametrize(
    ("name", "status", "wanted"),
    [
        ("pod", {"phase": "Running"}, {"running"}),
        ("pod", {}, set()),
        ("deployment.apps", with_conditions("Available", "Progressing"), {"running"}),
        ("deployment.apps", with_conditions("ReplicaFailure"), {"degraded"}),
        ("job.batch", {}, {"initializing"}),
        ("job.batch", {"active": 2}, {"running"}),
        ("job.batch", with_conditions("SuccessCriteriaMet", "Complete"), {"completed"}),
        ("job.batch", with_conditions("FailureTarget", "Failed"), {"failed"}),
        ("job.batch", with_conditions("Suspended"), {"suspended"}),
        ("cronjob.batch", {}, {"initializing"}),
        ("cronjob.batch", {"active": [{}]}, {"running"}),
        ("cronjob.batch", {"lastScheduleTime": "x"}, set()),
        ("pytorchjob.kubeflow.org", with_conditions("Created"), {"initializing"}),
        ("pytorchjob.kubeflow.org", with_conditions("Created", "Running"), {"running"}),
        ("pytorchjob.kubeflow.org", with_conditions("Created", "Suspended"), {"suspended"}),
        ("pytorchjob.kubeflow.org", with_conditions("Created", "Succeeded"), {"completed"}),
        ("raycluster.ray.io", {}, {"initializing"}),
        ("raycluster.ray.io", {"state": "ready"}, {"running"}),
        ("raycluster.ray.io", {"state": "suspended"}, {"suspended"}),
        ("raycluster.ray.io", with_conditions("RayClusterSuspending"), {"suspending"}),
        ("raycluster.ray.io", with_conditions("RayClusterSuspended"), {"suspended"}),
        ("jobset.jobset.x-k8s.io", {}, set()),
        ("jobset.jobset.x-k8s.io", {"replicatedJobsStatus": [{"active": 1}]}, {"running"}),
        ("jobset.jobset.x-k8s.io", with_conditions("Completed"), {"completed"}),
        ("jobset.jobset.x-k8s.io", with_conditions("StartupPolicyInProgress"), {"initializing"}),
    ],
)
def test_the_status_is_the_one_that_people_expect(
    name: str, status: dict[str, Any], wanted: set[str]
) -> None:
    assert status_of(definition(name), {"status": status}) == wanted


def test_field_names_are_those_of_the_catalogue(shared_data: Path) -> None:
    catalogue = shared_data.parent / "reference" / "policy-fields.json"
    if not catalogue.is_file():
        pytest.skip(f"no field catalogue at {catalogue}")
    names = {each["path"] for each in json.loads(catalogue.read_text())}
    for name in FILES:
        assert set(definition(name).profile.fields) <= names


@pytest.mark.parametrize("name", FILES)
def test_exempt_controllers_are_exact_names_outside_workload_namespaces(name: str) -> None:
    for user in definition(name).profile.controllers:
        assert re.fullmatch(
            r"system:kube-controller-manager|system:serviceaccount:[^:*]+:[^:*]+", user
        )
