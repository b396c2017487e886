"""What `make test` runs: every check of the project, those that wait for a cluster beside those that compute.

One lane builds what the tests of a real API server need and runs them, then their core on each older
Kubernetes minor; the other computes. A machine that had to build everything has worked long by then,
so that older minors are left to `make test-minors` there, and the last line says so. The output of a
part is printed whole when it ends, and a line a minute says what goes on. The last line counts all.
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
from datetime import timedelta
from pathlib import Path

from tests.part import Part

BIN = Path(sys.executable).parent
TESTBED = (sys.executable, "-m", "tests.e2e.testbed", "build")
TOLD_EVERY = 60.0


def lanes(extra: Sequence[str]) -> tuple[list[Part], list[Part]]:
    """The parts that need clusters, and those that compute."""
    pytest = (str(BIN / "pytest"), "-q", *extra)
    cluster = [
        Part("building the test bed", (*TESTBED, "--ci"), needed=False, nice=5),
        Part("tests on a real API server", (*pytest, "-m", "e2e")),
    ]
    computing = [
        Part("ruff check", (str(BIN / "ruff"), "check", ".")),
        Part("ruff format", (str(BIN / "ruff"), "format", "--check", ".")),
        Part("mypy", (str(BIN / "mypy"),)),
        Part("import contracts", (str(BIN / "lint-imports"),)),
        Part("tests without a cluster", (*pytest, "-m", "not e2e")),
    ]
    return cluster, computing


def older(minors: Sequence[str], extra: Sequence[str]) -> list[Part]:
    """For each older minor its build, and the core of the tests on it."""
    core = (str(BIN / "pytest"), "-q", *extra, "-m", "core")
    return [
        part
        for each in minors
        for part in (
            Part(f"building Kubernetes {each}", TESTBED, needed=False, minor=each),
            Part(f"core on Kubernetes {each}", core, minor=each),
        )
    ]


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

    def tell(self) -> None:
        """What goes on, and how far it is."""
        for part, _ in list(self.running.values()):
            with self.printing:
                print(f"... {part.title}: {part.progress()}", flush=True)

    def stop(self) -> None:
        """End what runs, by process id."""
        self.stopped = True
        for _, process in list(self.running.values()):
            process.terminate()

    def run(self, lanes: Sequence[Sequence[Part]], last: Sequence[Part], by: float) -> None:
        """Run lanes side by side, then the last parts in the first lane if it ends before `by`."""

        def first() -> None:
            self.follow(lanes[0])
            if time.monotonic() < by:
                self.follow(last)

        threads = [threading.Thread(target=first)]
        threads += [threading.Thread(target=self.follow, args=(each,)) for each in lanes[1:]]
        for each in threads:
            each.start()
        try:
            for each in threads:
                while each.is_alive():
                    each.join(TOLD_EVERY)
                    if each.is_alive():
                        self.tell()
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
        "--minors-within", type=float, default=22, help="minutes after which none is begun"
    )
    known, extra = parser.parse_known_args(arguments)
    started = time.monotonic()
    print("checks and tests without a cluster run beside those on a real API server;", flush=True)
    print(
        "each part is printed when it ends, and a line a minute says how far they are", flush=True
    )
    side_by_side = lanes(extra)
    last = older(known.minor, extra)
    parts = [*side_by_side[0], *side_by_side[1], *last]
    with tempfile.TemporaryDirectory(prefix="podgate-tests-") as folder:
        SideBySide(Path(folder)).run(side_by_side, last, started + 60 * known.minors_within)
        print(closing(parts, time.monotonic() - started))
    return int(any(each.failed for each in parts if each.needed))


if __name__ == "__main__":
    sys.exit(main())
