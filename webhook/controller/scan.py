"""Scans existing objects at intervals, and writes reports if the cluster has a report API."""

from __future__ import annotations

import asyncio
import logging
import time
import zlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import orjson

from webhook.catalog.catalog import Catalog
from webhook.cluster.client import ApiError, ApiServer
from webhook.controller import reports
from webhook.controller.audit import Finding, audit_objects, governed_namespaces
from webhook.service.controller_metrics import ControllerMetrics
from webhook.service.metric_rows import SCAN_RESULTS

log = logging.getLogger("podgate.scanner")

Json = dict[str, Any]
PACKED = 25  # results; reports.MOST is a multiple of it


@dataclass(slots=True)
class Results:
    """The first results of a namespace, packed: those of all namespaces wait for the end of a scan."""

    packed: list[bytes] = field(default_factory=list)
    unpacked: list[Json] = field(default_factory=list)

    def add(self, result: Json) -> None:
        """Keep a result, unless the report is full."""
        if len(self.packed) * PACKED >= reports.MOST:
            return
        self.unpacked.append(result)
        if len(self.unpacked) == PACKED:
            self.packed.append(zlib.compress(orjson.dumps(self.unpacked), 1))
            self.unpacked.clear()

    def unpack(self) -> list[Json]:
        """All results in their order."""
        rows = (each for data in self.packed for each in orjson.loads(zlib.decompress(data)))
        return [*rows, *self.unpacked]


@dataclass(slots=True)
class Found:
    """The result of a scan: results and numbers of clean objects by namespace, objects by outcome."""

    api: str
    results: dict[str, Results]
    passed: dict[str, int]
    counts: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    verdicts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(SCAN_RESULTS, 0))

    def add(self, each: Finding) -> None:
        """Add one object; log the error if podgate failed on it."""
        if each.fault:
            log.error(
                "%s %s/%s is not evaluated",
                each.kind,
                each.namespace,
                each.name,
                exc_info=each.fault,
            )
            self.verdicts["error"] += 1
            if self.api:
                self.list_results(each.namespace, [reports.fault_of(self.api, each.subject)])
            return
        self.verdicts["fail" if each.violations else "warn" if each.trial else "pass"] += 1
        clean = not each.violations and not each.trial
        self.passed[each.namespace] += clean
        if self.api:
            for broken, warn in ((each.violations, False), (each.trial, True)):
                results = reports.results_of(self.api, each.subject, broken, warn=warn)
                self.list_results(each.namespace, results)

    def list_results(self, namespace: str, results: Iterable[Json]) -> None:
        """Count results, and keep those that a report lists."""
        own, counts = self.results[namespace], self.counts[namespace]
        for each in results:
            counts[each["result"]] += 1
            own.add(each)


@dataclass(slots=True)
class Scanner:
    """Scans all objects.

    `governed` is label or all. Each scan checks which report API is installed, as that may change;
    without one it only counts. At its end it calls `leads`, whether this controller is still the
    leader.
    """

    server: ApiServer
    governed: str
    metrics: ControllerMetrics
    leads: Callable[[], bool] = lambda: True
    api: str | None = None

    async def look(self, catalog: Catalog) -> None:
        """Evaluate everything once and write one report for each governed namespace."""
        api = await api_of_reports(self.server)
        self.note_api(api)
        begun = time.monotonic()
        spaces = await governed_namespaces(self.server, self.governed)
        found = Found(api, {name: Results() for name in spaces}, dict.fromkeys(spaces, 0))
        async for each in audit_objects(self.server, catalog, spaces):
            await asyncio.sleep(0)  # yield to the lease and the registration
            found.add(each)
        for name, results in found.results.items() if api else ():
            counts = Counter(found.counts[name], **{"pass": found.passed[name]})
            await self.write(api, name, results.unpack(), counts)
        if self.leads():  # else another leader sets the metric now
            self.metrics.note_scan(time.monotonic() - begun, found.verdicts)

    def note_api(self, api: str) -> None:
        """Log the API that reports are written in, whenever it changes."""
        self.metrics.set_report_api(api)
        if api == self.api:
            return
        self.api = api
        if api:
            log.info("reports are written as %s", api)
        else:
            log.warning(
                "%s is installed, so no reports are written: what a scan finds is in the metric"
                " podgate_scan_objects, and `podgate audit` reports it; install one of them and"
                " reports follow at the next scan",
                reports.NONE_OF_THEM,
            )

    async def write(self, api: str, name: str, found: list[Json], counts: Counter[str]) -> None:
        """Write the report of a namespace unless its content is the same."""
        path = reports.path_of(api, name)
        try:
            known = await self.server.find(path)
            body = reports.report(api, name, found, counts, int(time.time()))
            if known is None or reports.essence(known) != reports.essence(body):
                await self.server.apply(path, body)
        except ApiError as error:
            if error.code != 404:
                raise
            log.warning("the report of %s cannot be written any more: %s", name, error)


async def api_of_reports(server: ApiServer) -> str:
    """The API of reports that the cluster has, "" for none."""
    for api, (_, plural) in reports.KINDS.items():
        found = await server.find(f"/apis/{api}")
        if found and any(each.get("name") == plural for each in found.get("resources") or ()):
            return api
    return ""
