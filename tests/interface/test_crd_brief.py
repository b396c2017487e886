"""CRDs in brief: what is stored of one proves as much as the whole, and is forgotten with it."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

import pytest

from tests import building
from tests.catalog.test_proof import GROUP, INTERFACE, PROFILE, TEMPLATE, crd, objects, read
from tests.pods.test_coverage import POD
from webhook.catalog.build import Choices, Documents
from webhook.catalog.watched_documents import Fixed, WatchedDocuments
from webhook.interface.crd_summary import Brief, brief_of, restore_schemas
from webhook.interface.pruning import Shapes
from webhook.sources.files import read_all

SAMPLES = ("rayclusters.ray.io", "inferenceservices.serving.kserve.io", "workflows.argoproj.io")


def named(kind: str = "Group", **schemas: Any) -> dict[str, Any]:
    return {**crd(kind, **schemas), "metadata": {"name": f"{kind.lower()}s.{GROUP}"}}


def brief(data: dict[str, Any]) -> Brief:
    found = brief_of(data)
    assert found is not None
    return found[0]


def test_a_brief_says_what_is_served_and_whether_it_has_pods() -> None:
    data = named(v1=objects(spec=objects(template=TEMPLATE)), v2=objects(spec=objects()))
    data["spec"]["versions"][0]["subresources"] = {"scale": {"specReplicasPath": ".spec.replicas"}}
    data["spec"]["versions"].append({"name": "v0", "served": False})
    found = brief(data)
    assert (found.group, found.kind, found.plural) == (GROUP, "Group", "groups")
    assert found.versions == {"v1": True, "v2": False}
    assert found.holds_pods
    assert not brief(named("Plain", v1=objects(spec=objects()))).holds_pods
    assert brief_of({"kind": "CustomResourceDefinition"}) is None


@pytest.mark.parametrize("name", SAMPLES)
def test_what_is_stored_is_small_and_says_the_same_as_the_whole(
    name: str, upstream_data: Path
) -> None:
    (document,) = read_all([str(upstream_data / "crds" / f"{name}.yaml")], kubernetes=True)[0]
    shapes = Shapes()
    whole, _ = read(document.data)
    found = brief_of(document.data)
    assert found is not None
    again = restore_schemas(*found, shapes)
    assert [(each.name, each.spots) for each in again] == [(e.name, e.spots) for e in whole]
    assert len(str(found[1])) < len(str(document.data)) / 10
    twice = restore_schemas(*found, shapes)
    assert [id(each.shape) for each in twice] == [id(each.shape) for each in again]
    for one, other in zip(again, whole, strict=True):
        sample = {"metadata": {"x": 1}, "spec": {"nowhere": 1}, "status": {"y": [{"z": 1}]}}
        assert [at for at, _ in one.shape.lacking(sample)] == [
            at for at, _ in other.shape.lacking(sample)
        ]


def test_shapes_of_a_crd_that_is_gone_are_forgotten() -> None:
    shapes = Shapes()
    found = brief_of(named(v1=objects(spec=objects(template=TEMPLATE))))
    assert found is not None
    kept = restore_schemas(*found, shapes)
    assert len(shapes.known) > 3
    del kept
    gc.collect()
    assert len(shapes.known) == 0


def test_the_author_of_a_definition_in_the_cluster_is_told_of_places_that_a_crd_adds() -> None:
    documents = {("Karta", "", "group"): INTERFACE, ("WorkloadProfile", "", "group"): PROFILE}
    fixed = Fixed(building.shipped(), Documents(), Choices(), building.table())
    living = WatchedDocuments()
    assert not living.take(documents, fixed).statuses["Karta", "", "group"].problems
    more = objects(spec=objects(template=TEMPLATE, sidecar=POD))
    schemas, _ = read(named(v1=more))
    asked: list[set[tuple[str, str]]] = []
    outcome = living.take(documents, fixed, lambda kinds: asked.append({*kinds}) or schemas)
    assert (GROUP, "Group") in asked[0]
    (problem,) = outcome.statuses["Karta", "", "group"].problems
    assert (problem.reason, problem.path) == ("place-uncovered", ".spec.sidecar")
    assert outcome.statuses["Karta", "", "group"].is_accepted
    assert not living.take(documents, fixed).statuses["Karta", "", "group"].problems
