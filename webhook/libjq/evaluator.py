"""The jq worker of this process, started when a definition first needs it, stopped with the process."""

from __future__ import annotations

import atexit
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from webhook.jq.expressions import Evaluator
from webhook.libjq.worker import JqWorker

PROCESSES = 2


@dataclass(slots=True)
class Counting:
    """Counts calls of jq; a server that starts later sets `on_outcome`."""

    on_outcome: Callable[[str], None] = lambda _: None

    def __call__(self, outcome: str) -> None:
        """Count the outcome of a call."""
        self.on_outcome(outcome)


counting = Counting()


def get_evaluator() -> Evaluator:
    """Return the evaluator: native paths run here, others in processes that can be stopped."""
    return evaluator_of(os.getpid())


@lru_cache(maxsize=1)
def evaluator_of(process: int) -> Evaluator:
    """Create the evaluator of one process; a forked process needs its own."""
    worker = JqWorker(PROCESSES, on_outcome=counting)
    atexit.register(close_worker, worker, process)
    return Evaluator(worker.compile)


def close_worker(worker: JqWorker, process: int) -> None:
    """End the worker's processes, in the process that made them."""
    if os.getpid() == process:
        worker.close()
