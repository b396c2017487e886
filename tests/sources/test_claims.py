"""Claims of a cluster, over TLS on loopback: watched in one process, seen by the workers in shards."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from certs.pair import KeyPair
from tests.cluster.test_api_server import Objects, event
from tests.cluster.test_kubernetes import FakeApi, reply
from tests.server.test_http import ca  # noqa: F401 - a fixture
from webhook.cluster.client import ApiServer
from webhook.devices.briefs import claim_brief, claim_spec
from webhook.devices.claim_view import read_claim
from webhook.devices.counting import count_devices
from webhook.devices.kinds import TEMPLATE
from webhook.evaluation.references import CLAIM_KINDS
from webhook.sources.claims import API, read_claims, watch_claims
from webhook.sources.shards import CLAIMS, SHARD, SHARDS, ShardedCollections, Shards, shard_of
from webhook.sources.snapshot import Snapshot

Json = dict[str, Any]
NO_SUCH_THING: Json = {"kind": "Status", "message": "no such thing"}
CLASSES = ("gpu.nvidia.com",)
KEY = (TEMPLATE, "team", "gpus")


def template(count: int, name: str = "gpus", namespace: str = "team") -> Json:
    """A template as v1 has it, with what podgate does not read."""
    asked = {"deviceClassName": CLASSES[0], "count": count, "selectors": [{"cel": "x" * 500}]}
    spec = {"devices": {"requests": [{"name": "gpu", "exactly": asked}]}}
    metadata = {"name": name, "namespace": namespace, "resourceVersion": str(count)}
    return {"metadata": metadata, "spec": {"spec": spec}}


class Served(Objects):
    """Lists and watches templates; whose claims are asked for is answered with `claims_status`."""

    def __init__(self) -> None:
        super().__init__()
        self.versions = ["v1beta1", "v1"]
        self.claims_status = 200
        self.paths: set[str] = set()
        self.gone = "/none"

    def act(self, handler: BaseHTTPRequestHandler) -> bool:
        path = handler.path.partition("?")[0]
        self.paths.add(path)
        if path == API:
            group = {"versions": [{"version": each} for each in self.versions]}
            status = 200 if self.versions else 404
            body = group if self.versions else NO_SUCH_THING
        elif path.startswith(self.gone):
            status, body = 404, NO_SUCH_THING
        elif path.endswith("claims"):
            status = self.claims_status
            body = {"metadata": {"resourceVersion": "1"}, "items": []}
            if status != 200:
                body = {"kind": "Status", "message": "alice may not"}
        else:
            return super().act(handler)
        reply(handler, status, json.dumps(body).encode())
        return True


@pytest.fixture
def served() -> Served:
    return Served()


@pytest.fixture
def server(
    served: Served,
    ca: KeyPair,  # noqa: F811 - the fixture
    tmp_path: Path,
) -> Iterator[ApiServer]:
    fake = FakeApi(ca, tmp_path, act=served.act)
    with fake.serving() as found:
        yield found


@pytest.fixture
def shards(tmp_path: Path) -> Shards:
    folder = tmp_path / "snapshot"
    folder.mkdir()
    return Shards(Snapshot(folder))


def watch_until(
    server: ApiServer, shards: Shards, done: Callable[[ShardedCollections], bool]
) -> ShardedCollections:
    """Watch as the process of a Pod does until something is so."""
    watched = watch_claims(server, shards.snapshot)

    async def run() -> None:
        task = asyncio.create_task(watched.run())
        async with asyncio.timeout(60):
            while not done(watched):
                await asyncio.sleep(0.01)
        task.cancel()

    asyncio.run(run())
    return watched


def count_claim(requests: Any, classes: tuple[str, ...]) -> tuple[int, bool]:
    """The devices of these classes that requests of a claim come to, and whether they have no bound."""
    return count_devices(read_claim({"devices": {"requests": requests}}), classes.__contains__)


def count_of(shards: Shards, name: str = "gpus") -> int | None:
    """The GPUs of a template as a worker sees it, None while it is not there."""
    spec = shards.find_claims().get((TEMPLATE, "team", name))
    return None if spec is None else count_claim(spec["devices"]["requests"], CLASSES)[0]


def marks_of(shards: Shards) -> dict[int, tuple[int, int]]:
    """What tells one version of each shard from another."""
    return {each: shards.snapshot.mark(SHARD.format(CLAIMS, each)) for each in range(SHARDS)}


def test_equal_claims_are_kept_written_and_decoded_once(
    server: ApiServer, served: Served, shards: Shards
) -> None:
    served.items = [template(number % 3 + 1, f"gpus-{number}") for number in range(60)]
    watched = watch_until(server, shards, lambda found: found.is_settled)
    kept = watched.followed[TEMPLATE].objects
    assert (len(kept), len({id(each) for each in kept.values()})) == (60, 3)
    rows = shards.shard(shard_of("team"))
    assert (len(rows), len({id(each) for each in rows.values()})) == (60, 3)
    assert [count_of(shards, f"gpus-{number}") for number in range(4)] == [1, 2, 3, 1]


def test_what_is_listed_and_watched_is_seen_and_what_is_deleted_is_not(
    served: Served, server: ApiServer, shards: Shards
) -> None:
    served.items = [template(8), template(1, "gone")]
    served.watches = [
        [
            event("MODIFIED", template(2)),
            event("DELETED", template(1, "gone")),
            event("ADDED", template(5, "new")),
        ]
    ]
    watch_until(server, shards, lambda _: count_of(shards, "new") == 5)
    assert (count_of(shards), count_of(shards, "gone")) == (2, None)
    assert shards.watched_types() == frozenset(CLAIM_KINDS)
    assert f"{API}/v1/resourceclaimtemplates" in served.paths, "the newest version is read"
    assert f"{API}/v1beta1/resourceclaimtemplates" not in served.paths


def test_a_change_rewrites_its_own_shard_and_one_of_no_amount_none(
    served: Served, server: ApiServer, shards: Shards
) -> None:
    assert shard_of("team") != shard_of("other")
    served.items = [template(1), template(1, namespace="other")]
    served.silence = 0.3
    marks: list[dict[int, tuple[int, int]]] = []

    def done(watched: ShardedCollections) -> bool:
        if watched.is_settled and not marks:
            marks.append(marks_of(shards))
            idle = {**template(1, namespace="other"), "status": {"allocation": {}}}
            served.watches = [[event("MODIFIED", idle), event("ADDED", template(2, "new"))]]
        return count_of(shards, "new") == 2

    watch_until(server, shards, done)
    (before,), after = marks, marks_of(shards)
    assert {each for each in after if after[each] != before[each]} == {shard_of("team")}


def test_a_watcher_that_starts_anew_drops_what_went_meanwhile(
    served: Served, server: ApiServer, shards: Shards
) -> None:
    shards.write(shard_of("team"), {KEY: claim_brief(TEMPLATE, template(3))})
    assert count_of(shards) == 3
    watch_until(server, shards, lambda each: each.is_settled)
    assert count_of(shards) is None


def test_a_kind_that_may_not_be_read_is_told_and_the_other_one_is_seen(
    served: Served, server: ApiServer, shards: Shards, caplog: pytest.LogCaptureFixture
) -> None:
    served.claims_status = 403
    served.items = [template(8)]
    watch_until(server, shards, lambda each: each.is_settled)
    assert count_of(shards) == 8
    assert shards.watched_types() == frozenset({TEMPLATE}), (
        "nobody waits for a claim that never comes"
    )
    assert "alice may not" in caplog.text
    assert asyncio.run(read_claims(server)) == {KEY: claim_brief(TEMPLATE, template(8))}


def test_a_cluster_without_claims_is_nothing_to_wait_for(
    served: Served, server: ApiServer, shards: Shards, caplog: pytest.LogCaptureFixture
) -> None:
    served.versions = []
    shards.write(shard_of("team"), {KEY: claim_brief(TEMPLATE, template(3))})
    shards.write_watched(CLAIM_KINDS)
    watch_until(server, shards, lambda each: each.is_settled)
    assert shards.watched_types() == frozenset()
    assert count_of(shards) is None, "it was there before"
    assert asyncio.run(read_claims(server)) == {}
    assert not [each for each in caplog.records if each.name == "podgate.claims"]


def test_a_version_that_is_served_no_more_is_left_for_the_next(
    served: Served, server: ApiServer, shards: Shards, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("webhook.sources.shards.AGAIN", 0.05)
    served.items, served.silence = [template(8)], 0.05
    before: list[ShardedCollections] = []

    def done(watched: ShardedCollections) -> bool:
        if watched.is_settled and not before:
            assert count_of(shards) == 8
            before.append(watched)
            served.versions, served.gone = ["v1beta1"], f"{API}/v1/"
            served.items = [template(3)]
        return count_of(shards) == 3

    watch_until(server, shards, done)
    assert f"{API}/v1beta1/resourceclaimtemplates" in served.paths


def test_a_request_sees_one_version_and_says_what_it_missed(shards: Shards) -> None:
    seen = shards.find_claims()
    assert seen.get(KEY) is None
    shards.write(shard_of("team"), {KEY: claim_brief(TEMPLATE, template(2))})
    assert seen.get(KEY) is None
    assert seen.missed == {KEY}
    assert count_of(shards) == 2


@pytest.mark.parametrize(
    "request_body, expected",
    [
        ({"deviceClassName": "gpu.nvidia.com"}, (1, False)),
        ({"deviceClassName": "gpu.nvidia.com", "count": 3}, (3, False)),
        ({"exactly": {"deviceClassName": "gpu.nvidia.com", "count": 7}}, (7, False)),
        ({"exactly": {"deviceClassName": "gpu.nvidia.com", "allocationMode": "All"}}, (1, True)),
        ({"exactly": {"deviceClassName": "nic.example.com", "count": 7}}, (0, False)),
        (
            {
                "firstAvailable": [
                    {"deviceClassName": "gpu.nvidia.com", "count": 2},
                    {"deviceClassName": "gpu.nvidia.com", "count": 6},
                ]
            },
            (6, False),
        ),
    ],
)
@pytest.mark.parametrize("kind", CLAIM_KINDS)
def test_a_brief_counts_as_the_whole_claim(
    kind: str, request_body: Json, expected: tuple[int, bool]
) -> None:
    listed = [{"name": "r", "selectors": [{"cel": {"expression": "true"}}], **request_body}]
    spec: Json = {"devices": {"requests": listed, "constraints": []}}
    body = {"spec": {"spec": spec} if kind == TEMPLATE else spec}
    brief = claim_brief(kind, body)
    for each in (claim_spec(kind, body), brief):
        assert count_claim(each["devices"]["requests"], CLASSES) == expected
