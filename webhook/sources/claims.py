"""Claims, their templates, ComputeDomains and DeviceClasses: watched for the workers of a Pod, or read once.

Briefs are kept as JSON: a cluster has many claims, and a review reads few of them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any

import orjson

from webhook.cluster.client import ApiError, ApiServer, Json
from webhook.cluster.list_and_watch import Collection
from webhook.devices.briefs import claim_brief, domain_brief
from webhook.devices.classes import class_brief
from webhook.devices.domain_templates import domain_templates
from webhook.devices.kinds import (
    CLAIM,
    CLASS,
    DOMAIN,
    DOMAIN_TEMPLATE,
    GROUP,
    NVIDIA,
    NVIDIA_VERSIONS,
    TEMPLATE,
    VERSIONS,
)
from webhook.evaluation.references import ClaimKey, References
from webhook.sources.shards import (
    CLAIMS,
    CLASSES,
    DOMAINS,
    Rows,
    ShardedCollections,
    Shards,
    shard_of,
)
from webhook.sources.snapshot import Snapshot

log = logging.getLogger("podgate.claims")

PAGE = {"limit": "100"}  # claims that are read at once: a whole one is several times its brief
API = f"/apis/{GROUP}"
NVIDIA_API = f"/apis/{NVIDIA}"
UNREADABLE = {
    CLAIM: "every ResourceClaim is unknown",
    TEMPLATE: "every ResourceClaimTemplate is unknown",
    DOMAIN: "templates that the driver has not made yet are unknown",
    CLASS: "podgate knows device classes from its settings only",
}


async def find_claims(server: ApiServer) -> dict[str, Collection]:
    """The claims and templates to read, by kind; empty if the cluster serves no supported version."""
    version = await newest_version(server, API, VERSIONS)
    briefs = {kind: partial(claim_text, kind) for kind in (CLAIM, TEMPLATE)} if version else {}
    return {
        kind: Collection(f"{API}/{version}/{kind.lower()}s", query=PAGE, brief=brief, touched=set())
        for kind, brief in briefs.items()
    }


async def find_domains(server: ApiServer) -> dict[str, Collection]:
    """The ComputeDomains to read; empty if the cluster has no CRD of that name."""
    version = await newest_version(server, NVIDIA_API, NVIDIA_VERSIONS)
    path = f"{NVIDIA_API}/{version}"
    served = (await server.find(path) or {}).get("resources") or () if version else ()
    # The group has other kinds, each with a CRD of its own.
    if not any(each.get("kind") == DOMAIN for each in served):
        return {}
    return {DOMAIN: Collection(f"{path}/computedomains", brief=domain_text, touched=set())}


async def find_classes(server: ApiServer) -> dict[str, Collection]:
    """The DeviceClasses to read; empty if the cluster serves no supported version."""
    version = await newest_version(server, API, VERSIONS)
    if not version:
        return {}
    return {CLASS: Collection(f"{API}/{version}/deviceclasses", brief=class_brief, touched=set())}


async def newest_version(server: ApiServer, path: str, versions: Sequence[str]) -> str:
    """The first of `versions` that a group at `path` serves, "" if it serves none of them."""
    group = await server.find(path) or {}
    served = {each.get("version") for each in group.get("versions") or ()}
    return next((each for each in versions if each in served), "")


def claim_text(kind: str, body: Json) -> str:
    """The brief of a claim as JSON."""
    return keep_one(orjson.dumps(claim_brief(kind, body)).decode())


def domain_text(body: Json) -> str:
    """The brief of a ComputeDomain as JSON."""
    return orjson.dumps(domain_brief(body)).decode()


@lru_cache(maxsize=1024)
def keep_one(text: str) -> str:
    """The same object for equal texts, as a cluster has many claims and few different ones."""
    return text


@dataclass(slots=True)
class WatchedClaims:
    """Claims, domains and device classes as the reading process has written them; any thread may read."""

    snapshot: Snapshot
    claims: Shards = field(init=False)
    domains: Shards = field(init=False)
    classes: Shards = field(init=False)
    templates: tuple[Rows, Mapping[ClaimKey, Any]] = field(default_factory=lambda: ({}, {}))
    named: tuple[Rows, Mapping[str, Any] | None] = field(default_factory=lambda: ({}, None))

    def __post_init__(self) -> None:
        """Each has shards of its own; device classes are few, and every reader needs all of them."""
        self.claims = Shards(self.snapshot, CLAIMS)
        self.domains = Shards(self.snapshot, DOMAINS, 1)
        self.classes = Shards(self.snapshot, CLASSES, 1)

    def find_claims(self) -> SeenClaims:
        """The claims for one request."""
        return SeenClaims(self.claims.shard, self.domain_templates)

    def watched_types(self) -> frozenset[str]:
        """The watched kinds."""
        return self.claims.watched_types() | self.domains.watched_types()

    def device_classes(self) -> Mapping[str, Any] | None:
        """The briefs of all DeviceClasses by name, one object until a class changes; None if unknown.

        Every review asks for them.
        """
        rows = self.classes.shard(0)
        if rows is not self.named[0]:
            found = {name: body for (_, _, name), body in rows.items()}
            self.named = rows, found or None
        return self.named[1]

    def domain_templates(self) -> Mapping[ClaimKey, Any]:
        """The templates that the driver makes of the known domains."""
        rows = self.domains.shard(0)
        if rows is not self.templates[0]:
            bodies = ((key, orjson.loads(text)) for key, text in rows.items())
            self.templates = rows, domain_templates(bodies)
        return self.templates[1]


@dataclass(slots=True)
class SeenClaims:
    """The claims as one request sees them: each shard in one version.

    `rows` gives the claims of a shard as JSON, `templates` those that the driver makes of domains.
    `missed` are the claims that were asked for and are not there.
    """

    rows: Callable[[int], Rows]
    templates: Callable[[], Mapping[ClaimKey, Any]]
    seen: dict[int, Rows] = field(default_factory=dict)
    made: Mapping[ClaimKey, Any] | None = None
    missed: set[ClaimKey] = field(default_factory=set)

    def get(self, key: ClaimKey, /) -> Any:
        """Return the DeviceClaim spec, None if it is unknown."""
        kind, namespace, name = key
        if kind == DOMAIN_TEMPLATE:
            return self.find_template(namespace, name)
        number = shard_of(namespace, name)
        rows = self.seen.get(number)
        if rows is None:
            rows = self.seen[number] = self.rows(number)
        text = rows.get(key)
        if text is not None:
            return orjson.loads(text)
        made = self.find_template(namespace, name) if kind == TEMPLATE else None
        if made is None:
            self.missed.add(key)
        return made

    def find_template(self, namespace: str, name: str) -> Any:
        """Return the template that a domain names, None if there is none; nobody waits for it."""
        if self.made is None:
            self.made = self.templates()
        return self.made.get((DOMAIN_TEMPLATE, namespace, name))


async def read_references(server: ApiServer, resumed: float = 0.0) -> References:
    """Read all claims, templates, domains and device classes; log and skip kinds that may not be read.

    Goes on after an API server that was away, for `resumed` seconds. There are no namespaces in it.
    """
    found: dict[str, dict[ClaimKey, Any]] = {}
    for find in (find_claims, find_domains, find_classes):
        for kind, collection in (await find(server)).items():
            try:
                await collection.read(server, resumed)
            except ApiError as error:
                if error.code not in (403, 404):
                    raise
                log.warning("%s: %s", UNREADABLE[kind], error)
            else:
                found[kind] = {(kind, *key): body for key, body in collection.objects.items()}
    claims = {**found.get(CLAIM, {}), **found.get(TEMPLATE, {})}
    domains = ((key, orjson.loads(text)) for key, text in found.get(DOMAIN, {}).items())
    templates = domain_templates(domains)
    classes = found.get(CLASS)
    return References(
        claims=SeenClaims(lambda _: claims, lambda: templates),
        device_classes=None if classes is None else {key[2]: each for key, each in classes.items()},
    )


def watch_claims(server: ApiServer, snapshot: Snapshot) -> tuple[ShardedCollections, ...]:
    """Claims, domains and device classes for the workers of a Pod."""
    shards = WatchedClaims(snapshot)
    return (
        ShardedCollections(server, shards.claims, find_claims),
        ShardedCollections(server, shards.domains, find_domains),
        ShardedCollections(server, shards.classes, find_classes),
    )
