"""Every place of every CRD at hand is covered, and taking anything off a definition is noticed."""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.pods.shipped import serving
from tests.pods.test_shipped_workloads import CUSTOM, definition, schemas
from webhook.interface.crd_schema import Spot, expression, outside, spots
from webhook.interface.kind_schema import KindSchema, without_schema
from webhook.interface.pod_keys import CONTAINER_KEYS, POD_KEYS
from webhook.interface.pruning import NOTHING
from webhook.interface.schema_places import SchemaPlace, find_paths, sample
from webhook.jq.path import Program
from webhook.pods.coverage import find_uncovered
from webhook.pods.definition import Definition
from webhook.pods.locate import locate
from webhook.pods.location import LocationError
from webhook.pods.schema_proof import Proof, prove

# What a kind that states its pods piece by piece may call such a piece, where a policy has a say in
# it. The others (name, ports, amounts, hostname) mean too many other things.
SPEAKING = frozenset(
    each.casefold() for each in POD_KEYS | CONTAINER_KEYS | {"image", "podSecurityContext"}
) - {"name", "overhead", "os", "resources", "priority", "ports", "hostname", "subdomain"}
PROBES = "of the endpoint picker, whose container is a component"
GC = "of the pods that collect artifacts: image and command are the operator's, the pods are judged"
OTHER_PODS: dict[str, dict[str, str]] = {
    "inferencegraph.serving.kserve.io": {
        ".spec.nodes[].steps[].nodeName": "another node of the graph, none of the cluster",
    },
    "nimservice.apps.nvidia.com": {
        f".spec.expose.router.eppConfig.{kind}{rest}": PROBES
        for kind in ("livenessProbe", "readinessProbe", "startupProbe")
        for rest in ("", ".exec.command", ".terminationGracePeriodSeconds")
    },
}
"""Places with a pod's names that are no pieces, with the reason."""
ARGO = {
    "activeDeadlineSeconds": "how long a step or the workflow may take, not a pod",
    "containerSet.volumeMounts": "of all containers of the set; the pods are judged",
    "executor.serviceAccountName": "of Argo's own container; the pods are judged",
    "retryStrategy.affinity": "where a retry may not run; the pods are judged",
    "sidecar.automountServiceAccountToken": "of the agent, whose sidecar is a component",
    "artifactGC.serviceAccountName": GC,
}


def is_other(name: str, place: str) -> bool:
    """Whether a place is listed above."""
    if name.endswith(".argoproj.io"):
        return any(place.endswith(f".{each}") for each in ARGO)
    return place in OTHER_PODS.get(name, {})


@functools.cache
def seen(name: str, folder: Path) -> tuple[tuple[KindSchema, tuple[Spot, ...]], ...]:
    """Each version of a kind, with the places outside of pods that have the names of pod fields."""
    profile = definition(name).profile
    found = []
    for version, schema in schemas(folder, profile).items():
        places = tuple(without_schema(each) for each in spots(schema))
        read = KindSchema("crd.yaml", profile.group, profile.kind, version, places, NOTHING)
        loose = tuple(
            Spot(steps, "pieces", {})
            for steps, _ in outside(schema)
            if steps and steps[-1].casefold() in SPEAKING
        )
        found.append((read, loose))
    return tuple(found)


def proofs(name: str, folder: Path, found: Definition) -> Iterator[Proof]:
    """What each version's schema proves of a definition."""
    for schema, _ in seen(name, folder):
        yield prove(found, schema)


def loose_fields(name: str, folder: Path, found: Definition) -> set[str]:
    """Fields of pods that the schema has beside the pods, and that no piece is."""
    if not found.profile.fragments:
        return set()
    known = [
        part.place
        for plan in found.plans
        for part in plan.specs
        if part.form != "mark" and not plan.assembler.forms[part.form].around
    ]
    known += [each.place for each in found.profile.not_pods]
    known += [each.place for each in found.profile.extra_containers]
    return {
        expression(spot.steps)
        for _, every in seen(name, folder)
        for spot in every
        if not touched(spot, known) and not is_other(name, expression(spot.steps))
    }


def touched(spot: Spot, known: list[Program]) -> bool:
    """Whether a program gives a place, one above or one below it."""
    document, target = sample(SchemaPlace(spot.steps, "container"))
    return any(
        path[: len(target)] == target or target[: len(path)] == path
        for path in find_paths(known, document)
    )


