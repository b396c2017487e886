"""make fuzz-admission: objects that break a rule, by seed; whatever gets in is a golden case."""

from __future__ import annotations

import argparse
import multiprocessing
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from rich.console import Console

from tests.fuzz.engine import Generator, outcomes
from tests.fuzz.report import Report

CHUNK = 1_000


def counted(generator: Generator, indices: range) -> Report:
    """What came of some indices."""
    report = Report(generator.seed)
    for index, outcome in outcomes(generator, indices):
        report.note(index, outcome)
    return report


OWN: dict[int, Generator] = {}


def of_process(seed: int, indices: range) -> Report:
    """The same in a process that keeps its generator from one chunk to the next."""
    if seed not in OWN:
        OWN[seed] = Generator(seed)
    return counted(OWN[seed], indices)


def chunks(start: int, count: int) -> Iterator[range]:
    """The indices in portions."""
    for first in range(start, start + count, CHUNK):
        yield range(first, min(first + CHUNK, start + count))


def commit() -> str:
    """The commit that is checked out, with a mark where the tree differs from it."""
    done = subprocess.run(
        ["git", "describe", "--always", "--dirty", "--abbrev=12"], capture_output=True, text=True
    )
    return done.stdout.strip() or "unknown"


def run(seed: int, start: int, count: int, processes: int) -> Report:
    """Send all objects, with a line on stderr that says how far it is."""
    report, begun = Report(seed), time.monotonic()
    work = partial(of_process, seed)
    with multiprocessing.Pool(processes) as pool:
        parts = map(work, chunks(start, count)) if processes == 1 else None
        for part in parts or pool.imap_unordered(work, chunks(start, count)):
            report.add(part)
            speed = report.objects / max(time.monotonic() - begun, 0.001)
            told = (
                f"{report.objects:,} of {count:,} objects, {report.let_in} let in, {speed:,.0f}/s"
            )
            print(f"\r{told} ", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return report


def main() -> int:
    """Send the objects and tell what came of them; 1 where one was let in or wrongly refused."""
    parser = argparse.ArgumentParser(prog="make fuzz-admission", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="which objects (default 1)")
    parser.add_argument("--count", type=int, default=100_000, help="how many (default 100,000)")
    parser.add_argument("--start", type=int, default=0, help="the first index (default 0)")
    parser.add_argument("--index", type=int, help="only this one, to reproduce it")
    parser.add_argument("--processes", type=int, default=1, help="how many at once (default 1)")
    parser.add_argument("--csv", type=Path, help="where all counts go (default: a new file)")
    asked = parser.parse_args()
    start, count = (asked.index, 1) if asked.index is not None else (asked.start, asked.count)
    report = run(asked.seed, start, count, asked.processes)
    file = asked.csv or Path(tempfile.mkdtemp(prefix="fuzz-admission-")) / "counts.csv"
    report.write(file)
    console = Console()
    report.show(console)
    console.print(
        f"seed {asked.seed}, indices {start} to {start + count - 1}, commit {commit()}: "
        f"{report.objects:,} objects, {report.controls:,} of them compliant; "
        f"{report.let_in:,} let in, {sum(report.over.values()):,} compliant ones refused, "
        f"{sum(report.masked.values()):,} refused for another reason; counts in {file}",
        highlight=False,
        soft_wrap=True,
    )
    return 1 if report.let_in or report.over else 0


if __name__ == "__main__":
    sys.exit(main())
