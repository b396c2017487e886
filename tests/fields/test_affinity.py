"""Node affinity and pod affinity: on every kind, fixed, and with values that are no terms."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests import building

PODS = "defaults: {podAffinity: {type: Required, key: rack}}\n"
NODES = """
defaults:
  nodeAffinityRequired:
    nodeSelectorTerms: [{matchExpressions: [{key: zone, operator: In, values: [a]}]}]
rules: {nodeAffinityRequired: {canEdit: false}}
"""
FIXED = "rules: {podAffinity: {type: {canEdit: false}}}"
JUNK = [7, True, "x", [7], [None], {"a": 1}]
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


@pytest.mark.parametrize("kind", building.KINDS)
def test_both_affinities_are_written_once_on_every_kind(kind: str) -> None:
    rules = building.catalog(PODS + FIXED, NODES)
    building.result(rules, building.served(building.KINDS[kind]()))


LABELS = {
    "Deployment": "podgate.dev/workload",
    "Job": "batch.kubernetes.io/job-name",
    "JobSet": "jobset.sigs.k8s.io/jobset-name",
    "PyTorchJob": "training.kubeflow.org/job-name",
    "RayCluster": "ray.io/cluster",
    "CronJob": "podgate.dev/workload",
}


@pytest.mark.parametrize("kind", LABELS)
def test_pods_are_found_by_the_label_that_their_controller_gives_them(kind: str) -> None:
    written = str(building.result(building.catalog(PODS), building.KINDS[kind]()))
    assert f"'matchLabels': {{'{LABELS[kind]}': 'web'}}" in written
    own = "'labels': {'app': 'web', 'podgate.dev/workload': 'web'}"
    assert (own in written) == (LABELS[kind] == "podgate.dev/workload")


def test_a_label_of_ours_that_is_there_is_selected_by() -> None:
    document = building.pod()
    document["metadata"]["labels"] = {"podgate.dev/workload": "other"}
    written = building.result(building.catalog(PODS), document)
    term = written["spec"]["affinity"]["podAffinity"][REQUIRED][0]
    assert term["labelSelector"]["matchLabels"] == {"podgate.dev/workload": "other"}


def test_half_a_default_is_told_and_not_written() -> None:
    rules = building.catalog("defaults: {podAffinity: {type: Required}}")
    decision = building.mutated(rules, building.pod())
    assert "affinity" not in decision.object["spec"]
    assert [each.reason for each in decision.warnings] == ["default-needs-other"]


def test_a_fixed_type_that_is_missing_in_the_final_object_is_refused() -> None:
    decision = building.validated(building.catalog(PODS + FIXED), building.raycluster())
    assert building.reasons(decision) == [("podAffinity.type", "canEdit")]


@pytest.mark.parametrize("junk", JUNK, ids=str)
def test_values_of_other_types_are_decided_on(junk: Any) -> None:
    rules = building.catalog(PODS + FIXED, NODES)
    for affinity in (
        junk,
        {"podAffinity": junk, "nodeAffinity": junk},
        {"podAffinity": {REQUIRED: junk}, "nodeAffinity": {REQUIRED: junk}},
        {"podAffinity": {PREFERRED: junk}},
        {"podAffinity": {PREFERRED: [{"podAffinityTerm": junk}]}},
        {"podAffinity": {REQUIRED: [{"topologyKey": junk}]}},
        {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": junk}}},
        {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": junk}]}}},
        {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [junk]}]}}},
        {
            "nodeAffinity": {
                REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [{"values": junk}]}]}
            }
        },
    ):
        document = building.raycluster(affinity=json.loads(json.dumps(affinity)))
        building.mutated(rules, document)
        building.validated(rules, document)
