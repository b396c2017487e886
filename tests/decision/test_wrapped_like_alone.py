"""A wrapped object is decided as the same object alone: same violations, same patch, further in."""

from __future__ import annotations

import copy
from dataclasses import replace
from functools import cache
from pathlib import Path as FilePath
from typing import Any

import jsonpatch
import pytest

from tests import everything, golden_cases
from tests.decision.test_everything import catalog_of, manifests
from tests.golden_cases import CaseName
from webhook.cases import installation
from webhook.cases.run_offline import Place, evaluate_manifest, request_of
from webhook.catalog.catalog import Catalog
from webhook.decision.decide import decide
from webhook.evaluation.outcome import Allowed, Denied, Violation, Warning
from webhook.evaluation.references import References
from webhook.evaluation.request import Stage
from webhook.objects.path import Path

pytestmark = pytest.mark.long

NAMES = [each for each in golden_cases.all_names() if each.offline]
AT: Path = ("spec", "components", 0, "template")
DEEPER: Path = (*AT, *AT)


def around(*objects: Any) -> dict[str, Any]:
    """An AppWrapper of these objects."""
    return {
        "apiVersion": "workload.codeflare.dev/v1beta2",
        "kind": "AppWrapper",
        "metadata": {"name": "wrapper"},
        "spec": {"components": [{"template": each} for each in objects]},
    }


def inside(violation: Violation, at: Path) -> tuple[Any, ...]:
    """What is told of a violation at its place in the wrapper; texts may repeat the place."""
    path = (*at, *violation.path)
    told = (violation.field, violation.rule, violation.reason, violation.value, violation.key)
    return (path, *told, violation.source, violation.fix)


def warned(warning: Warning, at: Path) -> tuple[Any, ...]:
    path = (*at, *warning.path) if warning.path else ()
    return (warning.reason, warning.field, path, warning.facts, warning.source)


def compare(
    raw: Any, catalog: Catalog, references: References, place: Place, *, stage: Stage = Stage.MUTATE
) -> bool:
    """Whether there was anything to compare: the object alone, wrapped, and wrapped twice."""
    group, _, version = str(raw["apiVersion"]).rpartition("/")
    definition = catalog.definition(group, str(raw["kind"]), version)
    metadata = raw.get("metadata")
    if definition is None or not isinstance(metadata, dict | None):
        return False
    alone_request = request_of(raw, catalog.complete(definition, raw), place)
    if alone_request.namespace != place.namespace:
        place = replace(place, namespace=alone_request.namespace)
    alone_request = replace(alone_request, stage=stage, raw=raw)
    alone = decide(alone_request, catalog, references)
    for wrapper, at in ((around(raw), AT), (around(around(raw)), DEEPER)):
        given = copy.deepcopy(wrapper)
        asked = replace(request_of(wrapper, wrapper, place), stage=stage)
        empty = around() if at is AT else around(around())
        own = decide(replace(request_of(empty, empty, place), stage=stage), catalog, references)
        found = decide(asked, catalog, references)
        assert wrapper == given, "the decision changed what it was given"
        expected = [inside(each, ()) for each in own.violations] if isinstance(own, Denied) else []
        if isinstance(alone, Denied):
            expected += [inside(each, at) for each in alone.violations]
        if expected:
            assert isinstance(found, Denied), "wrapped it is allowed"
            assert {inside(each, ()) for each in found.violations} == set(expected)
            continue
        assert isinstance(found, Allowed), found
        assert isinstance(alone, Allowed)
        assert isinstance(own, Allowed)
        assert {warned(each, ()) for each in found.warnings} == {
            *(warned(each, ()) for each in own.warnings),
            *(warned(each, at) for each in alone.warnings),
        }
        assert jsonpatch.apply_patch(wrapper, list(found.patch)) == found.object
        changes = [each._replace(path=(*at, *each.path)) for each in alone.changes]
        assert [each for each in found.changes if each.path[: len(at)] == at] == changes
        if stage is Stage.MUTATE:
            completed = evaluate_manifest(raw, "", catalog, references, place).object
            if completed is not None:
                assert place_of(found.object, at) == completed
    return True


def place_of(document: Any, path: Path) -> Any:
    for step in path:
        document = document[step]
    return document


@pytest.mark.parametrize("name", NAMES, ids=str)
def test_golden_objects_are_decided_alike_when_wrapped(name: CaseName) -> None:
    case = name.load()
    catalog, references = installation.catalog_of(case), installation.references_for(case)
    for stage in Stage:
        compare(case.given["object"], catalog, references, installation.place_of(case), stage=stage)


@cache
def everything_of(section: str) -> Catalog:
    bodies = {"defaults": everything.defaults, "rules": everything.rules}
    return catalog_of(**{section: bodies[section]()})


@pytest.mark.parametrize("section", ["defaults", "rules"])
def test_real_manifests_are_decided_alike_when_wrapped(
    section: str, upstream_data: FilePath
) -> None:
    catalog = everything_of(section)
    compared = [compare(raw, catalog, References(), Place()) for _, raw in manifests(upstream_data)]
    assert compared.count(True) > 100
