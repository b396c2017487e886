"""An object as its author wrote it, and as the operator's own webhook returns it, are decided alike."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests import building
from webhook.cases.run_offline import Place, evaluate_manifest, request_of
from webhook.catalog.build import Choices, assemble
from webhook.catalog.catalog import Catalog
from webhook.decision.decide import decide
from webhook.documents.yaml_source import read_documents
from webhook.evaluation.installation import InstallationConfig
from webhook.evaluation.intent import LAST_APPLIED
from webhook.evaluation.outcome import Allowed, Denied
from webhook.evaluation.references import References
from webhook.evaluation.request import Stage
from webhook.policy.combine import GUARDED

Json = dict[str, Any]
TEAM = Place("team")
# The answers of operators' defaulting functions (tests/e2e/operators/test_operator_defaults.py compares
# those that it can build; docs/operator-defaults.md names the source of the others).
FUNCTIONS = Path(__file__).parent / "operator_defaults" / "recorded.jsonl"
# Real reviews, after operators' webhooks on a real API server.
REVIEWS = Path(__file__).parents[1] / "reviews" / "recorded"
AMOUNTS = ("cpuCoreRequest", "cpuCoreLimit", "cpuMemoryRequest", "cpuMemoryLimit")
VALUES: Json = {
    "autoscaling": {"maxReplicas": 4, "concurrencyHardLimit": 20},
    "servingConfiguration": {"requestTimeoutSeconds": 120},
    "compute": dict(zip(AMOUNTS, (0.5, 0.5, "1G", "1G"), strict=True)),
    "restartPolicy": "Never",
    "terminationGracePeriodSeconds": 10,
    "numWorkers": 2,
    "backoffLimit": 1,
    "security": {"serviceAccountName": "runner"},
}


def leaves(make: Any) -> Json:
    """What `make` gives of each value, nested as the values are."""
    return {
        name: {each: make(one) for each, one in value.items()}
        if isinstance(value, dict)
        else make(value)
        for name, value in VALUES.items()
    }


def bound(value: Any) -> Json:
    """The rule that a value, and nothing beyond it, keeps to."""
    return {"options": [value]} if isinstance(value, str) and value.isalpha() else {"max": value}


POLICIES: dict[str, Json] = {
    "maxima": {"rules": leaves(bound)},
    "defaults": {"defaults": VALUES},
    "defaults within maxima": {
        "defaults": VALUES,
        "rules": leaves(bound),
    },
    "fixed": {"defaults": VALUES, "rules": leaves(lambda value: {"canEdit": False})},
    "forbidden": {"rules": leaves(lambda value: {"blocked": True})},
    "nothing added": {
        "rules": {each: {"instances": {"canAdd": False}} for each in ("labels", "annotations")}
    },
}


@cache
def catalog_of(policy: str) -> Catalog:
    """The shipped kinds with one policy, for every namespace and kind."""
    text = json.dumps(POLICIES[policy])
    found, problems = read_documents(text, "p.yaml")
    assert not problems
    built, problems = assemble(
        building.shipped(), found, Choices(GUARDED, InstallationConfig()), building.table()
    )
    assert built is not None, problems
    return built


def pairs() -> Iterator[tuple[str, Json, Json]]:
    """A name, the author's object, and the operator's."""
    for line in FUNCTIONS.read_text("utf-8").splitlines():
        row = json.loads(line)
        kind, name = row["before"]["kind"], row["before"]["metadata"]["name"]
        yield f"{row['operator']}-{kind}-{name}", row["before"], row["after"]
    for file in sorted(REVIEWS.glob("*-create-*-alice.json")):
        after = json.loads(file.read_text("utf-8"))["request"]["object"]
        noted = (after["metadata"].get("annotations") or {}).get(LAST_APPLIED)
        if noted and "." in after["apiVersion"]:
            yield file.stem, json.loads(noted), after


PAIRS = {name: (before, after) for name, before, after in pairs()}


def applied(before: Json, after: Json) -> Json:
    """The operator's object as kubectl apply sends it, with the author's in the annotation."""
    found = copy.deepcopy(after)
    annotations = found["metadata"].setdefault("annotations", {})
    annotations[LAST_APPLIED] = json.dumps(before)
    return found


MOVED = re.compile(
    "/spec/predictor/(huggingface|lightgbm|onnx|paddle|pmml|pytorch|sklearn|tensorflow|triton|xgboost)/"
)
"""Paths of models that KServe's webhook moves to the member `model`."""


