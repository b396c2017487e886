"""The cluster's documents in a folder: one process writes them, all workers read them."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

Key = tuple[str, str, str]
DOCUMENTS, HEARD, GOOD = "documents.json", "heard.json", "last-good.json"
SCHEMA_FILE, REWRITING = "piece-{}.json", "rewriting-{}.json"


@dataclass(frozen=True, slots=True)
class Seen:
    """The objects by kind, namespace and name; `serial` counts snapshots.

    `crds` are pairs of digest and summary; the digest names a schema file, which is read
    separately.
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
        """The file that each snapshot replaces."""
        return self.folder / DOCUMENTS

    @property
    def socket(self) -> Path:
        """Where the reading process answers workers."""
        return self.folder / "api"

    def write(
        self, serial: int, objects: Mapping[Key, Any], crds: Sequence[tuple[str, Any]] = ()
    ) -> None:
        """Replace the whole snapshot; the schemas of its CRDs are already written."""
        rows = [[*key, body] for key, body in sorted(objects.items())]
        self.put(DOCUMENTS, {"serial": serial, "objects": rows, "crds": crds})

    def write_last_good(self, objects: Mapping[Key, Any]) -> None:
        """Write the versions that other Pods used."""
        self.put(GOOD, {"objects": [[*key, body] for key, body in sorted(objects.items())]})

    def last_good(self) -> dict[Key, Any]:
        """Read the versions that other Pods used; empty before they are written."""
        rows = (self.take(self.folder / GOOD) or {"objects": []})["objects"]
        return {(kind, space, name): body for kind, space, name, body in rows}

    def write_schema(self, digest: str, body: bytes) -> None:
        """Write a schema file, unless it exists."""
        if not (self.folder / SCHEMA_FILE.format(digest)).exists():
            self.put_bytes(SCHEMA_FILE.format(digest), body)

    def read_schema(self, digest: str) -> bytes:
        """Read a schema file."""
        return (self.folder / SCHEMA_FILE.format(digest)).read_bytes()

    def keep_schemas(self, digests: frozenset[str]) -> None:
        """Remove all schema files except these."""
        for file in self.folder.glob(SCHEMA_FILE.format("*")):
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
        """A value that differs between two versions of a file; zeros before the first."""
        try:
            seen = os.stat(f"{self.folder}/{name}")  # noqa: PTH116 - a third of the time
        except FileNotFoundError:
            return 0, 0
        return seen.st_ino, seen.st_mtime_ns

    def write_heard(self, moments: Mapping[str, float]) -> None:
        """Write until when, in Unix time, the documents and other parts are known to be current."""
        self.put(HEARD, moments)

    def heard(self, part: str = "documents") -> float:
        """Read until when a part is known to be current, 0 if unknown."""
        return float((self.take(self.folder / HEARD) or {}).get(part, 0.0))

    def acknowledge(self, worker: int, body: Mapping[str, Any]) -> None:
        """Write which documents a worker uses."""
        self.put(f"worker-{worker}.json", body)

    def acknowledgements(self) -> list[dict[str, Any]]:
        """What every running worker uses."""
        found = []
        for file in sorted(self.folder.glob("worker-*.json")):
            process = file.stem.rpartition("-")[2]
            if not is_running(int(process)):
                file.unlink(missing_ok=True)
            elif (body := self.take(file)) is not None:
                seen = self.take(self.folder / REWRITING.format(process)) or {}
                found.append({**body, "rewriting": seen.get("rows", [])})
        return found

    def report_rewriting(self, worker: int, rows: list[dict[str, Any]]) -> None:
        """Write the users who remove values that podgate writes, as one worker has counted them."""
        self.put(REWRITING.format(worker), {"rows": rows})

    def put(self, name: str, body: Mapping[str, Any]) -> None:
        """Write a file atomically."""
        self.put_bytes(name, orjson.dumps(body))

    def put_bytes(self, name: str, body: bytes) -> None:
        """Write encoded data atomically."""
        fresh = self.folder / f".{name}.{os.getpid()}"
        try:
            fresh.write_bytes(body)
            fresh.replace(self.folder / name)
        except OSError:
            # Remove the unfinished file, which would fill the volume.
            with contextlib.suppress(OSError):
                fresh.unlink()
            raise

    def take(self, file: Path) -> dict[str, Any] | None:
        """Read a file, None if it does not exist."""
        try:
            body: dict[str, Any] = orjson.loads(file.read_bytes())
        except FileNotFoundError:
            return None
        return body


def is_running(process: int) -> bool:
    """Whether a process of this Pod exists."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
