"""Metrics and logs: what the server tells about itself, and never anything of an object's content.

With several workers each writes its numbers to files that all share (prometheus_client's
multiprocess mode) and whoever is scraped adds them up; with one they are plain numbers in memory.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
import sys
import tempfile
import time
import traceback
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TextIO

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
    generate_latest,
    values,
)
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead

SHARED = "PROMETHEUS_MULTIPROC_DIR"
BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
MOST_KINDS = 200
OPERATIONS = frozenset({"CREATE", "UPDATE", "DELETE", "CONNECT"})
OTHER = "other"
FACTS = "facts"


def share() -> Path:
    """Make the folder that workers share, before metrics are made and workers are forked."""
    memory = Path("/dev/shm")  # noqa: S108 - memory is the right place for what ends with us
    where = memory if os.access(memory, os.W_OK) else None
    folder = Path(tempfile.mkdtemp(prefix="podgate-metrics-", dir=where))
    os.environ[SHARED] = str(folder)
    values.ValueClass = values.MultiProcessValue()  # type: ignore[no-untyped-call]
    return folder


def unshare(folder: Path) -> None:
    """Remove the shared folder; metrics made later are plain numbers again."""
    os.environ.pop(SHARED, None)
    values.ValueClass = values.MutexValue
    shutil.rmtree(folder, ignore_errors=True)


def forget(process: int) -> None:
    """A worker ended: its gauges go, its counts stay."""
    mark_process_dead(process)  # type: ignore[no-untyped-call]


@dataclass(frozen=True, slots=True)
class Metrics:
    """Every metric; `registry` is what one process knows of itself."""

    registry: CollectorRegistry
    requests: Counter
    seconds: Histogram
    violations: Counter
    generation: Gauge
    loaded: Gauge
    not_after: Gauge
    failures: Counter
    lookups: Counter
    owner_events: Counter
    kinds: set[str] = field(default_factory=set)
    known: dict[tuple[str, ...], tuple[Any, Any]] = field(default_factory=dict)

    def answered(
        self, stage: str, kind: str, operation: str, outcome: str, dry_run: bool, seconds: float
    ) -> None:
        """Count one review; kinds beyond the first MOST_KINDS share one name."""
        key = (stage, self.bounded(kind), operation, outcome, "true" if dry_run else "false")
        pair = self.known.get(key)
        if pair is None:
            if operation not in OPERATIONS:
                key = (*key[:2], OTHER, *key[3:])
            pair = self.requests.labels(*key), self.seconds.labels(stage)
            self.known[key] = pair
        counter, histogram = pair
        counter.inc()
        histogram.observe(seconds)

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
        self.violations.labels(policy, rule).inc()

    def swapped(self, generation: int) -> None:
        """A catalog is in use."""
        self.generation.set(generation)
        self.loaded.set(time.time())

    def certificate(self, not_after: datetime) -> None:
        """A certificate is served."""
        self.not_after.set(not_after.timestamp())

    def failed(self, what: str) -> None:
        """A reload failed: `catalog` or `certificate`."""
        self.failures.labels(what).inc()

    def looked_up(self, outcome: str) -> None:
        """A namespace was looked up: `found`, `not-found`, `denied`, `timeout` or `failed`."""
        self.lookups.labels(outcome).inc()

    def owner_told(self, outcome: str) -> None:
        """An owner was to be told of a refusal: `told`, `known`, `dropped` or `failed`."""
        self.owner_events.labels(outcome).inc()

    def text(self) -> bytes:
        """Everything in Prometheus' text format, of all workers where there are several."""
        if os.environ.get(SHARED) is None:
            return generate_latest(self.registry)
        registry = CollectorRegistry()
        MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        return generate_latest(registry)


def metrics() -> Metrics:
    """A new set of metrics, all at zero."""
    disable_created_metrics()  # type: ignore[no-untyped-call]  # a second series for every count
    registry = CollectorRegistry()
    return Metrics(
        registry,
        Counter(
            "podgate_requests",
            "Reviews answered.",
            ("stage", "kind", "operation", "outcome", "dry_run"),
            registry=registry,
        ),
        Histogram(
            "podgate_request_duration_seconds",
            "From the first byte of a review to its answer.",
            ("stage",),
            registry=registry,
            buckets=BUCKETS,
        ),
        Counter(
            "podgate_violations",
            "Broken rules, those of Audit policies included.",
            ("policy", "rule"),
            registry=registry,
        ),
        gauge(registry, "podgate_catalog_generation", "Catalogs loaded so far; the lowest worker."),
        gauge(
            registry,
            "podgate_catalog_loaded_timestamp_seconds",
            "When the catalog in use was loaded; the oldest of the workers.",
        ),
        gauge(
            registry,
            "podgate_certificate_not_after_seconds",
            "When the served certificate ends, in Unix time.",
        ),
        Counter(
            "podgate_reload_failures",
            "Reloads that kept the old one.",
            ("what",),
            registry=registry,
        ),
        Counter(
            "podgate_namespace_lookups",
            "Namespaces asked of the API server for their labels.",
            ("outcome",),
            registry=registry,
        ),
        Counter(
            "podgate_owner_events",
            "Events for owners whose controller was refused what it makes of them.",
            ("outcome",),
            registry=registry,
        ),
    )


def gauge(registry: CollectorRegistry, name: str, meaning: str) -> Gauge:
    """A gauge that shows the lowest value among living workers."""
    return Gauge(name, meaning, registry=registry, multiprocess_mode="livemin")


def stack(error: BaseException) -> list[str]:
    """Where an error came from, the cause first; never its message, which may quote an object."""
    lines = stack(error.__cause__) if error.__cause__ is not None else []
    lines.append(type(error).__name__)
    lines.extend(
        f"{frame.f_code.co_filename}:{line} {frame.f_code.co_qualname}"
        for frame, line in list(traceback.walk_tb(error.__traceback__))[-30:]
    )
    return lines


class JsonLines(logging.Formatter):
    """One JSON object per record; `extra={"facts": {...}}` adds fields."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as one line."""
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **getattr(record, FACTS, {}),
        }
        if record.exc_info and record.exc_info[1] is not None:
            line["stack"] = stack(record.exc_info[1])
        return json.dumps(line, default=str)


class TextLines(logging.Formatter):
    """One line per record for people; a stack follows on lines of its own."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as text, control characters escaped."""
        at = datetime.fromtimestamp(record.created, UTC).strftime("%H:%M:%S")
        facts = " ".join(f"{name}={value}" for name, value in getattr(record, FACTS, {}).items())
        text = f"{at} {record.levelname.lower():7} {record.getMessage()} {facts}".rstrip()
        line = "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)
        if record.exc_info and record.exc_info[1] is not None:
            line += "".join(f"\n    {frame}" for frame in stack(record.exc_info[1]))
        return line


def start_logging(level: str, form: str, stream: TextIO | None = None) -> None:
    """Send every logger's records to `stream` (stderr) as `json` or `text`."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonLines() if form == "json" else TextLines())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
