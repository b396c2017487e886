"""The ids of the conformance list, and how they are read from the names of tests."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

FAMILIES = {
    "R": range(1, 50),
    "V": range(1, 39),
    "D": range(1, 38),
    "A": range(1, 77),
    "C": range(1, 59),
    "F": range(1, 17),
    "P": range(1, 55),
    "G": range(1, 22),
    "I": range(1, 14),
    "S": range(1, 15),
    "N": (*range(1, 15), *range(20, 35)),
}
ID = re.compile(r"(?<![A-Za-z0-9])([RVDACFPGISN][0-9]{1,2})(?![0-9A-Za-z])")


def rows() -> Iterator[str]:
    """Every id, in order."""
    for family, numbers in FAMILIES.items():
        yield from (f"{family}{number}" for number in numbers)


def ids_in(names: Iterable[str]) -> set[str]:
    """The ids that names of tests carry, in the name of the function or of a parameter."""
    found: set[str] = set()
    for name in names:
        found.update(ID.findall(name.rsplit("::", 1)[-1].replace("_", " ")))
    return found & set(rows())
