"""The reading process of a Pod: started by one of its workers, and again when it has ended."""

from __future__ import annotations

import logging
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from webhook.sources.snapshot import Snapshot

log = logging.getLogger("podgate.cluster")

AGAIN = 5.0  # seconds before one that has ended is started again


@dataclass(slots=True)
class ReadingProcess:
    """Starts `webhook.sources.reader`, in whichever worker has the lock of the Pod's folder.

    `documents` is whether it watches the cluster's documents; `namespace` is where podgate's own
    objects are, "" for nowhere.
    """

    snapshot: Snapshot
    kubeconfig: Path | None = None
    namespace: str = ""
    documents: bool = False
    lock: IO[bytes] | None = None
    child: subprocess.Popen[bytes] | None = None
    started: float = 0.0

    def keep_running(self) -> None:
        """Start it where it is this process's task and it does not run."""
        self.lock = self.lock or self.snapshot.watchman()
        if self.lock is None or (self.child is not None and self.child.poll() is None):
            return
        now = time.monotonic()
        if self.child is not None:
            if now - self.started < AGAIN:
                return
            log.warning("the reader has ended with %s and is started again", self.child.returncode)
        self.started = now
        options = ["--documents"] if self.documents else []
        options += ["--namespace", self.namespace] if self.namespace else []
        options += ["--kubeconfig", str(self.kubeconfig)] if self.kubeconfig is not None else []
        command = [sys.executable, "-m", "webhook.sources.reader", str(self.snapshot.folder)]
        self.child = subprocess.Popen([*command, *options], stdin=subprocess.DEVNULL)  # noqa: S603


def check_kubeconfig(kubeconfig: Path) -> str:
    """What is wrong with a kubeconfig, "" for nothing; found in a process of its own.

    So this one, and the workers that it forks, need not load the client library.
    """
    command = [sys.executable, "-m", "webhook.cluster.credentials", str(kubeconfig)]
    try:
        ended = subprocess.run(  # noqa: S603
            command, capture_output=True, text=True, check=False, timeout=90
        )
    except subprocess.TimeoutExpired:
        return f"{kubeconfig}: the program that gives the credentials has not ended"
    if ended.returncode == 0:
        return ""
    return ended.stderr.strip() or f"{kubeconfig} cannot be used (exit code {ended.returncode})"
