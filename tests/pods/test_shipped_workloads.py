"""The shipped definitions and profiles: correct against upstream's schemas and real manifests."""

from __future__ import annotations

import dataclasses
import functools
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.building import pod_spec, request, shell
from tests.definitions import POLICIES
from tests.e2e.testbed import upstream
from tests.e2e.testbed.missing import MissingTestbed
from tests.pods.shipped import batch, interactive, serving
from webhook.admission.request_class import classify_request
from webhook.documents.problem import Problem
from webhook.documents.yaml_source import read_documents
from webhook.evaluation.request import RequestClass
from webhook.fields.notation import form_of
from webhook.interface.interface import Component, Interface, is_interface, parse_interface
from webhook.interface.profile import Profile
from webhook.interface.profile_document import parse_profile
from webhook.interface.profile_rules import check_profile
from webhook.jq.path import Program
from webhook.pods.coverage import find_uncovered
from webhook.pods.definition import Definition
from webhook.pods.locate import locate
from webhook.pods.location import PodLocation
from webhook.pods.replicas import read_scales
from webhook.policy.table import TABLE
from webhook.sources.load import Sources, load

jq: Any = pytest.importorskip("jq")

FILES = sorted(path.stem for path in POLICIES.glob("*.yaml"))
# Some kinds have a definition of its own for each version: written file@version.
KINDS = {
    "pod",
    "deployment.apps",
    "replicaset.apps",
    "statefulset.apps",
    "daemonset.apps",
    "replicationcontroller",
    "job.batch",
    "cronjob.batch",
    "pytorchjob.kubeflow.org",
    "tfjob.kubeflow.org",
    "xgboostjob.kubeflow.org",
    "jaxjob.kubeflow.org",
    "paddlejob.kubeflow.org",
    "mpijob.kubeflow.org@v1",
    "mpijob.kubeflow.org@v2beta1",
    "raycluster.ray.io",
    "rayjob.ray.io@v1",
    "rayjob.ray.io@v1alpha1",
    "rayservice.ray.io",
    "jobset.jobset.x-k8s.io",
    "leaderworkerset.leaderworkerset.x-k8s.io",
    "service.serving.knative.dev",
    "inferenceservice.serving.kserve.io",
    "nimservice.apps.nvidia.com",
    "nimcache.apps.nvidia.com",
    "job.batch.volcano.sh",
    "trainjob.trainer.kubeflow.org",
    "clustertrainingruntime.trainer.kubeflow.org",
    "sparkapplication.sparkoperator.k8s.io",
    "llminferenceservice.serving.kserve.io",
    "workflow.argoproj.io",
    "podtemplate",
}
# Kinds whose CRD is in a pinned archive of their project, which is fetched where tests run.
PINNED = {
    "configuration.serving.knative.dev": "knative",
    "servingruntime.serving.kserve.io": "kserve",
    "clusterservingruntime.serving.kserve.io": "kserve",
    "cronworkflow.argoproj.io": "argo",
    "workflowtemplate.argoproj.io": "argo",
    "clusterworkflowtemplate.argoproj.io": "argo",
    "rollout.argoproj.io": "argo-rollouts",
}
PINNED |= batch.PINNED | serving.PINNED
KINDS |= set(PINNED)
# What the pinned CRD does not show of a definition: newer parts, and parts without a schema.
ARGO = (r"\.inline\.", r"\.steps\[\]\[\]\.", r"\.executorPlugins", "podResources", "resourceClaims")
NOT_PINNED = {
    "cronworkflow.argoproj.io": ARGO,
    "workflowtemplate.argoproj.io": ARGO,
    "clusterworkflowtemplate.argoproj.io": ARGO,
    **batch.NOT_PINNED,
    **serving.NOT_PINNED,
}
# Kinds whose CRD nobody shared: their definitions are built from the facts, and the paths of some
# are those of a kind whose CRD is at hand, below another place.
SAME_LAYOUT = {
    "nimpipeline.apps.nvidia.com": (
        "nimservice.apps.nvidia.com",
        ".spec.services[].spec.",
        ".spec.",
    ),
}
SAME_LAYOUT |= batch.SAME_LAYOUT | serving.SAME_LAYOUT
WITHOUT_CRD = {
    *SAME_LAYOUT,
    *batch.WITHOUT_CRD,
    "appwrapper.workload.codeflare.dev",
    *serving.WITHOUT_CRD,
    "notebook.kubeflow.org",
    "cloneset.apps.kruise.io",
    "statefulset.apps.kruise.io",
    "seldondeployment.machinelearning.seldon.io",
    "podcliqueset.grove.io",
    "podclique.grove.io",
    "podcliquescalinggroup.grove.io",
    "dynamocomponentdeployment.nvidia.com@v1alpha1",
    "dynamocomponentdeployment.nvidia.com@v1beta1",
    "dynamographdeployment.nvidia.com@v1alpha1",
    "dynamographdeployment.nvidia.com@v1beta1",
    *interactive.FULL_OBJECTS,
}
KINDS |= WITHOUT_CRD
NAMES = sorted(KINDS)
CUSTOM = sorted(each for each in KINDS - WITHOUT_CRD if each.count(".") > 1)
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
    "podFailurePolicy.rules",
    "successPolicy",
    "managedBy",
}
APPS = {".spec.template", ".spec.replicas", ".spec.selector", ".spec.template.spec.restartPolicy"}
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
    "podtemplate": {".template", ".template.spec.restartPolicy"},
    "replicaset.apps": CONDITIONS | APPS,
    "replicationcontroller": CONDITIONS | APPS,
    "daemonset.apps": APPS,
    "statefulset.apps": APPS
    | {
        ".spec.serviceName",
        ".spec.podManagementPolicy",
        ".spec.volumeClaimTemplates",
        ".spec.volumeClaimTemplates[]",
    },
    "job.batch": CONDITIONS | {f".spec.{each}" for each in JOB},
    "cronjob.batch": {f".spec.jobTemplate.spec.{each}" for each in JOB}
    | {".spec.suspend", ".spec.jobTemplate.metadata.labels.priorityClassName"},
}
# What v1alpha1 of a kind lacks of the layout that it shares with newer versions.
OLDER = {
    "llminferenceservice.serving.kserve.io": {
        ".spec.kvCacheOffloading.secondary[].fileSystem.pvc",
        ".spec.prefill.kvCacheOffloading.secondary[].fileSystem.pvc",
    },
    "raycluster.ray.io": {
        ".spec.workerGroupSpecs[].numOfHosts",
        ".spec.historyServerOptions.collectorOptions",
        ".spec.managedBy",
        ".spec.gcsFaultToleranceOptions.backend",
        ".spec.gcsFaultToleranceOptions.storage",
        ".status.conditions",
    },
    "rayservice.ray.io": {
        ".spec.rayClusterConfig.workerGroupSpecs[].numOfHosts",
        ".spec.rayClusterConfig.historyServerOptions.collectorOptions",
        ".spec.rayClusterConfig.gcsFaultToleranceOptions.backend",
        ".spec.rayClusterConfig.gcsFaultToleranceOptions.storage",
        ".spec.rayClusterConfig.managedBy",
        ".spec.managedBy",
        ".spec.suspend",
        ".status.conditions",
    },
}


@functools.cache
def read(stem: str) -> tuple[tuple[Interface, ...], Profile, tuple[Problem, ...]]:
    """The interfaces of a shipped file, its profile, and all problems."""
    documents, faults = read_documents((POLICIES / f"{stem}.yaml").read_bytes(), stem)
    assert not faults
    interfaces: list[Interface] = []
    profiles: list[Profile] = []
    found: list[Problem] = []
    for each in documents:
        if is_interface(each.data):
            interface, problems = parse_interface(each)
            assert interface is not None, problems
            interfaces.append(interface)
        else:
            profile, problems = parse_profile(each)
            assert profile is not None, problems
            profiles.append(profile)
        found += problems
    (only,) = profiles
    for interface in interfaces:
        found += check_profile(only, interface)
    return tuple(interfaces), only, tuple(found)


