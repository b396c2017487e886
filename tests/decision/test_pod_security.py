"""Kubernetes' own Pod Security evaluator on what podgate lets in under two example policies."""

from __future__ import annotations

import json
import os
import subprocess
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import cycle, islice
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from tests import building
from tests.decision.pod_security.fixtures import fixtures
from tests.decision.pod_security.generated import generated
from tests.decision.pod_security.kinds import KINDS, Json
from tests.decision.pod_security.missing import LEVELS, MISSING, RELAXING, Missing, remedied
from tests.e2e.testbed import programs
from tests.e2e.testbed.missing import MissingTestbed
from webhook.cases.run_offline import Place, evaluate_manifest
from webhook.catalog.catalog import Catalog
from webhook.evaluation.outcome import Allowed, Violation
from webhook.evaluation.references import References

EXAMPLES = Path(__file__).parents[2] / "policies" / "examples" / "pod-security"
SEED = 20261122
PODS = 20_000
PARTS = 4
OTHERS = [kind for kind in KINDS if kind != "Pod"]
CHECKS = {
    "security.privileged": {"privileged", "windowsHostProcess"},
    "security.hostNetwork": {"hostNamespaces", "windowsHostProcess"},
    "security.hostPid": {"hostNamespaces"},
    "security.hostIpc": {"hostNamespaces"},
    "security.hostPorts": {"hostPorts"},
    "security.procMount": {"procMount", "procMount_restricted"},
    "security.seccompProfileType": {"seccompProfile_baseline", "seccompProfile_restricted"},
    "security.appArmorProfile.type": {"appArmorProfile"},
    "security.capabilities": {"capabilities_baseline", "capabilities_restricted"},
    "security.sysctls": {"sysctls"},
    "security.volumeTypes": {"hostPathVolumes", "restrictedVolumes"},
    "security.runAsNonRoot": {"runAsNonRoot"},
    "security.runAsUid": {"runAsUser"},
    "security.allowPrivilegeEscalation": {"allowPrivilegeEscalation"},
}
"""The checks of Pod Security that a violation of a field stands for."""

Checks = dict[str, list[str]]
"""The checks that a pod fails, by level."""


class Outcome(NamedTuple):
    """What podgate makes of an object around a pod: the pods it lets in, or its violations."""

    pod: Json
    level: str
    kind: str
    pods: tuple[Json, ...]
    violations: tuple[Violation, ...]


@cache
def oracle() -> Path:
    """The program around Kubernetes' evaluator; skipped where it cannot be built, but not on CI."""
    try:
        return programs.find("pod-security-oracle")["pod-security-oracle"]
    except MissingTestbed as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(f"no evaluator: {error.reason} {error.how_to_get_it}")


@cache
def catalog(level: str) -> Catalog:
    """The shipped documents with the example policy of a level."""
    return building.catalog(yaml.safe_load((EXAMPLES / f"{level}.yaml").read_text("utf-8")))


def evaluated(pods: Iterable[Json]) -> list[Checks]:
    """What Kubernetes' evaluator says of pods; of equal ones it is asked once."""
    texts = [json.dumps(pod) for pod in pods]
    different = list(dict.fromkeys(texts))
    lines = "".join(f"{text}\n" for text in different)
    done = subprocess.run([oracle()], input=lines, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    known = dict(zip(different, answers, strict=True))
    return [known[text] for text in texts]


def decided(pod: Json, level: str, kind: str) -> Outcome:
    """What both passes make of a pod in an object of a kind."""
    found = KINDS[kind]
    body = found.wrap(pod)
    verdict = evaluate_manifest(body, "generated", catalog(level), References(), Place("team"))
    if isinstance(verdict.decision, Allowed):
        return Outcome(pod, level, kind, tuple(found.templates(verdict.object)), ())
    return Outcome(pod, level, kind, (), verdict.decision.violations)


def let_in_wrongly(outcomes: Sequence[Outcome], but: Missing | None = None) -> list[Any]:
    """What podgate lets in and Kubernetes would not, `but` for one excuse less than there is."""
    asked = [each for each in outcomes if but is None or each.level in but.levels]
    rows = [(each, pod) for each in asked for pod in each.pods]
    answers = evaluated(remedied(pod, each.level, but) for each, pod in rows)
    return [
        (each.kind, each.level, answer[each.level], pod)
        for (each, pod), answer in zip(rows, answers, strict=True)
        if answer[each.level]
    ]


def refused_wrongly(outcomes: Sequence[Outcome], but: Missing | None = None) -> list[Any]:
    """Violations for which Kubernetes' evaluator finds no reason in the pod as it was sent."""
    refused = [each for each in outcomes if each.violations]
    answers = evaluated(remedied(each.pod, each.level, but) for each in refused)
    return [
        (each.kind, each.level, violation, each.pod)
        for each, answer in zip(refused, answers, strict=True)
        for violation in each.violations
        if CHECKS[violation.field].isdisjoint(answer[each.level])
    ]


@pytest.fixture(scope="module")
def of_fixtures() -> list[Outcome]:
    """The module's own pods, in every kind and under both levels."""
    try:
        found = fixtures()
    except MissingTestbed as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(f"no fixtures: {error.reason} {error.how_to_get_it}")
    assert len(found) > 140
    return [decided(pod, level, kind) for _, pod in found for level in LEVELS for kind in KINDS]


def of_generated(part: int) -> list[Outcome]:
    """A part of the generated pods, each bare and in one of nine other kinds, under both levels.

    Parts are what several processes share the work by.
    """
    pods = zip(generated(SEED, PODS), islice(cycle(OTHERS), PODS), strict=True)
    return [
        decided(pod, level, kind)
        for pod, other in islice(pods, part, None, PARTS)
        for level in LEVELS
        for kind in ("Pod", other)
    ]


def test_what_is_let_in_of_the_fixtures_satisfies_kubernetes(of_fixtures: list[Outcome]) -> None:
    assert let_in_wrongly(of_fixtures)[:3] == []


def test_no_fixture_is_refused_that_kubernetes_takes(of_fixtures: list[Outcome]) -> None:
    assert refused_wrongly(of_fixtures)[:3] == []


@pytest.mark.parametrize("part", range(PARTS))
def test_generated_pods_are_let_in_and_refused_as_kubernetes_does(part: int) -> None:
    outcomes = of_generated(part)
    assert let_in_wrongly(outcomes)[:3] == []
    assert refused_wrongly(outcomes)[:3] == []
    counted = Counter((each.kind, each.level, bool(each.pods)) for each in outcomes)
    assert len(counted) == len(KINDS) * len(LEVELS) * 2
    assert min(counted.values()) > 200 / PARTS, counted
    refused_for = {each.field for outcome in outcomes for each in outcome.violations}
    assert refused_for == set(CHECKS)

    # What podgate lacks, and where a user namespace relaxes a check of Kubernetes.
    pods = [each for each in outcomes if each.kind == "Pod"]
    for missing in MISSING:
        found = let_in_wrongly(pods, missing)
        assert {level for _, level, _, _ in found} == set(missing.levels), missing.name
    relaxed = refused_wrongly(pods, RELAXING)
    assert {each.field for _, _, each, _ in relaxed} == {
        "security.procMount",
        "security.runAsNonRoot",
        "security.runAsUid",
    }
