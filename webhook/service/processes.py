"""Asks every webhook Pod, on its port for metrics, which documents its workers use."""

from __future__ import annotations

import asyncio
import http.client
import logging
import urllib.request
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import orjson

from webhook.cluster.client import ApiServer
from webhook.cluster.list_and_watch import read_all

log = logging.getLogger("podgate.processes")

Json = dict[str, Any]
REQUEST_TIMEOUT = 3.0
PORT_NAME = "metrics"


@dataclass(frozen=True, slots=True)
class WorkerReports:
    """The documents that workers use, and the fingerprints of the served certificates; "" if a Pod
    reports none.
    """

    workers: tuple[Json, ...] = ()
    leaves: frozenset[str] = frozenset()


@dataclass(slots=True)
class Processes:
    """Where to ask: given addresses, and the Pods behind a Service (namespace and name)."""

    server: ApiServer
    urls: tuple[str, ...] = ()
    service: tuple[str, str] | None = None

    async def __call__(self) -> WorkerReports:
        """Ask all of them. A Pod that does not answer counts as a Pod without documents."""
        places = [*self.urls, *(await self.behind_service())]
        answers = await asyncio.gather(*(asyncio.to_thread(ask, each) for each in places))
        workers = tuple(row for each in answers for row in each.workers)
        return WorkerReports(workers, frozenset().union(*(each.leaves for each in answers)))

    async def behind_service(self) -> list[str]:
        """The addresses of the Pods of a Service, ready or not."""
        if self.service is None:
            return []
        namespace, name = self.service
        path = f"/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices"
        chosen = {"labelSelector": f"kubernetes.io/service-name={name}"}
        slices = await read_all(self.server, path, query=chosen)
        return [url for each in slices for url in urls_of(each)]


def urls_of(endpoint_slice: Json) -> Iterable[str]:
    """The addresses in one EndpointSlice; terminating Pods are omitted."""
    ports = [
        each["port"] for each in endpoint_slice.get("ports") or () if each.get("name") == PORT_NAME
    ]
    for each in endpoint_slice.get("endpoints") or ():
        if (each.get("conditions") or {}).get("terminating"):
            continue
        for address in each.get("addresses") or ():
            host = f"[{address}]" if ":" in address else address
            yield from (f"http://{host}:{port}/statusz" for port in ports)


def ask(url: str) -> WorkerReports:
    """Ask the workers of one Pod; without an answer, return a report without documents."""
    try:
        with urllib.request.urlopen(url, timeout=REQUEST_TIMEOUT) as answer:  # noqa: S310 - of our own Pods
            found = orjson.loads(answer.read())
        workers = found.get("workers") or ()
        rows = tuple(each for each in workers if isinstance(each.get("in_force"), list))
    except (OSError, ValueError, TypeError, AttributeError, http.client.HTTPException) as error:
        log.warning("asking %s failed: %s", url, type(error).__name__)
        return WorkerReports(({"in_force": []},), frozenset({""}))
    return WorkerReports(rows, frozenset({str(found.get("leaf") or "")}))
