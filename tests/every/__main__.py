"""make every-command: every command over many documents, broken by a fixed seed or as they are."""

from __future__ import annotations

import argparse
import faulthandler
import sys
import tempfile
import time
from pathlib import Path

from tests.every.commands import SORTS
from tests.every.run import Table, batches, share_of, shipped_once, unbroken


def main() -> int:
    """Print the table; exit code 1 where an answer is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=14)
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--sort", action="append", choices=list(SORTS))
    parser.add_argument("--folder", type=Path, help="What is done in it already is not run again.")
    parser.add_argument("--unbroken", action="store_true", help="All documents as they are.")
    given = parser.parse_args()
    faulthandler.enable()
    folder = given.folder or Path(tempfile.mkdtemp(prefix="podgate-every-"))
    folder.mkdir(parents=True, exist_ok=True)
    table = Table(folder)
    with shipped_once():
        for sort in given.sort or SORTS:
            begun, count = time.monotonic(), share_of(sort, given.count)
            name = f"{sort}-unbroken" if given.unbroken else f"{sort}-{given.seed}-{count}"
            parts = unbroken(sort) if given.unbroken else batches(sort, count, given.seed)
            done = 0
            for done, work in enumerate(parts, 1):
                part = Table.read(folder, f"{name}-{done:03}")
                if part is None:
                    part = Table(folder, f"{name}-{done:03}")
                    work(part)
                    part.write()
                table.add(part)
                for each in part.wrong[:5]:
                    print(f"WRONG: {each.command}: {each.document}: {each.what}", flush=True)
                if done % 10 == 0:
                    spent = time.monotonic() - begun
                    print(f"{sort}: {done} parts in {spent:.0f} s", file=sys.stderr, flush=True)
            print(f"{sort}: {done} parts in {time.monotonic() - begun:.0f} s", flush=True)
    for command, number in table.documents.items():
        codes = ", ".join(f"{n} x {code}" for code, n in sorted(table.codes[command].items()))
        wrong = sum(each.command == command for each in table.wrong)
        told = f"{wrong} errors, {table.uncovered[command]} uncovered, exit codes {codes}"
        print(f"{number:6} documents: {command}: {told}")
    print(f"{table.documents.total()} documents read, {len(table.wrong)} errors")
    return 1 if table.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
