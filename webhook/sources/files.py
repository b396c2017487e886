"""Documents from files and folders: what is there, read with places, and whether it changed."""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path as FilePath
from typing import BinaryIO

from webhook.documents.problem import Problem
from webhook.documents.source import SourceDocument, SyntaxProblem
from webhook.documents.yaml_source import read_documents

SUFFIXES = (".yaml", ".yml", ".json")
LARGEST = 16 * 1024 * 1024
STDIN = "-"
HANDED_OUT = ("/dev/fd/", "/proc/", "/dev/stdin")


def files_of(paths: Iterable[str]) -> tuple[list[str], list[Problem]]:
    """The files that paths name: files as they are, folders recursively and sorted; `-` is stdin.

    What a folder has with a suffix of ours and cannot be read is a problem, never left out: the
    policy in it would end in silence.
    """
    found: list[str] = []
    problems: list[Problem] = []
    for path in paths:
        place = FilePath(path)
        if place.is_dir():
            inside, faults = members_of(place)
            found += inside
            problems += faults
            if not inside and not faults:
                told = "a folder without YAML or JSON files"
                problems.append(unreadable(path, told, "name another path"))
        elif path == STDIN or place.exists():
            # Pipes too: shells hand them out as files.
            found.append(path)
        else:
            problems.append(unreadable(path, "no such file or folder", "check the path"))
    return found, problems


def members_of(folder: FilePath) -> tuple[list[str], list[Problem]]:
    """The files in a folder and in those below it, and what should be one and is none."""
    found: list[str] = []
    problems: list[Problem] = []

    def closed(error: OSError) -> None:
        problems.append(
            unreadable(str(error.filename), error.strerror or "cannot be read", "check its rights")
        )

    for root, below, names in os.walk(folder, onerror=closed):
        below[:] = sorted(each for each in below if not each.startswith("."))
        for name in sorted((*names, *below)):
            place = FilePath(root, name)
            if place.suffix not in SUFFIXES or name.startswith("."):
                continue
            why = unfit(place)
            if why:
                problems.append(unreadable(str(place), why, "write a file, or remove it"))
            else:
                found.append(str(place))
    return sorted(found), problems


def unfit(place: FilePath) -> str:
    """Why something is no file that can be read; empty for a file."""
    try:
        mode = place.stat().st_mode
    except OSError as error:
        if isinstance(error, FileNotFoundError) and place.is_symlink():
            return f"a link to {os.readlink(place)}, which is not there"  # noqa: PTH115 - a text
        return error.strerror or "cannot be read"
    if stat.S_ISREG(mode):
        return ""
    return "a folder" if stat.S_ISDIR(mode) else "a pipe, a socket or a device, and no file"


def unreadable(origin: str, found: str, fix: str) -> Problem:
    """A path that gives no documents."""
    return Problem(origin, "", found, fix, "unreadable")


def read_file(path: str) -> bytes | Problem:
    """The bytes of a file or of standard input, or why there are none."""
    try:
        if path == STDIN:
            data = sys.stdin.buffer.read(LARGEST + 1)
        else:
            with opened(path) as file:
                data = file.read(LARGEST + 1)
    except OSError as error:
        return unreadable(path, error.strerror or "cannot be read", "check the file")
    if len(data) > LARGEST:
        return unreadable(path, f"more than {LARGEST // 2**20} MiB", "split the file")
    return data


def opened(path: str) -> BinaryIO:
    """A file to read. A pipe with a name could keep its reader for ever, and is refused.

    Pipes that a shell hands out have a descriptor already, and end.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISFIFO(mode) and not path.startswith(HANDED_OUT):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "a pipe, and no file", path)
    os.set_blocking(descriptor, True)
    return os.fdopen(descriptor, "rb")


def origin_of(path: str) -> str:
    """How a file is named to people."""
    return "<stdin>" if path == STDIN else path


def problem_of(fault: SyntaxProblem) -> Problem:
    """A fault of YAML as a problem like any other."""
    return Problem(fault.origin, "", fault.message, fault.fix, "bad-yaml", fault.line, fault.column)


def read_all(
    paths: Sequence[str], *, kubernetes: bool = False
) -> tuple[list[SourceDocument], list[Problem]]:
    """Every document of every file, and every problem; `kubernetes` reads manifests as kubectl."""
    files, problems = files_of(paths)
    documents: list[SourceDocument] = []
    for path in files:
        data = read_file(path)
        if isinstance(data, Problem):
            problems.append(data)
            continue
        found, faults = read_documents(data, origin_of(path), kubernetes=kubernetes)
        documents += found
        problems += [problem_of(fault) for fault in faults]
    return documents, problems


def fingerprint(paths: Sequence[str]) -> tuple[tuple[str, int, int, int], ...]:
    """Name, inode, size and change time of every file, so that a difference means a change."""
    names, problems = files_of(paths)
    found = [(each.origin, 0, 0, 0) for each in problems]
    for path in names:
        try:
            state = os.stat(path)  # noqa: PTH116 - follows kubelet's symlinks in one call
        except OSError:
            continue
        found.append((path, state.st_ino, state.st_size, state.st_mtime_ns))
    return tuple(found)


def shipped_folder(name: str = "policies") -> FilePath:
    """Where the shipped policies, definitions and tables are: in the package or the checkout."""
    package = FilePath(__file__).resolve().parent.parent
    inside = package / FilePath(name).name
    return inside if inside.is_dir() else package.parent / name
