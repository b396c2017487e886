"""The documents of the cluster in a folder: written by the one that watches, read by all workers."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import orjson

Key = tuple[str, str, str]
DOCUMENTS, LOCK, HEARD, GOOD = "documents.json", "watching", "heard.json", "last-good.json"
PIECE, REWRITING = "piece-{}.json", "rewriting-{}.json"


@dataclass(frozen=True, slots=True)
class Seen:
    """The objects by kind, namespace and name; `serial` counts what was written.

    `crds` are rows of digest and brief; a digest is that of a piece, which is read apart.
    """

    serial: int
    objects: Mapping[Key, Any]
    crds: Sequence[tuple[str, Any]] = ()


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A folder in memory or on disk that all processes of one Pod share."""

    folder: Path

    @property
    def file(self) -> Path:
        """What changes with every snapshot."""
        return self.folder / DOCUMENTS

    def write(
        self, serial: int, objects: Mapping[Key, Any], crds: Sequence[tuple[str, Any]] = ()
    ) -> None:
        """Replace the snapshot as a whole; the pieces of its CRDs have been written before."""
        rows = [[*key, body] for key, body in sorted(objects.items())]
        self.put(DOCUMENTS, {"serial": serial, "objects": rows, "crds": crds})

    def write_last_good(self, objects: Mapping[Key, Any]) -> None:
        """Write the versions that other Pods have had in force."""
        self.put(GOOD, {"objects": [[*key, body] for key, body in sorted(objects.items())]})

    def last_good(self) -> dict[Key, Any]:
        """The same; none before they are known."""
        rows = (self.take(self.folder / GOOD) or {"objects": []})["objects"]
        return {(kind, space, name): body for kind, space, name, body in rows}

    def write_piece(self, digest: str, body: bytes) -> None:
        """Write what does not change, unless it is there."""
        if not (self.folder / PIECE.format(digest)).exists():
            self.put_bytes(PIECE.format(digest), body)

    def read_piece(self, digest: str) -> bytes:
        """What was written under a digest."""
        return (self.folder / PIECE.format(digest)).read_bytes()

    def keep_pieces(self, digests: frozenset[str]) -> None:
        """Remove all pieces but these."""
        for file in self.folder.glob(PIECE.format("*")):
            if file.stem.partition("-")[2] not in digests:
                file.unlink(missing_ok=True)

    def read(self) -> Seen | None:
        """The newest snapshot, None before the first."""
        body = self.take(self.file)
        if body is None:
            return None
        return Seen(
            body["serial"],
            {(kind, space, name): each for kind, space, name, each in body["objects"]},
            [(digest, brief) for digest, brief in body["crds"]],
        )

    def mark(self, name: str = DOCUMENTS) -> tuple[int, int]:
        """What differs between two versions of a file; zeros before the first."""
        try:
            seen = (self.folder / name).stat()
        except FileNotFoundError:
            return 0, 0
        return seen.st_ino, seen.st_mtime_ns

    def write_heard(self, moment: float) -> None:
        """Say until when, in Unix time, the snapshot is known to be the newest."""
        self.put(HEARD, {"heard": moment})

    def heard(self) -> float:
        """The same, 0 while nobody has said."""
        return float((self.take(self.folder / HEARD) or {"heard": 0.0})["heard"])

    def acknowledge(self, worker: int, body: Mapping[str, Any]) -> None:
        """Say what a worker judges by."""
        self.put(f"worker-{worker}.json", body)

    def acknowledged(self) -> list[dict[str, Any]]:
        """What every worker that runs has said."""
        found = []
        for file in sorted(self.folder.glob("worker-*.json")):
            process = file.stem.rpartition("-")[2]
            if not is_running(int(process)):
                file.unlink(missing_ok=True)
            elif (body := self.take(file)) is not None:
                seen = self.take(self.folder / REWRITING.format(process)) or {}
                found.append({**body, "rewriting": seen.get("rows", [])})
        return found

    def tell_rewriting(self, worker: int, rows: list[dict[str, Any]]) -> None:
        """Say what a worker has seen of users who take away what podgate writes."""
        self.put(REWRITING.format(worker), {"rows": rows})

    def put(self, name: str, body: Mapping[str, Any]) -> None:
        """Write a file so that nobody reads half of it."""
        self.put_bytes(name, orjson.dumps(body))

    def put_bytes(self, name: str, body: bytes) -> None:
        """The same for what is encoded already."""
        fresh = self.folder / f".{name}.{os.getpid()}"
        try:
            fresh.write_bytes(body)
            fresh.replace(self.folder / name)
        except OSError:
            # A full volume stays full of what was begun, unless it goes.
            with contextlib.suppress(OSError):
                fresh.unlink()
            raise

    def take(self, file: Path) -> dict[str, Any] | None:
        """What a file holds, None where it is not there."""
        try:
            body: dict[str, Any] = orjson.loads(file.read_bytes())
        except FileNotFoundError:
            return None
        return body

    def watchman(self) -> IO[bytes] | None:
        """The right to watch, which one process has while it lives; None while another has it."""
        file = (self.folder / LOCK).open("ab")
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return file
        file.close()
        return None


def is_running(process: int) -> bool:
    """Whether a process of this Pod is there."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
