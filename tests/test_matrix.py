"""Every kind, subresource and verb: registered or not, and judged how.

Generated from the shipped definitions; what is expected is said by rule and never by kind.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.building import catalog, policy, served
from tests.upstream import data
from webhook.admission.judge import decide_review
from webhook.cases.read import cases_in
from webhook.catalog.catalog import Catalog
from webhook.controller.registration import Target, configurations
from webhook.devices.definitions import has_devices
from webhook.evaluation.outcome import Allowed, Denied
from webhook.evaluation.references import References
from webhook.evaluation.request import Request, Stage
from webhook.pods.definition import Definition
from webhook.sources.load import Sources, load

pytestmark = pytest.mark.long

GOLDEN = Path(__file__).parent / "golden"
NOTHING_GOES = """
rules:
  image: {options: [{value: none}]}
  imagePullPolicy: {options: [{value: Never}]}
  command: {blocked: true}
  args: {blocked: true}
  priorityClass: {options: [{value: none}]}
  environmentVariables: {instances: {canAdd: false}}
  labels: {instances: {canAdd: false}}
  tolerations: {instances: {canAdd: false}}
  compute: {cpuCoreLimit: {required: true}, gpuDevicesRequest: {max: 0}}
  scale: {replicas: {max: 0}}
  replicas: {max: 0}
  security: {runAsUid: {required: true}, hostNetwork: {canEdit: false}}
