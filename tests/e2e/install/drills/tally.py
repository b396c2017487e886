"""The figures of a drill: how many requests came out how, and how long they took."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

Outcome = Literal["right", "wrong", "failed", "away"]
OUTCOMES: tuple[Outcome, ...] = ("away", "failed", "wrong")
HEAD = ("drill", "s", "requests", "away", "failed", "wrong", "calls", "p50 ms", "p95 ms", "seen")
WIDTHS = (22, 4, 9, 5, 6, 5, 5, 6, 6, 0)


@dataclass(frozen=True, slots=True)
class Answer:
    """One request: when it began (monotonic), its seconds, how it came out and why it was not right.

    `away` is a request that the API server itself did not answer while it was known to be away.
    """

    begun: float
    seconds: float
    outcome: Outcome
    why: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """The figures of one drill.

    `failed_calls` are those of our webhooks that failed by the API server's own count, whoever made
    the request; `seen` is what the drill itself measured, for people.
    """

    drill: str
    seconds: float
    answers: Sequence[Answer]
    failed_calls: Counter[str] = field(default_factory=Counter)
    seen: str = ""

    def count(self, outcome: Outcome) -> int:
        """How many requests came out so."""
        return sum(each.outcome == outcome for each in self.answers)

    @property
    def complaints(self) -> list[str]:
        """What was wrong or failed."""
        bad = [f"{x.outcome}: {x.why}" for x in self.answers if x.outcome in ("wrong", "failed")]
        calls = [f"{count} failed calls: {what}" for what, count in self.failed_calls.items()]
        return [*bad, *calls]

    def cells(self) -> tuple[str, ...]:
        """The row of the table."""
        seconds = [each.seconds for each in self.answers if each.outcome != "away"]
        return (
            self.drill,
            f"{self.seconds:.0f}",
            str(len(self.answers)),
            *(str(self.count(each)) for each in OUTCOMES),
            str(self.failed_calls.total()),
            *(f"{1000 * quantile(seconds, share):.0f}" for share in (50, 95)),
            self.seen,
        )


def quantile(values: Sequence[float], percent: int) -> float:
    """The value that so many percent stay below; 0 of less than two."""
    if len(values) < 2:
        return 0.0
    return statistics.quantiles(values, n=100, method="inclusive")[percent - 1]


def table(rows: Iterable[Row]) -> str:
    """The rows under their heads, aligned."""
    cells = [HEAD, *(each.cells() for each in rows)]
    return "\n".join(
        "  ".join(
            text.ljust(width) if column in (0, len(HEAD) - 1) else text.rjust(width)
            for column, (text, width) in enumerate(zip(row, WIDTHS, strict=True))
        )
        for row in cells
    )
