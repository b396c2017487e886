"""ResourceClaims and ResourceClaimTemplates: watched for the workers of a Pod, or read once."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from webhook.cluster.client import NOT_READ, ApiError, ApiServer, Collection, follow
from webhook.evaluation.references import CLAIM_KINDS, ClaimKey, claim_brief
from webhook.sources.claim_snapshot import SHARDS, ClaimShards, shard_of

log = logging.getLogger("podgate.claims")

API = "/apis/resource.k8s.io"
VERSIONS = ("v1", "v1beta2", "v1beta1")  # newest first; what is read of them is the same
ABSENT = 60.0  # seconds after which a cluster without claims is asked for them again
AGAIN = 5.0  # seconds after which that is asked again if there was no answer
QUIET = 0.01  # seconds in which changes are collected: a review that waits for one has 0.3


async def collections_of(server: ApiServer) -> dict[str, Collection]:
    """What is to be read, by kind; nothing where the cluster has no version that is known here."""
    group = await server.find(API) or {}
    served = {each.get("version") for each in group.get("versions") or ()}
    version = next((each for each in VERSIONS if each in served), "")
    if not version:
        return {}
    return {
        kind: Collection(
            f"{API}/{version}/{kind.lower()}s", kept=partial(claim_brief, kind), touched=set()
        )
        for kind in CLAIM_KINDS
    }


async def read_claims(server: ApiServer) -> dict[ClaimKey, Any]:
    """All claims and templates as they are now; those that may not be read are told and left out."""
    found: dict[ClaimKey, Any] = {}
    for kind, collection in (await collections_of(server)).items():
        try:
            await collection.listed(server)
        except ApiError as error:
            if error.code not in (403, 404):
                raise
            log.warning("each %s counts as one without a bound: %s", kind, error)
        found |= {(kind, *key): spec for key, spec in collection.objects.items()}
    return found


@dataclass(slots=True)
class WatchedClaims:
    """Claims as far as they are known, by shard, and written there whenever they change.

    `is_settled` says that nothing more is to be waited for: they are written, or cannot be had.
    """

    server: ApiServer
    shards: ClaimShards
    followed: Mapping[str, Collection] = field(default_factory=dict)
    known: list[dict[ClaimKey, Any]] = field(default_factory=lambda: [{} for _ in range(SHARDS)])
    kinds: frozenset[str] | None = None
    wake: asyncio.Event = field(default_factory=asyncio.Event)
    is_settled: bool = False

    async def run(self) -> None:
        """Keep them up to date for ever, in the newest version that the cluster serves."""
        while True:
            pause = ABSENT
            try:
                self.followed = await collections_of(self.server)
                if self.followed:
                    await self.follow_all()
                    pause = AGAIN
                elif self.kinds != frozenset():
                    self.begin_anew()
            except ApiError as error:
                log.warning("looking for claims: %s", error)
                pause = AGAIN
            self.is_settled = True
            await asyncio.sleep(pause)

    async def follow_all(self) -> None:
        """Follow both kinds until the cluster serves this version no more."""
        async with asyncio.TaskGroup() as tasks:
            followers = [
                tasks.create_task(follow(self.server, each, lambda _: self.wake.set()))
                for each in self.followed.values()
            ]
            await self.begin()
            while not any(each.absent for each in self.followed.values()):
                await self.wake.wait()
                await asyncio.sleep(QUIET)
                self.wake.clear()
                self.write(self.take_touched())
            for each in followers:
                each.cancel()

    async def begin(self) -> None:
        """Write every shard once all was read: an earlier watcher's may be of other days.

        While nothing can be read they stay; a kind that alone cannot be is told and left out.
        """
        while not all(each.is_known or is_troubled(each) for each in self.followed.values()):
            await asyncio.sleep(0.02)
        self.is_settled = not any(each.is_known for each in self.followed.values())
        while not any(each.is_known for each in self.followed.values()):
            await self.wake.wait()
            self.wake.clear()
        self.begin_anew()
        self.is_settled = True

    def begin_anew(self) -> None:
        """Write every shard, with what is known now and nothing else."""
        self.known = [{} for _ in range(SHARDS)]
        self.take_touched()
        self.write(set(range(SHARDS)))

    def take_touched(self) -> set[int]:
        """Take in what has changed; the shards that differ."""
        dirty: set[int] = set()
        for kind, collection in self.followed.items():
            touched, collection.touched = collection.touched or set(), set()
            for namespace, name in touched:
                number = shard_of(namespace)
                spec = collection.objects.get((namespace, name))
                if spec is None:
                    self.known[number].pop((kind, namespace, name), None)
                else:
                    self.known[number][kind, namespace, name] = spec
                dirty.add(number)
        return dirty

    def write(self, dirty: set[int]) -> None:
        """Write these shards, and which kinds are watched where that is new."""
        for number in sorted(dirty):
            self.shards.write(number, self.known[number])
        kinds = frozenset(
            kind for kind, each in self.followed.items() if each.was_read and not each.absent
        )
        if kinds != self.kinds:
            self.kinds = kinds
            self.shards.write_watched(kinds)


def is_troubled(collection: Collection) -> bool:
    """Whether reading it was tried and failed."""
    return collection.trouble not in ("", NOT_READ)