@functools.cache
def definition(name: str) -> Definition:
    stem, _, version = name.partition("@")
    interfaces, profile, _ = read(stem)
    (found,) = (each for each in interfaces if version in ("", each.version))
    return Definition(found, profile)


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
        yield from (e for e in (*rules.none_while, rules.unlimited_while) if e)
        decided = (component.main.named_at, component.merged_with, component.leader_with)
        yield from (each for each in decided if each)
    for held in profile.fields.values():
        yield from held.places
        yield from (held.only_with,) if held.only_with else ()
    yield from profile.priority_class.second_places
    yield from (each.place for each in profile.extra_containers)
    yield from (each.place for each in profile.not_pods)
    yield from (each.place for each in profile.shadow_defaults)
    for fixed in profile.immutable:
        yield fixed.place
        yield from fixed.exceptions
    for reference in profile.references:
        named = (reference.place, reference.kind_place, reference.implied_by)
        yield from (each for each in named if each)
    yield from (each.place for each in profile.pod_texts)
    for embedded in profile.embedded:
        yield from (e for e in (embedded.place, embedded.pod_sets, embedded.replicas) if e)
    yield from profile.open_subtrees or ()
    yield from profile.claim_templates
    for parts in profile.fragments.values():
        yield from (each.place for each in parts)


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


def factors_of(text: str) -> list[str]:
    """The factors of a product in which elements of a list are multiplied by others."""
    depth, factors = 0, [""]
    for part in re.split(r"([()]| \* )", re.sub(r"\s+", " ", text.strip())):
        depth += {"(": 1, ")": -1}.get(part, 0)
        if depth == 0 and part == " * ":
            factors.append("")
        else:
            factors[-1] += part
    whole = all(each.startswith("(") and each.endswith(")") for each in factors)
    return [each[1:-1] for each in factors] if whole and "|" in text else []


def simple_paths(text: str) -> Iterator[str]:
    """The paths of an expression as `.a.b[].c`, read independently of the compiler."""
    for each in factors_of(text):
        yield from simple_paths(each)
    if factors_of(text):
        return
    if " // ." in text:
        for each in re.split(r" // (?=\.)", text.strip()):
            yield from simple_paths(each)
        return
    flat = re.sub(r"\s*\|\s*", "|", text.strip()).replace("?", "")
    flat = re.sub(r"\|select\([^()]*\)", "", flat)
    flat = re.sub(r"\|\d+$|(?<=\w) // \d+$", "", flat)
    base, *factors = re.split(r"\|?\((\.[^()]*?) // \d+\)(?: \* )?", flat)
    steps = base.replace("|.[]", "[]").replace("|.", ".")
    inner = [each for each in factors if each.startswith(".")]
    if inner:
        yield from (steps + each for each in inner)
    elif not re.fullmatch(r"\d+", steps):
        yield steps


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (".a.b", [".a.b"]),
        (".a | .[] | .b", [".a[].b"]),
        ('.a | select(.k.l == "v") | .b.c', [".a.b.c"]),
        ("1", []),
        (".g[] | (.r // 0) * (.h // 1)", [".g[].r", ".g[].h"]),
        ("(.a.r // 1) * ((.b.s // 1) - 1)", [".a.r", ".b.s"]),
        ("(.g[] | .r // 1) * (.s // 1)", [".g[].r", ".s"]),
        ("(.g[] | (.r // 1) * ((.h // 1) - 1)) * (.s // 1)", [".g[].r", ".g[].h", ".s"]),
        ('.g[] | select(.k.l == "v") | 7', [".g[]"]),
        (".a.b?[].c", [".a.b[].c"]),
        ('.a["x/y"] // .a["z"]', ['.a["x/y"]', '.a["z"]']),
    ],
)
def test_the_reader_of_paths_in_this_test_reads_paths(text: str, wanted: list[str]) -> None:
    assert list(simple_paths(text)) == wanted


def at(schema: Any, path: str) -> Any:
    """The schema at a path, None where there is none; labels of any name are in metadata.

    A schema that is open has everything.
    """
    for step in re.findall(r'\["[^"]+"\]|\[\]|[^.\[\]]+', path):
        if schema.get("x-kubernetes-preserve-unknown-fields"):
            return schema
        if step == "[]" or step.isdigit():
            schema = schema.get("items") or schema.get("additionalProperties")
        elif step == "metadata":
            return schema if "metadata" in schema.get("properties", {}) else None
        elif step.startswith("["):
            schema = schema.get("additionalProperties")
        else:
            listed = schema.get("properties", {}).get(step)
            # A map of amounts has keys of every name.
            schema = schema.get("additionalProperties") if listed is None else listed
        if not isinstance(schema, dict):
            return None
    return schema


@functools.cache
def crd(folder: Path, plural: str, group: str, version: str) -> Any:
    path = folder / "crds" / f"{plural}.{group}.{version}.yaml"
    if not path.is_file():
        path = folder / "crds" / f"{plural}.{group}.yaml"
    if not path.is_file():
        return pinned_crd(f"{plural}.{group}")
    documents, faults = read_documents(path.read_bytes(), path.name, kubernetes=True)
    assert not faults
    return documents[0].data


def pinned_crd(name: str) -> Any:
    """A CRD of a pinned archive; without the archive the test is skipped, but not on CI."""
    plural, _, group = name.partition(".")
    of_group = {each.partition("@")[0]: project for each, project in PINNED.items()}
    (project,) = {
        project
        for stem, project in of_group.items()
        if stem.partition(".")[2] == group and read(stem)[1].resource == plural
    }
    return crd_of(project, name)


def crd_of(project: str, name: str) -> Any:
    """A CRD of a project's archive, or the test is skipped."""
    try:
        return upstream.crd(project, name)
    except MissingTestbed as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(f"{error.reason} {error.how_to_get_it}")


def schemas(folder: Path, profile: Profile) -> dict[str, Any]:
    body = crd(folder, profile.resource, profile.group, profile.versions[0])["spec"]
    return {
        each["name"]: each["schema"]["openAPIV3Schema"]
        for each in body["versions"]
        if each["name"] in profile.versions
    }


def test_every_shipped_definition_is_tested() -> None:
    assert {each.partition("@")[0] for each in KINDS} == set(FILES)
    for stem in FILES:
        interfaces, profile, _ = read(stem)
        several = len(interfaces) > 1
        for each in interfaces:
            assert (f"{stem}@{each.version}" if several else stem) in KINDS
        covered = [version for each in interfaces for version in Definition(each, profile).versions]
        assert sorted(covered) == sorted(profile.versions)


@pytest.mark.parametrize("name", NAMES)
def test_a_shipped_file_has_no_problem_and_is_named_after_its_kind(name: str) -> None:
    stem, _, version = name.partition("@")
    _, whole, problems = read(stem)
    if whole.embedded or whole.references:
        # Other objects have the pods.
        problems = tuple(each for each in problems if each.reason != "no-pods")
    assert problems == ()
    interface, profile = definition(name).interface, definition(name).profile
    assert stem == ".".join(each for each in (profile.kind.lower(), profile.group) if each)
    assert profile.name == stem
    first = not version or version == whole.versions[0]
    assert interface.name == (stem if first else stem.replace(".", f".{version}.", 1))
    assert profile.open_subtrees is not None
    assert set(profile.components) == {each.name for each in interface.components if each.has_pods}


