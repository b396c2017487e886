"""What `make test` runs: every check of the project, those that wait beside those that compute.

One lane computes. Another builds what the tests of a real API server need, runs them in two lanes,
as most of their time is waiting, and at last their core on each older Kubernetes minor. A machine
that had to build everything has worked long by then, so that older minors are left to
`make test-minors` there, and the last line says so. The output of a part is printed whole when it
ends, and a line a minute says how far each is. The last line counts all tests.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from tests.part import Part

BIN = Path(sys.executable).parent
PYTEST = (str(BIN / "pytest"), "-q")
TESTBED = (sys.executable, "-m", "tests.e2e.testbed", "build")
TOLD_EVERY = 60.0


def computing(extra: Sequence[str]) -> list[Part]:
    """The parts that need no cluster."""
    return [
        Part("ruff check", (str(BIN / "ruff"), "check", ".")),
        Part("ruff format", (str(BIN / "ruff"), "format", "--check", ".")),
        Part("mypy", (str(BIN / "mypy"),)),
        Part("import contracts", (str(BIN / "lint-imports"),)),
        Part("tests without a cluster", (*PYTEST, *extra, "-m", "not e2e")),
    ]


def on_clusters(extra: Sequence[str]) -> list[Part]:
    """The tests of a real API server, in two lanes."""
    return [
        Part("tests of an installation", (*PYTEST, *extra, "-m", "e2e and install")),
        Part("tests on a real API server", (*PYTEST, *extra, "-m", "e2e and not install")),
    ]


def older(minors: Sequence[str], extra: Sequence[str]) -> list[Part]:
    """For each older minor its build, and the core of the tests on it."""
    core = (*PYTEST, *extra, "-m", "core")
    return [
        part
        for each in minors
        for part in (
            Part(f"building Kubernetes {each}", TESTBED, needed=False, minor=each),
            Part(f"core on Kubernetes {each}", core, minor=each),
        )
    ]


@dataclass(frozen=True, slots=True)
class Later:
    """Parts that are begun up to a time of the monotonic clock only."""

    parts: Sequence[Part]
    by: float


class SideBySide:
    """The run: lanes as threads, what has ended, what goes on."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.running: dict[int, tuple[Part, subprocess.Popen[bytes]]] = {}
        self.printing = threading.Lock()
        self.stopped = False

    def follow(self, parts: Sequence[Part]) -> None:
        """One lane: part after part, whatever came of the one before."""
        for part in parts:
            if self.stopped:
                return
            part.run(self.folder, self.running)
            with self.printing:
                print(
                    f"==> {part.title}: {'FAILED' if part.failed else 'ok'}, {part.seconds:.0f} s"
                )
                print(part.text() if part.needed or part.failed else "", end="", flush=True)

    def print_progress(self) -> None:
        """What goes on, and how far it is."""
        for part, _ in list(self.running.values()):
            with self.printing:
                print(f"... {part.title}: {part.progress()}", flush=True)

    def stop(self) -> None:
        """End what runs, by process id."""
        self.stopped = True
        for _, process in list(self.running.values()):
            process.terminate()

    def beside(self, *lanes: Sequence[Part]) -> None:
        """Several lanes at once, to the end of all."""
        threads = [threading.Thread(target=self.follow, args=(each,)) for each in lanes]
        for each in threads:
            each.start()
        for each in threads:
            each.join()

    def run(self, computing: Sequence[Part], bed: Part, live: Sequence[Part], older: Later) -> None:
        """The bed, what needs it side by side, older minors if there is time; and what computes."""

        def on_clusters() -> None:
            self.follow([bed])
            self.beside(*([each] for each in live))
            if time.monotonic() < older.by:
                self.follow(older.parts)

        threads = [
            threading.Thread(target=on_clusters),
            threading.Thread(target=self.follow, args=(computing,)),
        ]
        for each in threads:
            each.start()
        try:
            while any(each.is_alive() for each in threads):
                threads[0 if threads[0].is_alive() else 1].join(TOLD_EVERY)
                self.print_progress()
        except KeyboardInterrupt:
            self.stop()
            raise


def closing(parts: Sequence[Part], seconds: float) -> str:
    """One line for all parts, in the words of the runner of tests."""
    counts = sum((each.counts() for each in parts), Counter[str]())
    words = [
        f"{counts[each]} {each}"
        for each in ("failed", "passed", "skipped", "errors")
        if counts[each]
    ]
    broken = [each.title for each in parts if each.failed and each.needed]
    told = f"; failed: {', '.join(broken)}" if broken else ""
    if left := [each.title for each in parts if each.needed and not each.seconds]:
        told += f"; for want of time not run: {', '.join(left)} (make test-minors)"
    taken = f"{seconds:.2f}s ({timedelta(seconds=int(seconds))})"
    return f"{', '.join(words) or 'no tests ran'} in {taken}{told}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run everything; 0 if every part that is needed passed."""
    parser = argparse.ArgumentParser(prog="python -m tests.side_by_side", description=__doc__)
    parser.add_argument("--minor", action="append", default=[], help="an older Kubernetes minor")
    parser.add_argument(
        "--minors-within", type=float, default=26, help="minutes after which none is begun"
    )
    known, extra = parser.parse_known_args(arguments)
    started = time.monotonic()
    print("checks and tests without a cluster run beside those on a real API server;", flush=True)
    print(
        "each part is printed when it ends, and a line a minute says how far they are", flush=True
    )
    bed = Part("building the test bed", (*TESTBED, "--ci"), needed=False, nice=5)
    alone, live = computing(extra), on_clusters(extra)
    later = Later(older(known.minor, extra), started + 60 * known.minors_within)
    parts = [bed, *alone, *live, *later.parts]
    with tempfile.TemporaryDirectory(prefix="podgate-tests-") as folder:
        SideBySide(Path(folder)).run(alone, bed, live, later)
        print(closing(parts, time.monotonic() - started))
    return int(any(each.failed for each in parts if each.needed))


if __name__ == "__main__":
    sys.exit(main())
