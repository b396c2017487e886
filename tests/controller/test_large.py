"""Large clusters: of a list, no more than a page is in memory, whoever reads it."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any, cast
from weakref import ref

import orjson
import pytest

from tests.building import catalog, policy
from tests.listing import query_of
from webhook.cluster.client import ApiServer
from webhook.controller import reports
from webhook.controller.audit import audit_objects, governed_namespaces, undefined_objects
from webhook.controller.injections import injections
from webhook.controller.scan import PACKED, Results, Scanner
from webhook.evaluation.outcome import Violation
from webhook.service.controller_metrics import ControllerMetrics
from webhook.sources.claims import API, SeenClaims, read_references
from webhook.sources.crds import PATH as CRDS

Json = dict[str, Any]
PAGES, SIZE = 5, 10
RULES = catalog(policy("rules: {image: {options: [{value: registry.example.com/good:1}]}}"))
SPACES = {"team": {"podgate.dev/governed": "true"}}
OWNER = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "1"}


class Metadata(Json):
    """The metadata of an object, of which a test sees how long it lives."""


class Cluster:
    """A played API server with a few pages at one path; `most` objects were alive at a request."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.served: list[ref[Metadata]] = []
        self.asked: Counter[str] = Counter()
        self.most = 0

    async def find(self, path: str) -> Json | None:
        if path == API:
            return {"versions": [{"version": "v1"}]}
        if path.startswith("/apis/apps/v1/namespaces/team/replicasets/"):
            spec = {"template": {"spec": {"containers": []}}}
            return {"metadata": {"name": "web", "uid": "1"}, "spec": spec}
        if path == "/apis/openreports.io/v1alpha1":
            return {"resources": [{"name": "reports"}]}
        return None

    async def apply(self, path: str, body: Json) -> Json:
        return body

    async def ask(self, method: str, path: str, accept: str = "") -> Json:
        path, query = query_of(path)
        self.asked[path] += 1
        if path != self.path:
            team = {"metadata": {"name": "team"}}
            return {"items": [team] if path == "/api/v1/namespaces" else []}
        self.most = max(self.most, sum(each() is not None for each in self.served))
        number = int(query.get("continue") or 0)
        items = [self.item(f"p-{number}-{each}") for each in range(SIZE)]
        metadata = {"continue": str(number + 1)} if number + 1 < PAGES else {}
        return {"metadata": metadata, "items": items}

    def item(self, name: str) -> Json:
        """A Pod, or whatever it is asked for as: its image breaks a rule."""
        metadata = Metadata(name=name, namespace="team", uid=name, labels={})
        if name.endswith("1"):
            metadata["ownerReferences"] = [{**OWNER, "controller": True}]
        self.served.append(ref(metadata))
        container = {"name": "main", "image": "registry.example.com/bad:1"}
        return {"metadata": metadata, "spec": {"containers": [container]}}


async def read_audit(server: ApiServer) -> int:
    return len([each async for each in audit_objects(server, RULES, SPACES)])


async def read_injected(server: ApiServer) -> int:
    return len([each async for each in injections(server, RULES, SPACES)])


async def scan(server: ApiServer) -> int:
    scanner = Scanner(server, "all", ControllerMetrics.new())
    await scanner.look(RULES)
    (failed,) = re.findall(r'objects{result="fail"} (\d+)', scanner.metrics.text().decode())
    return int(failed)


async def read_all_claims(server: ApiServer) -> int:
    references = await read_references(server)
    assert isinstance(references.claims, SeenClaims)
    return len(references.claims.rows(0))


async def read_namespaces(server: ApiServer) -> int:
    return len(await governed_namespaces(server, "all"))


async def read_undefined(server: ApiServer) -> int:
    return len(await undefined_objects(server, RULES, SPACES))


READERS: dict[str, tuple[str, Callable[[ApiServer], Awaitable[int]], int]] = {
    "audit": ("/api/v1/pods", read_audit, PAGES * (SIZE - 1)),
    "audit --injected": ("/api/v1/pods", read_injected, PAGES),
    "a scan": ("/api/v1/pods", scan, PAGES * (SIZE - 1)),
    "claims": (f"{API}/v1/resourceclaims", read_all_claims, PAGES * SIZE),
    "namespaces": ("/api/v1/namespaces", read_namespaces, PAGES * SIZE),
    "undefined kinds": (CRDS, read_undefined, 0),
}


@pytest.mark.parametrize("name", READERS)
def test_no_more_than_a_page_is_in_memory(name: str) -> None:
    path, read, number = READERS[name]
    cluster = Cluster(path)
    assert run(read, cluster) == number
    assert cluster.asked[path] == PAGES
    assert cluster.most <= SIZE


def run(read: Callable[[ApiServer], Awaitable[int]], cluster: Cluster) -> int:
    async def wait() -> int:
        return await read(cast("ApiServer", cluster))

    return asyncio.run(wait())


def test_results_that_wait_for_their_report_are_small_and_all_there_in_their_order() -> None:
    broken = Violation("image", ("spec", "containers", 0, "image"), "a", "b", "options", "no", None)
    results, given = Results(), list[Json]()
    for number in range(reports.MOST + 7):
        subject = {"kind": "Pod", "name": f"web-{number}", "namespace": "team", "uid": str(number)}
        (one,) = reports.results_of(reports.APIS[0], subject, [broken], warn=False)
        given.append(one)
        results.add(one)
    assert results.unpack() == given[: reports.MOST]
    assert sum(map(len, results.packed)) < len(orjson.dumps(given)) / 4
    assert len(results.unpacked) < PACKED
