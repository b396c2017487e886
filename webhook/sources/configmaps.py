"""ConfigMaps in podgate's own namespace whose texts contain documents, in the format of files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from webhook.cluster.list_and_watch import Collection
from webhook.documents.enclosed import KIND, Key, Unread, key_of, origin_of
from webhook.documents.problem import Problem
from webhook.documents.source import SourceDocument
from webhook.documents.yaml_source import read_documents
from webhook.sources.files import SUFFIXES, problem_of
from webhook.sources.last_good import collection_of

LABEL = "podgate.dev/documents"
Read = Mapping[Key, SourceDocument | Unread]


def labelled_collection(namespace: str) -> Collection:
    """The ConfigMaps of a namespace that hold documents."""
    return Collection(collection_of(namespace), query={"labelSelector": f"{LABEL}=true"})


@dataclass(slots=True)
class ConfigMaps:
    """Parses their texts; an unchanged ConfigMap is not parsed again."""

    texts: dict[Key, tuple[str, Read]] = field(default_factory=dict)

    def unpack(self, objects: Mapping[Key, Any]) -> dict[Key, Any]:
        """Return the objects, with ConfigMaps replaced by the documents that they contain."""
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
    """The texts of a ConfigMap whose keys are names of document files."""
    data = body.get("data") or {}
    return {file: str(text) for file, text in sorted(data.items()) if file.endswith(SUFFIXES)}


def empty(namespace: str, name: str) -> Read:
    """The problem of a labelled ConfigMap without documents."""
    key = key_of(namespace, name)
    found = f"no key of data that ends in {', '.join(SUFFIXES)}"
    fix = f"name the key as a file of documents, or take the label {LABEL} away"
    return {key: Unread((Problem(origin_of(key), "data", found, fix, "no-documents"),))}


def read(namespace: str, name: str, file: str, text: str) -> Read:
    """Parse one text: its documents by key, and the problems of the rest."""
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
    """Kind, namespace and name of a document: the key by which changes are detected."""
    if not isinstance(data, dict):
        return ""
    metadata = data.get("metadata")
    named = metadata if isinstance(metadata, dict) else {}
    place = [each for each in (named.get("namespace"), named.get("name")) if isinstance(each, str)]
    kind = data.get("kind")
    return f"{kind} {'/'.join(place)}" if isinstance(kind, str) and named.get("name") else ""