@pytest.mark.parametrize("name", sorted(BUILT_IN))
def test_every_path_of_a_built_in_kind_is_a_place_of_it(name: str) -> None:
    found = {path for text in texts(definition(name)) for path in simple_paths(text)}
    assert found <= BUILT_IN[name]
    assert definition(name).profile.built_in


@pytest.mark.parametrize("name", CUSTOM)
def test_every_path_of_a_custom_kind_is_in_its_schema(name: str, upstream_data: Path) -> None:
    found = definition(name)
    versions = schemas(upstream_data, found.profile)
    assert set(found.versions) == set(versions)
    paths = {path for text in texts(found) for path in simple_paths(text)}
    for version, schema in versions.items():
        missing = {path for path in paths if at(schema, path) is None}
        patterns = NOT_PINNED.get(name, ())
        assert all(any(re.search(each, path) for path in missing) for each in patterns)
        missing = {path for path in missing if not any(re.search(e, path) for e in patterns)}
        assert missing == (OLDER.get(name, set()) if version == "v1alpha1" else set())


@pytest.mark.parametrize("stem", sorted({each.partition("@")[0] for each in CUSTOM}))
def test_every_version_of_a_crd_has_a_definition(stem: str, upstream_data: Path) -> None:
    profile = read(stem)[1]
    for version in profile.versions:
        body = crd(upstream_data, profile.resource, profile.group, version)["spec"]
        assert {each["name"] for each in body["versions"]} <= set(profile.versions)


@pytest.mark.parametrize("name", CUSTOM)
def test_metadata_beside_pod_specs_has_labels_and_annotations(
    name: str, upstream_data: Path
) -> None:
    for schema in schemas(upstream_data, definition(name).profile).values():
        for component in definition(name).interface.components:
            if component.metadata is not None:
                (path,) = simple_paths(component.metadata.text)
                assert at(schema, path)["properties"].keys() >= {"labels", "annotations"}


@pytest.mark.parametrize("name", CUSTOM)
def test_names_and_the_scale_subresource_are_the_crds(name: str, upstream_data: Path) -> None:
    profile = definition(name).profile
    body = crd(upstream_data, profile.resource, profile.group, profile.versions[0])["spec"]
    names = (body["group"], body["names"]["kind"], body["names"]["plural"])
    assert names == (profile.group, profile.kind, profile.resource)
    for version in body["versions"]:
        scale = version.get("subresources", {}).get("scale")
        assert (scale is not None) == (profile.scale_subresource is not None)
        if not scale or not profile.scale_subresource:
            continue
        if profile.scale_subresource.instance:
            assert f".{profile.scale_subresource.instance}." in scale["specReplicasPath"]
        else:
            of = definition(name).interface.component(profile.scale_subresource.component)
            assert of
            assert of.replicas
            assert of.replicas.text == scale["specReplicasPath"]


@pytest.mark.parametrize("name", CUSTOM)
def test_shadow_defaults_are_those_of_the_crd(name: str, upstream_data: Path) -> None:
    profile = definition(name).profile
    listed = {
        path: each.value
        for each in profile.shadow_defaults
        if each.by == "crd"
        for path in simple_paths(each.place.text)
        if not any(re.search(pattern, path) for pattern in NOT_PINNED.get(name, ()))
        if path not in serving.NEWER_DEFAULTS.get(name, ())
    }
    schema = schemas(upstream_data, profile)[profile.versions[0]]
    assert {path: at(schema, path)["default"] for path in listed} == listed
    for text in texts(definition(name)):
        for path in simple_paths(text):
            if "default" in (at(schema, path) or {}):
                assert path in listed


ENUMS = sorted(
    (name, path)
    for name in CUSTOM
    for path, held in definition(name).profile.fields.items()
    if held.allows and path != "restartPolicy"  # in pods, whose CRDs list none
    if not all(
        each.text.startswith(".metadata") or ".metadata." in each.text for each in held.places
    )
)


def test_the_fields_with_listed_values_are_those_of_an_enum() -> None:
    assert ("inferenceservice.serving.kserve.io", "autoscaling.metric") in ENUMS
    assert ("inferencegraph.serving.kserve.io", "autoscaling.metric") in ENUMS


@pytest.mark.parametrize(("name", "field"), ENUMS)
def test_the_values_that_a_kind_takes_are_the_enum_of_its_crd(
    name: str, field: str, upstream_data: Path
) -> None:
    profile = definition(name).profile
    held = profile.fields[field]
    codec = form_of(TABLE.fields[field].reading(), held.notation).codec
    written = {str(codec.write(each, each)) for each in held.allows}
    schema = schemas(upstream_data, profile)[profile.versions[0]]
    places = [path for each in held.places for path in simple_paths(each.text)]
    found = [at(schema, path) for path in places]
    assert {frozenset(each["enum"]) for each in found if each is not None} == {frozenset(written)}


@pytest.mark.parametrize("name", sorted(SAME_LAYOUT))
def test_a_kind_without_a_crd_has_the_layout_of_its_like(name: str, upstream_data: Path) -> None:
    like, mine, theirs = SAME_LAYOUT[name]
    (schema,) = schemas(upstream_data, definition(like).profile).values()
    whole = [".spec.workflowSpec", ".spec.template", ".spec.services", ".spec.suspend", ".status"]
    whole += [".spec.concurrencyPolicy", ".spec.jobTemplate.metadata", ".spec.enabled"]
    # A spec as text stands where it stands as an object.
    whole += [mine.rstrip(".")] if name.startswith("scheduledworkflow") else []
    for text in texts(definition(name)):
        for path in simple_paths(text):
            if mine and not path.startswith(mine):
                assert path.startswith(tuple(whole)) or path == ".spec", path
            elif not path.startswith(".status"):
                assert at(schema, path.replace(mine, theirs, 1) if mine else path) is not None, path


def known(data: Any) -> str | None:
    """The name of the definition for an object."""
    if not isinstance(data, dict) or not isinstance(data.get("apiVersion"), str):
        return None
    group, _, version = data["apiVersion"].rpartition("/")
    for name in NAMES:
        interface = definition(name).interface
        same = (interface.group, interface.kind) == (group, str(data.get("kind")))
        if same and version in definition(name).versions:
            return name
    return None


# Kinds whose pod specs may stand without containers.
BARE_PODS = {("predictor",), ("transformer",), ("explainer",), ("predictor", "workerSpec")}
# Kinds that state a pod piece by piece, among the pieces lists of containers.
IN_PIECES = (
    batch.IN_PIECES
    | serving.IN_PIECES
    | interactive.IN_PIECES
    | {
        "NIMService",
        "NIMPipeline",
        "TrainJob",
        "Workflow",
        "CronWorkflow",
        "WorkflowTemplate",
        "ClusterWorkflowTemplate",
    }
)


def pod_specs(
    node: Any, path: tuple[str | int, ...] = (), *, bare: bool = False
) -> Iterator[tuple[str | int, ...]]:
    """Every object with a list of containers, found by a plain walk."""
    if isinstance(node, dict):
        named = tuple(each for each in path if isinstance(each, str) and each != "canary")
        if isinstance(node.get("containers"), list) or (bare and named[1:] in BARE_PODS):
            yield path
        for key, value in node.items():
            yield from pod_specs(value, (*path, key), bare=bare)
    elif isinstance(node, list):
        for index, value in enumerate(node):
            yield from pod_specs(value, (*path, index), bare=bare)


# An example of a layout that KServe gave up; its CRD prunes it.
PRUNED = {("spec", "transformer", "custom", "container")}


