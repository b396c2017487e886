"""Every row of the tables has golden cases: a default and a rule per field, both ways per rule."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from webhook.cases import installation
from webhook.cases.case import Case
from webhook.cases.read import cases_in
from webhook.cases.run import run_in
from webhook.catalog.catalog import Catalog
from webhook.evaluation.outcome import Allowed
from webhook.policy import rules
from webhook.policy.row import NOTHING
from webhook.policy.table import TABLE

GOLDEN = Path(__file__).parents[1] / "golden"
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
    yield from (path for path, row in TABLE.fields.items() if row.shape != NOTHING)
    for path, (_, attribute) in TABLE.attributes.items():
        if attribute.takes_rules and attribute.native:
            yield path


def untold() -> Iterator[str]:
    """Fields that nothing carries: each is to be told, by a rule and by a default."""
    yield from (path for path, row in TABLE.fields.items() if row.shape == NOTHING)


@cache
def seen() -> Seen:
    """All golden cases that create something, run once.

    Each test is about all rows, so that few processes run them.
    """
    found = Seen()
    for case in cases_in(GOLDEN):
        request = case.given.get("request") or {}
        if request.get("old") is not None:
            continue
        catalog = installation.catalog_of(case)
        decision = run_in(case, catalog).decision
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


def test_a_default_of_every_field_is_written_in_some_case() -> None:
    written = {leaf for leaf in leaves() if TABLE.owner(leaf).writes != "never"} - NEVER_DEFAULTED
    assert sorted(written - seen().defaults) == [], "no golden case writes a default of these"


def test_a_rule_on_every_field_is_broken_in_some_case() -> None:
    assert sorted(set(leaves()) - seen().ruled) == [], "no golden case breaks a rule on these"


def test_a_field_that_nothing_carries_is_told_in_some_case() -> None:
    assert sorted(set(untold()) - seen().told) == [], "no golden case tells that nothing has these"


def test_every_rule_holds_in_one_case_and_is_broken_in_another() -> None:
    # A computed default breaks no rule of its own, its result breaks others.
    breakable = {rule for rule, row in rules.TABLE.items() if row.form != "default-source"}
    assert sorted(rules.TABLE.keys() - seen().passing) == [], "no golden case satisfies these"
    assert sorted(breakable - seen().breaking) == [], "no golden case breaks these"


KINDS = frozenset(
    {
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
    }
)


def test_every_kind_has_cases() -> None:
    assert sorted(KINDS - seen().kinds) == [], "no golden case creates these"
