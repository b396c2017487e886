"""Measuring: interleaved rounds in one process, medians of ratios, nothing absolute."""

from __future__ import annotations

import gc
import random
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

ROUNDS = 9
SECONDS = 0.25


@dataclass(frozen=True, slots=True)
class Gate:
    """One gate: its name, what is divided by what, figure and limit; `detail` for people."""

    name: str
    what: str
    figure: float
    limit: float
    detail: str = ""

    @property
    def met(self) -> bool:
        """Whether the figure is within the limit."""
        return self.figure <= self.limit


def settle() -> None:
    """The garbage collector as the server sets it after a catalog swap."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)


def seconds_of(run: Callable[[], object], budget: float = SECONDS) -> float:
    """CPU seconds per call, over as many calls as fit the budget; others on the machine count less."""
    run()
    calls, started = 0, time.process_time()
    while True:
        for _ in range(16):
            run()
        calls += 16
        spent = time.process_time() - started
        if spent >= budget:
            return spent / calls


def ratio(
    ours: Callable[[], object], baseline: Callable[[], object], rounds: int = ROUNDS
) -> tuple[float, float, float]:
    """Median of per-round ratios, and both medians in microseconds."""
    pairs = [(seconds_of(ours), seconds_of(baseline)) for _ in range(rounds)]
    return (
        statistics.median(one / two for one, two in pairs),
        statistics.median(one for one, _ in pairs) * 1e6,
        statistics.median(two for _, two in pairs) * 1e6,
    )


def bootstrap(
    ours: Sequence[float], baseline: Sequence[float], times: int = 2000
) -> tuple[float, float, float]:
    """Ratio of medians of paired samples with its 95 % confidence interval."""
    chance = random.Random(1)
    count = len(ours)
    ratios = []
    for _ in range(times):
        picked = [chance.randrange(count) for _ in range(count)]
        below = statistics.median(baseline[i] for i in picked)
        ratios.append(statistics.median(ours[i] for i in picked) / below if below > 0 else 99.0)
    ratios.sort()
    middle = statistics.median(ours) / statistics.median(baseline)
    return middle, ratios[int(times * 0.025)], ratios[int(times * 0.975)]
