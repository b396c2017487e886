"""Documents of the cluster beside those of files: kept up to date, and judged by in this process."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import IO, Any

from webhook.catalog.build import parsed
from webhook.catalog.catalog import Catalog
from webhook.catalog.watched_documents import Fixed, Living, Standing
from webhook.decision import messages as wording
from webhook.documents.problem import Problem
from webhook.libjq import evaluator as jq
from webhook.sources import files
from webhook.sources.configmaps import ConfigMaps
from webhook.sources.crds import Schemas, found_of
from webhook.sources.load import (
    Sources,
    change_detector,
    schemas_of,
    server_defaults,
    shipped_documents,
    unrepeated,
)
from webhook.sources.snapshot import Key, Seen, Snapshot

log = logging.getLogger("podgate.cluster")

PATIENCE = 10.0  # seconds that the first load waits for the cluster's documents
AGAIN = 5.0  # seconds before a watcher that has ended is started again


def new_folder() -> Path:
    """A folder for snapshots, on the volume for temporary files: the chart mounts memory there."""
    return Path(tempfile.mkdtemp(prefix="podgate-"))


@dataclass(slots=True)
class ClusterSources:
    """The documents of files, of ConfigMaps and of the cluster; of one name, the first of these counts.

    `namespace` is where podgate's own objects are, "" for nowhere. One process of the Pod watches:
    whichever has the lock starts the watcher, and again when it has ended. Every worker reads what
    it has written.
    """

    sources: Sources
    snapshot: Snapshot
    kubeconfig: Path | None = None
    namespace: str = ""
    living: Living = field(default_factory=Living)
    configmaps: ConfigMaps = field(default_factory=ConfigMaps)
    serial: int = 0
    mark: tuple[int, int] = (0, 0)
    generation: int = 0
    lock: IO[bytes] | None = None
    child: subprocess.Popen[bytes] | None = None
    started: float = 0.0
    files_changed: Callable[[], bool] | None = None
    schemas: Schemas = field(init=False)

    def __post_init__(self) -> None:
        """Schemas of CRDs are beside the documents in the snapshot."""
        self.schemas = Schemas(self.snapshot.read_piece)

    def changed(self) -> bool:
        """Whether files or the cluster have changed since the last load; keeps the watcher going."""
        self.keep_watching()
        if self.files_changed is None:
            self.files_changed = change_detector(self.sources)
        return self.files_changed() or self.snapshot.mark() != self.mark

    def keep_watching(self) -> None:
        """Start the watcher where it is this process's task and it does not run."""
        self.lock = self.lock or self.snapshot.watchman()
        if self.lock is None or (self.child is not None and self.child.poll() is None):
            return
        now = time.monotonic()
        if self.child is not None:
            if now - self.started < AGAIN:
                return
            log.warning("the watcher has ended with %s and is started again", self.child.returncode)
        self.started = now
        given = [str(self.kubeconfig)] if self.kubeconfig is not None else []
        folder = str(self.snapshot.folder)
        command = [sys.executable, "-m", "webhook.sources.reader", folder, self.namespace, *given]
        self.child = subprocess.Popen(command, stdin=subprocess.DEVNULL)  # noqa: S603 - our own

    def load(self) -> tuple[Catalog | None, tuple[Problem, ...]]:
        """The catalog of everything, None before the cluster was read, when files are wrong or when
        documents do not fit together.

        What is wrong with single documents of the cluster is in their standings and in the log.
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
        objects = self.configmaps.opened(seen.objects)
        if self.living.started:
            outcome = self.living.take(objects, *given)
        else:
            outcome = self.living.begin(objects, self.snapshot.last_good(), *given)
        self.serial = seen.serial
        self.acknowledge(outcome.standings)
        if outcome.catalog is None:
            errors = (each for each in outcome.problems if each.severity == "error")
            return None, (*unread, *errors)
        self.tell(outcome.standings)
        return outcome.catalog, (*problems, *unread)

    def newest(self) -> Seen | None:
        """The newest snapshot."""
        self.mark = self.snapshot.mark()
        return self.snapshot.read()

    def first(self) -> Seen | None:
        """The first snapshot, after some waiting: a cluster answers soon, or not at all."""
        until = time.monotonic() + PATIENCE
        while True:
            self.keep_watching()
            seen = self.newest()
            if seen is not None or time.monotonic() > until:
                return seen
            time.sleep(0.05)

    def tell(self, standings: Mapping[Key, Standing]) -> None:
        """Log every problem of the cluster's documents that was not there before."""
        for each in standings.values():
            for problem in each.problems:
                if problem.severity == "error":
                    log.error("%s", wording.problem_text(problem))

    def acknowledge(self, standings: Mapping[Key, Standing]) -> None:
        """Say which generation of every document is in force here."""
        rows = [[*key, each.in_force] for key, each in sorted(standings.items())]
        body: dict[str, Any] = {"serial": self.serial, "process": os.getpid(), "in_force": rows}
        try:
            self.snapshot.acknowledge(os.getpid(), body)
        except OSError as error:
            # The controller waits for this; reviews do not.
            log.warning("cannot report the documents in force: %s", error.strerror)


def fixed_of(sources: Sources) -> tuple[Fixed | None, tuple[Problem, ...]]:
    """What does not come from the cluster, None when files are wrong; all problems."""
    shipped, own_problems = shipped_documents()
    documents, problems = files.read_all(unrepeated(sources.paths))
    table = server_defaults(sources.kubernetes_minor)
    if isinstance(table, Problem):
        return None, (*own_problems, *problems, table)
    compile_jq = jq.evaluator().compile_jq
    given = parsed(documents, sources.choices.context, compile_jq=compile_jq)
    found = (*own_problems, *problems, *given.problems)
    if any(each.severity == "error" for each in found):
        return None, found
    return Fixed(shipped, given, sources.choices, table, compile_jq), found
