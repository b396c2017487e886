"""The samples and classes of NVIDIA's DRA driver, read out of its pinned archive."""

from __future__ import annotations

import os
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.corpus import Corpus, read_corpus
from tests.e2e.testbed import upstream
from tests.e2e.testbed.missing import MissingTestbed
from webhook.cases.run_offline import Place, evaluate_manifest, references_of
from webhook.devices.classes import class_brief
from webhook.devices.kinds import CLAIM, CLASS_TYPES, DOMAIN, TEMPLATE
from webhook.evaluation.outcome import Allowed
from webhook.sources.load import Sources, load

FOLDERS = ("demo/specs", "tests/bats/specs")
CHART = "deployments/helm/dra-driver-nvidia-gpu/templates"
DEAD = ("resource.k8s.io/v1alpha2", "resource.k8s.io/v1alpha3")


def archive() -> Path:
    """The folder of the driver; skipped where its archive cannot be fetched, but not on CI."""
    try:
        return upstream.module_dir("dra-driver")
    except MissingTestbed as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(f"no driver: {error.reason} {error.how_to_get_it}")


def samples() -> Corpus:
    """The driver's samples, without those that a shell completes."""
    found = read_corpus("dra-driver", [archive() / each for each in FOLDERS])
    found.objects = [each for each in found.objects if ".tmpl." not in each[0]]
    return found


def test_every_sample_passes_without_policies_and_known_gates() -> None:
    catalog, problems = load(Sources())
    assert catalog is not None, problems
    objects = samples().objects
    references, seen = references_of(objects, Place()), Counter[str]()
    for source, raw in objects:
        decision = evaluate_manifest(raw, source, catalog, references, Place()).decision
        assert isinstance(decision, Allowed), f"{source}: {decision}"
        seen[raw["kind"]] += 1
        warned = [each.reason for each in decision.warnings]
        if raw["apiVersion"] in DEAD:
            assert decision.not_evaluated, source
            assert warned, f"{source}: nothing says that no API server serves {raw['apiVersion']}"
        elif raw["kind"] in (CLAIM, TEMPLATE, DOMAIN):
            assert decision.is_evaluated, source
    assert min(seen[each] for each in (CLAIM, TEMPLATE, DOMAIN, "Pod")) >= 2


def test_the_classes_of_the_chart_are_known_by_name_and_by_selector() -> None:
    found: dict[str, Any] = {}
    for file in archive().glob(f"{CHART}/deviceclass-*.yaml"):
        text = file.read_text("utf-8")
        name, selector = re.search(r"name: (\S+)", text), re.search(r'expression: "(.*)"', text)
        assert name, file
        assert selector, file
        body = {"spec": {"selectors": [{"cel": {"expression": selector[1]}}]}}
        found[name[1]] = class_brief(body)["types"]
    assert len(found) >= 5
    assert found == {name: [CLASS_TYPES[name]] for name in found}
