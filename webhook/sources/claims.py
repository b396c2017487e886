"""ResourceClaims and ResourceClaimTemplates: watched for the workers of a Pod, or read once."""

from __future__ import annotations

import logging
from functools import lru_cache, partial
from typing import Any

import orjson

from webhook.cluster.client import ApiError, ApiServer, Json
from webhook.cluster.list_and_watch import Collection
from webhook.devices.briefs import claim_brief
from webhook.evaluation.references import CLAIM_KINDS, ClaimKey
from webhook.sources.shards import CLAIMS, ShardedCollections, Shards
from webhook.sources.snapshot import Snapshot

log = logging.getLogger("podgate.claims")

API = "/apis/resource.k8s.io"
VERSIONS = ("v1", "v1beta2", "v1beta1")  # newest first; podgate reads the same members of each


async def collections_of(server: ApiServer) -> dict[str, Collection]:
    """The collections to read, by kind; empty if the cluster serves no supported version."""
    group = await server.find(API) or {}
    served = {each.get("version") for each in group.get("versions") or ()}
    version = next((each for each in VERSIONS if each in served), "")
    if not version:
        return {}
    return {
        kind: Collection(
            f"{API}/{version}/{kind.lower()}s", brief=partial(shared_brief, kind), touched=set()
        )
        for kind in CLAIM_KINDS
    }


def shared_brief(kind: str, body: Json) -> Json:
    """The brief of a claim; equal ones are one object, as a cluster has many claims and few of these."""
    return decode_once(orjson.dumps(claim_brief(kind, body)))


@lru_cache(maxsize=1024)
def decode_once(brief: bytes) -> Json:
    """A brief that nobody changes, the same object for the same text."""
    found: Json = orjson.loads(brief)
    return found


async def read_claims(server: ApiServer, resumed: float = 0.0) -> dict[ClaimKey, Any]:
    """Read all claims and templates; log and skip kinds that may not be read.

    Goes on after an API server that was away, for `resumed` seconds.
    """
    found: dict[ClaimKey, Any] = {}
    for kind, collection in (await collections_of(server)).items():
        try:
            await collection.read(server, resumed)
        except ApiError as error:
            if error.code not in (403, 404):
                raise
            log.warning("each %s counts as one without a bound: %s", kind, error)
        found |= {(kind, *key): spec for key, spec in collection.objects.items()}
    return found


def watch_claims(server: ApiServer, snapshot: Snapshot) -> ShardedCollections:
    """Claims and their templates for the workers of a Pod."""
    return ShardedCollections(server, Shards(snapshot, CLAIMS), collections_of)
