"""The metrics of the controller: leadership, writes, and states of documents."""

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

from webhook.service import metric_rows


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
            leader=metric_rows.LEADER.gauge(registry),
            proven=metric_rows.PROVEN.gauge(registry),
            closed=metric_rows.CLOSED.gauge(registry),
            off=metric_rows.OFF.gauge(registry),
            contested=metric_rows.CONTESTED.gauge(registry),
            narrowed=metric_rows.NARROWED.gauge(registry),
            twice=metric_rows.TWICE.gauge(registry),
            written=metric_rows.WRITTEN.counter(registry),
            documents=metric_rows.DOCUMENTS.gauge(registry),
            undefined=metric_rows.UNDEFINED.gauge(registry),
            processes=metric_rows.PROCESSES.gauge(registry),
            rounds=metric_rows.ROUNDS.gauge(registry),
            heard=metric_rows.HEARD.gauge(registry),
            not_after=metric_rows.NOT_AFTER.gauge(registry),
            api_errors=metric_rows.API_ERRORS.counter(registry),
            faults=metric_rows.FAULTS.counter(registry),
            scans=metric_rows.SCAN.histogram(registry),
            scanned=metric_rows.SCANNED.gauge(registry),
            reports=metric_rows.REPORTS.gauge(registry),
            findings=metric_rows.FINDINGS.gauge(registry),
            claims=metric_rows.CLAIMS.gauge(registry),
        )

    def leads(self, leads: bool) -> None:
        """Set whether this controller leads; one that does not clears the metrics of the leader."""
        self.leader.set(leads)
        if not leads:
            self.processes.set(0)
            self.twice.set(0)
            gauges = (
                self.closed,
                self.off,
                self.contested,
                self.narrowed,
                self.documents,
                self.undefined,
                self.not_after,
            )
            for each in (*gauges, self.reports, self.findings, self.claims):
                each.clear()

    def hooks(self, configuration: str, *, closed: bool, off: bool) -> None:
        """Set the state of one configuration, given as `kind/name`."""
        self.closed.labels(configuration).set(closed)
        self.off.labels(configuration).set(off)

    def set_contested(self, configurations: Iterable[str], contested: Collection[str]) -> None:
        """Set for each configuration whether somebody else keeps changing it."""
        for each in configurations:
            self.contested.labels(each).set(each in contested)

    def count_write(self, configuration: str, cause: str) -> None:
        """A configuration was `created`, `changed`, or taken back from `drift`."""
        self.written.labels(configuration, cause).inc()

    def set_documents(self, kinds_and_states: Iterable[tuple[str, str]]) -> None:
        """Set the number of documents by kind and state; removes those of former states."""
        self.documents.clear()
        for (kind, state), number in Counts(kinds_and_states).items():
            self.documents.labels(kind, state).set(number)

    def set_undefined(self, converted: Iterable[bool]) -> None:
        """Count the served versions without a definition, by whether they are converted to one with it."""
        found = Counts(converted)
        self.undefined.labels("converted").set(found[True])
        self.undefined.labels("not-evaluated").set(found[False])

    def certificates(self, ends: Mapping[str, datetime]) -> None:
        """Set when `leaf`, `ca` and `bundle` expire; a missing one is unknown."""
        self.not_after.clear()
        for part, end in ends.items():
            self.not_after.labels(part).set(end.timestamp())

    def note_round(self, processes: int) -> None:
        """Note the end of a round, and how many processes reported."""
        self.rounds.set(time.time())
        self.processes.set(processes)

    def count_refusal(self, task: str, code: int) -> None:
        """Count a request that the API server refused, or did not answer (0)."""
        self.api_errors.labels(task, str(code)).inc()

    def count_fault(self, task: str) -> None:
        """Count a round that a bug ended."""
        self.faults.labels(task).inc()

    def set_report_api(self, api: str) -> None:
        """Set the API of reports, "" for none."""
        for each in metric_rows.REPORTS.labels["api"]:
            self.reports.labels(each).set(each == (api or "none"))

    def set_claims(self, states: Mapping[str, int]) -> None:
        """Set the number of claims that policies want, by state."""
        for each in metric_rows.CLAIMS.labels["state"]:
            self.claims.labels(each).set(states.get(each, 0))

    def note_scan(self, seconds: float, results: Mapping[str, int]) -> None:
        """Note the duration of a scan and its numbers of objects by result."""
        self.scans.observe(seconds)
        self.scanned.set(time.time())
        for result in metric_rows.SCAN_RESULTS:
            self.findings.labels(result).set(results.get(result, 0))

    def text(self) -> bytes:
        """Everything in Prometheus' text format."""
        return generate_latest(self.registry)
