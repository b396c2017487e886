"""`make drills`: every drill on a real API server, and a table of the figures."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.e2e.install.drills import stand
from tests.e2e.install.drills.course import DRILLS, drilled
from tests.e2e.install.drills.tally import Row, table
from tests.e2e.testbed.missing import MissingTestbed


def run(names: Sequence[str]) -> list[Row]:
    """Have the drills of these names happen on a new installation; raises MissingTestbed."""
    cluster, rows = stand.cluster(), []
    try:
        with (
            tempfile.TemporaryDirectory(prefix="podgate-drills-") as folder,
            stand.standing(cluster, Path(folder)) as standing,
        ):
            for name in names:
                rows.append(drilled(standing, name))
                print(f"{name}: {rows[-1].seen}", file=sys.stderr)
    finally:
        cluster.stop()
    return rows


def main() -> int:
    """Run the command; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.e2e.install.drills", description=__doc__)
    parser.add_argument("drill", nargs="*", help=f"one of: {', '.join(DRILLS)}; all without one")
    wanted = parser.parse_args().drill or [*DRILLS]
    if unknown := [each for each in wanted if each not in DRILLS]:
        parser.error(f"no such drill: {', '.join(unknown)}; write one of: {', '.join(DRILLS)}")
    try:
        rows = run(wanted)
    except MissingTestbed as error:
        print(error, file=sys.stderr)
        return 2
    print(table(rows))
    complaints = [f"{row.drill}: {each}" for row in rows for each in row.complaints]
    for each in complaints[:50]:
        print(f"WRONG {each[:600]}")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
