"""Documents from files and folders: what is there, read with places, and whether it changed."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path as FilePath

from webhook.adapters.yaml_source import read_documents
from webhook.core.decision import Problem
from webhook.core.source import SourceDocument, SyntaxProblem

SUFFIXES = (".yaml", ".yml", ".json")
LARGEST = 16 * 1024 * 1024
STDIN = "-"


def files_of(paths: Iterable[str]) -> tuple[list[str], list[Problem]]:
    """The files that paths name: files as they are, folders recursively and sorted; `-` is stdin."""
    found: list[str] = []
    problems: list[Problem] = []
    for path in paths:
        place = FilePath(path)
        if place.is_dir():
            inside = sorted(
                str(each)
                for each in place.rglob("*")
                if each.suffix in SUFFIXES and each.is_file() and not is_hidden(each, place)
            )
            found += inside
            if not inside:
                told = "a folder without YAML or JSON files"
                problems.append(unreadable(path, told, "name another path"))
        elif path == STDIN or place.exists():
            # Pipes too: shells hand them out as files.
            found.append(path)
        else:
            problems.append(unreadable(path, "no such file or folder", "check the path"))
    return found, problems


def is_hidden(path: FilePath, base: FilePath) -> bool:
    """Whether a part of the path below the base begins with a dot, as kubelet's ..data does."""
    return any(part.startswith(".") for part in path.relative_to(base).parts)


def unreadable(origin: str, found: str, fix: str) -> Problem:
    """A path that gives no documents."""
    return Problem(origin, "", found, fix, "unreadable")


def read_file(path: str) -> bytes | Problem:
    """The bytes of a file or of standard input, or why there are none."""
    try:
        if path == STDIN:
            data = sys.stdin.buffer.read(LARGEST + 1)
        else:
            with FilePath(path).open("rb") as file:
                data = file.read(LARGEST + 1)
    except OSError as error:
        return unreadable(path, error.strerror or "cannot be read", "check the file")
    if len(data) > LARGEST:
        return unreadable(path, f"more than {LARGEST // 2**20} MiB", "split the file")
    return data


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
    found = []
    for path in files_of(paths)[0]:
        try:
            state = os.stat(path)  # noqa: PTH116 - follows kubelet's symlinks in one call
        except OSError:
            continue
        found.append((path, state.st_ino, state.st_size, state.st_mtime_ns))
    return tuple(found)


def shipped_folder() -> FilePath:
    """Where the shipped policies, definitions and tables are: in the package or the checkout."""
    package = FilePath(__file__).resolve().parent.parent
    inside = package / "policies"
    return inside if inside.is_dir() else package.parent / "policies"
