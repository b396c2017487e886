"""The page of device checks has what generated configurations show, and right lines of the driver."""

from __future__ import annotations

import functools
import re
from pathlib import Path

import pytest

from tests.devices.driver_beyond import BEYOND
from tests.e2e.conftest import bed_or_skip
from tests.e2e.testbed import upstream
from webhook.decision.messages import VIOLATIONS

PAGE = Path(__file__).parents[2] / "docs" / "device-checks.md"
TEXT = PAGE.read_text("utf-8")
PLACE = re.compile(r"`((?:api|cmd)/[\w./-]+\.go):(\d+)` (\w+)")
PLACES = PLACE.findall(TEXT)
FUNCTION = re.compile(r"func (?:\([^)]*\) )?(\w+)\(")


def rows(heading: str) -> list[list[str]]:
    """The cells of the table below a heading."""
    section = TEXT.split(f"## {heading}\n", 1)[1].split("\n## ", 1)[0]
    lines = [line for line in section.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[1:]]


@functools.cache
def source(file: str) -> list[str]:
    """The lines of a file of the driver; skipped where its archive cannot be fetched, but not on CI."""
    with bed_or_skip():
        archive = upstream.module_dir("dra-driver")
    return (archive / file).read_text("utf-8").splitlines()


def test_the_table_has_just_what_configurations_are_refused_for() -> None:
    found = [(what, reason.strip("`")) for what, reason, _ in rows("One configuration")]
    assert sorted(found) == sorted((each.what, each.reason) for each in BEYOND)


def test_the_version_is_the_pinned_one() -> None:
    assert f"\nversion {upstream.version('dra-driver').removeprefix('v')} of " in TEXT


@pytest.mark.parametrize(("file", "line", "function"), PLACES)
def test_a_line_of_the_driver_is_in_its_function(file: str, line: str, function: str) -> None:
    above = source(file)[: int(line)]
    assert above[-1].strip() not in ("", "}")
    starts = [found[1] for each in above if (found := FUNCTION.match(each))]
    assert starts[-1] == function


def test_every_row_has_a_reason_that_exists_and_a_line() -> None:
    for heading in ("One configuration", "A claim as a whole", "A ComputeDomain"):
        for what, reason, driver in rows(heading):
            assert reason.strip("`") in VIOLATIONS, what
            assert PLACE.search(driver), what
