"""Node pools and preemptibility: on every kind, across updates, and with values that are no text."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests import building

DEFAULTS = "defaults: {nodePools: [a, b], preemptibility: preemptible}\n"
FIXED = "rules: {nodePools: {canEdit: false}, preemptibility: {canEdit: false}}"
POOLS, POOL = "kai.scheduler/node-pools", "kai.scheduler/node-pool"
PREEMPTIBILITY = "kai.scheduler/preemptibility"
JUNK = [7, True, [7], [None], {"a": 1}]


@pytest.mark.parametrize("kind", building.KINDS)
def test_both_are_written_once_on_every_kind(kind: str) -> None:
    rules = building.catalog(DEFAULTS + FIXED)
    written = building.result(rules, building.served(building.KINDS[kind]()))
    assert f"'{POOLS}': 'a b'" in str(written)
    assert written["metadata"]["labels"][PREEMPTIBILITY] == "preemptible"


def test_both_are_kept_where_an_update_drops_them() -> None:
    old = building.deployment()
    old["spec"]["template"]["metadata"]["labels"][POOL] = "c"
    old["metadata"]["labels"] = {PREEMPTIBILITY: "non-preemptible"}
    new = building.deployment(building.container("other"))
    written = building.result(building.catalog(DEFAULTS), new, old)
    assert written["spec"]["template"]["metadata"]["labels"][POOL] == "c"
    assert written["metadata"]["labels"] == {PREEMPTIBILITY: "non-preemptible"}


def test_a_default_of_the_preemptibility_does_not_follow_the_priority() -> None:
    document = building.pod()
    document["metadata"]["labels"] = {"priorityClassName": "high"}
    written = building.result(building.catalog(DEFAULTS), document)
    assert written["metadata"]["labels"][PREEMPTIBILITY] == "preemptible"


def test_fixed_values_that_are_missing_in_the_final_object_are_refused() -> None:
    decision = building.validated(building.catalog(DEFAULTS + FIXED), building.raycluster())
    assert building.reasons(decision) == [("nodePools", "canEdit"), ("preemptibility", "canEdit")]


@pytest.mark.parametrize("junk", JUNK, ids=str)
def test_values_of_other_types_are_decided_on(junk: Any) -> None:
    rules = building.catalog(DEFAULTS + FIXED)
    for labels in (junk, {POOL: junk, PREEMPTIBILITY: junk, "priorityClassName": junk}):
        document = building.raycluster()
        document["metadata"] |= {"labels": labels, "annotations": {POOLS: junk}}
        head = document["spec"]["headGroupSpec"]["template"]
        head["metadata"] = {"labels": labels, "annotations": labels}
        # Nothing in a real document stands in two places.
        document = json.loads(json.dumps(document))
        building.mutated(rules, document)
        building.validated(rules, document)
