"""What a played API server answers to a list: all objects on one page, or some from a token on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import parse_qs

Json = dict[str, Any]
DEEP = "nested deep"


def nest_deep(body: bytes) -> bytes:
    """JSON with 1,500 lists in place of each text DEEP: json does not write so many."""
    return body.replace(f'"{DEEP}"'.encode(), b"[" * 1500 + b"]" * 1500)


def query_of(path: str) -> tuple[str, dict[str, str]]:
    """A path and its query, apart."""
    path, _, query = path.partition("?")
    return path, {key: each[0] for key, each in parse_qs(query).items()}


def page(objects: Sequence[Any], query: dict[str, str], most: int = 500) -> Json:
    """A page of a list."""
    start = int(query.get("continue") or 0)
    end = start + min(most, int(query.get("limit") or most))
    metadata = {"resourceVersion": "1"} | ({"continue": str(end)} if objects[end:] else {})
    return {"metadata": metadata, "items": list(objects[start:end])}