WORKFLOWS = {
    "workflow.argoproj.io": ".spec",
    "workflowtemplate.argoproj.io": ".spec",
    "clusterworkflowtemplate.argoproj.io": ".spec",
    "cronworkflow.argoproj.io": ".spec.workflowSpec",
}
INLINE = {
    "inline-step": ".spec.templates[].steps[][].inline",
    "inline-task": ".spec.templates[].dag.tasks[].inline",
    "stored-template": ".status.storedTemplates[]",
}
STORED = ".status.storedWorkflowTemplateSpec"
SERVICES = {
    "nimservice.apps.nvidia.com": ".spec",
    "nimpipeline.apps.nvidia.com": ".spec.services[].spec",
}
APPLICATIONS = {
    "sparkapplication.sparkoperator.k8s.io": ".spec",
    "scheduledsparkapplication.sparkoperator.k8s.io": ".spec.template",
}
FAMILIES = (WORKFLOWS, SERVICES, APPLICATIONS)
"""Kinds of one layout, with the place of it."""
LIKE = {"stored": "template", "stored-defaults": "defaults", **dict.fromkeys(INLINE, "template")}
LIKE |= {f"stored-{each}": each for each in ("artifact-gc", "artifact-gc-of-output")}
"""Components of a workflow that have the layout of another one."""
OVERRIDDEN = (
    "affinity",
    "containers",
    "imagePullSecrets",
    "initContainers",
    "nodeSelector",
    "schedulingGates",
    "serviceAccountName",
    "tolerations",
    "volumes",
)
PATCHED = (
    ".spec.runtimePatches[].trainingRuntimeSpec.template.spec.replicatedJobs[].template.spec"
    ".template.spec"
)
TASK_RUN = {".spec.computeResources", ".spec.taskRef", ".spec.workspaces"}
PIPELINE_RUN = {
    ".spec.pipelineRef",
    ".spec.workspaces",
    ".spec.taskRunSpecs[]",
    *(
        f".spec.taskRunSpecs[].{each}"
        for each in ("computeResources", "metadata.annotations", "metadata.labels")
    ),
}
# Pieces of kinds without a sibling, whose names say nothing of pods or which the CRD at hand lacks.
BY_HEART = {
    **serving.BY_HEART,
    "nimcache.apps.nvidia.com": {
        ".spec.source.dataStore.modelPuller",
        ".spec.source.hf.modelPuller",
        ".spec.source.ngc.modelPuller",
        ".spec.resources",
        ".spec.userID",
        ".spec.groupID",
        ".spec.storage.hostPath",
        ".spec.storage.pvc",
    },
    "inferencegraph.serving.kserve.io": {".spec.affinity", ".spec.nodes"},
    "jobflow.flow.volcano.sh": {
        f".spec.flows[].patch.jobSpec.tasks[].template.{each}" for each in ("metadata", "spec")
    },
    "llminferenceserviceconfig.serving.kserve.io": {".spec.router.scheduler.tokenizer.template"},
    "pipelinerun.tekton.dev@v1": PIPELINE_RUN
    | {f".spec.taskRunSpecs[].{each}" for each in ("sidecarSpecs", "stepSpecs")},
    "pipelinerun.tekton.dev@v1beta1": PIPELINE_RUN
    | {
        f".spec.taskRunSpecs[].{each}"
        for each in ("sidecarOverrides", "stepOverrides", "taskServiceAccountName")
    },
    "sparkconnect.sparkoperator.k8s.io": {".spec", ".spec.executor.cores"},
    "taskrun.tekton.dev@v1": TASK_RUN | {".spec.sidecarSpecs", ".spec.stepSpecs"},
    "taskrun.tekton.dev@v1beta1": TASK_RUN | {".spec.sidecarOverrides", ".spec.stepOverrides"},
    "trainjob.trainer.kubeflow.org": {
        *(f".spec.trainer.{each}" for each in ("command", "args", "env", "resourcesPerNode")),
        *(f".spec.initializer.{each}" for each in ("dataset", "model")),
        *(f".spec.podTemplateOverrides[].spec.{each}" for each in OVERRIDDEN),
        *(f"{PATCHED}.{each}" for each in (*OVERRIDDEN, "securityContext")),
    },
}

WITHOUT_PLACES = {"inferencegraph.serving.kserve.io", "jobflow.flow.volcano.sh"}
"""Kinds whose CRD at hand has no container: it is the operator's, or of newer versions."""

Pieces = frozenset[tuple[Any, str, str]]


def pieces(name: str, found: Definition) -> dict[str, Pieces]:
    """The pieces of each component, as the first of the kind's family would write their places."""
    prefix = next((each[name] for each in FAMILIES if name in each), ".spec")
    return {
        plan.component: frozenset(
            (part.pod, part.form, moved(plan.component, part.place.text, prefix))
            for part in plan.specs
            if part.place.text != ".spec.affinity.nodeAffinity"  # a fragment besides the affinity
        )
        for plan in found.plans
        if plan.specs
    }


def moved(component: str, place: str, prefix: str) -> str:
    """A place in the layout of the family's first kind, and of the component it is like."""
    place = place.replace(" | .[] | ", "[]")
    for old, new in (
        (prefix, ".spec"),
        (INLINE.get(component), ".spec.templates[]"),
        (STORED, ".spec"),
    ):
        if old and place.startswith(old):
            place = new + place.removeprefix(old)
    return place


