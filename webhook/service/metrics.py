"""The metrics of the webhook: each worker counts, and any of them can be scraped.

With several workers each writes its numbers to shared files (prometheus_client's multiprocess mode) and the
scraped worker adds them up. A single worker keeps them in memory.
"""

from __future__ import annotations

import contextlib
import logging
import mmap
import os
import shutil
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Self

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
    generate_latest,
    values,
)
from prometheus_client.mmap_dict import MmapedDict
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead

from webhook.service import metric_rows

SHARED = "PROMETHEUS_MULTIPROC_DIR"
MOST_KINDS, MOST_NAMES = 200, 1000
OPERATIONS = frozenset({"CREATE", "UPDATE", "DELETE", "CONNECT"})
OTHER = "other"
ENDED = "ended"
INITIAL = 1 << 16
MEMORY = ""

log = logging.getLogger("podgate.metrics")


class Allocated(MmapedDict):
    """A worker's numbers in a file whose blocks are allocated before it is mapped.

    Writing to a mapped page without a block on a full volume would end the process (SIGBUS).
    Without room the numbers stay in memory, and nobody sees them.
    """

    def __init__(self, filename: str, read_mode: bool = False) -> None:
        """Allocate a new file; remove it if that fails."""
        if not read_mode and not allocate(filename, INITIAL):
            log.warning("there is no room for counters in %s: they are not shown", filename)
            filename = f"/proc/self/fd/{os.memfd_create('podgate-counters', os.MFD_CLOEXEC)}"
        super().__init__(filename, read_mode)  # type: ignore[no-untyped-call]

    def _init_value(self, key: str) -> None:
        """Allocate more before the file grows; without room continue in memory."""
        needed = self._used + 4 * len(key) + 64
        if needed > self._capacity and not allocate(self._fname, self._capacity * 2):
            log.warning(
                "there is no room for more counters in %s: no new ones are shown", self._fname
            )
            memory = mmap.mmap(-1, self._capacity * 2)
            memory[: self._capacity] = self._m[: self._capacity]
            self._m, self._capacity = memory, self._capacity * 2
            self._fname = MEMORY
        super()._init_value(key)  # type: ignore[no-untyped-call]


def allocate(filename: str, size: int) -> bool:
    """Give a file all blocks of a size; return False and remove it if there is no room."""
    if filename == MEMORY:
        return False
    try:
        with Path(filename).open("a+b") as file:
            os.posix_fallocate(file.fileno(), 0, size)
    except OSError:
        with contextlib.suppress(OSError):
            if Path(filename).stat().st_size == 0:
                Path(filename).unlink()
        return False
    return True


def share() -> Path | None:
    """Create the folder that workers share, before metrics are created and workers are forked.

    It is on the volume for temporary files. Return None if there is no room: each worker then shows
    its own numbers.
    """
    try:
        folder = Path(tempfile.mkdtemp(prefix="podgate-metrics-"))
    except OSError as error:
        log.warning("workers do not share their counters: %s", error.strerror)
        return None
    os.environ[SHARED] = str(folder)
    values.MmapedDict = Allocated  # type: ignore[attr-defined]
    values.ValueClass = values.MultiProcessValue()  # type: ignore[no-untyped-call]
    return folder


def unshare(folder: Path | None) -> None:
    """Remove the shared folder; later metrics are kept in memory again."""
    os.environ.pop(SHARED, None)
    values.ValueClass = values.MutexValue
    if folder is not None:
        shutil.rmtree(folder, ignore_errors=True)


def forget(process: int) -> None:
    """Forget the gauges of a worker that ended; its counters stay."""
    if os.environ.get(SHARED):
        mark_process_dead(process)  # type: ignore[no-untyped-call]


@dataclass(slots=True)
class Bounded:
    """The first `most` names; all others share one, so that clients cannot make metrics grow for ever."""

    most: int
    names: set[str] = field(default_factory=set)

    def __call__(self, name: str) -> str:
        """`name`, or OTHER."""
        if name in self.names or not name:
            return name
        if len(self.names) >= self.most or len(name) > 253 or not name.isprintable():
            return OTHER
        self.names.add(name)
        return name


