"""The numbers of the webhook: counted in every worker, shown together whoever is scraped.

With several workers each writes its numbers to files that all share (prometheus_client's
multiprocess mode) and whoever is scraped adds them up; with one they are plain numbers in memory.
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

from webhook.service import metric_rows as rows

SHARED = "PROMETHEUS_MULTIPROC_DIR"
MOST_KINDS, MOST_NAMES = 200, 1000
OPERATIONS = frozenset({"CREATE", "UPDATE", "DELETE", "CONNECT"})
OTHER = "other"
ENDED = "ended"
INITIAL = 1 << 16
MEMORY = ""

log = logging.getLogger("podgate.metrics")


class Allocated(MmapedDict):
    """A worker's numbers in a file whose blocks are there before it is mapped.

    To write to a mapped page that a full volume has no block for ends the process (SIGBUS). Where
    there is no room the numbers are in memory, and nobody sees them.
    """

    def __init__(self, filename: str, read_mode: bool = False) -> None:
        """Allocate a new file; one that cannot be leaves nothing behind."""
        if not read_mode and not allocated(filename, INITIAL):
            log.warning("there is no room for counters in %s: they are not shown", filename)
            filename = f"/proc/self/fd/{os.memfd_create('podgate-counters', os.MFD_CLOEXEC)}"
        super().__init__(filename, read_mode)  # type: ignore[no-untyped-call]

    def _init_value(self, key: str) -> None:
        """Allocate more before the file grows; without room go on in memory."""
        needed = self._used + 4 * len(key) + 64
        if needed > self._capacity and not allocated(self._fname, self._capacity * 2):
            log.warning(
                "there is no room for more counters in %s: no new ones are shown", self._fname
            )
            memory = mmap.mmap(-1, self._capacity * 2)
            memory[: self._capacity] = self._m[: self._capacity]
            self._m, self._capacity = memory, self._capacity * 2
            self._fname = MEMORY
        super()._init_value(key)  # type: ignore[no-untyped-call]


def allocated(filename: str, size: int) -> bool:
    """Give a file all blocks of a size; False where there is no room, and no empty file then."""
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
    """Make the folder that workers share, before metrics are made and workers are forked.

    It is on the volume for temporary files. None where that has no room: each worker then shows
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
    """Remove the shared folder; metrics made later are plain numbers again."""
    os.environ.pop(SHARED, None)
    values.ValueClass = values.MutexValue
    if folder is not None:
        shutil.rmtree(folder, ignore_errors=True)


def forget(process: int) -> None:
    """A worker ended: its gauges go, its counts stay."""
    if os.environ.get(SHARED):
        mark_process_dead(process)  # type: ignore[no-untyped-call]


