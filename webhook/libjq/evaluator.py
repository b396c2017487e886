"""The jq worker of this process: started when a definition first needs it, ended with the process."""

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
    """Who counts calls of jq; a server that starts later takes it over."""

    told: Callable[[str], None] = lambda _: None

    def __call__(self, outcome: str) -> None:
        """What came of a call."""
        self.told(outcome)


counting = Counting()


def evaluator() -> Evaluator:
    """Evaluates native texts here, and others in processes that can be stopped."""
    return evaluator_of(os.getpid())


@lru_cache(maxsize=1)
def evaluator_of(process: int) -> Evaluator:
    """The evaluator of one process: what a fork brings along belongs to another."""
    worker = JqWorker(PROCESSES, told=counting)
    atexit.register(closed, worker, process)
    return Evaluator(worker.compile)


def closed(worker: JqWorker, process: int) -> None:
    """End the worker's processes, in the process that made them."""
    if os.getpid() == process:
        worker.close()