"""
POD = ("", "Pod")
SUBRESOURCES = ("", "status", "scale", "resize", "ephemeralcontainers")
SENDS = {
    "attach": "v1",
    "binding": "v1",
    "eviction": "policy/v1",
    "exec": "v1",
    "log": "v1",
    "portforward": "v1",
    "proxy": "v1",
}
"""Other subresources send objects of their own, with these versions."""
VERBS = ("CREATE", "UPDATE", "DELETE", "CONNECT")

BUILT_IN_SCALES = {
    ("", "ReplicationController"),
    ("apps", "Deployment"),
    ("apps", "ReplicaSet"),
    ("apps", "StatefulSet"),
}


@cache
def shipped() -> Catalog:
    found, problems = load(Sources())
    assert found is not None, problems
    return found


def definitions() -> list[Definition]:
    return [each for found in shipped().definitions.values() for each in found]


@dataclass(frozen=True)
class Cell:
    """One kind in one version, one of its subresources ("" for the object itself), one verb."""

    definition: Definition
    version: str
    subresource: str
    verb: str

    @property
    def kind(self) -> tuple[str, str]:
        return self.definition.interface.group, self.definition.interface.kind

    @property
    def resource(self) -> str:
        plural = self.definition.profile.resource
        return f"{plural}/{self.subresource}" if self.subresource else plural

    def __str__(self) -> str:
        group, kind = self.kind
        return f"{kind}.{self.version}.{group}/{self.subresource or 'object'}-{self.verb}"


def matrix() -> Iterator[Cell]:
    for definition in definitions():
        for version in definition.versions:
            yield from cells(definition, version)


def cells(definition: Definition, version: str) -> Iterator[Cell]:
    """Every subresource and verb of one version of a kind."""
    for subresource in (*SUBRESOURCES, *SENDS):
        for verb in VERBS:
            yield Cell(definition, version, subresource, verb)


def expected_registration(cell: Cell) -> set[str]:
    """Which of the two webhooks the API server has to call."""
    of_classes = cell.definition.profile.cluster_scoped and has_devices(cell.definition)
    if of_classes and cell.verb in ("CREATE", "UPDATE") and not cell.subresource:
        return {"classes"}
    if cell.verb not in ("CREATE", "UPDATE") or cell.definition.profile.cluster_scoped:
        return set()
    if not cell.subresource:
        return {"mutate", "validate"}
    if cell.subresource == "scale" and cell.definition.profile.scale_subresource is not None:
        return {"validate"}
    if cell.kind == POD and cell.subresource in ("resize", "ephemeralcontainers"):
        return {"validate"}
    return set()


@cache
def webhooks() -> dict[str, Any]:
    found = configurations(shipped().definitions, Target(url="https://podgate.example.com"))
    # Our own documents are no workloads, and have a webhook of their own.
    return {
        each["name"].partition(".")[0]: each
        for config in found
        for each in config["webhooks"]
        if each["name"] != "documents.podgate.dev"
    }


def registered(cell: Cell) -> set[str]:
    group, _ = cell.kind
    return {
        name
        for name, webhook in webhooks().items()
        for rule in webhook["rules"]
        if group in rule["apiGroups"]
        and cell.version in rule["apiVersions"]
        and cell.verb in rule["operations"]
        and cell.resource in rule["resources"]
    }


def test_a_podgate_that_does_not_answer_stops_nobody_who_writes_classes() -> None:
    assert webhooks()["classes"]["failurePolicy"] == "Ignore"
    assert "namespaceSelector" not in webhooks()["classes"]


def test_every_cell_is_registered_as_its_rule_says() -> None:
    wrong = {
        str(each): (registered(each), expected_registration(each))
        for each in matrix()
        if registered(each) != expected_registration(each)
    }
    assert not wrong


def test_nothing_is_registered_by_a_star_or_for_objects_without_namespace_but_classes() -> None:
    for name, webhook in webhooks().items():
        assert webhook["matchPolicy"] == "Equivalent"
        assert webhook["sideEffects"] == "NoneOnDryRun"
        for rule in webhook["rules"]:
            assert rule["scope"] == ("Cluster" if name == "classes" else "Namespaced")
            assert not any("*" in each for key in rule if key != "scope" for each in rule[key])


@dataclass(frozen=True)
class Told:
    """What a CRD says of one version of its kind."""

    plural: str
    namespaced: bool
    scaled: bool


def told_by_crds(upstream_data: Path) -> Iterator[tuple[Cell, Told]]:
    """Every kind and version that we have a CRD of, beside what we say of it."""
    told = dict(crds_of(upstream_data))
    for cell in matrix():
        group, kind = cell.kind
        if (cell.subresource, cell.verb) == ("", "CREATE") and (group, kind, cell.version) in told:
            yield cell, told[group, kind, cell.version]


def test_kinds_are_called_and_scoped_here_as_their_crds_say(upstream_data: Path) -> None:
    """A rule for another plural, or for a kind that has no namespace, would never be asked."""
    found = list(told_by_crds(upstream_data))
    assert found
    for cell, told in found:
        profile = cell.definition.profile
        assert (profile.resource, not profile.cluster_scoped) == (told.plural, told.namespaced), (
            cell
        )


def test_a_kind_has_a_scale_here_exactly_where_the_api_server_serves_one(
    upstream_data: Path,
) -> None:
    """A scale that nobody judges would be a way round bounds on replicas."""
    for cell, told in told_by_crds(upstream_data):
        assert (cell.definition.profile.scale_subresource is not None) == told.scaled, cell
    for definition in definitions():
        if definition.profile.built_in:
            kind = (definition.interface.group, definition.interface.kind)
            ours = definition.profile.scale_subresource is not None
            assert ours == (kind in BUILT_IN_SCALES), kind


def crds_of(upstream_data: Path) -> Iterator[tuple[tuple[str, str, str], Told]]:
    """What each CRD says, by group, kind and version."""
    for file in sorted((upstream_data / "crds").rglob("*.yaml")):
        for crd in yaml.load_all(file.read_text("utf-8"), Loader=yaml.CSafeLoader):
            if not isinstance(crd, dict) or crd.get("kind") != "CustomResourceDefinition":
                continue
            spec, names = crd["spec"], crd["spec"]["names"]
            for version in spec["versions"]:
                scale = (version.get("subresources") or {}).get("scale")
                key = (spec["group"], names["kind"], version["name"])
                yield key, Told(names["plural"], spec["scope"] == "Namespaced", scale is not None)


# How each cell is judged


@cache
def strict() -> Catalog:
    return catalog(policy(NOTHING_GOES))


def objects() -> Iterator[Any]:
    """Every object of the golden cases, then those that were recorded."""
    for case in cases_in(GOLDEN):
        yield case.given.get("object") or (case.given.get("request") or {}).get("object")
    for file in sorted((data.folder() / "reviews").glob("*.json")):
        yield json.loads(file.read_bytes())["request"]["object"]


@cache
def samples() -> dict[tuple[str, str], Any]:
    """An object of every kind and version that breaks rules."""
    found: dict[tuple[str, str], Any] = {}
    for document in objects():
        if not isinstance(document, dict) or "kind" not in document:
            continue
        key = (str(document.get("apiVersion")), str(document["kind"]))
        if key not in found:
            whole = served({"metadata": {}, **document})
            if isinstance(judged(asking(whole, "CREATE")), Denied):
                found[key] = whole
    return found


def asking(document: Any, verb: str, old: Any = None, subresource: str = "") -> Request:
    group, _, version = str(document["apiVersion"]).rpartition("/")
    return Request(
        group,
        version,
        str(document["kind"]),
        verb,
        document,
        old,
        subresource=subresource,
        namespace="team",
        user="alice",
    )


def judged(request: Request) -> Any:
    return decide_review(request, strict(), References())


def sample(definition: Definition, version: str) -> Any:
    """The kind's object in this version, else one of another version under its name."""
    group, kind = definition.interface.group, definition.interface.kind
    own = f"{group}/{version}" if group else version
    for each in (
        version,
        *(v for d in definitions() if d.interface.kind == kind for v in d.versions),
    ):
        found = samples().get((f"{group}/{each}" if group else each, kind))
        if found is not None:
            return {**found, "apiVersion": own}
    pytest.fail(f"neither a golden case nor a recording has a {kind}.{group} that breaks rules")


