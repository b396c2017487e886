"""CRDs of a cluster, over TLS on loopback: watched by metadata, read one by one, kept in brief."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from certs.pair import KeyPair
from tests.catalog.test_proof import GROUP, TEMPLATE, objects
from tests.cluster.test_api_server import Objects, event
from tests.cluster.test_kubernetes import FakeApi, reply
from tests.interface.test_crd_brief import named
from tests.server.test_http import ca  # noqa: F401 - a fixture
from webhook.cluster.client import ApiServer
from webhook.interface.crd_summary import brief_of
from webhook.interface.kind_schema import KindSchema
from webhook.sources.crds import PATH, Known, Schemas, found_of, rows_of
from webhook.sources.reader import Watcher
from webhook.sources.snapshot import Snapshot

Json = dict[str, Any]
NAME = f"groups.{GROUP}"
PODS = objects(spec=objects(template=TEMPLATE))


def metadata(data: Json, generation: int) -> Json:
    """What is listed and watched of a CRD."""
    name = data["metadata"]["name"]
    version = {"resourceVersion": str(generation), "uid": name, "generation": generation}
    return {"metadata": {"name": name, "annotations": {"long": "x" * 1000}, **version}}


class Definitions(Objects):
    """Lists and watches metadata, and gives whole CRDs one by one."""

    def __init__(self) -> None:
        super().__init__()
        self.whole: dict[str, Json] = {}
        self.read: list[str] = []
        self.accepted: list[bool] = []
        self.broken: set[str] = set()
        self.failure = 503

    def put(self, data: Json, generation: int = 1) -> Json:
        """Make one known; what a watch says of it."""
        self.whole[data["metadata"]["name"]] = data
        return event("MODIFIED", metadata(data, generation))

    def act(self, handler: BaseHTTPRequestHandler) -> bool:
        name = handler.path.partition("?")[0].removeprefix(PATH).strip("/")
        if not name:
            kind = "PartialObjectMetadata" + ("" if "watch=1" in handler.path else "List")
            self.accepted.append(f";as={kind};" in str(handler.headers.get("Accept")))
            return super().act(handler)
        self.read.append(name)
        status = self.failure if name in self.broken else 200 if name in self.whole else 404
        body = self.whole[name] if status == 200 else {"kind": "Status", "message": "no"}
        reply(handler, status, json.dumps(body).encode())
        return True


@pytest.fixture
def definitions() -> Definitions:
    return Definitions()


@pytest.fixture
def server(
    definitions: Definitions,
    ca: KeyPair,  # noqa: F811 - the fixture
    tmp_path: Path,
) -> Iterator[ApiServer]:
    fake = FakeApi(ca, tmp_path, act=definitions.act)
    with fake.serving() as found:
        yield found


def followed(server: ApiServer, done: Callable[[Known], bool]) -> tuple[Known, int]:
    """Follow until something is so; what is known, and how often it has changed."""
    changes: list[int] = []

    async def run() -> Known:
        known = Known(server, lambda: changes.append(1))
        task = asyncio.create_task(known.run())
        async with asyncio.timeout(60):
            while not done(known):
                assert not task.done(), task
                await asyncio.sleep(0.01)
        task.cancel()
        return known

    return asyncio.run(run()), len(changes)


def schemas(known: Known, kinds: set[tuple[str, str]]) -> tuple[KindSchema, ...]:
    return Schemas(known.bodies.__getitem__).of(known.found, (), kinds)


def test_only_metadata_is_watched_and_each_definition_is_read_once(
    server: ApiServer, definitions: Definitions
) -> None:
    plain = named("Plain", v1=objects(spec=objects()))
    for each in (named(v1=PODS), plain):
        definitions.put(each)
        definitions.items.append(metadata(each, 1))
    # A status that changes is no new generation, so that nothing is read again.
    definitions.watches = [[event("MODIFIED", metadata(plain, 1))]]
    known, changes = followed(server, lambda k: len(k.found) == 2 and k.was_tried)
    assert sorted(definitions.read) == sorted([NAME, f"plains.{GROUP}"])
    assert all(definitions.accepted), "servers want another word in lists than in watches"
    assert changes == 1
    assert "annotations" not in json.dumps([*known.collection.objects.values()])
    assert [each.name for each in schemas(known, set())] == [f"Group.{GROUP}/v1"]
    assert len(schemas(known, {(GROUP, "Plain")})) == 2


def test_one_that_changes_is_read_again_and_one_that_goes_is_forgotten(
    server: ApiServer, definitions: Definitions
) -> None:
    first, second = named(v1=objects(spec=objects())), named(v1=PODS)
    definitions.put(first)
    definitions.items, definitions.silence = [metadata(first, 1)], 0.1
    seen: list[str] = []

    def gone(known: Known) -> bool:
        now = "".join("pods" if e.brief.holds_pods else "plain" for e in known.found.values())
        if known.was_tried and seen[-1:] != [now]:
            seen.append(now)
            assert len(known.bodies) == len(known.found), "the schemas before are forgotten"
            # The watch that goes on says what happens next.
            if now == "plain":
                definitions.watches = [[definitions.put(second, 2)]]
            elif now == "pods":
                definitions.watches = [[event("DELETED", metadata(second, 3))]]
        return now == "" and len(seen) > 2

    followed(server, gone)
    assert seen == ["plain", "pods", ""]
    assert definitions.read == [NAME, NAME]


def test_one_that_cannot_be_read_hides_no_other_and_leaves_what_was_known(
    server: ApiServer, definitions: Definitions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("webhook.sources.crds.AGAIN", 0.05)
    other = named("Other", v1=PODS)
    for each in (named(v1=PODS), other):
        definitions.put(each)
        definitions.items.append(metadata(each, 1))
    definitions.broken = {NAME}

    def mended(known: Known) -> bool:
        if definitions.broken and len(definitions.read) > 4:
            assert set(known.found) == {f"others.{GROUP}"}
            assert known.is_settled
            definitions.broken = set()
        return len(known.found) == 2

    followed(server, mended)


def test_a_fault_with_one_hides_no_other_and_is_met_once(
    server: ApiServer, definitions: Definitions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("webhook.sources.crds.AGAIN", 0.05)

    def fail_on_one(data: Json) -> Any:
        if data["metadata"]["name"] == NAME:
            raise RecursionError
        return brief_of(data)

    monkeypatch.setattr("webhook.sources.crds.brief_of", fail_on_one)
    for each in (named(v1=PODS), named("Other", v1=PODS)):
        definitions.put(each)
        definitions.items.append(metadata(each, 1))
    known, _ = followed(server, lambda k: k.was_tried)
    assert set(known.found) == {f"others.{GROUP}"}
    assert definitions.read.count(NAME) == 1


def test_without_the_right_to_read_them_not_every_one_is_asked_for(
    server: ApiServer, definitions: Definitions
) -> None:
    definitions.failure = 403
    for number in range(30):
        made = named(f"Kind{number}", v1=PODS)
        definitions.put(made)
        definitions.items.append(metadata(made, 1))
        definitions.broken.add(made["metadata"]["name"])
    known, _ = followed(server, lambda k: k.was_tried)
    assert known.is_settled
    assert len(definitions.read) == 1


def test_without_the_right_to_list_them_nobody_waits(
    server: ApiServer, definitions: Definitions
) -> None:
    definitions.status = 403
    known, _ = followed(server, lambda k: k.is_settled)
    assert known.found == {}
    assert "no such thing" in known.collection.trouble


def test_workers_read_from_the_snapshot_what_the_watcher_has_written(
    server: ApiServer, definitions: Definitions, tmp_path: Path
) -> None:
    definitions.put(named(v1=PODS))
    definitions.items = [metadata(named(v1=PODS), 1)]
    known, _ = followed(server, lambda k: bool(k.found))
    snapshot = Snapshot(tmp_path)
    watcher = Watcher(server, snapshot)
    watcher.crds = known
    watcher.write()
    seen = snapshot.read()
    assert seen is not None
    assert found_of(seen.crds) == known.found == found_of(rows_of(known.found))
    read = Schemas(snapshot.read_schema)
    (first,) = read.of(found_of(seen.crds), (), set())
    assert [each.what for each in first.spots] == ["pod template"]
    known.found.clear()
    known.bodies.clear()
    watcher.write()
    assert len([*tmp_path.glob("piece-*")]) == 1, "a worker may still read by the index before"
    watcher.collections["WorkloadPolicy"].objects["team", "p"] = {"spec": {}}
    watcher.write()
    assert not [*tmp_path.glob("piece-*")]


def test_a_schema_of_files_counts_where_the_cluster_has_none(
    server: ApiServer, definitions: Definitions
) -> None:
    definitions.put(named(v1=PODS))
    definitions.items = [metadata(named(v1=PODS), 1)]
    known, _ = followed(server, lambda k: bool(k.found))
    (own,) = schemas(known, set())
    beside = [KindSchema("f", GROUP, kind, "v1", (), own.shape) for kind in ("Group", "Other")]
    found = Schemas(known.bodies.__getitem__).of(known.found, beside, set())
    assert [each.origin for each in found] == [f"CustomResourceDefinition {NAME}", "f"]
