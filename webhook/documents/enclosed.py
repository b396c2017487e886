"""Documents enclosed in another object, as those in the text of a ConfigMap: how they are named and kept.

Their key is the kind and the namespace of what encloses them, and a place in it: its name, the key
of its data, and the document, with slashes between. Neither of the first two can have one.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from webhook.documents.problem import Problem
from webhook.documents.source import SourceDocument

Key = tuple[str, str, str]
"""Kind, namespace and name."""
KIND = "ConfigMap"


@dataclass(frozen=True, slots=True)
class Unread:
    """What stands for the documents of a text that cannot all be read."""

    problems: tuple[Problem, ...]


def is_enclosed(key: Key) -> bool:
    """Whether a document is no object by itself."""
    return key[0] == KIND


def key_of(namespace: str, name: str, file: str = "", document: str = "") -> Key:
    """The key of a document, of a whole text without `document`, of everything without `file`."""
    return KIND, namespace, "/".join((name, file, document) if document else (name, file))


def text_of(key: Key) -> Key:
    """The key of the whole text that a document is in."""
    return *key[:2], "/".join(key[2].split("/")[:2])


def origin_of(key: Key) -> str:
    """How problems name an object of the cluster, or what is in one."""
    kind, namespace, name = key
    inside = ""
    if is_enclosed(key):
        name, file, *document = name.split("/", 2)
        inside = "".join(f", {each}" for each in (file and f"key {file}", *document) if each)
    return f"{kind} {namespace}/{name}{inside}" if namespace else f"{kind} {name}{inside}"


def number_of(data: Any) -> int:
    """The generation of an object, 1 where it has none; for a text, a number of what it says."""
    if isinstance(data, SourceDocument):
        return zlib.crc32(json.dumps(kept(data), sort_keys=True).encode()) or 1
    metadata = data.get("metadata") if isinstance(data, dict) else None
    number = metadata.get("generation") if isinstance(metadata, dict) else None
    return number if isinstance(number, int) and number > 0 else 1


def kept(data: Any) -> Any:
    """A document as plain JSON, to be remembered: without its lines, with what scalars look like."""
    if not isinstance(data, SourceDocument):
        return data
    return {"data": data.data, "texts": [[list(path), text] for path, text in data.texts.items()]}


def source_of(key: Key, data: Any) -> SourceDocument:
    """A document to be read: as it was read before, as it is remembered, or an object."""
    if isinstance(data, SourceDocument):
        return data
    texts: Mapping[Any, str] = {}
    if is_enclosed(key):
        data, texts = data["data"], {tuple(path): text for path, text in data["texts"]}
    return SourceDocument(origin_of(key), 1, data, {}, texts)


def still_there(known: Collection[Key], documents: Mapping[Key, Any]) -> set[Key]:
    """The known documents that may still be in a text which cannot be read."""
    return {
        key
        for key in known
        if is_enclosed(key)
        and key not in documents
        and isinstance(documents.get(text_of(key)), Unread)
    }