def without_pods(document: Any) -> Any:
    """The same object before it had any pods."""
    return {**document, "spec": {}, "template": {}}


@dataclass(frozen=True)
class Body:
    """What the API server sends for a cell: the new object, the old one."""

    object: Any
    old: Any = None


def body(cell: Cell, document: Any) -> Body:
    """`document` as the cell's verb and subresource send it; it breaks rules where it has pods."""
    if cell.subresource == "scale":
        scale = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {}, "spec": {}}
        return Body({**scale, "spec": {"replicas": 3}}, scale if cell.verb == "UPDATE" else None)
    if cell.subresource in SENDS:
        return Body({"apiVersion": SENDS[cell.subresource], "kind": "X", "metadata": {}})
    if cell.verb == "DELETE":
        return Body(None, document)
    if cell.subresource == "status":
        finished = {**document, "status": {"phase": "Done"}}
        return Body(finished, document if cell.verb == "UPDATE" else None)
    return Body(document, without_pods(document) if cell.verb == "UPDATE" else None)


def expected_outcome(cell: Cell) -> str:
    """What becomes of an object that breaks rules, whether or not the cell is registered.

    A configuration of somebody's own may send what ours does not, and must not make it harmful.
    """
    if cell.verb not in ("CREATE", "UPDATE") or cell.subresource in SENDS:
        return "not judged"
    if cell.subresource == "scale":
        has_one = cell.definition.profile.scale_subresource is not None
        return "refused" if has_one else "not judged"
    if cell.subresource == "status" and cell.verb == "UPDATE":
        return "left alone"
    return "refused"


def outcome(cell: Cell, document: Any, stage: Stage) -> str:
    """What becomes of it."""
    sent = body(cell, document)
    group, _ = cell.kind
    request = replace(
        asking(sent.object or sent.old, cell.verb, sent.old, cell.subresource),
        object=sent.object,
        resource=cell.definition.profile.resource,
        resource_group=group,
        resource_version=cell.version,
        stage=stage,
    )
    decision = judged(request)
    if isinstance(decision, Denied):
        return "refused"
    if decision.patch:
        return "patched"
    return "left alone" if decision.is_evaluated else "not judged"


# What becomes of claims and domains is in tests/decision/test_devices.py: they have no pods.
CELLS = [
    (each, version) for each in definitions() if not has_devices(each) for version in each.versions
]
VERSIONS = pytest.mark.parametrize(
    ("definition", "version"),
    CELLS,
    ids=[f"{d.interface.kind}.{v}.{d.interface.group}" for d, v in CELLS],
)


@VERSIONS
@pytest.mark.parametrize("stage", Stage)
def test_every_cell_is_judged_as_its_rule_says(
    definition: Definition, version: str, stage: Stage
) -> None:
    document = sample(definition, version)
    kept = copy.deepcopy(document)
    wrong = {
        str(each): (found, expected_outcome(each))
        for each in cells(definition, version)
        if (found := outcome(each, document, stage)) != expected_outcome(each)
    }
    assert not wrong
    assert document == kept


@VERSIONS
@pytest.mark.parametrize("stage", Stage)
def test_an_update_that_changes_nothing_is_left_alone(
    definition: Definition, version: str, stage: Stage
) -> None:
    document = sample(definition, version)
    asked = replace(asking(document, "UPDATE", copy.deepcopy(document)), stage=stage)
    decision = judged(asked)
    assert isinstance(decision, Allowed)
    assert not decision.patch


@pytest.mark.parametrize("subresource", ["resize", "ephemeralcontainers"])
def test_the_subresources_of_pods_are_judged_and_never_patched(subresource: str) -> None:
    pod = sample(next(each for each in definitions() if each.interface.kind == "Pod"), "v1")
    if subresource == "resize":
        new = copy.deepcopy(pod)
        new["spec"]["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": "9"}}
    else:
        new = copy.deepcopy(pod)
        new["spec"]["ephemeralContainers"] = [{"name": "debug", "image": "evil:1"}]
    soft = catalog("defaults: {workingDir: /w, compute: {cpuCoreLimit: 1}}")
    for stage in Stage:
        asked = replace(asking(new, "UPDATE", pod, subresource), stage=stage)
        assert isinstance(judged(asked), Denied)
        passed = decide_review(asked, soft, References())
        assert isinstance(passed, Allowed)
        assert not passed.patch