def assert_located(found: Definition, data: Any) -> None:
    locations = locate(found, data)
    bare = found.interface.kind == "InferenceService"
    in_one_piece = {each.spec_path for each in locations if each.fragments is None}
    if found.interface.kind in IN_PIECES or found.only_wraps:
        assert not in_one_piece
    else:
        assert in_one_piece == set(pod_specs(data, bare=bare))
    keys = [(each.component, each.instance) for each in locations]
    assert len(set(keys)) == len(keys)
    whole = Definition(found.interface, dataclasses.replace(found.profile, open_subtrees=None))
    assert {path for path, _ in find_uncovered(data, locations, whole)} <= PRUNED
    assert all(each.replicas is not None for each in read_scales(found, data))


# Nobody shared examples of these.
WITHOUT_MANIFESTS = (
    {
        "cronjob.batch",
        "statefulset.apps",
        "daemonset.apps",
        "replicationcontroller",
        "rayjob.ray.io@v1alpha1",
        "podtemplate",
        "trainjob.trainer.kubeflow.org",
    }
    | WITHOUT_CRD
    | (set(PINNED) - {"cronworkflow.argoproj.io"})
)


def test_real_manifests_are_located_as_a_plain_walk_finds_them(upstream_data: Path) -> None:
    counts = dict.fromkeys(NAMES, 0)
    for path in sorted((upstream_data / "manifests").rglob("*.y*ml")):
        documents, _ = read_documents(path.read_bytes(), path.name, kubernetes=True)
        for each in documents:
            if name := known(each.data):
                counts[name] += 1
                assert_located(definition(name), each.data)
    assert {name for name, count in counts.items() if not count} <= WITHOUT_MANIFESTS


def test_recorded_reviews_are_located_as_a_plain_walk_finds_them(upstream_data: Path) -> None:
    seen = set()
    for path in sorted((upstream_data / "reviews").glob("*.json")):
        request = json.loads(path.read_bytes())["request"]
        for data in (request.get("object"), request.get("oldObject")):
            if name := known(data):
                seen.add(name)
                assert_located(definition(name), data)
    not_recorded = {
        "replicaset.apps",
        "mpijob.kubeflow.org@v1",
        "cronworkflow.argoproj.io",
        "clustertrainingruntime.trainer.kubeflow.org",
    }
    assert seen >= KINDS - WITHOUT_MANIFESTS - not_recorded


FULL_POD = {
    "containers": [{"name": "a", "image": "a", "ports": []}],
    "initContainers": [{"name": "b", "image": "b"}],
    "ephemeralContainers": [{"name": "c", "image": "c"}],
}
FULL = {"metadata": {"labels": {"a": "b"}}, "spec": FULL_POD}
FULL_REPLICAS = {
    each: {"template": FULL} for each in ("Master", "Worker", "worker", "Launcher", "PS", "Odd")
}
FULL_RAY = {
    "headGroupSpec": {"template": FULL},
    "workerGroupSpecs": [
        {"groupName": "a", "template": FULL},
        {"groupName": "b", "template": FULL},
    ],
    "autoscalerOptions": {"image": "a", "env": []},
    "historyServerOptions": {"collectorOptions": {"image": "a", "env": []}},
}
FULL_MODEL = {"image": "a", "env": []}
RUNTIMES = "model sklearn xgboost tensorflow pytorch triton onnx huggingface pmml lightgbm paddle"
FULL_PREDICTOR = {
    **FULL_POD,
    "workerSpec": FULL_POD,
    **dict.fromkeys(RUNTIMES.split(), FULL_MODEL),
}
FULL_OBJECTS: dict[str, dict[str, Any]] = {
    "pod": FULL_POD,
    "deployment.apps": {"template": FULL},
    "replicaset.apps": {"template": FULL},
    "statefulset.apps": {"template": FULL},
    "daemonset.apps": {"template": FULL},
    "replicationcontroller": {"template": FULL},
    "job.batch": {"template": FULL},
    "cronjob.batch": {"jobTemplate": {"spec": {"template": FULL}}},
    "pytorchjob.kubeflow.org": {"pytorchReplicaSpecs": FULL_REPLICAS},
    "tfjob.kubeflow.org": {"tfReplicaSpecs": FULL_REPLICAS},
    "xgboostjob.kubeflow.org": {"xgbReplicaSpecs": FULL_REPLICAS},
    "jaxjob.kubeflow.org": {"jaxReplicaSpecs": FULL_REPLICAS},
    "paddlejob.kubeflow.org": {"paddleReplicaSpecs": FULL_REPLICAS},
    "mpijob.kubeflow.org": {"mpiReplicaSpecs": FULL_REPLICAS},
    "raycluster.ray.io": FULL_RAY,
    "rayjob.ray.io": {"rayClusterSpec": FULL_RAY, "submitterPodTemplate": FULL},
    "rayservice.ray.io": {"rayClusterConfig": FULL_RAY},
    "leaderworkerset.leaderworkerset.x-k8s.io": {
        "leaderWorkerTemplate": {"leaderTemplate": FULL, "workerTemplate": FULL}
    },
    "service.serving.knative.dev": {"template": FULL},
    "inferenceservice.serving.kserve.io": {
        "predictor": FULL_PREDICTOR,
        "transformer": FULL_POD,
        "explainer": {**FULL_POD, "art": FULL_MODEL},
        "canary": [{"predictor": FULL_PREDICTOR}, {"predictor": FULL_PREDICTOR}],
    },
    "jobset.jobset.x-k8s.io": {
        "replicatedJobs": [
            {"name": "a", "template": {"spec": {"template": FULL}}},
            {"name": "b", "template": {"spec": {"template": FULL}}},
        ]
    },
}


CONTAINER_IN_PARTS = {"name": "a", "image": {"repository": "r", "tag": "1"}}
FULL_OBJECTS["nimservice.apps.nvidia.com"] = {
    "image": {"repository": "r", "tag": "1", "pullPolicy": "Always", "pullSecrets": ["s"]},
    "initContainers": [CONTAINER_IN_PARTS],
    "sidecarContainers": [CONTAINER_IN_PARTS],
    "expose": {"router": {"eppConfig": {"containerSpec": CONTAINER_IN_PARTS}}},
    "storage": {"hostPath": "/data"},
}


