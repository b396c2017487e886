"""Every place of every CRD at hand where a kind states a claim is known, so that its volume counts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests import building
from tests.pods.test_shipped_workloads import CUSTOM, definition, schemas
from webhook.decision.decide import decide
from webhook.evaluation.outcome import Allowed, Denied
from webhook.evaluation.references import References
from webhook.interface.schema_places import properties
from webhook.objects.path import display
from webhook.pods.definition import Definition

OF_SPEC = frozenset(
    {"accessModes", "storageClassName", "volumeMode", "volumeName", "dataSource", "dataSourceRef"}
)
NAMED = re.compile(
    r"(persistent)?volumeClaim(Template)?s?(Name)?|(existing)?claim(Name)?|\w*pvc", re.I
)
OF_VOLUMES = frozenset(
    {"claim", "mounts", "workspaces", "same", "items", "more", "item", "readOnly"}
)
"""Forms of pieces that are volumes of a pod."""


def is_claim(name: str, node: Any) -> bool:
    """Whether a place of a schema states a claim: by its fields, or by its name."""
    if len(OF_SPEC & set(properties(node))) >= 2:
        return True
    return NAMED.fullmatch(name) is not None and node.get("type") in ("object", "array", "string")


def claim_places(node: Any, path: str = "", name: str = "") -> Iterator[str]:
    """The outermost places that state a claim, but those of volumes in pods and of the status."""
    if not isinstance(node, dict):
        return
    if is_claim(name, node):
        yield path
        return
    inside = properties(node)
    for key, each in inside.items():
        in_pod = key == "volumes" and bool({"containers", "initContainers"} & set(inside))
        if not in_pod and not (path == "" and key in ("status", "metadata")):
            yield from claim_places(each, f"{path}.{key}", key)
    for each in (node.get("items"), node.get("additionalProperties")):
        yield from claim_places(each, path, name)


def plain(text: str) -> str:
    """A path without its iterators."""
    return re.sub(r"\[\]|\?|\{\}", "", text)


def known_places(found: Definition) -> list[str]:
    """Where a definition looks for claims: templates, volumes in pieces, and whole pod specs."""
    profile = found.profile
    places = [each.text for each in profile.claim_templates]
    for plan in found.plans:
        places += [
            part.place.text
            for part in plan.specs
            if part.pod[:2] == ("spec", "volumes") and part.form in OF_VOLUMES
        ]
    return [plain(each) for each in places]


def unknown(found: Definition, folder: Path) -> list[str]:
    """The places of a kind's CRD that state a claim and that its definition does not know."""
    known = known_places(found)
    return [
        place
        for schema in schemas(folder, found.profile).values()
        for place in claim_places(schema)
        if not any(place == each or place.startswith(f"{each}.") for each in known)
    ]


@pytest.mark.parametrize("name", CUSTOM)
def test_every_place_of_a_claim_is_known(name: str, upstream_data: Path) -> None:
    assert unknown(definition(name), upstream_data) == []


def test_a_forgotten_claim_template_is_noticed(upstream_data: Path) -> None:
    forgotten = {}
    for name in CUSTOM:
        found = definition(name)
        profile = replace(found.profile, claim_templates=())
        without = Definition(found.interface, profile, found.others, found.versions)
        forgotten[name] = set(unknown(without, upstream_data))
    assert {name for name, places in forgotten.items() if places} >= {
        "jobset.jobset.x-k8s.io",
        "leaderworkerset.leaderworkerset.x-k8s.io",
        "job.batch.volcano.sh",
        "llminferenceservice.serving.kserve.io",
        "raycluster.ray.io",
        "workflow.argoproj.io",
    }
    assert forgotten["job.batch.volcano.sh"] == {
        ".spec.volumes.volumeClaim",
        ".spec.volumes.volumeClaimName",
    }