@dataclass(slots=True)
class Bounded:
    """The first `most` names; others share one, so that nobody can make metrics grow."""

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
    """Every metric; `registry` is what one process knows of itself."""

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
            requests=rows.REQUESTS.counter(registry),
            unevaluated=rows.NOT_EVALUATED.counter(registry),
            seconds=rows.DURATION.histogram(registry),
            waits=rows.WAIT.histogram(registry),
            violations=rows.VIOLATIONS.counter(registry),
            exceptions=rows.EXCEPTIONS.counter(registry),
            children=rows.CHILDREN.counter(registry),
            owner_events=rows.EVENTS.counter(registry),
            rewritten=rows.REWRITTEN.counter(registry),
            generation=rows.GENERATION.gauge(registry),
            loaded=rows.LOADED.gauge(registry),
            failures=rows.FAILURES.counter(registry),
            failing=rows.FAILING.gauge(registry),
            heard=rows.HEARD.gauge(registry),
            not_after=rows.NOT_AFTER.gauge(registry),
            lookups=rows.LOOKUPS.counter(registry),
            object_lookups=rows.OBJECT_LOOKUPS.counter(registry),
            jq_calls=rows.JQ_CALLS.counter(registry),
            jq_deaths=rows.JQ_DEATHS.counter(registry),
            connections=rows.CONNECTIONS.gauge(registry),
            refused=rows.REFUSED.counter(registry),
            in_force=rows.IN_FORCE.gauge(registry),
        )

    def answered(
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
        key = (stage, self.bounded(kind), operation, outcome, "true" if dry_run else "false")
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

    def not_evaluated(self, stage: str, reason: str) -> None:
        """Count one review whose object was not evaluated."""
        self.unevaluated.labels(stage, reason).inc()

    def bounded(self, kind: str) -> str:
        """`kind`, or OTHER: whoever may call us must not be able to make metrics grow."""
        if kind in self.kinds:
            return kind
        if len(self.kinds) >= MOST_KINDS or not kind.isidentifier() or len(kind) > 63:
            return OTHER
        self.kinds.add(kind)
        return kind

    def broken(self, policy: str, rule: str) -> None:
        """Count one broken rule."""
        self.violations.labels(self.policies(policy), rule).inc()

    def excused(self, exception: str, policy: str, rule: str) -> None:
        """Count one broken rule that an exception excused."""
        self.exceptions.labels(self.excusing(exception), self.policies(policy), rule).inc()

    def child_refused(self, owner: str) -> None:
        """A controller was refused what it makes of a workload of this kind."""
        self.children.labels(self.bounded(owner)).inc()

    def swapped(self, generation: int) -> None:
        """A catalog is in use."""
        self.generation.set(generation)
        self.loaded.set(time.time())

    def certificate(self, not_after: datetime) -> None:
        """A certificate is served."""
        self.not_after.labels("leaf").set(not_after.timestamp())

    def heard_at(self, moment: float) -> None:
        """The documents of the cluster were known to be the newest at a moment of Unix time."""
        self.heard.set(moment)

    def failed(self, what: str) -> None:
        """A reload failed: `catalog` or `certificate`."""
        self.failures.labels(what).inc()
        self.failing.labels(what).set(1)

    def succeeded(self, what: str) -> None:
        """The newest `catalog` or `certificate` is in use."""
        self.failing.labels(what).set(0)

    def looked_up(self, outcome: str) -> None:
        """A namespace was looked up: `found`, `not-found`, `denied`, `timeout` or `failed`."""
        self.lookups.labels(outcome).inc()

    def object_read(self, outcome: str) -> None:
        """An object was read: `found`, `not-found`, `forbidden`, `timeout` or `failed`."""
        self.object_lookups.labels(outcome).inc()

    def owner_told(self, outcome: str) -> None:
        """An owner was to be told of a refusal: `told`, `known`, `dropped` or `failed`."""
        self.owner_events.labels(outcome).inc()

    def update_rewritten(self, kind: str) -> None:
        """Count one update that only took away what podgate had written."""
        self.rewritten.labels(self.bounded(kind)).inc()

    def jq_called(self, outcome: str) -> None:
        """A call of jq came to this; ENDED where a process was found dead between two calls."""
        if outcome != ENDED:
            self.jq_calls.labels(outcome).inc()
        if outcome in (ENDED, "died"):
            self.jq_deaths.inc()

    def connected(self, change: int) -> None:
        """A connection began (1) or ended (-1)."""
        self.connections.inc(change)

    def connection_refused(self, cause: str) -> None:
        """A connection was ended for a cause."""
        self.refused.labels(cause).inc()

    def documents(self, counts: Mapping[str, int]) -> None:
        """So many documents of each kind are in force."""
        for kind, count in counts.items():
            self.in_force.labels(kind).set(count)

    def text(self) -> bytes:
        """Everything in Prometheus' text format, of all workers where there are several."""
        if os.environ.get(SHARED) is None:
            return generate_latest(self.registry)
        registry = CollectorRegistry()
        MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        return generate_latest(registry)