def outcome(decision: Any) -> Any:
    """What is decided: violations without paths, and values by their path after KServe's move."""
    if isinstance(decision, Denied):
        return sorted(
            (each.field, each.rule, each.value, each.allowed) for each in decision.violations
        )
    assert isinstance(decision, Allowed)
    written = [leaf for each in decision.patch for leaf in scalars(each["path"], each.get("value"))]
    return sorted(
        (MOVED.sub("/spec/predictor/model/", path), value)
        for path, value in written
        if "last-applied" not in path
    )


def scalars(path: str, value: Any) -> Iterator[tuple[str, str]]:
    """The values of a patch one by one: who has the map around them differs."""
    if not isinstance(value, dict):
        # Operators write an amount as text where its author wrote a number.
        same = str(value) if type(value) in (int, float) else value
        yield path, json.dumps(same, sort_keys=True)
        return
    for key, each in value.items():
        step = key.replace("~", "~0").replace("/", "~1")
        yield from scalars(f"{path}/{step}", each)


def in_cluster(catalog: Catalog, before: Json, found: Json) -> Any:
    """Both passes of the webhook on an object as it arrives."""
    request = replace(request_of(before, found, TEAM), raw=None)
    first = decide(request, catalog, References())
    if isinstance(first, Denied):
        return first
    last = decide(
        replace(request, object=first.object, stage=Stage.VALIDATE), catalog, References()
    )
    return last if isinstance(last, Denied) else first


def podgate_first(catalog: Catalog, before: Json) -> Any:
    """Both passes where the operator's webhook runs after podgate, which is then called again."""
    (definition,) = (
        each
        for several in catalog.definitions.values()
        for each in several
        if each.interface.kind == before["kind"]
        and before["apiVersion"] in {f"{each.interface.group}/{one}" for one in each.versions}
    )
    first = decide(
        replace(request_of(before, applied(before, before), TEAM), raw=None), catalog, References()
    )
    if isinstance(first, Denied):
        return first
    return in_cluster(catalog, before, catalog.complete(definition, first.object))


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("name", PAIRS)
def test_an_object_is_decided_alike_where_podgate_comes_first(name: str, policy: str) -> None:
    before, _ = PAIRS[name]
    catalog = catalog_of(policy)
    offline = evaluate_manifest(before, "file.yaml", catalog, References(), TEAM)
    cluster = podgate_first(catalog, before)
    assert isinstance(offline.decision, Denied) == isinstance(cluster, Denied), (
        outcome(offline.decision),
        outcome(cluster),
    )


def decide_twice(before: Json, after: Json, policy: str) -> tuple[Any, Any]:
    """What is decided offline on the author's object, and in a cluster on the operator's."""
    catalog = catalog_of(policy)
    offline = evaluate_manifest(before, "file.yaml", catalog, References(), TEAM).decision
    cluster = in_cluster(catalog, before, applied(before, after))
    return (type(offline), outcome(offline)), (type(cluster), outcome(cluster))


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("name", PAIRS)
def test_an_object_is_decided_alike_before_and_after_its_operator(name: str, policy: str) -> None:
    offline, cluster = decide_twice(*PAIRS[name], policy)
    assert offline == cluster


def test_every_source_of_an_unlimited_field_is_named() -> None:
    marked = [
        (definition.interface.kind, path, held.absent_is_unlimited.source)
        for definition in (
            one for found in catalog_of("maxima").definitions.values() for one in found
        )
        for path, held in definition.profile.fields.items()
        if held.absent_is_unlimited is not None
    ]
    assert {kind for kind, _, _ in marked} >= {"Service", "InferenceService", "SparkApplication"}
    assert all(
        any(word in source for word in ("v0", "v1", "v2", "v3", " 3.")) for *_, source in marked
    )


def test_a_manifest_in_the_annotations_of_a_template_is_an_addition() -> None:
    pod = {"containers": [{"name": "main", "image": "registry.example.com/app:1"}]}
    template = {"metadata": {"annotations": {LAST_APPLIED: '{"kind": "Deployment"}'}}, "spec": pod}
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {"selector": {"matchLabels": {}}, "template": template},
    }
    found = in_cluster(catalog_of("nothing added"), deployment, applied(deployment, deployment))
    assert isinstance(found, Denied)
    assert [(each.field, each.value) for each in found.violations] == [
        ("annotations", LAST_APPLIED)
    ]