FULL_TEMPLATE = {
    "container": {"image": "a", "env": []},
    "initContainers": [{"name": "b", "image": "b"}],
    "sidecars": [{"name": "c", "image": "c"}],
}
INLINE = {"name": "d", "inline": {"script": {"image": "a", "source": "x", "env": []}}}
FULL_WORKFLOW = {
    "templateDefaults": {"container": {"image": "a", "env": []}},
    "executorPlugins": [{"spec": {"sidecar": {"container": {"name": "a", "image": "a"}}}}],
    "podMetadata": {"labels": {"a": "b"}},
    "tolerations": [{"operator": "Exists"}],
    "templates": [
        {"name": "a", **FULL_TEMPLATE},
        {"name": "b", "script": {"image": "a", "source": "x", "env": []}},
        {"name": "c", "containerSet": {"containers": [{"name": "a", "image": "a"}]}},
        {"name": "d", "steps": [[INLINE, {"name": "e", "template": "a"}]]},
        {"name": "e", "dag": {"tasks": [INLINE]}},
    ],
}
FULL_ROLE = {
    "image": "a",
    "env": [],
    "initContainers": [{"name": "b", "image": "b"}],
    "sidecars": [{"name": "c", "image": "c"}],
    "template": FULL,
}
FULL_SPARK = {"image": "a", "volumes": [], "driver": FULL_ROLE, "executor": FULL_ROLE}
FULL_RUNTIME = {
    "template": {
        "spec": {"replicatedJobs": FULL_OBJECTS["jobset.jobset.x-k8s.io"]["replicatedJobs"]}
    }
}
FULL_OBJECTS |= batch.FULL_OBJECTS
FULL_LLM = {"template": FULL_POD, "worker": FULL_POD}
FULL_OBJECTS |= {
    "appwrapper.workload.codeflare.dev": {
        "components": [{"template": {"spec": {"template": FULL}}}, {"template": FULL_POD}]
    },
    "podtemplate": FULL_POD,
    "job.batch.volcano.sh": {"tasks": [{"name": "a", "template": FULL}, {"template": FULL}]},
    "trainjob.trainer.kubeflow.org": {
        "trainer": {"image": "a", "env": []},
        "podSpecOverrides": [{"containers": [{"name": "a"}], "volumes": []}],
    },
    "trainingruntime.trainer.kubeflow.org": FULL_RUNTIME,
    "clustertrainingruntime.trainer.kubeflow.org": FULL_RUNTIME,
    "sparkapplication.sparkoperator.k8s.io": FULL_SPARK,
    "scheduledsparkapplication.sparkoperator.k8s.io": {"template": FULL_SPARK},
    "llminferenceservice.serving.kserve.io": {
        **FULL_LLM,
        "prefill": FULL_LLM,
        "router": {"scheduler": {"template": FULL_POD, "tokenizer": {"template": FULL_POD}}},
    },
    "servingruntime.serving.kserve.io": {**FULL_POD, "workerSpec": FULL_POD},
    "clusterservingruntime.serving.kserve.io": {**FULL_POD, "workerSpec": FULL_POD},
    "workflow.argoproj.io": FULL_WORKFLOW,
    "cronworkflow.argoproj.io": {"workflowSpec": FULL_WORKFLOW},
    "workflowtemplate.argoproj.io": FULL_WORKFLOW,
    "clusterworkflowtemplate.argoproj.io": FULL_WORKFLOW,
    "nimcache.apps.nvidia.com": {
        "source": {"ngc": {"modelPuller": "a"}},
        "initContainers": [CONTAINER_IN_PARTS],
        "storage": {"hostPath": "/data"},
    },
    "nimpipeline.apps.nvidia.com": {
        "services": [{"name": "a", "spec": FULL_OBJECTS["nimservice.apps.nvidia.com"]}]
    },
    "notebook.kubeflow.org": {"template": FULL},
    "cloneset.apps.kruise.io": {"template": FULL},
    "statefulset.apps.kruise.io": {"template": FULL},
    "rollout.argoproj.io": {"template": FULL},
    "configuration.serving.knative.dev": {"template": FULL},
    "seldondeployment.machinelearning.seldon.io": {
        "predictors": [
            {
                "name": "a",
                "componentSpecs": [FULL, FULL],
                "explainer": {"containerSpec": {"name": "a", "image": "a"}},
            }
        ]
    },
    "podcliqueset.grove.io": {
        "template": {"cliques": [{"name": "a", "labels": {}, "spec": {"podSpec": FULL_POD}}]}
    },
    "podclique.grove.io": {"replicas": 1, "podSpec": FULL_POD},
    "podcliquescalinggroup.grove.io": {"replicas": 1, "cliqueNames": ["a"]},
    "dynamocomponentdeployment.nvidia.com@v1alpha1": {
        "extraPodSpec": {**FULL_POD, "mainContainer": {"image": "a"}}
    },
    "dynamocomponentdeployment.nvidia.com@v1beta1": {"podTemplate": FULL},
    "dynamographdeployment.nvidia.com@v1alpha1": {
        "services": {"Front": {"extraPodSpec": {**FULL_POD, "mainContainer": {"image": "a"}}}}
    },
    "dynamographdeployment.nvidia.com@v1beta1": {
        "components": [{"name": "a", "podTemplate": FULL}]
    },
    **interactive.FULL_OBJECTS,
}
FULL_OBJECTS |= {
    **serving.FULL_OBJECTS,
    "scheduledworkflow.kubeflow.org": {"workflow": {"spec": FULL_WORKFLOW}},
}


def test_every_container_of_a_nim_service_is_in_one_of_its_pods() -> None:
    located = locate(definition("nimservice.apps.nvidia.com"), full("nimservice.apps.nvidia.com"))
    held = [each.spec[part] for each in located for part in each.spec if "ontainers" in part]
    assert sum(map(len, held)) == 4
    assert all(each["image"] == "r:1" for containers in held for each in containers)


def full(name: str) -> dict[str, Any]:
    spec = dict(FULL_OBJECTS.get(name) or FULL_OBJECTS[name.partition("@")[0]])
    if name == "podtemplate":
        return {"metadata": {}, "template": FULL}
    if name == "rayjob.ray.io@v1alpha1":
        cluster = dict(FULL_RAY)
        del cluster["historyServerOptions"]
        spec["rayClusterSpec"] = cluster
    return {"metadata": {}, "spec": spec}


