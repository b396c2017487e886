"""A number of replicas without a limit is none that a total can bound: totals use infinity."""

from __future__ import annotations

import copy
import json
from functools import cache
from typing import Any

import pytest

from tests import building
from webhook.cases.run_offline import Place, evaluate_manifest
from webhook.catalog.build import Choices, assemble
from webhook.catalog.catalog import Catalog
from webhook.documents.yaml_source import read_documents
from webhook.evaluation.installation import InstallationConfig
from webhook.evaluation.outcome import Denied
from webhook.evaluation.references import References
from webhook.policy.combine import GUARDED

Json = dict[str, Any]
LIMITS = ("maxReplicas", "autoscaling.maxReplicas")
GPU = {"resources": {"limits": {"nvidia.com/gpu": 1}}}
POD = {"containers": [{"name": "main", "image": "registry.example.com/app:1", **GPU}]}
TEMPLATE = {"template": {"spec": POD}}
DRIVER = {"cores": 1}
EXECUTOR = {"cores": 1, "gpu": {"name": "nvidia.com/gpu", "quantity": 1}}
SPARK = {"driver": DRIVER, "executor": EXECUTOR, "dynamicAllocation": {"enabled": True}}
WITHOUT_LIMIT: dict[str, tuple[str, Json]] = {
    "Service": ("serving.knative.dev/v1", TEMPLATE),
    "Configuration": ("serving.knative.dev/v1", TEMPLATE),
    "Revision": ("serving.knative.dev/v1", POD),
    "InferenceService": ("serving.kserve.io/v1beta1", {"predictor": POD}),
    "InferenceGraph": (
        "serving.kserve.io/v1alpha1",
        {"nodes": {"root": {"routerType": "Sequence"}}, **GPU},
    ),
    "SparkApplication": ("sparkoperator.k8s.io/v1beta2", SPARK),
    "ScheduledSparkApplication": (
        "sparkoperator.k8s.io/v1beta2",
        {"schedule": "@daily", "template": SPARK},
    ),
    "SparkConnect": (
        "sparkoperator.k8s.io/v1alpha1",
        {
            "image": "registry.example.com/app:1",
            "dynamicAllocation": {"enabled": True},
            "server": {"cores": 1},
            "executor": {"template": {"spec": POD}},
        },
    ),
}
"""An object of each kind whose most replicas have no limit where the number is left out."""
RULES: dict[str, Json] = {
    "total.gpuDevices": {"total": {"gpuDevices": {"max": 100}}},
    "scale.replicas": {"scale": {"replicas": {"max": 100}}},
}


@cache
def catalog_of(field: str) -> Catalog:
    """The shipped kinds with one rule, for every namespace and kind."""
    found, problems = read_documents(json.dumps({"rules": RULES[field]}), "p.yaml")
    assert not problems
    built, problems = assemble(
        building.shipped(), found, Choices(GUARDED, InstallationConfig()), building.table()
    )
    assert built is not None, problems
    return built


def object_of(kind: str) -> Json:
    """An object without a limit."""
    version, spec = WITHOUT_LIMIT[kind]
    return {
        "apiVersion": version,
        "kind": kind,
        "metadata": {"name": "a"},
        "spec": copy.deepcopy(spec),
    }


def test_every_kind_whose_replicas_may_have_no_limit_is_tried() -> None:
    marked = {
        each.interface.kind
        for several in catalog_of("scale.replicas").definitions.values()
        for each in several
        for name in LIMITS
        if (held := each.profile.fields.get(name)) is not None and held.absent_is_unlimited
    }
    assert marked == set(WITHOUT_LIMIT)


@pytest.mark.parametrize("field", RULES)
@pytest.mark.parametrize("kind", WITHOUT_LIMIT)
def test_a_total_of_what_has_no_limit_is_refused(kind: str, field: str) -> None:
    found = evaluate_manifest(
        object_of(kind), "f.yaml", catalog_of(field), References(), Place("team")
    )
    assert isinstance(found.decision, Denied), found.decision
    assert {each.field for each in found.decision.violations} == {field}
