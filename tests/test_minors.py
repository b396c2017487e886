"""The Kubernetes minors that podgate has tables of, and those that the test bed can run."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.running import podgate
from tests.conftest import REPOSITORY
from tests.e2e.testbed import releases
from tests.e2e.testbed.missing import MissingTestbed
from webhook.documents.problem import Problem
from webhook.service.settings import Settings
from webhook.sources.load import DEFAULT_MINOR, server_defaults

TABLES = {
    path.stem: yaml.safe_load(path.read_text("utf-8"))
    for path in sorted(REPOSITORY.glob("policies/server-defaults/*.yaml"))
}
PAIRS = tuple(itertools.pairwise(TABLES))
TOLERATIONS = {
    f"resource.k8s.io/{kind}: {spec}.devices.requests[].{form}.tolerations[].operator"
    for kind, spec in (("ResourceClaim", "spec"), ("ResourceClaimTemplate", "spec.spec"))
    for form in ("exactly", "firstAvailable[]")
}
CHANGED = {
    # Their feature gate is off in both; only 1.35 drops them from claims.
    ("1.34", "1.35"): TOLERATIONS,
    ("1.36", "1.37"): {
        "apps/StatefulSet: spec.updateStrategy",
        "apps/StatefulSet: spec.updateStrategy.rollingUpdate",
    },
}
"""Fields that a newer server fills in otherwise: 1.37 adds `maxUnavailable: 1` there. No field of the
language is below, so that it does not matter which of the tables is used."""


def rules(table: Any) -> dict[str, Any]:
    """Every rule of a table by its path; kinds' own ones with the kind before it."""
    found: dict[str, Any] = {}
    for each in table["podSpec"]:
        found.setdefault(f"pods: {each['path']}", []).append(each)
    for name, kind in table["kinds"].items():
        found[f"{name}: generated"] = kind["generated"]
        for each in (*kind.get("podSpecRules", ()), *kind["rules"]):
            found.setdefault(f"{name}: {each['path']}", []).append(each)
    return found


def test_every_minor_that_the_test_bed_runs_has_its_table() -> None:
    pinned = releases.pinned()
    assert list(TABLES) == list(pinned)
    for minor, table in TABLES.items():
        assert table["server"] == f"v{pinned[minor].version}"


def test_the_newest_minor_is_the_default_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(releases.VARIABLE, raising=False)
    assert releases.chosen().minor == DEFAULT_MINOR == list(TABLES)[-1]
    assert Settings.model_fields["kubernetes_minor"].default == DEFAULT_MINOR


@pytest.mark.parametrize(("older", "newer"), PAIRS, ids="-".join)
def test_a_newer_table_says_of_older_fields_what_the_older_one_says(older: str, newer: str) -> None:
    before, after = rules(TABLES[older]), rules(TABLES[newer])
    changed = {path for path, rule in before.items() if after.get(path) != rule}
    assert changed == CHANGED.get((older, newer), set())
    assert TABLES[older]["admission"] == TABLES[newer]["admission"]
    assert TABLES[older]["sameAs"] == TABLES[newer]["sameAs"]


def test_what_minors_fill_in_otherwise_changes_no_decision(tmp_path: Path) -> None:
    body = {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "a"},
        "spec": {
            "selector": {"matchLabels": {"a": "b"}},
            "serviceName": "a",
            "updateStrategy": {"rollingUpdate": {"partition": 1}},
            "template": {
                "metadata": {"labels": {"a": "b"}},
                "spec": {"containers": [{"name": "main", "image": "registry.example.com/a:1"}]},
            },
        },
    }
    rules = {"compute": {"cpuCoreRequest": 1}}
    policy = {
        "apiVersion": "podgate.dev/v1alpha1",
        "kind": "ClusterWorkloadPolicy",
        "metadata": {"name": "p"},
        "spec": {"scope": "cluster", "defaults": rules},
    }
    (tmp_path / "policy.yaml").write_text(yaml.safe_dump(policy), "utf-8")
    (tmp_path / "body.yaml").write_text(yaml.safe_dump(body), "utf-8")
    files = ("--policies", str(tmp_path / "policy.yaml"), str(tmp_path / "body.yaml"))
    answers = [podgate("apply", "--kubernetes", minor, "-n", "team", *files) for minor in TABLES]
    assert [each.exit_code for each in answers] == [0] * len(TABLES), answers[0].stderr
    (answer,) = {each.stdout for each in answers}
    assert "cpu: '1'" in answer


def test_a_minor_without_a_table_is_told_with_those_that_have_one() -> None:
    found = server_defaults("1.33")
    assert isinstance(found, Problem)
    assert found.reason == "unknown-minor"
    assert found.fix == f"choose one of {', '.join(TABLES)}"


def test_a_minor_that_the_test_bed_lacks_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(releases.VARIABLE, "1.33")
    with pytest.raises(MissingTestbed, match=r"PODGATE_KUBERNETES=1\.33 is not pinned"):
        releases.chosen()
    monkeypatch.setenv(releases.VARIABLE, "1.34")
    assert "gitVersion=v1.34." in releases.chosen().linker_flags()
