"""Every row of the tables has golden cases: a default and a rule per field, both ways per rule."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import pytest

from webhook.cases import installation
from webhook.cases import read as reading
from webhook.cases import run as running
from webhook.cases.case import Case
from webhook.catalog.catalog import Catalog
from webhook.evaluation.outcome import Allowed
from webhook.policy import rules
from webhook.policy import table as fields
from webhook.policy.row import NOTHING

GOLDEN = Path(__file__).parent / "golden"
TOLD = "not-enforceable"
NEVER_DEFAULTED = frozenset(
    {
        # A key is what tells items apart; a volume without one would be nobody's.
        "storage.hostPath.name",
        # It follows from the kind.
        "distributedFramework",
    }
)


@dataclass
class Seen:
    """What the golden cases do with leaves and rules."""

    defaults: set[str] = field(default_factory=set)
    ruled: set[str] = field(default_factory=set)
    passing: set[str] = field(default_factory=set)
    breaking: set[str] = field(default_factory=set)
    kinds: set[str] = field(default_factory=set)
    told: set[str] = field(default_factory=set)


def leaves() -> Iterator[str]:
    """Fields that some object carries, and the attributes that take rules."""
    yield from (path for path, row in fields.TABLE.fields.items() if row.shape != NOTHING)
    for path, (_, attribute) in fields.TABLE.attributes.items():
        if attribute.takes_rules and attribute.native:
            yield path


def untold() -> Iterator[str]:
    """Fields that nothing carries: each is to be told, by a rule and by a default."""
    yield from (path for path, row in fields.TABLE.fields.items() if row.shape == NOTHING)


@cache
def seen() -> Seen:
    """All golden cases that create something, run once."""
    found = Seen()
    for case in reading.cases_in(GOLDEN):
        request = case.given.get("request") or {}
        if request.get("old") is not None:
            continue
        decision = running.run(case).decision
        catalog = installation.catalog_of(case)
        found.kinds.add((request or case.given)["object"]["kind"])
        found.told |= {each.field for each in decision.warnings if each.reason == TOLD}
        named = {
            (leaf, rule)
            for policy in catalog.policies
            for level in policy.body.rules.values()
            for leaf, arguments in level.items()
            for rule in arguments
        }
        if isinstance(decision, Allowed):
            found.passing |= {rule for _, rule in named}
            found.defaults |= {change.field for change in decision.changes}
            note_items(found, case, catalog, decision)
        else:
            found.ruled |= {each.field for each in decision.violations}
            found.breaking |= {each.rule for each in decision.violations}
    return found


def note_items(found: Seen, case: Case, catalog: Catalog, decision: Allowed) -> None:
    """Attributes that came with a default item that was written."""
    changed = {change.field for change in decision.changes}
    for policy in catalog.policies:
        for level in policy.body.items.values():
            for path, items in level.items():
                if path in changed:
                    names = {name for item in items for name in item.attributes}
                    found.defaults |= {f"{path}.{name}" for name in names}


@pytest.mark.parametrize("leaf", sorted(leaves()))
def test_a_default_of_every_field_is_written_in_some_case(leaf: str) -> None:
    row = fields.TABLE.owner(leaf)
    if row.writes == "never" or leaf in NEVER_DEFAULTED:
        return
    assert leaf in seen().defaults, f"no golden case writes a default of {leaf}"


@pytest.mark.parametrize("leaf", sorted(leaves()))
def test_a_rule_on_every_field_is_broken_in_some_case(leaf: str) -> None:
    assert leaf in seen().ruled, f"no golden case breaks a rule on {leaf}"


@pytest.mark.parametrize("leaf", sorted(untold()))
def test_a_field_that_nothing_carries_is_told_in_some_case(leaf: str) -> None:
    assert leaf in seen().told, f"no golden case tells that nothing carries {leaf}"


@pytest.mark.parametrize("rule", sorted(rules.TABLE))
def test_every_rule_holds_in_one_case_and_is_broken_in_another(rule: str) -> None:
    assert rule in seen().passing, f"no golden case satisfies {rule}"
    # A computed default breaks no rule of its own, its result breaks others.
    if rules.TABLE[rule].stage != rules.DEFAULT:
        assert rule in seen().breaking, f"no golden case breaks {rule}"


KINDS = (
    "Pod",
    "Deployment",
    "StatefulSet",
    "DaemonSet",
    "ReplicaSet",
    "ReplicationController",
    "Job",
    "CronJob",
    "PyTorchJob",
    "TFJob",
    "MPIJob",
    "JobSet",
    "RayCluster",
    "RayJob",
    "LeaderWorkerSet",
    "Service",
    "InferenceService",
    "NIMService",
)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_has_cases(kind: str) -> None:
    assert kind in seen().kinds, f"no golden case creates a {kind}"
