"""The watcher's snapshots: what is new for a worker is written, and nothing else."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

from tests.cluster.test_api_server import Objects, objects, server  # noqa: F401 - fixtures
from tests.server.test_http import ca  # noqa: F401 - a fixture
from webhook.cluster.client import ApiServer
from webhook.cluster.list_and_watch import Collection, follow
from webhook.documents import enclosed
from webhook.sources.reader import Watcher, collections_of, version_of
from webhook.sources.snapshot import Snapshot

Json = dict[str, Any]
KIND = "ClusterWorkloadPolicy"
POLICY: Json = {
    "metadata": {"name": "p", "generation": 1, "resourceVersion": "1"},
    "spec": {"rules": {"image": {"required": True}}},
}


def changed(**parts: Any) -> Json:
    """The policy with other parts, as the API server tells it anew."""
    body = copy.deepcopy(POLICY) | parts
    body["metadata"]["resourceVersion"] = "2"
    return body


def serials(folder: Path, bodies: list[Json]) -> list[int]:
    """The serial of the snapshot after each event."""
    snapshot = Snapshot(folder)
    collection = Collection("/apis/podgate.dev/v1alpha1/clusterworkloadpolicies", was_read=True)
    watcher = Watcher(cast("ApiServer", None), snapshot, {KIND: collection})
    found = []
    for body in bodies:
        collection.objects["", "p"] = body
        watcher.write()
        seen = snapshot.read()
        assert seen is not None
        found.append(seen.serial)
    return found


def test_a_new_status_is_no_new_snapshot(tmp_path: Path) -> None:
    events = [
        POLICY,
        changed(status={"generationInForce": 1}),
        changed(spec={"rules": {"image": {"required": False}}}),
        changed(spec={"rules": {"image": {"required": False}}}, status={}),
    ]
    assert serials(tmp_path, events) == [1, 1, 2, 2]


def test_the_managers_of_fields_are_not_kept(
    server: ApiServer,  # noqa: F811 - the fixture
    objects: Objects,  # noqa: F811 - the fixture
) -> None:
    managed = {**POLICY["metadata"], "managedFields": [{"manager": "kubectl", "fieldsV1": {}}]}
    objects.items = [{**POLICY, "metadata": managed, "status": {"generationInForce": 1}}]
    collection = collections_of()[KIND]
    asyncio.run(collection.read(server))
    (kept,) = collection.objects.values()
    assert kept == {**POLICY, "status": {"generationInForce": 1}}


def test_the_configmaps_of_its_namespace_are_watched_by_their_label(
    server: ApiServer,  # noqa: F811 - the fixture
    objects: Objects,  # noqa: F811 - the fixture
) -> None:
    assert enclosed.KIND not in collections_of()
    collection = collections_of("podgate-system")[enclosed.KIND]
    objects.status = 403
    asyncio.run(turns(server, collection, lambda: len(objects.asked) > 1))
    assert not collection.is_known, "nobody knows which policies are in them"
    assert "no such thing" in collection.trouble
    body = {"metadata": {"namespace": "podgate-system", "name": "team"}, "data": {}}
    objects.status, objects.items = 200, [body]
    asyncio.run(turns(server, collection, lambda: "watch" in objects.asked[-1]))
    assert {each.get("labelSelector") for each in objects.asked} == {"podgate.dev/documents=true"}
    assert [*collection.objects] == [("podgate-system", "team")]
    assert version_of(collection.path) == "v1"
    assert version_of("/apis/podgate.dev/v1alpha1/workloadpolicies") == "podgate.dev/v1alpha1"


async def turns(api: ApiServer, collection: Collection, done: Callable[[], bool]) -> None:
    """Follow a collection until something is so."""
    task = asyncio.create_task(follow(api, collection, lambda _: None, lambda _: 0.01))
    async with asyncio.timeout(60):
        while not done():
            await asyncio.sleep(0.01)
    task.cancel()
