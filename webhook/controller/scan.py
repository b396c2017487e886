"""Looks over what is already there, now and then, and writes what it finds where a report API is."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from webhook.catalog.catalog import Catalog
from webhook.cluster.client import ApiError, ApiServer
from webhook.controller import reports
from webhook.controller.audit import Finding, audited, governed_namespaces
from webhook.service.controller_metrics import ControllerMetrics
from webhook.service.metric_rows import SCAN_RESULTS

log = logging.getLogger("podgate.scanner")

Json = dict[str, Any]


@dataclass(slots=True)
class Found:
    """What a look finds: results and numbers of faultless objects by namespace, objects by verdict."""

    api: str
    results: dict[str, list[Json]]
    passed: dict[str, int]
    verdicts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(SCAN_RESULTS, 0))

    def add(self, each: Finding) -> None:
        """Take in one object; on one that podgate fails on it logs the fault."""
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
                self.results[each.namespace].append(reports.fault_of(self.api, each.subject))
            return
        self.verdicts["fail" if each.violations else "warn" if each.trial else "pass"] += 1
        clean = not each.violations and not each.trial
        self.passed[each.namespace] += clean
        if self.api:
            own = self.results[each.namespace]
            own += reports.results_of(self.api, each.subject, each.violations, trial=False)
            own += reports.results_of(self.api, each.subject, each.trial, trial=True)


@dataclass(slots=True)
class Scanner:
    """One look at everything, as often as it is asked for.

    `governed` is label or all. Which API takes reports is found out at each look, as one may be
    installed, or removed, meanwhile; without one a look still counts. Whether this controller still
    `leads` is asked at its end.
    """

    server: ApiServer
    governed: str
    metrics: ControllerMetrics
    leads: Callable[[], bool] = lambda: True
    api: str | None = None

    async def look(self, catalog: Catalog) -> None:
        """Judge everything once and write one report for each governed namespace."""
        api = await api_of_reports(self.server)
        self.tell(api)
        begun = time.monotonic()
        spaces = await governed_namespaces(self.server, self.governed)
        found = Found(api, {name: [] for name in spaces}, dict.fromkeys(spaces, 0))
        async for each in audited(self.server, catalog, spaces):
            await asyncio.sleep(0)  # the lease and the registration come first
            found.add(each)
        for name, results in found.results.items() if api else ():
            await self.write(api, name, results, found.passed[name])
        if self.leads():  # else somebody else tells by now
            self.metrics.looked_over(time.monotonic() - begun, found.verdicts)

    def tell(self, api: str) -> None:
        """Say where reports go, whenever that changes."""
        self.metrics.reports_go_to(api)
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

    async def write(self, api: str, name: str, found: list[Json], passed: int) -> None:
        """Write the report of a namespace unless it says the same already."""
        path = reports.path_of(api, name)
        try:
            known = await self.server.find(path)
            body = reports.report(api, name, found, passed, int(time.time()))
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
