"""Counts what came of attempts, by kind, place and class, and tells it as tables and as CSV."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tests.fuzz.golden import case_of
from tests.fuzz.reviews import Outcome

Row = tuple[str, str, str]
KEPT = 3
"""Cases that are printed of one cause; more say nothing new."""


@dataclass(slots=True)
class Report:
    """Counts of attempts; results of several processes are added up."""

    seed: int
    sent: Counter[Row] = field(default_factory=Counter)
    admitted: Counter[Row] = field(default_factory=Counter)
    masked: Counter[str] = field(default_factory=Counter)
    over: Counter[str] = field(default_factory=Counter)
    controls: int = 0
    objects: int = 0
    let_in: int = 0
    causes: Counter[str] = field(default_factory=Counter)
    cases: dict[str, list[str]] = field(default_factory=dict)
    first: dict[str, int] = field(default_factory=dict)

    def note(self, index: int, outcome: Outcome) -> None:
        """Count one attempt."""
        attempt = outcome.attempt
        self.objects += 1
        place = attempt.place
        kinds = ["control"] if attempt.harmless else [attempt.way.spelling]
        for name in (*kinds, *attempt.disguises):
            row = (place.kind, place.where, name)
            self.sent[row] += 1
            self.admitted[row] += bool(outcome.admitted)
        self.controls += attempt.harmless
        if outcome.over:
            count(self.over, f"{place.kind} at {place.where}: {outcome.over}", index, self.first)
        if outcome.masked:
            told = f"{attempt.breach.field} in {place.kind} at {place.where}: {outcome.masked}"
            count(self.masked, told, index, self.first)
        if outcome.admitted:
            self.let_in += 1
            cause = f"{attempt.breach.field} ({attempt.way.spelling}) in {place.kind}"
            count(self.causes, cause, index, self.first)
            cases = self.cases.setdefault(cause, [])
            if len(cases) < KEPT:
                cases.append(case_of(attempt, self.seed, index, outcome.admitted))

    def add(self, other: Report) -> None:
        """Take in what another process counted."""
        self.sent += other.sent
        self.admitted += other.admitted
        self.masked += other.masked
        self.over += other.over
        self.causes += other.causes
        self.controls += other.controls
        self.objects += other.objects
        self.let_in += other.let_in
        self.first = {**other.first, **self.first}
        for cause, cases in other.cases.items():
            known = self.cases.setdefault(cause, [])
            known += cases[: KEPT - len(known)]

    def write(self, file: Path) -> None:
        """All counts as CSV: one row for each kind, place and class."""
        with file.open("w", newline="") as opened:
            writer = csv.writer(opened)
            writer.writerow(("kind", "place", "class", "objects", "admitted"))
            for row, sent in sorted(self.sent.items()):
                writer.writerow((*row, sent, self.admitted[row]))

    def show(self, console: Console) -> None:
        """What was let in as golden cases, then the counts by class and by kind."""
        for cases in self.cases.values():
            for each in cases:
                console.print(f"---\n{each}", markup=False, highlight=False, soft_wrap=True)
        tell(console, "let in", self.causes, self.first)
        tell(console, "compliant, and refused", self.over, self.first)
        tell(console, "refused for another reason", self.masked, self.first)
        console.print(self.table("class", ((row[2], row) for row in self.sent)))
        console.print(
            self.table("kind", ((row[0], row) for row in self.sent if row[2] in SPELLINGS))
        )

    def table(self, title: str, rows: Iterable[tuple[str, Row]]) -> Table:
        """Counts summed up under a name."""
        sums: dict[str, list[int]] = {}
        for name, row in rows:
            found = sums.setdefault(name, [0, 0])
            found[0] += self.sent[row]
            found[1] += self.admitted[row]
        table = Table(title, "objects", "let in")
        for name, (sent, admitted) in sorted(sums.items()):
            table.add_row(name, f"{sent:,}", f"{admitted:,}")
        return table


SPELLINGS = frozenset(
    {
        "amounts",
        "claim-template",
        "control",
        "empty",
        "left-out",
        "letter-case",
        "null",
        "plain",
        "pod-level",
        "repeated",
        "unreadable",
    }
)
"""Classes of which each object has one; the others are disguises, of which it may have several."""


def count(counts: Counter[str], text: str, index: int, first: dict[str, int]) -> None:
    """Count a text, and keep the index that it was first seen with."""
    counts[text] += 1
    first.setdefault(text, index)


def tell(console: Console, title: str, counts: Counter[str], first: dict[str, int]) -> None:
    """The most frequent of some counts, one on a line."""
    for text, number in counts.most_common(20):
        told = f"{title}: {number:,} x {text} (index {first[text]})"
        console.print(told, markup=False, highlight=False, soft_wrap=True)
