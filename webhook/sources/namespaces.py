"""The labels of namespaces: watched by the reading process, found by the workers of its Pod."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from webhook.cluster.client import ApiServer, Json, metadata_of
from webhook.cluster.list_and_watch import Collection
from webhook.sources.shards import NAMESPACES, ShardedCollections, Shards, shard_of
from webhook.sources.snapshot import HEARD, Snapshot

KIND = "Namespace"
FRESH = 90.0  # seconds that labels count without news of the watch, which comes every minute


def watch_namespaces(server: ApiServer, snapshot: Snapshot) -> ShardedCollections:
    """The labels of all namespaces for the workers of a Pod."""
    return ShardedCollections(server, Shards(snapshot, NAMESPACES), find_collections)


async def find_collections(_: ApiServer) -> dict[str, Collection]:
    """The one collection; every API server has it."""
    path = "/api/v1/namespaces"
    return {KIND: Collection(path, only_metadata=True, brief=labels_of, touched=set())}


def labels_of(item: Json) -> Json:
    """The labels of a namespace."""
    labels = metadata_of(item).get("labels")
    pairs: dict[str, Any] = labels if isinstance(labels, dict) else {}
    return {key: value for key, value in pairs.items() if isinstance(value, str)}


@dataclass(slots=True)
class WatchedLabels:
    """The labels as the reading process has written them; any thread may ask."""

    snapshot: Snapshot
    shards: Shards = field(init=False)
    heard: tuple[tuple[int, int], float] = ((0, 0), 0.0)

    def __post_init__(self) -> None:
        """They have shards of their own."""
        self.shards = Shards(self.snapshot, NAMESPACES)

    def find(self, name: str) -> Mapping[str, str] | None:
        """The labels of a namespace; None where it is not known, or the watch is silent for long."""
        mark = self.snapshot.mark(HEARD)
        if mark != self.heard[0]:
            self.heard = mark, self.snapshot.heard(NAMESPACES)
        if time.time() - self.heard[1] > FRESH:
            return None
        shard = self.shards.shard(shard_of("", name))
        labels: Mapping[str, str] | None = shard.get((KIND, "", name))
        return labels
