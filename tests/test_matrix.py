"""Every kind, subresource and verb: registered or not, and judged how.

Generated from the shipped definitions; what is expected is said by rule and never by kind.
"""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.core.building import catalog, policy, served
from webhook.admission.exemptions import treatment
from webhook.admission.judge import judge_review
from webhook.cases import reading
from webhook.control.registration import Target, configurations
from webhook.core.catalog import Catalog
from webhook.core.decision import Allowed, Denied
from webhook.core.references import References
from webhook.core.request import Request, Stage, Treatment
from webhook.core.workload.definition import Definition
from webhook.loader import Sources, load

GOLDEN = Path(__file__).parent / "golden"
SHARED = Path(os.environ.get("PODGATE_SHARED") or Path(__file__).parents[2] / "shared" / "data")
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
  security: {runAsUid: {required: true}, hostNetwork: {canEdit: false}}
"""
POD = ("", "Pod")
SUBRESOURCES = ("", "status", "scale", "resize", "ephemeralcontainers")
OTHER_SUBRESOURCES = ("attach", "binding", "eviction", "exec", "log", "portforward", "proxy")
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
            for subresource in (*SUBRESOURCES, *OTHER_SUBRESOURCES):
                for verb in VERBS:
                    yield Cell(definition, version, subresource, verb)


def expected_registration(cell: Cell) -> set[str]:
    """Which of the two webhooks the API server has to call."""
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


def test_every_cell_is_registered_as_its_rule_says() -> None:
    wrong = {
        str(each): (registered(each), expected_registration(each))
        for each in matrix()
        if registered(each) != expected_registration(each)
    }
    assert not wrong


def test_nothing_is_registered_by_a_star_or_for_objects_without_namespace() -> None:
    for webhook in webhooks().values():
        assert webhook["matchPolicy"] == "Equivalent"
        assert webhook["sideEffects"] == "None"
        for rule in webhook["rules"]:
            assert rule["scope"] == "Namespaced"
            assert not any("*" in each for key in rule if key != "scope" for each in rule[key])


def test_a_kind_has_a_scale_here_exactly_where_the_api_server_serves_one(
    shared_data: Path,
) -> None:
    """A scale that nobody judges would be a way round bounds on replicas."""
    told = dict(crds_of(shared_data))
    for definition in definitions():
        kind = (definition.interface.group, definition.interface.kind)
        for version in definition.versions:
            ours = definition.profile.scale_subresource
            if definition.profile.built_in:
                assert (ours is not None) == (kind in BUILT_IN_SCALES), kind
            elif (*kind, version) in told:
                assert (ours is not None) == bool(told[*kind, version]), (kind, version)


def crds_of(shared_data: Path) -> Iterator[tuple[tuple[str, str, str], str]]:
    """The place of replicas that a CRD names for its scale, empty where it has none."""
    for file in sorted((shared_data / "crds").rglob("*.yaml")):
        for crd in yaml.load_all(file.read_text("utf-8"), Loader=yaml.CSafeLoader):
            if not isinstance(crd, dict) or crd.get("kind") != "CustomResourceDefinition":
                continue
            spec = crd["spec"]
            for version in spec["versions"]:
                scale = (version.get("subresources") or {}).get("scale") or {}
                key = (spec["group"], spec["names"]["kind"], version["name"])
                yield key, scale.get("specReplicasPath", "")


# How each cell is judged


@cache
def strict() -> Catalog:
    return catalog(policy(NOTHING_GOES))


def objects() -> Iterator[Any]:
    """Every object of the golden cases, then those that were recorded."""
    for case in reading.cases_in(GOLDEN):
        yield case.given.get("object") or (case.given.get("request") or {}).get("object")
    for file in sorted((SHARED / "reviews").glob("*.json")):
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
    return judge_review(request, strict(), References())


def sample(definition: Definition) -> Any:
    """The kind's object in this version, else one of another version under its name."""
    group, kind = definition.interface.group, definition.interface.kind
    others = [each for each in definitions() if each.interface.kind == kind]
    for each in (definition, *others):
        for version in each.versions if each.interface.group == group else ():
            found = samples().get((f"{group}/{version}" if group else version, kind))
            if found is not None:
                own = definition.versions[0] if each is not definition else version
                return {**found, "apiVersion": f"{group}/{own}" if group else own}
    if not SHARED.is_dir():
        pytest.skip(f"no upstream data in {SHARED}: set PODGATE_SHARED to its folder")
    pytest.fail(f"neither a golden case nor a recording has a {kind}.{group} that breaks rules")


def without_pods(document: Any) -> Any:
    """The same object before it had any pods."""
    return {**document, "spec": {}, "template": {}}


KINDS = pytest.mark.parametrize(
    "definition", definitions(), ids=lambda each: f"{each.interface.kind}.{each.interface.group}"
)


@KINDS
@pytest.mark.parametrize("stage", Stage)
def test_every_verb_on_every_kind_is_judged_as_its_rule_says(
    definition: Definition, stage: Stage
) -> None:
    document = sample(definition)
    kept = copy.deepcopy(document)

    def decide(verb: str, old: Any = None, subresource: str = "") -> Any:
        return judged(replace(asking(document, verb, old, subresource), stage=stage))

    assert isinstance(decide("CREATE"), Denied)
    assert isinstance(decide("UPDATE", without_pods(document)), Denied)
    unchanged = decide("UPDATE", copy.deepcopy(document))
    assert isinstance(unchanged, Allowed)
    assert not unchanged.patch
    # The rest is not registered; a configuration of somebody's own must not make it harmful.
    for verb in ("DELETE", "CONNECT"):
        decision = decide(verb)
        assert isinstance(decision, Allowed)
        assert not decision.judged
        assert not decision.patch
    finished = {**document, "status": {"phase": "Done"}}
    status = judged(replace(asking(finished, "UPDATE", document, "status"), stage=stage))
    assert isinstance(status, Allowed)
    assert not status.patch
    assert document == kept


@KINDS
def test_a_scale_is_judged_where_the_kind_has_one(definition: Definition) -> None:
    scale = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {}, "spec": {}}
    more = {**scale, "spec": {"replicas": 3}}
    interface, profile = definition.interface, definition.profile
    asked = replace(
        asking(more, "UPDATE", scale, "scale"),
        resource=profile.resource,
        resource_group=interface.group,
        resource_version=interface.version,
    )
    for stage in Stage:
        assert treatment(asked, strict()) is Treatment.UNPATCHED
        decision = judged(replace(asked, stage=stage))
        if profile.scale_subresource is None:
            assert isinstance(decision, Allowed)
            assert not decision.judged
        else:
            assert isinstance(decision, Denied)
            assert ("scale.replicas", "max") in {(v.field, v.rule) for v in decision.violations}


@pytest.mark.parametrize("subresource", ["resize", "ephemeralcontainers"])
def test_the_subresources_of_pods_are_judged_and_never_patched(subresource: str) -> None:
    pod = sample(next(each for each in definitions() if each.interface.kind == "Pod"))
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
        passed = judge_review(asked, soft, References())
        assert isinstance(passed, Allowed)
        assert not passed.patch
