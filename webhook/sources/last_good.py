"""The versions of documents that are in force, packed into one ConfigMap for whoever starts later."""

from __future__ import annotations

import base64
import gzip
import json
import zlib
from collections.abc import Mapping
from typing import Any

from webhook.catalog.watched_documents import Key

Json = dict[str, Any]
NAME = "podgate-last-good"
FILE = "documents.json.gz"
LARGEST = 700 * 1024
"""Packed bytes that are written at most: the API server takes a megabyte of text."""


def collection_of(namespace: str) -> str:
    """The path of the ConfigMaps of a namespace."""
    return f"/api/v1/namespaces/{namespace}/configmaps"


def written(namespace: str, documents: Mapping[Key, Any]) -> tuple[Json, tuple[Key, ...]]:
    """The ConfigMap that holds these documents, and those that find no room, the largest."""
    rows = sorted(([*key, body] for key, body in documents.items()), key=lambda row: row[:3])
    left_out: list[Key] = []
    while len(data := packed(rows)) > LARGEST:
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


def packed(rows: list[list[Any]]) -> bytes:
    """Rows as they are stored: the same rows are the same bytes."""
    return gzip.compress(json.dumps(rows, sort_keys=True).encode(), mtime=0)


def documents_of(found: Json | None) -> dict[Key, Any]:
    """The documents in a ConfigMap; none where it is not there or nobody can read it."""
    data = ((found or {}).get("binaryData") or {}).get(FILE) or ""
    try:
        rows = json.loads(gzip.decompress(base64.b64decode(data, validate=True)))
        return {(kind, namespace, name): body for kind, namespace, name, body in rows}
    except (OSError, EOFError, ValueError, TypeError, RecursionError, zlib.error):
        return {}
