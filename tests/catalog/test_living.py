"""Documents that come and go: the last good version holds, and on doubt nothing is narrowed."""

from __future__ import annotations

from typing import Any

import pytest

from tests import building
from tests.building import asset, pod_spec, policy
from webhook.catalog import watched_documents
from webhook.catalog.build import Choices, Documents, parse_documents
from webhook.catalog.catalog import Catalog
from webhook.catalog.watched_documents import Fixed, Key, Outcome, WatchedDocuments
from webhook.decision.decide import decide
from webhook.documents.source import SourceDocument
from webhook.evaluation.outcome import Allowed
from webhook.evaluation.references import References
from webhook.evaluation.request import Request
from webhook.policy.envelope import Context

ONLY_A = "rules: {image: {options: [registry.example.com/a:1]}}"


def fixed() -> Fixed:
    return Fixed(building.shipped(), Documents(), Choices(), building.table())


def key(document: dict[str, Any]) -> Key:
    metadata = document["metadata"]
    return document["kind"], metadata.get("namespace", ""), metadata["name"]


def at(document: dict[str, Any], generation: int) -> dict[str, Any]:
    return {**document, "metadata": {**document["metadata"], "generation": generation}}


def take(living: WatchedDocuments, *documents: dict[str, Any]) -> Outcome:
    return living.take({key(each): each for each in documents}, fixed())


def allows(catalog: Catalog | None, image: str) -> bool:
    assert catalog is not None
    pod = {"metadata": {"name": "p"}, "spec": pod_spec({"name": "m", "image": image})}
    asked = Request("", "v1", "Pod", "CREATE", pod, namespace="team")
    return isinstance(decide(asked, catalog, References()), Allowed)


A, B = "registry.example.com/a:1", "registry.example.com/b:1"
GOOD = policy(ONLY_A, "images")
BROKEN = policy("rules: {imagee: {options: [x]}}", "images")
KEY = key(GOOD)


def test_a_broken_version_leaves_the_last_good_one_in_force() -> None:
    living = WatchedDocuments()
    first = take(living, at(GOOD, 1))
    assert first.statuses[KEY].in_force == 1
    assert not allows(first.catalog, B)
    second = take(living, at(BROKEN, 2))
    assert not allows(second.catalog, B)
    standing = second.statuses[KEY]
    assert (standing.observed, standing.in_force, standing.is_accepted) == (2, 1, False)
    assert [each.reason for each in standing.problems] == ["unknown-field"]
    third = take(
        living, at(policy("rules: {image: {options: [registry.example.com/b:1]}}", "images"), 3)
    )
    assert third.statuses[KEY].is_accepted
    assert allows(third.catalog, B)


def test_a_document_that_is_taken_away_is_gone() -> None:
    living = WatchedDocuments()
    take(living, GOOD)
    assert allows(take(living).catalog, B)


def test_a_broken_one_that_was_never_good_is_left_out_and_told() -> None:
    living = WatchedDocuments()
    outcome = take(living, BROKEN, policy(ONLY_A, "others"))
    assert outcome.statuses[KEY].in_force == 0
    assert outcome.statuses[KEY].problems
    assert not allows(outcome.catalog, B)


IMPOSING = policy("imposedAssets: [data]", "imposing")


def test_an_asset_that_goes_while_it_is_imposed_stays_in_force_and_holds_nobody_up() -> None:
    living = WatchedDocuments()
    data = asset("data", "/data", "/mnt")
    good = take(living, data, IMPOSING)
    assert good.catalog is not None
    for _ in range(2):
        outcome = take(living, IMPOSING, GOOD)
        assert not allows(outcome.catalog, B), "others are judged by what was written since"
        assert outcome.catalog is not None
        assert outcome.catalog.assets.keys() == {"data"}
        told = outcome.statuses[key(IMPOSING)].problems
        assert [each.reason for each in told] == ["unknown-asset"]
    again = take(living, data, IMPOSING)
    assert again.catalog is not None
    assert again.statuses[key(IMPOSING)].problems == ()
    assert again.statuses[key(IMPOSING)].is_accepted
    without = take(living)
    assert without.catalog is not None
    assert not without.catalog.assets


def test_an_asset_that_may_no_longer_be_imposed_stays_as_it_was() -> None:
    living, data = WatchedDocuments(), asset("data", "/data", "/mnt")
    take(living, data, IMPOSING)
    meta = {**data["spec"]["meta"], "kind": "secret-volume"}
    secret = {**data, "spec": {"meta": meta, "spec": {"secret": "s", "mountPath": "/mnt"}}}
    outcome = take(living, at(secret, 2), IMPOSING, GOOD)
    assert not allows(outcome.catalog, B)
    assert outcome.catalog is not None
    assert outcome.catalog.assets["data"].kind == "hostPath"
    standing = outcome.statuses[key(data)]
    assert (standing.observed, standing.in_force) == (2, 1)


def test_of_two_assets_with_one_id_every_process_takes_the_same() -> None:
    one, two = asset("data", "/one", "/mnt"), asset("data", "/two", "/mnt")
    two["metadata"]["name"] = "a-second"
    for order in ((one, two), (two, one)):
        outcome = take(WatchedDocuments(), *order)
        assert outcome.catalog is not None
        assert outcome.catalog.assets["data"].attributes["path"].value == "/two"


def test_at_the_start_what_does_not_fit_is_left_out() -> None:
    outcome = take(WatchedDocuments(), IMPOSING, GOOD)
    assert not allows(outcome.catalog, B)
    assert outcome.statuses[key(IMPOSING)].in_force == 0
    assert outcome.statuses[KEY].is_accepted


def test_policies_that_contradict_each_other_are_both_in_force_and_told() -> None:
    other = policy("rules: {image: {options: [registry.example.com/b:1]}}", "others")
    outcome = take(WatchedDocuments(), GOOD, other)
    assert not allows(outcome.catalog, A)
    assert not allows(outcome.catalog, B)
    told = [each for each in outcome.statuses.values() for each in each.problems]
    assert {(each.reason, each.severity) for each in told} == {("conflict", "warning")}
    assert all(each.is_accepted for each in outcome.statuses.values())


def test_what_did_not_change_is_not_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    living = WatchedDocuments()
    take(living, GOOD, policy(ONLY_A, "others"))
    read = []
    add = watched_documents.add
    monkeypatch.setattr(
        watched_documents, "add", lambda *a, **k: (read.append(a[1].origin), add(*a, **k))
    )
    take(living, GOOD, at(policy(ONLY_A, "others"), 2))
    assert read == ["ClusterWorkloadPolicy others"]


def test_a_file_of_the_same_name_comes_first() -> None:
    given = parse_documents([SourceDocument("p.yaml", 1, GOOD, {}, {})], Context())
    own = Fixed(building.shipped(), given, Choices(), building.table())
    other = policy("rules: {image: {options: [registry.example.com/b:1]}}", "images")
    outcome = WatchedDocuments().take({KEY: other}, own)
    assert allows(outcome.catalog, A)
    assert not allows(outcome.catalog, B)
