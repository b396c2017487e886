"""The numbers of the controller: who leads, what it wrote, what became of documents."""

from __future__ import annotations

import time
from collections import Counter as Counts
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Self

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
    generate_latest,
)

from webhook.service import metric_rows as rows


@dataclass(frozen=True, slots=True)
class ControllerMetrics:
    """Every metric of one controller."""

    registry: CollectorRegistry
    leader: Gauge
    proven: Gauge
    closed: Gauge
    off: Gauge
    contested: Gauge
    narrowed: Gauge
    twice: Gauge
    written: Counter
    documents: Gauge
    undefined: Gauge
    processes: Gauge
    rounds: Gauge
    heard: Gauge
    not_after: Gauge
    api_errors: Counter
    faults: Counter
    scans: Histogram
    scanned: Gauge
    reports: Gauge
    findings: Gauge
    claims: Gauge

    @classmethod
    def new(cls) -> Self:
        """A new set of metrics, all at zero."""
        disable_created_metrics()  # type: ignore[no-untyped-call]  # a second series for every count
        registry = CollectorRegistry()
        return cls(
            registry,
            leader=rows.LEADER.gauge(registry),
            proven=rows.PROVEN.gauge(registry),
            closed=rows.CLOSED.gauge(registry),
            off=rows.OFF.gauge(registry),
            contested=rows.CONTESTED.gauge(registry),
            narrowed=rows.NARROWED.gauge(registry),
            twice=rows.TWICE.gauge(registry),
            written=rows.WRITTEN.counter(registry),
            documents=rows.DOCUMENTS.gauge(registry),
            undefined=rows.UNDEFINED.gauge(registry),
            processes=rows.PROCESSES.gauge(registry),
            rounds=rows.ROUNDS.gauge(registry),
            heard=rows.HEARD.gauge(registry),
            not_after=rows.NOT_AFTER.gauge(registry),
            api_errors=rows.API_ERRORS.counter(registry),
            faults=rows.FAULTS.counter(registry),
            scans=rows.SCAN.histogram(registry),
            scanned=rows.SCANNED.gauge(registry),
            reports=rows.REPORTS.gauge(registry),
            findings=rows.FINDINGS.gauge(registry),
            claims=rows.CLAIMS.gauge(registry),
        )

    def leads(self, leads: bool) -> None:
        """Whether this controller leads; one that does not says nothing of what the leader sees."""
        self.leader.set(leads)
        if not leads:
            self.processes.set(0)
            self.twice.set(0)
            told = (
                self.closed,
                self.off,
                self.contested,
                self.narrowed,
                self.documents,
                self.undefined,
                self.not_after,
            )
            for each in (*told, self.reports, self.findings, self.claims):
                each.clear()

    def hooks(self, configuration: str, *, closed: bool, off: bool) -> None:
        """How one configuration stands, as `kind/name`."""
        self.closed.labels(configuration).set(closed)
        self.off.labels(configuration).set(off)

    def contested_are(self, configurations: Iterable[str], contested: Collection[str]) -> None:
        """Whether somebody else keeps changing each configuration."""
        for each in configurations:
            self.contested.labels(each).set(each in contested)

    def wrote(self, configuration: str, cause: str) -> None:
        """A configuration was `created`, `changed`, or taken back from `drift`."""
        self.written.labels(configuration, cause).inc()

    def documents_are(self, kinds_and_states: Iterable[tuple[str, str]]) -> None:
        """The kind and state of every document there is; others are gone."""
        self.documents.clear()
        for (kind, state), number in Counts(kinds_and_states).items():
            self.documents.labels(kind, state).set(number)

    def undefined_are(self, converted: Iterable[bool]) -> None:
        """Of every served version without a definition, whether it is converted to one with it."""
        found = Counts(converted)
        self.undefined.labels("converted").set(found[True])
        self.undefined.labels("not-evaluated").set(found[False])

    def certificates(self, ends: Mapping[str, datetime]) -> None:
        """When each part ends: `leaf`, `ca`, `bundle`; a part that is absent is not known."""
        self.not_after.clear()
        for part, end in ends.items():
            self.not_after.labels(part).set(end.timestamp())

    def round_done(self, processes: int) -> None:
        """A round is finished, which so many processes were asked for."""
        self.rounds.set(time.time())
        self.processes.set(processes)

    def refused(self, task: str, code: int) -> None:
        """The API server refused something, or did not answer (0)."""
        self.api_errors.labels(task, str(code)).inc()

    def faulty(self, task: str) -> None:
        """A bug of ours ended a round."""
        self.faults.labels(task).inc()

    def reports_go_to(self, api: str) -> None:
        """Which API takes reports, "" for none."""
        for each in rows.REPORTS.labels["api"]:
            self.reports.labels(each).set(each == (api or "none"))

    def claims_are(self, states: Mapping[str, int]) -> None:
        """How many claims that policies want are in each state."""
        for each in rows.CLAIMS.labels["state"]:
            self.claims.labels(each).set(states.get(each, 0))

    def looked_over(self, seconds: float, results: Mapping[str, int]) -> None:
        """A look at everything took so long; numbers of objects by result."""
        self.scans.observe(seconds)
        self.scanned.set(time.time())
        for result in rows.SCAN_RESULTS:
            self.findings.labels(result).set(results.get(result, 0))

    def text(self) -> bytes:
        """Everything in Prometheus' text format."""
        return generate_latest(self.registry)