def unlike(name: str, found: Definition) -> list[str]:
    """Components whose pieces are others than those of their like, in this kind or another."""
    own = pieces(name, found)
    family = next((each for each in FAMILIES if name in each), {})
    others = [pieces(each, definition(each)) for each in family if each != name]
    told = [each for each, like in LIKE.items() if each in own and own[each] != own.get(like)]
    for other in others:
        told += [each for each in {*own, *other} - {*LIKE} if own.get(each) != other.get(each)]
    expected = serving.PIECES.get(name, {})
    told += [each for each, known in expected.items() if own.get(each) != frozenset(known)]
    places = {part.place.text for plan in found.plans for part in plan.specs}
    places |= {plan.places.text for plan in found.plans if plan.places is not None}
    return told + sorted(BY_HEART.get(name, set()) - places)


@pytest.mark.parametrize("name", sorted({*CUSTOM, *SERVICES, *APPLICATIONS}))
def test_kinds_and_components_of_one_layout_have_the_same_pieces(name: str) -> None:
    assert unlike(name, definition(name)) == []


@pytest.mark.parametrize("name", CUSTOM)
def test_a_definition_covers_every_place_of_its_crd(name: str, upstream_data: Path) -> None:
    assert name in WITHOUT_PLACES or any(schema.spots for schema, _ in seen(name, upstream_data))
    for proof in proofs(name, upstream_data, definition(name)):
        assert [expression(each.steps) for each in proof.unknown] == []


@pytest.mark.parametrize("name", CUSTOM)
def test_every_field_of_pods_in_pieces_is_a_piece_or_told_why_not(
    name: str, upstream_data: Path
) -> None:
    assert loose_fields(name, upstream_data, definition(name)) == set()


def without(found: Definition) -> Iterator[tuple[str, str, Definition]]:
    """A definition without each of its places, one by one; what both documents state stays."""
    interface, profile = found.interface, found.profile
    for component in interface.components:
        if component.places is not None:
            rest = tuple(each for each in interface.components if each is not component)
            changed = dataclasses.replace(interface, components=rest)
            place = component.places.text + (".spec" if component.template else "")
            yield f"component {component.name}", place, Definition(changed, profile)
    for key in ("extra_containers", "not_pods"):
        listed: tuple[Any, ...] = getattr(profile, key)
        for each in listed:
            kept: dict[str, Any] = {key: tuple(other for other in listed if other is not each)}
            own = dataclasses.replace(profile, **kept)
            yield f"{key} {each.place.text}", each.place.text, Definition(interface, own)
    every = {part.place.text for parts in profile.fragments.values() for part in parts}
    # A workload's own metadata is the place of every kind.
    for place in sorted(each for each in every if not each.startswith(".metadata.")):
        fewer = {
            name: tuple(part for part in parts if part.place.text != place)
            for name, parts in profile.fragments.items()
        }
        less = Definition(interface, dataclasses.replace(profile, fragments=fewer))
        if place not in {part.place.text for plan in less.plans for part in plan.specs}:
            yield f"part {place}", place, less


def found_in(found: Definition, every: list[Proof], place: str) -> list[Any]:
    """What is uncovered in an object with a pod at a place: by each schema, and without any."""
    node: Any = {"containers": [{"name": "a", "image": "a", "command": ["a"]}]}
    for step in reversed(re.findall(r"[^.\[\]]+|\[\]", place)):
        named = {"name": "a", **node} if isinstance(node, dict) else node
        node = [named] if step == "[]" else {step: node}
    document = {"apiVersion": "example.com/v1", **node}
    told: list[Any] = []
    for each in (*every, None):
        found.proofs = {"v1": each} if each is not None else {}
        try:
            told.append(find_uncovered(document, locate(found, document), found))
        except LocationError as error:
            told.append(error.reason)
    return told


@pytest.mark.parametrize("name", CUSTOM)
def test_a_definition_without_one_of_its_places_is_noticed(name: str, upstream_data: Path) -> None:
    complete = definition(name)
    whole = list(proofs(name, upstream_data, complete))
    unnoticed = []
    silent = [expression(each) for proof in whole for each in proof.opened]
    for what, place, less in without(complete):
        if what.startswith("part ") and any(place.startswith(each) for each in silent):
            continue  # where a schema says nothing, containers are searched at run time
        every = list(proofs(name, upstream_data, less))
        if (
            every == whole
            and not loose_fields(name, upstream_data, less)
            and not unlike(name, less)
            and found_in(less, every, place) == found_in(whole_of(complete), whole, place)
        ):
            unnoticed.append(what)
    told = "no test misses these; a kind without a sibling takes them to BY_HEART:"
    assert unnoticed == [], "\n".join([told, *unnoticed])


def whole_of(found: Definition) -> Definition:
    """The definition once more, as proofs are set on it."""
    return Definition(found.interface, found.profile)
