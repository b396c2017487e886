"""Every recorded review against what the semantics say of it, written down by hand."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.core.building import catalog, policy
from webhook.admission.judge import judge_review
from webhook.admission.review import parse_review
from webhook.core.catalog import Catalog
from webhook.core.decision import Allowed, Decision, Denied
from webhook.core.pointer import display
from webhook.core.references import References
from webhook.core.request import Request, Stage

TABLE = yaml.safe_load((Path(__file__).parent / "expectations.yaml").read_text("utf-8"))
POLICIES = ("bounds", "held")
COUNT = 124


@dataclass(frozen=True)
class Expected:
    """What one policy is to decide on one review."""

    review: int
    policy: str
    why: str
    said: dict[str, Any]

    def __str__(self) -> str:
        return f"{self.review:04d}-{self.policy}"


def expected() -> Iterator[Expected]:
    """Every row of the table, review by review."""
    for row in TABLE["expectations"]:
        for number in row["reviews"]:
            for name in POLICIES:
                yield Expected(number, name, row["why"], row[name])


@cache
def rules(name: str) -> Catalog:
    return catalog(policy(yaml.safe_dump(TABLE["policies"][name])))


def asked(shared_data: Path, number: int) -> Request:
    (file,) = (shared_data / "reviews").glob(f"{number:04d}-*.json")
    found = parse_review(file.read_bytes(), Stage.MUTATE)
    assert isinstance(found, Request)
    return found


def test_every_review_has_one_expectation_under_each_policy(shared_data: Path) -> None:
    numbers = sorted(each for row in TABLE["expectations"] for each in row["reviews"])
    assert numbers == list(range(1, COUNT + 1))
    assert len(list((shared_data / "reviews").glob("*.json"))) == COUNT
    assert all(row["why"] and set(row) == {"reviews", "why", *POLICIES} for row in rows())


def rows() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = TABLE["expectations"]
    return found


@pytest.mark.parametrize("row", list(expected()), ids=str)
def test_a_review_is_decided_as_the_semantics_say(row: Expected, shared_data: Path) -> None:
    request = asked(shared_data, row.review)
    decision = judge_review(request, rules(row.policy), References())
    if "denied" in row.said:
        assert_denied(row, decision)
        return
    assert isinstance(decision, Allowed), (row.why, decision.violations)
    assert written(request.object, decision.object) == row.said.get("writes", {}), row.why
    final = replace(request, object=decision.object, stage=Stage.VALIDATE)
    passed = judge_review(final, rules(row.policy), References())
    assert isinstance(passed, Allowed), (row.why, passed.violations)


def assert_denied(row: Expected, decision: Decision) -> None:
    """The refusal names every place that is expected, and no other."""
    assert isinstance(decision, Denied), (row.why, decision)
    left = [(each.field, each.reason, display(each.path)) for each in decision.violations]
    for line in row.said["denied"]:
        field, rule, place = line.split(" ", 2)
        meant = [one for one in left if one[:2] == (field, rule) and one[2].startswith(place)]
        assert meant, (line, left)
        left = [one for one in left if one not in meant]
    assert not left, (row.why, left)


def written(before: Any, after: Any, path: tuple[Any, ...] = ()) -> dict[str, Any]:
    """The places that differ, with what stands there now; whole lists where their length does."""
    if isinstance(before, dict) and isinstance(after, dict):
        found: dict[str, Any] = {}
        for key in {*before, *after}:
            found |= written(before.get(key), after.get(key), (*path, key))
        return found
    if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        found = {}
        for index, (old, new) in enumerate(zip(before, after, strict=True)):
            found |= written(old, new, (*path, index))
        return found
    return {} if before == after else {display(path): after}
