"""Claims, domains and device classes of a cluster, over TLS on loopback: watched in one process, seen by
the workers in shards.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from certs.pair import KeyPair
from tests.building import catalog, request
from tests.cluster.test_api_server import Objects, event
from tests.cluster.test_kubernetes import FakeApi, reply
from tests.server.test_http import ca  # noqa: F401 - a fixture
from webhook.admission.judge import Ready
from webhook.cli.serve import build_judge
from webhook.cluster.client import ApiServer
from webhook.devices.briefs import claim_brief, claim_spec
from webhook.devices.claim_view import read_claim
from webhook.devices.counting import count_devices
from webhook.devices.kinds import DOMAIN_TEMPLATE, TEMPLATE
from webhook.evaluation.outcome import Allowed
from webhook.evaluation.references import CLAIM_KINDS, Claims
from webhook.sources.claims import (
    API,
    NVIDIA_API,
    WatchedClaims,
    claim_text,
    find_classes,
    find_domains,
    read_references,
    watch_claims,
)
from webhook.sources.shards import CLAIMS, SHARD, SHARDS, ShardedCollections, shard_of
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
    """Lists and watches templates, with `listed` and `changes` of other resources by plural.

    A list of claims is answered with `claims_status`.
    """

    def __init__(self) -> None:
        super().__init__()
        self.versions = ["v1beta1", "v1"]
        self.nvidia_kinds = ["ComputeDomain", "ComputeDomainClique"]
        self.claims_status = 200
        self.listed: dict[str, list[Json]] = {}
        self.changes: dict[str, list[Json]] = {}
        self.paths: set[str] = set()
        self.gone = "/none"

    def act(self, handler: BaseHTTPRequestHandler) -> bool:
        path = handler.path.partition("?")[0]
        self.paths.add(path)
        if path == API:
            group = {"versions": [{"version": each} for each in self.versions]}
            status = 200 if self.versions else 404
            body = group if self.versions else NO_SUCH_THING
        elif path == NVIDIA_API:
            status, body = 200, {"versions": [{"version": "v1beta1"}]}
        elif path == f"{NVIDIA_API}/v1beta1":
            status, body = 200, {"resources": [{"kind": each} for each in self.nvidia_kinds]}
        elif path.startswith(self.gone):
            status, body = 404, NO_SUCH_THING
        elif not path.endswith("templates"):
            return self.act_on(handler, path.rpartition("/")[2])
        else:
            return super().act(handler)
        reply(handler, status, json.dumps(body).encode())
        return True

    def act_on(self, handler: BaseHTTPRequestHandler, plural: str) -> bool:
        """Answer about another resource than templates."""
        status = self.claims_status if plural == "resourceclaims" else 200
        body = {"metadata": {"resourceVersion": "1"}, "items": self.listed.get(plural, [])}
        if status != 200:
            body = {"kind": "Status", "message": "alice may not"}
        if "watch=1" in handler.path:
            events = self.changes.pop(plural, None)
            if events is None:
                threading.Event().wait(self.silence)
            reply(handler, 200, "".join(f"{json.dumps(each)}\n" for each in events or ()).encode())
        else:
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
def seen(tmp_path: Path) -> WatchedClaims:
    folder = tmp_path / "snapshot"
    folder.mkdir()
    return WatchedClaims(Snapshot(folder))


def watch_until(
    server: ApiServer, seen: WatchedClaims, done: Callable[[ShardedCollections], bool]
) -> ShardedCollections:
    """Watch as the process of a Pod does until something is so; the collections of claims."""
    watched = watch_claims(server, seen.snapshot)

    async def run() -> None:
        tasks = [asyncio.create_task(each.run()) for each in watched]
        async with asyncio.timeout(60):
            while not (all(each.is_settled for each in watched) and done(watched[0])):
                await asyncio.sleep(0.01)
        for each in tasks:
            each.cancel()

    asyncio.run(run())
    return watched[0]


def count_claim(requests: Any, classes: tuple[str, ...]) -> tuple[int, bool]:
    """The devices of these classes that requests of a claim come to, and whether they have no bound."""
    return count_devices(read_claim({"devices": {"requests": requests}}), classes.__contains__)


def count_of(seen: WatchedClaims, name: str = "gpus") -> int | None:
    """The GPUs of a template as a worker sees it, None while it is not there."""
    spec = seen.find_claims().get((TEMPLATE, "team", name))
    return None if spec is None else count_claim(spec["devices"]["requests"], CLASSES)[0]


def marks_of(seen: WatchedClaims) -> dict[int, tuple[int, int]]:
    """What tells one version of each shard from another."""
    return {each: seen.snapshot.mark(SHARD.format(CLAIMS, each)) for each in range(SHARDS)}


def test_equal_claims_are_kept_written_and_decoded_once(
    server: ApiServer, served: Served, seen: WatchedClaims
) -> None:
    served.items = [template(number % 3 + 1, f"gpus-{number}") for number in range(60)]
    watched = watch_until(server, seen, lambda _: True)
    assert {each["limit"] for each in served.asked if "limit" in each} == {"100"}
    kept = watched.followed[TEMPLATE].objects
    assert (len(kept), len({id(each) for each in kept.values()})) == (60, 3)
    for number in range(SHARDS):
        rows = seen.claims.shard(number)
        assert len({id(each) for each in rows.values()}) == len(set(rows.values()))
    assert [count_of(seen, f"gpus-{number}") for number in range(4)] == [1, 2, 3, 1]


def test_what_is_listed_and_watched_is_seen_and_what_is_deleted_is_not(
    served: Served, server: ApiServer, seen: WatchedClaims
) -> None:
    served.items = [template(8), template(1, "gone")]
    served.watches = [
        [
            event("MODIFIED", template(2)),
            event("DELETED", template(1, "gone")),
            event("ADDED", template(5, "new")),
        ]
    ]
    watch_until(server, seen, lambda _: count_of(seen, "new") == 5)
    assert (count_of(seen), count_of(seen, "gone")) == (2, None)
    assert seen.watched_types() == {*CLAIM_KINDS, "ComputeDomain"}
    assert f"{API}/v1/resourceclaimtemplates" in served.paths, "the newest version is read"
    assert f"{API}/v1beta1/resourceclaimtemplates" not in served.paths


def test_a_change_rewrites_its_own_shard_and_one_of_no_amount_none(
    served: Served, server: ApiServer, seen: WatchedClaims
) -> None:
    places = (("team", "gpus"), ("other", "gpus"), ("team", "new"))
    assert len({shard_of(*each) for each in places}) == 3
    served.items = [template(1), template(1, namespace="other")]
    served.silence = 0.3
    marks: list[dict[int, tuple[int, int]]] = []

    def done(_: ShardedCollections) -> bool:
        if not marks:
            marks.append(marks_of(seen))
            idle = {**template(1, namespace="other"), "status": {"allocation": {}}}
            served.watches = [[event("MODIFIED", idle), event("ADDED", template(2, "new"))]]
        return count_of(seen, "new") == 2

    watch_until(server, seen, done)
    (before,), after = marks, marks_of(seen)
    assert {each for each in after if after[each] != before[each]} == {shard_of("team", "new")}


def test_a_watcher_that_starts_anew_drops_what_went_meanwhile(
    served: Served, server: ApiServer, seen: WatchedClaims
) -> None:
    seen.claims.write(shard_of(*KEY[1:]), {KEY: claim_text(TEMPLATE, template(3))})
    assert count_of(seen) == 3
    watch_until(server, seen, lambda _: True)
    assert count_of(seen) is None


def test_a_kind_that_may_not_be_read_is_told_and_the_other_one_is_seen(
    served: Served, server: ApiServer, seen: WatchedClaims, caplog: pytest.LogCaptureFixture
) -> None:
    served.claims_status = 403
    served.items = [template(8)]
    watch_until(server, seen, lambda _: True)
    assert count_of(seen) == 8
    assert seen.claims.watched_types() == {TEMPLATE}, "nobody waits for a claim that never comes"
    assert "alice may not" in caplog.text
    claims = asyncio.run(read_references(server)).claims
    assert claims.get(KEY) == claim_brief(TEMPLATE, template(8))


def test_a_cluster_without_claims_is_nothing_to_wait_for(
    served: Served, server: ApiServer, seen: WatchedClaims, caplog: pytest.LogCaptureFixture
) -> None:
    served.versions = []
    seen.claims.write(shard_of(*KEY[1:]), {KEY: claim_text(TEMPLATE, template(3))})
    seen.claims.write_watched(CLAIM_KINDS)
    watch_until(server, seen, lambda _: True)
    assert seen.claims.watched_types() == frozenset()
    assert count_of(seen) is None, "it was there before"
    assert asyncio.run(read_references(server)).claims.get(KEY) is None
    assert not [each for each in caplog.records if each.name == "podgate.claims"]


def test_a_version_that_is_served_no_more_is_left_for_the_next(
    served: Served, server: ApiServer, seen: WatchedClaims, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("webhook.sources.shards.AGAIN", 0.05)
    served.items, served.silence = [template(8)], 0.05
    before: list[ShardedCollections] = []

    def done(watched: ShardedCollections) -> bool:
        if not before:
            assert count_of(seen) == 8
            before.append(watched)
            served.versions, served.gone = ["v1beta1"], f"{API}/v1/"
            served.items = [template(3)]
        return count_of(seen) == 3

    watch_until(server, seen, done)
    assert f"{API}/v1beta1/resourceclaimtemplates" in served.paths


def test_a_request_sees_one_version_and_says_what_it_missed(seen: WatchedClaims) -> None:
    found = seen.find_claims()
    assert found.get(KEY) is None
    seen.claims.write(shard_of(*KEY[1:]), {KEY: claim_text(TEMPLATE, template(2))})
    assert found.get(KEY) is None
    assert found.missed == {KEY}
    assert count_of(seen) == 2


def domain(name: str, template: str, mode: str = "Single", namespace: str = "team") -> Json:
    """A ComputeDomain as the API server has it."""
    channel = {"resourceClaimTemplate": {"name": template}, "allocationMode": mode}
    return {
        "metadata": {"name": name, "namespace": namespace, "uid": name},
        "spec": {"numNodes": 2, "channel": channel},
        "status": {"status": "NotReady"},
    }


def modes_of(claims: Claims, name: str) -> list[str] | None:
    """The modes in the channel configs of a template, None while it is unknown."""
    spec = claims.get((TEMPLATE, "team", name))
    if spec is None:
        return None
    listed = [each["opaque"]["parameters"] for each in spec["devices"]["config"]]
    assert {each["kind"] for each in listed} == {"ComputeDomainChannelConfig"}
    return [each["allocationMode"] for each in listed]


def test_a_template_is_known_from_its_domain_until_it_exists(
    served: Served, server: ApiServer, seen: WatchedClaims
) -> None:
    served.listed["computedomains"] = [domain("d", "made", "All"), domain("e", "late")]
    served.changes["computedomains"] = [
        event("ADDED", domain("f", "new")),
        event("MODIFIED", domain("g", "late", "All")),
        event("DELETED", domain("d", "made", "All")),
    ]
    before: list[list[str] | None] = []

    def done(_: ShardedCollections) -> bool:
        before.append(modes_of(seen.find_claims(), "made"))
        return modes_of(seen.find_claims(), "new") is not None

    watch_until(server, seen, done)
    claims = seen.find_claims()
    assert modes_of(claims, "made") is None
    assert modes_of(claims, "late") == ["All"]
    assert claims.get((DOMAIN_TEMPLATE, "team", "late"))["domains"] == ["e", "g"]
    assert claims.get((DOMAIN_TEMPLATE, "team", "nobody")) is None
    assert claims.missed == {(TEMPLATE, "team", "made")}
    seen.claims.write(
        shard_of("team", "new"), {(TEMPLATE, "team", "new"): claim_text(TEMPLATE, template(2))}
    )
    assert count_of(seen, "new") == 2, "the one that exists counts"
    read = asyncio.run(read_references(server)).claims
    assert (modes_of(read, "made"), modes_of(read, "late")) == (["All"], ["Single"])


def test_device_classes_are_one_object_until_one_changes(
    served: Served, server: ApiServer, seen: WatchedClaims
) -> None:
    assert seen.device_classes() is None, "they are not known yet"
    names = ("gpu.nvidia.com", "a100.example.com", "nic.example.com")
    served.listed["deviceclasses"] = [device_class(each) for each in names]
    watch_until(server, seen, lambda _: True)
    known = seen.device_classes()
    assert known is not None
    assert sorted(known) == sorted(names)
    assert seen.device_classes() is known
    served.changes["deviceclasses"] = [event("DELETED", device_class(names[2]))]
    watch_until(server, seen, lambda _: len(seen.device_classes() or ()) == 2)
    assert asyncio.run(read_references(server)).device_classes == known


def device_class(name: str) -> Json:
    selectors = [{"cel": {"expression": f"device.driver == '{name}'"}}]
    return {"metadata": {"name": name}, "spec": {"selectors": selectors}}


def test_the_group_of_domains_may_have_other_kinds_only(served: Served, server: ApiServer) -> None:
    served.nvidia_kinds = ["ComputeDomainClique"]
    assert asyncio.run(find_domains(server)) == {}
    served.nvidia_kinds = ["ComputeDomain"]
    assert list(asyncio.run(find_domains(server))) == ["ComputeDomain"]


def test_classes_of_a_cluster_without_claims_are_none_to_know(
    served: Served, server: ApiServer, seen: WatchedClaims
) -> None:
    served.versions = []
    assert asyncio.run(find_classes(server)) == {}
    watch_until(server, seen, lambda _: True)
    assert seen.device_classes() is None
    assert asyncio.run(read_references(server)).device_classes is None


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


def test_a_new_domain_is_not_kept_waiting_for_the_template_that_it_names(
    server: ApiServer, seen: WatchedClaims
) -> None:
    watch_until(server, seen, lambda _: True)
    judge = build_judge(catalog(), snapshot=seen.snapshot)
    asked = request(
        {
            "apiVersion": "resource.nvidia.com/v1beta1",
            "kind": "ComputeDomain",
            **domain("d", "unmade"),
        }
    )
    ready = judge.prepare(asked)
    assert isinstance(ready, Ready)
    assert isinstance(judge.decide(ready, final=False), Allowed)