@pytest.mark.parametrize("name", NAMES)
def test_an_object_with_every_pod_location_filled_leaves_nothing_uncovered(name: str) -> None:
    assert_located(definition(name), full(name))


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
        ("pod", {}, {"initializing"}),
        ("pod", {"phase": "Unknown"}, {"degraded"}),
        ("deployment.apps", with_conditions("Available", "Progressing"), {"running"}),
        ("deployment.apps", with_conditions("ReplicaFailure"), {"degraded", "initializing"}),
        ("job.batch", {}, {"initializing"}),
        ("job.batch", {"active": 2}, {"running"}),
        ("job.batch", with_conditions("SuccessCriteriaMet", "Complete"), {"completed"}),
        ("job.batch", with_conditions("FailureTarget", "Failed"), {"failed"}),
        ("job.batch", with_conditions("Suspended"), {"suspended"}),
        ("cronjob.batch", {}, {"initializing"}),
        ("cronjob.batch", {"active": [{}]}, {"running"}),
        ("cronjob.batch", {"lastScheduleTime": "x"}, {"running"}),
        ("pytorchjob.kubeflow.org", with_conditions("Created"), {"initializing"}),
        ("pytorchjob.kubeflow.org", with_conditions("Created", "Running"), {"running"}),
        ("pytorchjob.kubeflow.org", with_conditions("Created", "Suspended"), {"suspended"}),
        ("pytorchjob.kubeflow.org", with_conditions("Created", "Succeeded"), {"completed"}),
        ("raycluster.ray.io", {}, {"initializing"}),
        ("raycluster.ray.io", {"state": "ready"}, {"running"}),
        ("raycluster.ray.io", {"state": "suspended"}, {"resuming"}),
        ("raycluster.ray.io", with_conditions("RayClusterSuspending"), {"suspending"}),
        ("replicaset.apps", {"readyReplicas": 1}, {"running"}),
        ("replicationcontroller", {}, {"initializing"}),
        ("statefulset.apps", {}, {"initializing"}),
        (
            "statefulset.apps",
            {"replicas": 1, "readyReplicas": 1, "updatedReplicas": 1},
            {"running"},
        ),
        ("daemonset.apps", {}, {"initializing"}),
        ("daemonset.apps", {"desiredNumberScheduled": 0}, {"running"}),
        ("daemonset.apps", {"desiredNumberScheduled": 2, "numberReady": 1}, {"initializing"}),
        ("tfjob.kubeflow.org", with_conditions("Created", "Running"), {"running"}),
        ("mpijob.kubeflow.org@v2beta1", with_conditions("Created", "Failed"), {"failed"}),
        ("rayjob.ray.io@v1", {}, {"initializing"}),
        ("rayjob.ray.io@v1", {"jobDeploymentStatus": "Running"}, {"initializing"}),
        (
            "rayjob.ray.io@v1",
            {"jobDeploymentStatus": "Complete", "jobStatus": "SUCCEEDED"},
            {"completed"},
        ),
        (
            "rayjob.ray.io@v1alpha1",
            {"jobDeploymentStatus": "Complete", "jobStatus": "FAILED"},
            {"failed"},
        ),
        ("rayservice.ray.io", with_conditions("Ready"), {"running"}),
        ("rayservice.ray.io", {"serviceStatus": "Running"}, {"running"}),
        ("rayservice.ray.io", with_conditions("Suspended"), {"suspended"}),
        ("leaderworkerset.leaderworkerset.x-k8s.io", {}, {"initializing"}),
        ("leaderworkerset.leaderworkerset.x-k8s.io", with_conditions("Available"), {"running"}),
        ("service.serving.knative.dev", {}, {"initializing"}),
        ("service.serving.knative.dev", with_conditions("Ready"), {"running"}),
        ("inferenceservice.serving.kserve.io", {}, {"initializing"}),
        ("inferenceservice.serving.kserve.io", with_conditions("Ready"), {"running"}),
        ("inferenceservice.serving.kserve.io", with_conditions("Stopped"), {"suspended"}),
        ("jobset.jobset.x-k8s.io", {}, {"initializing"}),
        ("jobset.jobset.x-k8s.io", {"replicatedJobsStatus": [{"active": 1}]}, {"running"}),
        ("jobset.jobset.x-k8s.io", with_conditions("Completed"), {"completed"}),
        ("jobset.jobset.x-k8s.io", with_conditions("StartupPolicyInProgress"), {"initializing"}),
        ("job.batch.volcano.sh", {"state": {"phase": "Running"}}, {"running"}),
        ("job.batch.volcano.sh", {"state": {"phase": "Aborted"}}, {"suspended"}),
        ("trainjob.trainer.kubeflow.org", {}, {"initializing"}),
        ("trainjob.trainer.kubeflow.org", {"jobsStatus": [{"active": 1}]}, {"running"}),
        ("trainjob.trainer.kubeflow.org", with_conditions("Complete"), {"completed"}),
        ("sparkapplication.sparkoperator.k8s.io", {}, {"initializing"}),
        (
            "sparkapplication.sparkoperator.k8s.io",
            {"applicationState": {"state": "COMPLETED"}},
            {"completed"},
        ),
        ("llminferenceservice.serving.kserve.io", with_conditions("Ready"), {"running"}),
        ("workflow.argoproj.io", {"phase": "Error"}, {"failed"}),
        ("workflow.argoproj.io", {}, {"initializing"}),
        ("cronworkflow.argoproj.io", {"active": [{}]}, {"running"}),
        ("nimcache.apps.nvidia.com", {"state": "Ready"}, {"completed"}),
        ("notebook.kubeflow.org", {}, {"initializing"}),
        ("notebook.kubeflow.org", {"readyReplicas": 1}, {"running"}),
        ("notebook.kubeflow.org", {"containerState": {"terminated": {}}}, {"failed"}),
        ("cloneset.apps.kruise.io", {"readyReplicas": 1}, {"running"}),
        ("rollout.argoproj.io", {"phase": "Healthy"}, {"running"}),
        ("podcliqueset.grove.io", {}, {"running"}),
        ("podclique.grove.io", {}, {"initializing"}),
        ("podclique.grove.io", {"readyReplicas": 1}, {"running"}),
        ("podcliquescalinggroup.grove.io", {"availableReplicas": 1}, {"running"}),
        (
            "dynamocomponentdeployment.nvidia.com@v1alpha1",
            with_conditions("Available"),
            {"running"},
        ),
        ("dynamographdeployment.nvidia.com@v1beta1", {"state": "successful"}, {"running"}),
        ("seldondeployment.machinelearning.seldon.io", {"state": "Available"}, {"running"}),
        *batch.STATUSES,
        *serving.STATUSES,
        *interactive.STATUSES,
    ],
)
def test_the_status_is_the_one_that_people_expect(
    name: str, status: dict[str, Any], wanted: set[str]
) -> None:
    assert status_of(definition(name), {"status": status}) == wanted


def test_field_names_are_those_of_the_catalogue() -> None:
    catalogue = Path(__file__).parents[1] / "policy" / "policy-fields.json"
    names = {each["path"] for each in json.loads(catalogue.read_text())}
    for name in NAMES:
        profile = definition(name).profile
        assert set(profile.fields) <= names
        assert {each.field for each in profile.forbidden_fields} <= names


@pytest.mark.parametrize("name", NAMES)
def test_exempt_controllers_are_exact_names_outside_workload_namespaces(name: str) -> None:
    for user in definition(name).profile.controllers:
        assert re.fullmatch(
            r"system:kube-controller-manager|system:serviceaccount:[^:*]+:[^:*]+", user
        )


def placed(name: str, spec: dict[str, Any]) -> dict[str, PodLocation]:
    """The locations of an object by component."""
    return {each.component: each for each in locate(definition(name), {"spec": spec})}


LWS = "leaderworkerset.leaderworkerset.x-k8s.io"
KSERVE = "inferenceservice.serving.kserve.io"
KNATIVE = "service.serving.knative.dev"


def test_without_a_leader_template_the_workers_template_has_both_roles() -> None:
    alone = placed(LWS, {"leaderWorkerTemplate": {"workerTemplate": FULL}})
    assert alone["worker"].roles == ("leader", "worker")
    both = placed(LWS, {"leaderWorkerTemplate": {"leaderTemplate": FULL, "workerTemplate": FULL}})
    assert (both["leader"].roles, both["worker"].roles) == (("leader",), ("worker",))


@pytest.mark.parametrize("groups", [None, 3])
@pytest.mark.parametrize(("size", "workers"), [(None, 0), (1, 0), (4, 3)])
def test_a_groups_size_counts_its_leader(
    groups: int | None, size: int | None, workers: int
) -> None:
    spec = {"replicas": groups, "leaderWorkerTemplate": {"size": size, "workerTemplate": FULL}}
    scales = {
        each.component: each.replicas for each in read_scales(definition(LWS), {"spec": spec})
    }
    assert scales == {"leader": groups or 1, "worker": (groups or 1) * workers}


def test_a_ray_job_in_a_cluster_that_is_there_has_merged_children() -> None:
    submitter = {"submitterPodTemplate": FULL}
    own = placed("rayjob.ray.io@v1", submitter)
    assert own["submitter"].children == "derived"
    shared = placed("rayjob.ray.io@v1", {**submitter, "clusterSelector": {"ray.io/cluster": "a"}})
    assert set(shared) == {"submitter"}
    assert shared["submitter"].children == "merged"


def test_a_job_of_mpi_names_its_main_container_in_v1_only() -> None:
    spec = {"mpiReplicaSpecs": {"Worker": {"template": FULL}}}
    named = {**spec, "mainContainer": "runner"}
    assert placed("mpijob.kubeflow.org@v1", spec)["replica"].main.name == "mpi"
    assert placed("mpijob.kubeflow.org@v1", named)["replica"].main.name == "runner"
    newer = placed("mpijob.kubeflow.org@v2beta1", named)["replica"].main
    assert (newer.name, newer.index) == (None, 0)
    fields = definition("mpijob.kubeflow.org@v1").profile.fields
    assert len(fields["cleanPodPolicy"].places) == 2
    assert "sshAuthMountPath" not in fields
    fields = definition("mpijob.kubeflow.org@v2beta1").profile.fields
    assert len(fields["cleanPodPolicy"].places) == 1
    assert {"sshAuthMountPath", "backoffLimit", "slotsPerWorker"} <= set(fields)


def test_the_older_ray_job_has_no_place_for_retries() -> None:
    assert "backoffLimit" in definition("rayjob.ray.io@v1").profile.fields
    assert "backoffLimit" not in definition("rayjob.ray.io@v1alpha1").profile.fields


