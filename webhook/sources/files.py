"""Reads documents from files and folders, with their source positions, and detects changes."""

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

    A file in a folder with a known suffix that cannot be read is a problem. Otherwise its policy
    would stop to apply without notice.
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
                message = "a folder without YAML or JSON files"
                problems.append(unreadable(path, message, "name another path"))
        elif path == STDIN or place.exists():
            # Also pipes: shells pass them as files.
            found.append(path)
        else:
            problems.append(unreadable(path, "no such file or folder", "check the path"))
    return found, problems


def members_of(folder: FilePath) -> tuple[list[str], list[Problem]]:
    """The files in a folder and its subfolders, and the problems of entries that are not files."""
    found: list[str] = []
    problems: list[Problem] = []

    def note_unreadable(error: OSError) -> None:
        problems.append(
            unreadable(str(error.filename), error.strerror or "cannot be read", "check its rights")
        )

    for root, below, names in os.walk(folder, onerror=note_unreadable):
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
    """Why an entry is not a readable file; empty for a file."""
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
    """The problem of a path that cannot be read."""
    return Problem(origin, "", found, fix, "unreadable")


def read_file(path: str) -> bytes | Problem:
    """The bytes of a file or of standard input, or the reason why they cannot be read."""
    try:
        if path == STDIN:
            data = sys.stdin.buffer.read(LARGEST + 1)
        else:
            with open_file(path) as file:
                data = file.read(LARGEST + 1)
    except OSError as error:
        return unreadable(path, error.strerror or "cannot be read", "check the file")
    if len(data) > LARGEST:
        return unreadable(path, f"more than {LARGEST // 2**20} MiB", "split the file")
    return data


def open_file(path: str) -> BinaryIO:
    """Open a file. Named pipes are refused, as they could block the reader without end.

    Pipes from a shell have a descriptor already, and end.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISFIFO(mode) and not path.startswith(HANDED_OUT):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "a pipe, and no file", path)
    os.set_blocking(descriptor, True)
    return os.fdopen(descriptor, "rb")


def origin_of(path: str) -> str:
    """The name of a file in messages."""
    return "<stdin>" if path == STDIN else path


def problem_of(fault: SyntaxProblem) -> Problem:
    """A YAML error as a problem."""
    return Problem(fault.origin, "", fault.message, fault.fix, "bad-yaml", fault.line, fault.column)


def read_all(
    paths: Sequence[str], *, kubernetes: bool = False
) -> tuple[list[SourceDocument], list[Problem]]:
    """Every document of every file, and every problem; `kubernetes` parses manifests as kubectl does."""
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
    """Name, inode, size and change time of every file; a difference means that a file changed."""
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
    """The folder of the shipped policies, definitions and tables: in the package or the checkout."""
    package = FilePath(__file__).resolve().parent.parent
    inside = package / FilePath(name).name
    return inside if inside.is_dir() else package.parent / name
