"""`make drill-server`: every scene in turn beside good reviews, a table, and an exit code."""

from __future__ import annotations

import argparse
import resource
import sys
import time
from dataclasses import dataclass

from tests.drill_server.attacks import CUTTING, SCENES, Miss
from tests.drill_server.stand import Stand, started
from tests.drill_server.stream import SENDERS, TIMEOUT, Stream

DEADLINE = TIMEOUT - 0.3
MOST_MEMORY = 300 * 2**20
SHORT, LONG = 1, 10


@dataclass(frozen=True, slots=True)
class Row:
    """What came of one scene."""

    name: str
    misses: tuple[str, ...]
    told: str
    reviews: int
    slowest: float
    seconds: float

    def text(self) -> str:
        """One line of the table."""
        result = "; ".join(self.misses) or "held"
        return (
            f"{self.name:20} {self.seconds:5.0f} s {self.reviews:6} good reviews,"
            f" slowest {self.slowest:4.2f} s   {result}   ({self.told})"
        )


def play(stand: Stand, stream: Stream, number: int, scale: int) -> Row:
    """One scene, and what became of the good reviews meanwhile."""
    name, scene = SCENES[number]
    begun, before, stream.slowest = time.monotonic(), sum(stream.counts.values()), 0.0
    misses, told = [], ""
    try:
        told = scene(stand, scale)
    except (Miss, OSError, KeyError) as error:
        misses.append(f"{type(error).__name__}: {error}")
    time.sleep(0.5)
    # Nobody can answer for a process that was killed: the request in its hands is asked again.
    allowed = SENDERS if name in CUTTING else 0
    if len(stream.cut) > allowed:
        misses.append(f"{len(stream.cut)} good reviews were cut off, such as {stream.cut[0]}")
    if stream.failed:
        misses.append(f"{len(stream.failed)} good reviews failed, such as {stream.failed[0]}")
    if stream.slowest > DEADLINE:
        misses.append(f"a good review took {stream.slowest:.1f} s")
    unready = [each for each in stand.unready if name not in CUTTING or each.startswith("503")]
    if unready:
        misses.append(f"not ready {len(unready)} times, such as {unready[0]}")
    if stand.highest >= MOST_MEMORY:
        misses.append(f"a worker took {stand.highest >> 20} MB")
    done = sum(stream.counts.values()) - before
    if not done:
        misses.append("no good review was answered")
    for each in (stream.cut, stream.failed, stand.unready):
        each.clear()
    return Row(name, tuple(misses), told, done, stream.slowest, time.monotonic() - begun)


def drill(scale: int, *, only: str = "", is_told: bool = True) -> list[Row]:
    """Every scene in turn, or those whose name has a part."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 8192)), hard))
    rows = []
    with started(concurrency=100 * scale, of_address=50 * scale) as stand:
        stream = Stream(stand)
        stream.begin()
        try:
            for number, (name, _) in enumerate(SCENES):
                if only not in name:
                    continue
                rows.append(play(stand, stream, number, scale))
                if is_told:
                    print(rows[-1].text(), flush=True)
        finally:
            stream.end()
        if is_told:
            counts = ", ".join(f"{count} {name}" for name, count in stream.counts.items())
            print(f"good reviews: {counts}; asked again after 503: {stream.again}")
            print(f"the largest worker: {stand.highest >> 20} MB")
    return rows


def main() -> int:
    """The exit code: 1 when anything was missed."""
    parser = argparse.ArgumentParser(prog="make drill-server", description=__doc__)
    parser.add_argument("--short", action="store_true", help="as the tests play it")
    parser.add_argument("--only", default="", help="only scenes with this in their name")
    given = parser.parse_args()
    rows = drill(SHORT if given.short else LONG, only=given.only)
    missed = sum(bool(each.misses) for each in rows)
    print(f"drill-server: {len(rows) - missed} of {len(rows)} scenes held")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