def test_knatives_main_container_is_the_one_with_ports() -> None:
    containers = [{"name": "a", "image": "a"}, {"name": "b", "image": "b", "ports": [{}]}]
    for listed, index in ((containers, 1), (containers[:1], None)):
        spec = {"template": {"spec": {"containers": listed}}}
        assert placed(KNATIVE, spec)["revision"].main.index == index


PREFIX = "autoscaling.knative.dev/"


@pytest.mark.parametrize(
    ("annotations", "minimum", "maximum"),
    [
        ({}, None, 2**31 - 1),
        ({"min-scale": "2", "max-scale": "5"}, 2, 5),
        ({"minScale": "2", "maxScale": "5"}, 2, 5),
        ({"max-scale": "0"}, None, 2**31 - 1),
    ],
)
def test_knatives_scale_is_text_in_two_spellings_and_without_limit_by_default(
    annotations: dict[str, str], minimum: int | None, maximum: int
) -> None:
    metadata = {"annotations": {PREFIX + key: value for key, value in annotations.items()}}
    (scale,) = read_scales(
        definition(KNATIVE), {"spec": {"template": {**FULL, "metadata": metadata}}}
    )
    assert (scale.replicas, scale.minimum, scale.maximum) == (0, minimum, maximum)


def test_a_model_is_a_container_of_its_own_predictor_and_the_main_one() -> None:
    model = {"model": {"image": "a"}}
    canaries = [{"predictor": {**model, "minReplicas": 4}}, {"predictor": {"containers": []}}]
    data = {"spec": {"predictor": {**model, "workerSpec": {}}, "canary": canaries}}
    found = {(each.component, each.instance): each for each in locate(definition(KSERVE), data)}
    predictor = found["predictor", ""]
    assert predictor.roles == ("leader",)
    assert predictor.metadata_path == predictor.spec_path
    place = ("spec", "predictor", "model")
    assert [path for path, _ in predictor.extra] == [place]
    assert predictor.main.place == place
    assert found["predictor-workers", ""].metadata_path is None
    assert [path for path, _ in found["canary", "0"].extra] == [
        ("spec", "canary", 0, "predictor", "model")
    ]
    assert found["canary", "1"].extra == ()
    assert found["canary", "1"].main.place is None
    assert {each.children for each in found.values()} == {"merged"}


def test_an_absent_component_of_an_inference_service_has_no_scale_without_limit() -> None:
    data: dict[str, Any] = {"spec": {"predictor": {"model": {}}}}
    unlimited = [
        each.component for each in read_scales(definition(KSERVE), data) if each.maximum is not None
    ]
    assert unlimited == ["predictor"]


KCM = "system:kube-controller-manager"
ACCOUNT = "system:serviceaccount:kube-system:"


@pytest.mark.parametrize(
    ("owner", "child", "user"),
    [
        ("apps/v1 Deployment", "apps/v1 ReplicaSet", KCM),
        ("apps/v1 Deployment", "apps/v1 ReplicaSet", ACCOUNT + "deployment-controller"),
        ("apps/v1 ReplicaSet", "v1 Pod", ACCOUNT + "replicaset-controller"),
        ("v1 ReplicationController", "v1 Pod", ACCOUNT + "replication-controller"),
        ("apps/v1 StatefulSet", "v1 Pod", ACCOUNT + "statefulset-controller"),
        ("apps/v1 DaemonSet", "v1 Pod", ACCOUNT + "daemon-set-controller"),
        ("batch/v1 CronJob", "batch/v1 Job", ACCOUNT + "cronjob-controller"),
        ("batch/v1 Job", "v1 Pod", ACCOUNT + "job-controller"),
        ("kubeflow.org/v1 TFJob", "v1 Pod", "system:serviceaccount:kubeflow:training-operator"),
        (
            "kubeflow.org/v2beta1 MPIJob",
            "batch/v1 Job",
            "system:serviceaccount:mpi-operator:mpi-operator",
        ),
        (
            "ray.io/v1 RayJob",
            "ray.io/v1 RayCluster",
            "system:serviceaccount:default:kuberay-operator",
        ),
        (
            "leaderworkerset.x-k8s.io/v1 LeaderWorkerSet",
            "apps/v1 StatefulSet",
            "system:serviceaccount:lws-system:lws-controller-manager",
        ),
        (
            "v1 Pod",
            "apps/v1 StatefulSet",
            "system:serviceaccount:lws-system:lws-controller-manager",
        ),
        (
            "serving.knative.dev/v1 Revision",
            "apps/v1 Deployment",
            "system:serviceaccount:knative-serving:controller",
        ),
        (
            "batch.volcano.sh/v1alpha1 Job",
            "v1 Pod",
            "system:serviceaccount:volcano-system:volcano-controllers",
        ),
        (
            "apps.kruise.io/v1alpha1 CloneSet",
            "v1 Pod",
            "system:serviceaccount:kruise-system:kruise-manager",
        ),
        (
            "kubeflow.org/v1 Notebook",
            "apps/v1 StatefulSet",
            "system:serviceaccount:kubeflow:notebook-controller-service-account",
        ),
        (
            "grove.io/v1alpha1 PodClique",
            "v1 Pod",
            "system:serviceaccount:grove-system:grove-operator",
        ),
        *batch.EXEMPT,
        *serving.EXEMPT,
        *interactive.EXEMPT,
    ],
)
def test_children_that_controllers_make_are_exempt(owner: str, child: str, user: str) -> None:
    catalog, problems = load(Sources())
    assert catalog is not None, problems
    version, kind = owner.split()
    child_version, child_kind = child.split()
    data = shell(child_version, child_kind, {"template": {"spec": pod_spec()}})
    reference = {"apiVersion": version, "kind": kind, "name": "a", "uid": "b", "controller": True}
    data["metadata"]["ownerReferences"] = [reference]
    assert classify_request(request(data, user=user), catalog) is RequestClass.EXEMPT
    assert classify_request(request(data), catalog) is not RequestClass.EXEMPT


@pytest.mark.parametrize(
    ("owner", "child", "user"),
    [
        (
            "serving.kserve.io/v1beta1 InferenceService",
            "serving.knative.dev/v1 Service",
            "system:serviceaccount:kserve:kserve-controller-manager",
        ),
        (
            "apps.nvidia.com/v1alpha1 NIMService",
            "apps/v1 Deployment",
            "system:serviceaccount:nim-operator:k8s-nim-operator",
        ),
        (
            "trainer.kubeflow.org/v1alpha1 TrainJob",
            "jobset.x-k8s.io/v1alpha2 JobSet",
            "system:serviceaccount:kubeflow-system:kubeflow-trainer-controller-manager",
        ),
        ("argoproj.io/v1alpha1 Workflow", "v1 Pod", "system:serviceaccount:argo:argo"),
        # Whether the owner refers to pods elsewhere is not seen in what is made of it.
        ("ray.io/v1 RayJob", "batch/v1 Job", "system:serviceaccount:default:kuberay-operator"),
        (
            "argoproj.io/v1alpha1 Rollout",
            "apps/v1 ReplicaSet",
            "system:serviceaccount:argo-rollouts:argo-rollouts",
        ),
        (
            "sparkoperator.k8s.io/v1beta2 SparkApplication",
            "v1 Pod",
            "system:serviceaccount:spark-operator:spark-operator-controller",
        ),
        (
            "serving.kserve.io/v1alpha1 LLMInferenceService",
            "apps/v1 Deployment",
            "system:serviceaccount:kserve:llmisvc-controller-manager",
        ),
        *batch.JUDGED,
        *serving.JUDGED,
        *interactive.JUDGED,
    ],
)
def test_children_of_kinds_that_leave_something_open_are_judged(
    owner: str, child: str, user: str
) -> None:
    catalog, problems = load(Sources())
    assert catalog is not None, problems
    version, kind = owner.split()
    child_version, child_kind = child.split()
    data = shell(child_version, child_kind, {"template": {"spec": pod_spec()}})
    reference = {"apiVersion": version, "kind": kind, "name": "a", "uid": "b", "controller": True}
    data["metadata"]["ownerReferences"] = [reference]
    assert classify_request(request(data, user=user), catalog) is RequestClass.CHILD
    grandchild = {**reference, "apiVersion": child.split()[0], "kind": child.split()[1]}
    data["metadata"]["ownerReferences"] = [grandchild]
    assert classify_request(request(data, user=user), catalog) is not RequestClass.CHILD


