"""The watcher's snapshots: what is new for a worker is written, and nothing else."""

from __future__ import annotations

import asyncio
import copy
from pathlib import Path
from typing import Any, cast

from webhook.adapters.api_server import ApiServer, Collection
from webhook.adapters.snapshot import Snapshot
from webhook.watcher import Watcher

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


async def serials(folder: Path, bodies: list[Json]) -> list[int]:
    """The serial of the snapshot after each event."""
    snapshot = Snapshot(folder)
    collection = Collection("/apis/podgate.dev/v1alpha1/clusterworkloadpolicies", was_read=True)
    watcher = Watcher(cast("ApiServer", None), snapshot, {KIND: collection})
    watcher.crds.was_tried = watcher.claims.is_settled = True
    task = asyncio.create_task(watcher.write_changes())
    found = []
    for body in bodies:
        collection.objects["", "p"] = body
        watcher.dirty.set()
        await asyncio.sleep(0.5)
        seen = snapshot.read()
        assert seen is not None
        found.append(seen.serial)
    task.cancel()
    return found


def test_a_new_status_is_no_new_snapshot(tmp_path: Path) -> None:
    events = [
        POLICY,
        changed(status={"generationInForce": 1}),
        changed(spec={"rules": {"image": {"required": False}}}),
        changed(spec={"rules": {"image": {"required": False}}}, status={}),
    ]
    assert asyncio.run(serials(tmp_path, events)) == [1, 1, 2, 2]