@dataclass(frozen=True, slots=True)
class Metrics:
    """Every metric; `registry` has the numbers of one process."""

    registry: CollectorRegistry
    requests: Counter
    unevaluated: Counter
    seconds: Histogram
    waits: Histogram
    violations: Counter
    exceptions: Counter
    children: Counter
    owner_events: Counter
    rewritten: Counter
    generation: Gauge
    loaded: Gauge
    failures: Counter
    failing: Gauge
    heard: Gauge
    not_after: Gauge
    lookups: Counter
    object_lookups: Counter
    jq_calls: Counter
    jq_deaths: Counter
    connections: Gauge
    refused: Counter
    in_force: Gauge
    kinds: set[str] = field(default_factory=set)
    policies: Bounded = field(default_factory=lambda: Bounded(MOST_NAMES))
    excusing: Bounded = field(default_factory=lambda: Bounded(MOST_NAMES))
    known: dict[tuple[str, ...], tuple[Any, Any, Any]] = field(default_factory=dict)

    @classmethod
    def new(cls) -> Self:
        """A new set of metrics, all at zero."""
        disable_created_metrics()  # type: ignore[no-untyped-call]  # a second series for every count
        registry = CollectorRegistry()
        return cls(
            registry,
            requests=metric_rows.REQUESTS.counter(registry),
            unevaluated=metric_rows.NOT_EVALUATED.counter(registry),
            seconds=metric_rows.DURATION.histogram(registry),
            waits=metric_rows.WAIT.histogram(registry),
            violations=metric_rows.VIOLATIONS.counter(registry),
            exceptions=metric_rows.EXCEPTIONS.counter(registry),
            children=metric_rows.CHILDREN.counter(registry),
            owner_events=metric_rows.EVENTS.counter(registry),
            rewritten=metric_rows.REWRITTEN.counter(registry),
            generation=metric_rows.GENERATION.gauge(registry),
            loaded=metric_rows.LOADED.gauge(registry),
            failures=metric_rows.FAILURES.counter(registry),
            failing=metric_rows.FAILING.gauge(registry),
            heard=metric_rows.HEARD.gauge(registry),
            not_after=metric_rows.NOT_AFTER.gauge(registry),
            lookups=metric_rows.LOOKUPS.counter(registry),
            object_lookups=metric_rows.OBJECT_LOOKUPS.counter(registry),
            jq_calls=metric_rows.JQ_CALLS.counter(registry),
            jq_deaths=metric_rows.JQ_DEATHS.counter(registry),
            connections=metric_rows.CONNECTIONS.gauge(registry),
            refused=metric_rows.REFUSED.counter(registry),
            in_force=metric_rows.IN_FORCE.gauge(registry),
        )

    def count_review(
        self,
        stage: str,
        kind: str,
        operation: str,
        outcome: str,
        dry_run: bool,
        seconds: float,
        waited: float,
    ) -> None:
        """Count one review; kinds beyond the first MOST_KINDS share one name. Times are seconds."""
        key = (stage, self.bound_kind(kind), operation, outcome, "true" if dry_run else "false")
        known = self.known.get(key)
        if known is None:
            if operation not in OPERATIONS:
                key = (*key[:2], OTHER, *key[3:])
            known = self.requests.labels(*key), self.seconds.labels(stage), self.waits.labels(stage)
            self.known[key] = known
        counter, taken, before = known
        counter.inc()
        taken.observe(seconds)
        before.observe(waited)

    def count_unevaluated(self, stage: str, reason: str) -> None:
        """Count one review whose object was not evaluated."""
        self.unevaluated.labels(stage, reason).inc()

    def bound_kind(self, kind: str) -> str:
        """Return `kind`, or OTHER: clients must not be able to make metrics grow without limit."""
        if kind in self.kinds:
            return kind
        if len(self.kinds) >= MOST_KINDS or not kind.isidentifier() or len(kind) > 63:
            return OTHER
        self.kinds.add(kind)
        return kind

    def count_violation(self, policy: str, rule: str) -> None:
        """Count one broken rule."""
        self.violations.labels(self.policies(policy), rule).inc()

    def count_exempted(self, exception: str, policy: str, rule: str) -> None:
        """Count one broken rule that an exception exempted."""
        self.exceptions.labels(self.excusing(exception), self.policies(policy), rule).inc()

    def count_rejected_child(self, owner: str) -> None:
        """Count a rejected object that a controller created for a workload of this kind."""
        self.children.labels(self.bound_kind(owner)).inc()

    def note_catalog(self, generation: int) -> None:
        """Note that a new catalog is in use."""
        self.generation.set(generation)
        self.loaded.set(time.time())

    def certificate(self, not_after: datetime) -> None:
        """Note the expiry of the served certificate."""
        self.not_after.labels("leaf").set(not_after.timestamp())

    def note_heard(self, moment: float) -> None:
        """Note when, in Unix time, the cluster's documents were last known to be current."""
        self.heard.set(moment)

    def count_failed_reload(self, what: str) -> None:
        """Count a failed reload of `catalog` or `certificate`."""
        self.failures.labels(what).inc()
        self.failing.labels(what).set(1)

    def note_reload(self, what: str) -> None:
        """Note that the newest `catalog` or `certificate` is in use."""
        self.failing.labels(what).set(0)

    def count_namespace_lookup(self, outcome: str) -> None:
        """Count a lookup of a namespace: `found`, `not-found`, `denied`, `timeout` or `failed`."""
        self.lookups.labels(outcome).inc()

    def count_object_lookup(self, outcome: str) -> None:
        """Count a read of an object: `found`, `not-found`, `forbidden`, `timeout` or `failed`."""
        self.object_lookups.labels(outcome).inc()

    def count_owner_event(self, outcome: str) -> None:
        """Count an event for the owner of a rejected object: `told`, `known`, `dropped` or `failed`."""
        self.owner_events.labels(outcome).inc()

    def count_rewriting_update(self, kind: str) -> None:
        """Count one update that only removed values that podgate had written."""
        self.rewritten.labels(self.bound_kind(kind)).inc()

    def count_jq_call(self, outcome: str) -> None:
        """Count the outcome of a call of jq; ENDED means that a process died between two calls."""
        if outcome != ENDED:
            self.jq_calls.labels(outcome).inc()
        if outcome in (ENDED, "died"):
            self.jq_deaths.inc()

    def count_connections(self, change: int) -> None:
        """Count a connection that began (1) or ended (-1)."""
        self.connections.inc(change)

    def count_closed_connection(self, cause: str) -> None:
        """Count a closed connection by its cause."""
        self.refused.labels(cause).inc()

    def documents(self, counts: Mapping[str, int]) -> None:
        """Set the number of documents in force by kind."""
        for kind, count in counts.items():
            self.in_force.labels(kind).set(count)

    def text(self) -> bytes:
        """Everything in Prometheus' text format, for all workers."""
        if os.environ.get(SHARED) is None:
            return generate_latest(self.registry)
        registry = CollectorRegistry()
        MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        return generate_latest(registry)
