"""Documents inside another object, such as in the text of a ConfigMap: their keys and storage.

Their key is the kind and namespace of the enclosing object, and a path: the object's name, the key
of its data, and the document, separated by slashes. Name and key cannot contain slashes.
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
    """A placeholder for the documents of a text that cannot be read completely."""

    problems: tuple[Problem, ...]


def is_enclosed(key: Key) -> bool:
    """Whether a document is inside another object."""
    return key[0] == KIND


def key_of(namespace: str, name: str, file: str = "", document: str = "") -> Key:
    """Return the key of a document; without `document` of a whole text, without `file` of all texts."""
    return KIND, namespace, "/".join((name, file, document) if document else (name, file))


def text_of(key: Key) -> Key:
    """Return the key of the text that contains a document."""
    return *key[:2], "/".join(key[2].split("/")[:2])


def origin_of(key: Key) -> str:
    """Return the origin in problems for an object of the cluster, or for a document inside it."""
    kind, namespace, name = key
    inside = ""
    if is_enclosed(key):
        name, file, *document = name.split("/", 2)
        inside = "".join(f", {each}" for each in (file and f"key {file}", *document) if each)
    return f"{kind} {namespace}/{name}{inside}" if namespace else f"{kind} {name}{inside}"


def number_of(data: Any) -> int:
    """Return the generation of an object, by default 1. For a text, a hash of its content."""
    if isinstance(data, SourceDocument):
        return zlib.crc32(json.dumps(to_plain_json(data), sort_keys=True).encode()) or 1
    metadata = data.get("metadata") if isinstance(data, dict) else None
    number = metadata.get("generation") if isinstance(metadata, dict) else None
    return number if isinstance(number, int) and number > 0 else 1


def to_plain_json(data: Any) -> Any:
    """Return a document as plain JSON for storage: without lines, with the text of scalars."""
    if not isinstance(data, SourceDocument):
        return data
    return {"data": data.data, "texts": [[list(path), text] for path, text in data.texts.items()]}


def source_of(key: Key, data: Any) -> SourceDocument:
    """Return a document to parse: already read, from storage, or from an object."""
    if isinstance(data, SourceDocument):
        return data
    texts: Mapping[Any, str] = {}
    if is_enclosed(key):
        data, texts = data["data"], {tuple(path): text for path, text in data["texts"]}
    return SourceDocument(origin_of(key), 1, data, {}, texts)


def still_there(known: Collection[Key], documents: Mapping[Key, Any]) -> set[Key]:
    """Return the known documents that can still be in a text which cannot be read."""
    return {
        key
        for key in known
        if is_enclosed(key)
        and key not in documents
        and isinstance(documents.get(text_of(key)), Unread)
    }
