"""Stores the versions of documents in force in one ConfigMap, for processes that start later."""

from __future__ import annotations

import base64
import gzip
import json
import logging
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from webhook.catalog.watched_documents import Key
from webhook.cluster.client import ApiError, ApiServer

log = logging.getLogger("podgate.memory")

Json = dict[str, Any]
NAME = "podgate-last-good"
FILE = "documents.json.gz"
LARGEST = 700 * 1024
"""Maximum packed size in bytes: the API server accepts a megabyte of text."""


def collection_of(namespace: str) -> str:
    """The path of the ConfigMaps of a namespace."""
    return f"/api/v1/namespaces/{namespace}/configmaps"


def write_configmap(namespace: str, documents: Mapping[Key, Any]) -> tuple[Json, tuple[Key, ...]]:
    """The ConfigMap with these documents, and the keys of those that do not fit, the largest first."""
    rows = sorted(([*key, body] for key, body in documents.items()), key=lambda row: row[:3])
    left_out: list[Key] = []
    while len(data := pack_rows(rows)) > LARGEST:
        largest = max(rows, key=lambda row: len(json.dumps(row[3])))
        rows.remove(largest)
        left_out.append((largest[0], largest[1], largest[2]))
    body = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": NAME,
            "namespace": namespace,
            "labels": {"app.kubernetes.io/name": "podgate"},
        },
        "binaryData": {FILE: base64.b64encode(data).decode()},
    }
    return body, tuple(left_out)


def pack_rows(rows: list[list[Any]]) -> bytes:
    """Encode rows for storage; equal rows have equal bytes."""
    return gzip.compress(json.dumps(rows, sort_keys=True).encode(), mtime=0)


def documents_of(found: Json | None) -> dict[Key, Any]:
    """The documents in a ConfigMap; empty if it does not exist or cannot be parsed."""
    data = ((found or {}).get("binaryData") or {}).get(FILE) or ""
    try:
        rows = json.loads(gzip.decompress(base64.b64decode(data, validate=True)))
        return {(kind, namespace, name): body for kind, namespace, name, body in rows}
    except (OSError, EOFError, ValueError, TypeError, RecursionError, zlib.error):
        return {}


@dataclass(slots=True)
class LastGoodStore:
    """The ConfigMap of a namespace with the versions in force, so that a broken edit disables no policy."""

    server: ApiServer
    namespace: str
    known: Mapping[Key, Any] | None = None
    left_out: tuple[Key, ...] = ()
    is_forbidden: bool = False

    async def recall(self) -> Mapping[Key, Any]:
        """Read the stored versions; raise ApiError if they cannot be read, so that they are not
        overwritten.

        A controller without the right to read them works without them.
        """
        try:
            self.known = documents_of(await self.server.find(self.path))
        except ApiError as error:
            if error.code != 403:
                raise
            log.warning("last good versions are not remembered: %s", error)
            self.is_forbidden = True
            return {}
        self.is_forbidden = False
        return self.known

    async def keep(self, documents: Mapping[Key, Any]) -> None:
        """Store these documents if they differ from the stored ones; errors are logged, not raised."""
        if self.is_forbidden or self.known == documents:
            return
        body, left_out = write_configmap(self.namespace, documents)
        try:
            await self.server.apply(self.path, body)
        except ApiError as error:
            log.warning("last good versions could not be written: %s", error)
            return
        self.known = documents
        if left_out and left_out != self.left_out:
            names = ", ".join("/".join(filter(None, each)) for each in left_out)
            log.warning("%s has no room for the last good version of %s", NAME, names)
        self.left_out = left_out

    @property
    def path(self) -> str:
        """The path of the ConfigMap."""
        return f"{collection_of(self.namespace)}/{NAME}"
