"""Lists the rows of the conformance list that have no test, with the reason where one is known."""

from __future__ import annotations

import contextlib
import io
import sys
from pathlib import Path

import pytest

from tests.conformance.missing import MISSING
from tests.conformance.rows import ids_in, rows

HERE = Path(__file__).parent


class Names:
    """Collects the names of tests."""

    def __init__(self) -> None:
        self.found: list[str] = []

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Keep the names of what was collected."""
        self.found = [each.nodeid for each in items]


def collected() -> set[str]:
    """The ids of all tests here."""
    names = Names()
    with contextlib.redirect_stdout(io.StringIO()) as told:
        code = pytest.main(["--collect-only", "-q", "-p", "no:cacheprovider", str(HERE)], [names])
    if code != pytest.ExitCode.OK:
        raise SystemExit(told.getvalue())
    return ids_in(names.found)


def main() -> int:
    """Print what is left; 1 when a row has neither a test nor a reason."""
    tested = collected()
    wanted = list(rows())
    left = [each for each in wanted if each not in tested]
    for each in left:
        print(f"{each}: {MISSING.get(each, 'no test, and no reason is known')}")
    print(f"{len(wanted) - len(left)} of {len(wanted)} rows have a test")
    return int(any(each not in MISSING for each in left))


if __name__ == "__main__":
    sys.exit(main())
