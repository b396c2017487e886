"""Loads documents from the cluster, ConfigMaps and files into the catalog, and keeps it current."""

from __future__ import annotations

import logging
import os
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from webhook.catalog.build import parse_documents
from webhook.catalog.catalog import Catalog
from webhook.catalog.watched_documents import DocumentStatus, Fixed, WatchedDocuments
from webhook.decision.messages import problem_text
from webhook.documents.problem import Problem
from webhook.libjq.evaluator import get_evaluator
from webhook.sources import files
from webhook.sources.configmaps import ConfigMaps
from webhook.sources.crds import Schemas, found_of
from webhook.sources.load import (
    Sources,
    change_detector,
    remove_repeats,
    schemas_of,
    server_defaults,
    shipped_documents,
)
from webhook.sources.snapshot import Key, Seen, Snapshot

log = logging.getLogger("podgate.cluster")

FIRST_LOAD_TIMEOUT = 10.0  # seconds that the first load waits for the cluster's documents


def new_folder() -> Path:
    """Create a folder for snapshots on the volume for temporary files, which the chart keeps in memory."""
    return Path(tempfile.mkdtemp(prefix="podgate-"))


@dataclass(slots=True)
class ClusterSources:
    """Documents of files, of ConfigMaps and of the cluster; for one name, the first of these wins.

    One process of the Pod reads the cluster, and every worker reads what it has written.
    """

    sources: Sources
    snapshot: Snapshot
    watched: WatchedDocuments = field(default_factory=WatchedDocuments)
    configmaps: ConfigMaps = field(default_factory=ConfigMaps)
    serial: int = 0
    mark: tuple[int, int] = (0, 0)
    generation: int = 0
    files_changed: Callable[[], bool] | None = None
    schemas: Schemas = field(init=False)

    def __post_init__(self) -> None:
        """Connect the schemas of CRDs, which are stored besides the documents in the snapshot."""
        self.schemas = Schemas(self.snapshot.read_schema)

    def has_changed(self) -> bool:
        """Whether files or the cluster have changed since the last load."""
        if self.files_changed is None:
            self.files_changed = change_detector(self.sources)
        return self.files_changed() or self.snapshot.mark() != self.mark

    def load(self) -> tuple[Catalog | None, tuple[Problem, ...]]:
        """The catalog of all documents; None before the cluster was read, if files have errors, or
        if documents contradict each other.

        Errors of single documents of the cluster are in their statuses and in the log.
        """
        seen = self.first() if self.mark == (0, 0) else self.newest()
        if seen is None:
            found = "the documents of the cluster have not been read yet"
            return None, (Problem("cluster", "", found, "wait", "not-read"),)
        fixed, problems = fixed_of(self.sources)
        if fixed is None:
            return None, problems
        beside, unread = schemas_of(self.sources.crds)
        schemas = partial(self.schemas.of, found_of(seen.crds), beside)
        self.generation += 1
        given = fixed, schemas, self.generation
        objects = self.configmaps.unpack(seen.objects)
        if self.watched.started:
            outcome = self.watched.take(objects, *given)
        else:
            outcome = self.watched.begin(objects, self.snapshot.last_good(), *given)
        self.serial = seen.serial
        self.acknowledge(outcome.statuses)
        if outcome.catalog is None:
            errors = (each for each in outcome.problems if each.severity == "error")
            return None, (*unread, *errors)
        self.log_problems(outcome.statuses)
        return outcome.catalog, (*problems, *unread)

    def newest(self) -> Seen | None:
        """The newest snapshot."""
        self.mark = self.snapshot.mark()
        return self.snapshot.read()

    def first(self) -> Seen | None:
        """Wait for the first snapshot, but not for long: a cluster answers soon or not at all."""
        until = time.monotonic() + FIRST_LOAD_TIMEOUT
        while True:
            seen = self.newest()
            if seen is not None or time.monotonic() > until:
                return seen
            time.sleep(0.05)

    def log_problems(self, statuses: Mapping[Key, DocumentStatus]) -> None:
        """Log every problem of the cluster's documents that was not there before."""
        for each in statuses.values():
            for problem in each.problems:
                if problem.severity == "error":
                    log.error("%s", problem_text(problem))

    def acknowledge(self, statuses: Mapping[Key, DocumentStatus]) -> None:
        """Report which generation of each document this process uses."""
        rows = [[*key, each.in_force] for key, each in sorted(statuses.items())]
        body: dict[str, Any] = {"serial": self.serial, "process": os.getpid(), "in_force": rows}
        try:
            self.snapshot.acknowledge(os.getpid(), body)
        except OSError as error:
            # The controller waits for this; reviews do not.
            log.warning("cannot report the documents in force: %s", error.strerror)


def fixed_of(sources: Sources) -> tuple[Fixed | None, tuple[Problem, ...]]:
    """Return the documents from files, None if they have errors; and all problems."""
    shipped, own_problems = shipped_documents()
    documents, problems = files.read_all(remove_repeats(sources.paths))
    table = server_defaults(sources.kubernetes_minor)
    if isinstance(table, Problem):
        return None, (*own_problems, *problems, table)
    compile_jq = get_evaluator().compile_jq
    given = parse_documents(documents, sources.choices.context, compile_jq=compile_jq)
    found = (*own_problems, *problems, *given.problems)
    if any(each.severity == "error" for each in found):
        return None, found
    return Fixed(shipped, given, sources.choices, table, compile_jq), found
