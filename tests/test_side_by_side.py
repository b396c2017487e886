"""`make test` tells the whole truth: what fails anywhere fails it, and its last line counts all tests."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.part import Part
from tests.side_by_side import Later, SideBySide, closing, computing, older, on_clusters


def part(title: str, line: str, code: int = 0, *, needed: bool = True) -> Part:
    """A part that prints a line and ends with a code."""
    return Part(title, (sys.executable, "-c", f"print({line!r}); exit({code})"), needed)


def ran(folder: Path, *parts: Part) -> list[Part]:
    """The parts after their run in one lane."""
    SideBySide(folder).follow(parts)
    return list(parts)


def test_the_last_line_counts_the_tests_of_all_parts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    parts = ran(
        tmp_path,
        part("a", "7 passed, 1 skipped in 2.00s"),
        part("b", "1 failed, 5 passed, 3 deselected, 2 errors in 61.0s (0:01:01)", 1),
        part("c", "6 kept, 0 broken"),
    )
    assert closing(parts, 75.4) == (
        "1 failed, 12 passed, 1 skipped, 2 errors in 75.40s (0:01:15); failed: b"
    )
    told = capsys.readouterr().out
    assert "==> a: ok" in told
    assert "==> b: FAILED" in told


def test_a_part_that_fails_stops_none_after_it(tmp_path: Path) -> None:
    first, second = ran(tmp_path, part("a", "x", 3), part("b", "1 passed in 1s"))
    assert (first.failed, second.failed) == (True, False)
    assert second.counts()["passed"] == 1


def test_a_bed_that_cannot_be_built_is_told_by_its_tests_alone(tmp_path: Path) -> None:
    parts = ran(tmp_path, part("a", "no Go", 1, needed=False), part("b", "1 passed in 1s"))
    assert closing(parts, 1) == "1 passed in 1.00s (0:00:01)"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("ok\n.... [ 43%]\n..", "43 %"),
        (".. [100%]\n", "100 %"),
        ("a\nbuilding etcd\n", "building etcd"),
    ],
)
def test_how_far_a_part_is(tmp_path: Path, text: str, told: str) -> None:
    (one,) = ran(tmp_path, part("a", text))
    assert one.progress() == told


def test_no_tests_is_no_success_in_words(tmp_path: Path) -> None:
    assert closing(ran(tmp_path, part("a", "nothing")), 1).startswith("no tests ran")


@pytest.mark.parametrize(
    ("by", "told"),
    [
        (1e9, "4 passed in 1.00s (0:00:01)"),
        (0.0, "3 passed in 1.00s (0:00:01); for want of time not run: core (make test-minors)"),
    ],
)
def test_older_minors_come_last_and_only_while_there_is_time(
    tmp_path: Path, by: float, told: str
) -> None:
    first, beside = part("a", "1 passed in 1s"), part("b", "2 passed in 1s")
    last = part("core", "1 passed in 1s")
    bed = part("bed", "")
    SideBySide(tmp_path).run([beside], bed, [first], Later([last], by))
    assert closing([first, beside, last], 1) == told


def test_every_minor_is_built_before_it_is_tried() -> None:
    parts = older(["1.34", "1.35"], ["-x"])
    assert [each.minor for each in parts] == ["1.34", "1.34", "1.35", "1.35"]
    assert [each.needed for each in parts] == [False, True, False, True]


def test_every_test_is_in_one_of_the_lanes() -> None:
    chosen = [each.command[-1] for each in (computing([])[-1], *on_clusters([]))]
    assert chosen == ["not e2e", "e2e and install", "e2e and not install"]