WORKFLOW = "workflow.argoproj.io"


def test_a_template_of_a_workflow_has_what_it_does_not_say_from_the_workflow() -> None:
    spec = {
        "hostNetwork": True,
        "tolerations": [{"key": "a"}],
        "podPriorityClassName": "low",
        "templateDefaults": {"priorityClassName": "mid"},
        "volumes": [{"name": "a"}],
        "templates": [
            {
                "name": "own",
                "container": {"image": "a"},
                "sidecars": [{"image": "b"}],
                "tolerations": [{"key": "b"}],
                "volumes": [{"name": "b"}],
            },
            {"name": "none", "dag": {"tasks": []}},
            {"name": "script", "script": {"image": "c", "source": "x"}},
        ],
    }
    found = {each.instance: each for each in locate(definition(WORKFLOW), {"spec": spec})}
    assert set(found) == {"own", "script"}
    own, script = found["own"].spec, found["script"].spec
    assert [each["image"] for each in own["containers"]] == ["a", "b"]
    assert [each["image"] for each in script["containers"]] == ["c"]
    assert (own["tolerations"], script["tolerations"]) == ([{"key": "b"}], [{"key": "a"}])
    assert own["hostNetwork"]
    assert own["priorityClassName"] == script["priorityClassName"] == "mid"
    assert [each["name"] for each in own["volumes"]] == ["a", "b"]
    parts = found["own"].fragments
    assert parts is not None
    assert parts.report(("spec", "volumes", 1)) == ("spec", "templates", 0, "volumes", 0)
    assert parts.report(("spec", "tolerations")) == ("spec", "templates", 0, "tolerations")
    assert parts.report(("spec", "priorityClassName")) == (
        "spec",
        "templateDefaults",
        "priorityClassName",
    )


def test_what_a_controller_stored_in_the_status_of_a_workflow_is_a_pod() -> None:
    stored = {"a": {"name": "a", "container": {"image": "a"}}}
    status = {
        "storedTemplates": stored,
        "storedWorkflowTemplateSpec": {"templates": [{"name": "b", "script": {"image": "b"}}]},
    }
    found = locate(definition(WORKFLOW), {"spec": {}, "status": status})
    assert {each.component for each in found} == {"stored-template", "stored"}
    assert find_uncovered({"spec": {}, "status": status}, found, definition(WORKFLOW)) == []
    odd = {"storedTemplates": {"a": {"dag": {"tasks": [{"x": {"image": "a", "command": []}}]}}}}
    assert find_uncovered({"spec": {}, "status": odd}, [], definition(WORKFLOW)) != []


def test_a_workflow_nested_in_an_inline_template_is_outside_the_known_places() -> None:
    inner = {"dag": {"tasks": [{"name": "b", "inline": {"container": {"image": "a", "env": []}}}]}}
    task = {"name": "a", "inline": inner}
    data = {"spec": {"templates": [{"name": "t", "dag": {"tasks": [task]}}]}}
    found = locate(definition(WORKFLOW), data)
    ((path, what),) = find_uncovered(data, found, definition(WORKFLOW))
    assert what == "container"
    assert path[-2:] == ("inline", "container")


SPARK = "sparkapplication.sparkoperator.k8s.io"


@pytest.mark.parametrize(
    ("more", "driver", "wanted"),
    [
        ({"type": "Scala"}, {"memory": "4g"}, 4 * 2**30 + 4 * 2**30 // 10),
        ({"type": "Scala"}, {"memory": "512m"}, (512 + 384) * 2**20),
        ({"type": "Python"}, {"memory": "10g"}, 14 * 2**30),
        ({"memoryOverheadFactor": "0.5"}, {"memory": "2g"}, 3 * 2**30),
        ({}, {"memory": "1g", "memoryOverhead": "1g"}, 2 * 2**30),
        ({}, {"memory": "1g", "memoryLimit": "3Gi"}, "3Gi"),
        ({}, {"memory": "plenty"}, "plenty"),
        ({}, {"memory": "0" * 30 + "4096g", "memoryOverhead": "1b"}, 4096 * 2**30 + 1),
        ({}, {"memory": "1g", "memoryOverhead": "0" * 30 + "64g"}, 65 * 2**30),
        ({}, {"memory": "1g", "memoryOverhead": "64 gigabytes"}, "64 gigabytes"),
        ({"memoryOverheadFactor": "63.00000000000"}, {"memory": "1g"}, 64 * 2**30),
        ({"memoryOverheadFactor": "6.3e1"}, {"memory": "1g"}, 64 * 2**30),
        ({"memoryOverheadFactor": "0x3fp0"}, {"memory": "1g"}, "0x3fp0"),
        ({}, {"memory": 64.5}, 64.5),
        ({}, {"memory": "b"}, "b"),
        ({}, {"cores": 1}, None),
    ],
)
def test_the_memory_of_spark_is_the_heap_and_its_overhead(
    more: dict[str, Any], driver: dict[str, Any], wanted: Any
) -> None:
    found = placed(SPARK, {**more, "driver": driver})["driver"]
    amounts = found.spec["containers"][0].get("resources", {})
    for part in ("requests", "limits"):
        assert amounts.get(part, {}).get("memory") == (
            str(wanted) if isinstance(wanted, int) else wanted
        )


def test_what_a_role_of_spark_says_goes_before_what_the_application_says() -> None:
    spec = {
        "image": "a",
        "driver": {"image": "b", "gpu": {"name": "nvidia.com/gpu", "quantity": 2}},
    }
    found = placed(SPARK, {**spec, "executor": {"cores": 2}})
    driver, executor = found["driver"], found["executor"]
    assert driver.spec["containers"][0]["image"] == "b"
    assert driver.spec["containers"][0]["resources"]["limits"] == {"nvidia.com/gpu": 2}
    assert executor.spec["containers"][0]["image"] == "a"
    assert executor.fragments is not None
    assert executor.fragments.report(("spec", "containers", 0, "image")) == ("spec", "image")
    assert (driver.roles, executor.roles) == (("master",), ("worker",))
    assert {driver.children, executor.children} == {"merged"}


def test_a_train_job_is_judged_with_all_that_goes_over_its_runtime() -> None:
    overrides = [{"volumes": [{"name": "a"}]}, {"volumes": [{"name": "b"}], "containers": [{}]}]
    spec = {"trainer": {"image": "a"}, "podSpecOverrides": overrides}
    (found,) = locate(definition("trainjob.trainer.kubeflow.org"), {"spec": spec})
    assert [each["name"] for each in found.spec["volumes"]] == ["a", "b"]
    assert len(found.spec["containers"]) == 2
    assert found.fragments is not None
    assert found.fragments.report(("spec", "volumes", 1)) == (
        "spec",
        "podSpecOverrides",
        1,
        "volumes",
        0,
    )
    assert found.fragments.writable(("spec", "volumes", 1)) is None