POD = "{containers: [{name: main, image: 'registry.example.com/a:1'}]}"
CLAIM = "{metadata: {name: data}, spec: {accessModes: [ReadWriteOnce]}}"
STATED = {
    "spec.volumeClaimTemplates[0]": (
        (
            "apps/v1",
            "StatefulSet",
            f"{{template: {{spec: {POD}}}, volumeClaimTemplates: [{CLAIM}]}}",
        ),
        (
            "apps.kruise.io/v1alpha1",
            "CloneSet",
            f"{{template: {{spec: {POD}}}, volumeClaimTemplates: [{CLAIM}]}}",
        ),
        (
            "agents.x-k8s.io/v1beta1",
            "Sandbox",
            f"{{podTemplate: {{spec: {POD}}}, volumeClaimTemplates: [{CLAIM}]}}",
        ),
        (
            "argoproj.io/v1alpha1",
            "Workflow",
            (
                "{entrypoint: a, templates: [{name: a, container: {image: 'registry.example.com/a:1'}}],"
                f" volumeClaimTemplates: [{CLAIM}]}}"
            ),
        ),
    ),
    "spec.leaderWorkerTemplate.volumeClaimTemplates[0]": (
        (
            "leaderworkerset.x-k8s.io/v1",
            "LeaderWorkerSet",
            (
                f"{{leaderWorkerTemplate: {{size: 2, workerTemplate: {{spec: {POD}}},"
                f" volumeClaimTemplates: [{CLAIM}]}}}}"
            ),
        ),
    ),
    "spec.volumeClaimPolicies[0].templates[0]": (
        (
            "jobset.x-k8s.io/v1alpha2",
            "JobSet",
            (
                f"{{replicatedJobs: [{{name: w, template: {{spec: {{template: {{spec: {POD}}}}}}}}}],"
                f" volumeClaimPolicies: [{{templates: [{CLAIM}]}}]}}"
            ),
        ),
    ),
    "spec.volumes[0]": (
        (
            "batch.volcano.sh/v1alpha1",
            "Job",
            (
                f"{{tasks: [{{name: w, replicas: 1, template: {{spec: {POD}}}}}],"
                " volumes: [{mountPath: /data, volumeClaimName: data}]}"
            ),
        ),
    ),
    "spec.persistence": (
        (
            "slinky.slurm.net/v1beta1",
            "Controller",
            "{slurmctld: {image: 'registry.example.com/a:1'}, persistence: {existingClaim: data}}",
        ),
    ),
    "spec.kvCacheOffloading.secondary[0].fileSystem.pvc": (
        (
            "serving.kserve.io/v1alpha2",
            "LLMInferenceService",
            (
                f"{{model: {{uri: 'hf://a/b'}}, template: {POD},"
                " kvCacheOffloading: {secondary: [{fileSystem: {pvc: {ref: {name: data}}}}]}}"
            ),
        ),
    ),
}
RULES = {
    "a type that is not among them": "rules: {security: {volumeTypes: {options: [emptyDir]}}}",
    "no type at all": "rules: {security: {volumeTypes: {blocked: true}}}",
    "claims too": "rules: {security: {volumeTypes: {options: [emptyDir, persistentVolumeClaim]}}}",
}


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize(
    "place, stated",
    [(place, each) for place, several in STATED.items() for each in several],
    ids=lambda each: each[1] if isinstance(each, tuple) else "",
)
def test_a_claim_counts_wherever_the_kind_states_it(
    place: str, stated: tuple[str, str, str], rule: str
) -> None:
    version, kind, spec = stated
    body = building.shell(version, kind, yaml.safe_load(spec))
    decision = decide(building.request(body), building.catalog(RULES[rule]), References())
    if rule == "claims too":
        assert isinstance(decision, Allowed), decision
        return
    assert isinstance(decision, Denied)
    assert [(each.field, display(each.path)) for each in decision.violations] == [
        ("security.volumeTypes", place)
    ]


def test_a_claim_that_is_switched_off_is_no_volume() -> None:
    spec = "{slurmctld: {image: 'registry.example.com/a:1'}, persistence: {enabled: false}}"
    body = building.shell("slinky.slurm.net/v1beta1", "Controller", yaml.safe_load(spec))
    catalog = building.catalog(RULES["no type at all"])
    assert isinstance(decide(building.request(body), catalog, References()), Allowed)
