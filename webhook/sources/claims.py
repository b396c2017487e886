"""ResourceClaims and ResourceClaimTemplates: watched for the workers of a Pod, or read once."""

from __future__ import annotations

import logging
from functools import partial
from typing import Any

from webhook.cluster.client import ApiError, ApiServer
from webhook.cluster.list_and_watch import Collection
from webhook.evaluation.references import CLAIM_KINDS, ClaimKey, claim_brief
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
            f"{API}/{version}/{kind.lower()}s", brief=partial(claim_brief, kind), touched=set()
        )
        for kind in CLAIM_KINDS
    }


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
