"""ConfigMaps of podgate's own namespace whose text holds documents, read as files are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from webhook.cluster.client import Collection
from webhook.documents.enclosed import KIND, Key, Unread, key_of, origin_of
from webhook.documents.problem import Problem
from webhook.documents.source import SourceDocument
from webhook.documents.yaml_source import read_documents
from webhook.sources.files import SUFFIXES, problem_of
from webhook.sources.last_good import collection_of

LABEL = "podgate.dev/documents"
Read = Mapping[Key, SourceDocument | Unread]


def labelled(namespace: str) -> Collection:
    """The ConfigMaps of a namespace that hold documents."""
    return Collection(collection_of(namespace), query={"labelSelector": f"{LABEL}=true"})


@dataclass(slots=True)
class ConfigMaps:
    """What was read of their texts; one that did not change is not read again."""

    texts: dict[Key, tuple[str, Read]] = field(default_factory=dict)

    def opened(self, objects: Mapping[Key, Any]) -> dict[Key, Any]:
        """These objects, with the documents in ConfigMaps in the place of those."""
        found = {key: body for key, body in objects.items() if key[0] != KIND}
        texts: dict[Key, tuple[str, Read]] = {}
        for (kind, namespace, name), body in objects.items():
            if kind != KIND:
                continue
            files = texts_of(body)
            if not files:
                found |= empty(namespace, name)
            for file, text in files.items():
                key = key_of(namespace, name, file)
                known = self.texts.get(key)
                same = known is not None and known[0] == text
                texts[key] = known if known and same else (text, read(namespace, name, file, text))
                found |= texts[key][1]
        self.texts = texts
        return found


def texts_of(body: Mapping[str, Any]) -> dict[str, str]:
    """The texts of a ConfigMap that are named as files of documents are."""
    data = body.get("data") or {}
    return {file: str(text) for file, text in sorted(data.items()) if file.endswith(SUFFIXES)}


def empty(namespace: str, name: str) -> Read:
    """What is told of a ConfigMap that says it has documents and has none."""
    key = key_of(namespace, name)
    found = f"no key of data that ends in {', '.join(SUFFIXES)}"
    fix = f"name the key as a file of documents, or take the label {LABEL} away"
    return {key: Unread((Problem(origin_of(key), "data", found, fix, "no-documents"),))}


def read(namespace: str, name: str, file: str, text: str) -> Read:
    """The documents of one text by their keys, and what is wrong with the rest of it."""
    whole = key_of(namespace, name, file)
    documents, faults = read_documents(text, origin_of(whole))
    found: dict[Key, SourceDocument | Unread] = {}
    if faults:
        found[whole] = Unread(tuple(map(problem_of, faults)))
    for each in documents:
        title = title_of(each.data) or f"document {each.index}"
        key = key_of(namespace, name, file, title)
        if key in found:
            key = key_of(namespace, name, file, f"{title} in document {each.index}")
        found[key] = replace(each, origin=origin_of(key))
    return found


def title_of(data: Any) -> str:
    """Kind, namespace and name as a document says them: by these it is known when it changes."""
    if not isinstance(data, dict):
        return ""
    metadata = data.get("metadata")
    named = metadata if isinstance(metadata, dict) else {}
    place = [each for each in (named.get("namespace"), named.get("name")) if isinstance(each, str)]
    kind = data.get("kind")
    return f"{kind} {'/'.join(place)}" if isinstance(kind, str) and named.get("name") else ""
