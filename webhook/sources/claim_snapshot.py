"""Claims and their templates in the Pod's folder, apart from the documents: in shards by namespace.

They change far more often than documents, and one change rewrites one shard and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from zlib import crc32

from webhook.evaluation.references import ClaimKey
from webhook.sources.snapshot import Snapshot

SHARDS = 64
SHARD, WATCHED = "claims-{}.json", "claims.json"

Mark = tuple[int, int]
Rows = Mapping[ClaimKey, Any]


def shard_of(namespace: str) -> int:
    """The number of the shard that has a namespace's claims."""
    return crc32(namespace.encode()) % SHARDS


@dataclass(slots=True)
class ClaimShards:
    """The shards in a snapshot's folder, each decoded again only when it has changed.

    Any thread may read: what is decoded is never changed, only replaced.
    """

    snapshot: Snapshot
    decoded: dict[int, tuple[Mark, Rows]] = field(default_factory=dict)
    kinds: tuple[Mark, frozenset[str]] = ((0, 0), frozenset())

    def write(self, number: int, claims: Rows) -> None:
        """Replace one shard."""
        rows = [[*key, spec] for key, spec in sorted(claims.items())]
        self.snapshot.put(SHARD.format(number), {"claims": rows})

    def write_watched(self, kinds: Iterable[str]) -> None:
        """Say which kinds are watched, so that what is new of them comes by itself."""
        self.snapshot.put(WATCHED, {"kinds": sorted(kinds)})

    def watched(self) -> frozenset[str]:
        """The same; none before anybody has said."""
        mark = self.snapshot.mark(WATCHED)
        if mark != self.kinds[0]:
            body = self.snapshot.take(self.snapshot.folder / WATCHED) or {"kinds": []}
            self.kinds = mark, frozenset(body["kinds"])
        return self.kinds[1]

    def shard(self, number: int) -> Rows:
        """The newest version of one shard; empty before it is written."""
        name = SHARD.format(number)
        mark = self.snapshot.mark(name)
        known = self.decoded.get(number)
        if known is None or known[0] != mark:
            body = self.snapshot.take(self.snapshot.folder / name) or {"claims": []}
            rows = {(kind, space, each): spec for kind, space, each, spec in body["claims"]}
            known = self.decoded[number] = mark, rows
        return known[1]

    def seen(self) -> SeenClaims:
        """The claims for one request."""
        return SeenClaims(self)


@dataclass(slots=True)
class SeenClaims:
    """The claims as one request sees them: each shard in one version.

    `missed` are those that were asked for and are not there.
    """

    shards: ClaimShards
    versions: dict[int, Rows] = field(default_factory=dict)
    missed: set[ClaimKey] = field(default_factory=set)

    def get(self, key: ClaimKey, /) -> Any:
        """The DeviceClaim spec, None where it is not known."""
        number = shard_of(key[1])
        rows = self.versions.get(number)
        if rows is None:
            rows = self.versions[number] = self.shards.shard(number)
        spec = rows.get(key)
        if spec is None:
            self.missed.add(key)
        return spec
