"""What is in a folder of documents: nothing with a suffix of ours is left out in silence."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from webhook.documents.problem import Problem
from webhook.sources import files


def loop(place: Path) -> None:
    """A link to itself."""
    place.symlink_to(place)


def listening(place: Path) -> None:
    """A socket."""
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(place))


MAKERS: list[tuple[str, Callable[[Path], object]]] = [
    ("not there", lambda place: place.symlink_to(place.parent / "nowhere")),
    ("a pipe", os.mkfifo),
    ("symbolic links", loop),
    ("a folder", Path.mkdir),
    ("a folder", lambda place: place.symlink_to(place.parent)),
    ("a pipe", lambda place: place.symlink_to("/dev/null")),
    ("a pipe", listening),
]


@pytest.mark.parametrize("told, make", MAKERS)
@pytest.mark.parametrize("suffix", files.SUFFIXES)
def test_what_cannot_be_read_is_a_problem_and_never_left_out(
    tmp_path: Path, told: str, make: Callable[[Path], object], suffix: str
) -> None:
    (tmp_path / "a.yaml").write_text("a: 1\n")
    before = files.fingerprint([str(tmp_path)])
    make(tmp_path / f"b{suffix}")
    documents, problems = files.read_all([str(tmp_path)])
    assert len(documents) == 1
    (problem,) = problems
    assert told in problem.found
    assert (problem.severity, problem.reason) == ("error", "unreadable")
    assert files.fingerprint([str(tmp_path)]) != before, "so that it is noticed"


def test_a_file_that_becomes_a_pipe_keeps_nobody_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.yaml")
    found = files.read_file(str(tmp_path / "a.yaml"))
    assert isinstance(found, Problem)
    assert "pipe" in found.found


def test_a_pipe_that_a_shell_hands_out_is_read(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.write(writer, b"a: 1\n")
    os.close(writer)
    assert files.read_file(f"/dev/fd/{reader}") == b"a: 1\n"
    os.close(reader)


def test_folders_and_links_as_kubelet_makes_them_are_read(tmp_path: Path) -> None:
    data = tmp_path / "..2026"
    data.mkdir()
    (data / "a.yaml").write_text("a: 1\n")
    (tmp_path / "..data").symlink_to(data.name)
    (tmp_path / "a.yaml").symlink_to("..data/a.yaml")
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "b.json").write_text("{}")
    (tmp_path / ".hidden.yaml").mkdir()
    os.mkfifo(tmp_path / "notes.txt")
    names, problems = files.files_of([str(tmp_path)])
    assert [Path(each).name for each in names] == ["a.yaml", "b.json"]
    assert problems == []
