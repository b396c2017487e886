"""Tables of reviews with what two policies are to decide on each: rows, and whether one is right."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import yaml

from tests.building import catalog, policy
from webhook.admission.judge import decide_review
from webhook.admission.review import parse_review
from webhook.catalog.catalog import Catalog
from webhook.evaluation.outcome import Allowed, Decision, Denied
from webhook.evaluation.references import References
from webhook.evaluation.request import ObjectRead, Request, Stage
from webhook.objects.path import display
from webhook.sources.load import trusted_list

AT_LAST = "denied-at-last"
"""What only the validating pass refuses."""


@dataclass(frozen=True)
class Expected:
    """What one policy is to decide on one review; `row` is the whole row of the table."""

    review: int
    policy: str
    row: dict[str, Any] = field(repr=False)

    @property
    def said(self) -> dict[str, Any]:
        """What is expected under the policy."""
        return dict(self.row[self.policy])

    def __str__(self) -> str:
        """The test's name."""
        return f"{self.review:04d}-{self.policy}"


@dataclass(frozen=True)
class Table:
    """A file of expectations: `policies` by name, and rows with reviews, why and each policy's part."""

    file: Path

    @cached_property
    def content(self) -> dict[str, Any]:
        """The whole file."""
        return dict(yaml.safe_load(self.file.read_text("utf-8")))

    @property
    def rows(self) -> list[dict[str, Any]]:
        """Every row, as it is written."""
        return list(self.content["expectations"])

    def expected(self) -> Iterator[Expected]:
        """Every row, review by review and policy by policy."""
        for row in self.rows:
            for number in row["reviews"]:
                for name in self.content["policies"]:
                    yield Expected(number, name, row)

    @cached_property
    def catalogs(self) -> dict[str, Catalog]:
        """The shipped definitions and trusted mutators with each policy."""
        policies = self.content["policies"].items()
        return {name: as_installed(policy(yaml.safe_dump(body))) for name, body in policies}

    def assert_complete(self, count: int, *more: str) -> None:
        """Every review up to `count` has one row, with a reason and each policy's part."""
        numbers = sorted(each for row in self.rows for each in row["reviews"])
        assert numbers == list(range(1, count + 1))
        keys = {"reviews", "why", *self.content["policies"], *more}
        assert all(row["why"] and set(row) == keys for row in self.rows)


def as_installed(rules: dict[str, Any]) -> Catalog:
    """A catalog of what is shipped, the list of trusted mutators too, and one policy."""
    built = catalog(rules)
    trusted, problems = trusted_list(None)
    assert not problems
    built.config = replace(built.config, trusted=trusted)
    return built


def asked(folder: Path, number: int) -> Request:
    """The request of a review, by its number."""
    (file,) = folder.glob(f"{number:04d}-*.json")
    found = parse_review(file.read_bytes(), Stage.MUTATE)
    assert isinstance(found, Request)
    return found


def assert_decided(row: Expected, request: Request, rules: Catalog) -> None:
    """Both passes decide as the row says."""
    why = row.row["why"]
    decision = decide_review(request, rules, References())
    if "denied" in row.said:
        assert_denied(row, decision, "denied")
        return
    assert isinstance(decision, Allowed), (why, decision.violations)
    assert written(request.object, decision.object) == row.said.get("writes", {}), why
    final = replace(request, object=decision.object, stage=Stage.VALIDATE)
    last = decided_with_owners(final, rules, row.review)
    if AT_LAST in row.said:
        assert_denied(row, last, AT_LAST)
    else:
        assert isinstance(last, Allowed), (why, last.violations)


@lru_cache
def recorded_before(number: int) -> dict[tuple[str, str], Any]:
    """The objects that were sent before a review, by namespace and the end of their paths."""
    found = {}
    for file in sorted((Path(__file__).parent / "recorded").iterdir())[: number - 1]:
        sent = json.loads(file.read_text("utf-8"))["request"]
        if sent["operation"] in ("CREATE", "UPDATE") and not sent.get("subResource"):
            place = f"{sent['resource']['resource']}/{sent['object']['metadata'].get('name')}"
            found[sent["namespace"], place] = sent["object"]
    return found


def decided_with_owners(request: Request, rules: Catalog, number: int) -> Decision:
    """The decision of the validating pass, with the owner where it needs one."""
    decision = decide_review(request, rules, References())
    while isinstance(decision, Denied) and decision.needs is not None:
        path, uid = decision.needs
        found = recorded_before(number).get((request.namespace, "/".join(path.rsplit("/", 2)[1:])))
        if found is not None:
            # Reviews of new objects have no UID yet.
            found = {**found, "metadata": {**found["metadata"], "uid": uid}}
        request = replace(request, objects={**request.objects, path: ObjectRead(found)})
        decision = decide_review(request, rules, References())
    return decision


def assert_denied(row: Expected, decision: Decision, said: str) -> None:
    """The refusal names every place that is expected, and no other."""
    assert isinstance(decision, Denied), (row.row["why"], decision)
    left = [(each.field, each.reason, display(each.path)) for each in decision.violations]
    for line in row.said[said]:
        field_, rule, place = line.split(" ", 2)
        meant = [one for one in left if one[:2] == (field_, rule) and one[2].startswith(place)]
        assert meant, (line, left)
        left = [one for one in left if one not in meant]
    assert not left, (row.row["why"], left)


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


OF_RECORDED = Table(Path(__file__).parent / "recorded.yaml")
"""What is expected of the reviews in recorded/."""
