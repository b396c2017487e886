"""What is remembered of documents in force: packed whole, bounded, and taken up where one is broken."""

from __future__ import annotations

import base64
import gzip
import random
from typing import Any

from tests.catalog.test_living import (
    BROKEN,
    GOOD,
    IMPOSING,
    KEY,
    A,
    B,
    allows,
    asset,
    at,
    fixed,
    key,
    take,
)
from webhook.catalog.watched_documents import Key, WatchedDocuments
from webhook.sources import last_good


def test_who_starts_while_a_document_is_broken_judges_as_those_who_have_lived_through_it() -> None:
    old = WatchedDocuments()
    take(old, at(GOOD, 1), IMPOSING, asset("data", "/data", "/mnt"))
    remembered = old.in_force()
    late = WatchedDocuments()
    now: dict[Key, Any] = {KEY: at(BROKEN, 2), key(IMPOSING): IMPOSING}
    outcome = late.begin(now, remembered, fixed())
    lived = old.take(now, fixed())
    assert outcome.statuses == lived.statuses
    assert (outcome.statuses[KEY].observed, outcome.statuses[KEY].in_force) == (2, 1)
    assert not allows(outcome.catalog, B)
    assert late.in_force() == old.in_force()


def test_what_is_remembered_of_documents_that_are_gone_or_good_does_not_count() -> None:
    remembered = {KEY: at(GOOD, 1)}
    assert allows(WatchedDocuments().begin({}, remembered, fixed()).catalog, B)
    other = {**GOOD, "metadata": {**GOOD["metadata"], "generation": 2}, "spec": {"rules": {}}}
    assert allows(WatchedDocuments().begin({KEY: other}, remembered, fixed()).catalog, B)
    assert not allows(WatchedDocuments().begin({KEY: BROKEN}, remembered, fixed()).catalog, B)
    assert allows(WatchedDocuments().begin({KEY: BROKEN}, {}, fixed()).catalog, A)


def test_documents_come_out_of_the_config_map_as_they_went_in() -> None:
    documents: dict[Key, Any] = {KEY: GOOD, ("WorkloadPolicy", "team", "p"): {"spec": {"x": 1}}}
    body, left_out = last_good.write_configmap("podgate-system", documents)
    assert left_out == ()
    assert last_good.documents_of(body) == documents
    assert last_good.write_configmap("podgate-system", dict(reversed(documents.items())))[0] == body
    packed = base64.b64decode(body["binaryData"][last_good.FILE])
    deep = gzip.compress(b"[" * 100_000)
    torn = packed[:20] + b"\xff\xff\xff" + packed[23:]
    for data in (b"\0\0\0", packed[:30], torn, deep, gzip.compress(b"[[[], 1, 1, 1]]")):
        text = base64.b64encode(data).decode()
        assert last_good.documents_of({"binaryData": {last_good.FILE: text}}) == {}
    for broken in (None, {}, {"binaryData": {last_good.FILE: "A"}}, {"binaryData": {}}):
        assert last_good.documents_of(broken) == {}


def test_what_finds_no_room_is_the_largest_and_is_named() -> None:
    noise = random.Random(1).randbytes(last_good.LARGEST).hex()
    large: Key = ("WorkloadAsset", "", "large")
    body, left_out = last_good.write_configmap(
        "podgate-system", {KEY: GOOD, large: {"spec": noise}}
    )
    assert left_out == (large,)
    assert last_good.documents_of(body) == {KEY: GOOD}
