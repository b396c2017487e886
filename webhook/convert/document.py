"""A document under construction: plain data, and the original path of each of its paths."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from webhook.documents.source import SourceDocument
from webhook.objects.path import ABSENT, Path, read


@dataclass(slots=True)
class DraftDocument:
    """Data that is written path by path. `sources` maps a path to the path in the old document."""

    data: dict[str, Any] = field(default_factory=dict)
    sources: dict[Path, Path] = field(default_factory=dict)

    def put(self, path: Path, value: Any, source: Path) -> None:
        """Write a value, and create the maps above it."""
        node = self.data
        for step in path[:-1]:
            node = node.setdefault(str(step), {})
        node[str(path[-1])] = value
        self.sources[path] = source

    def append(self, path: Path, value: Any, source: Path) -> None:
        """Append an element to a list. An absent list is created."""
        listed = read(self.data, path)
        if listed is ABSENT:
            listed = []
            self.put(path, listed, source)
        listed.append(value)
        self.sources[*path, len(listed) - 1] = source

    def source(self, path: Path) -> Path:
        """Return the path in the old document for a path, or for the nearest one above it."""
        for length in range(len(path), -1, -1):
            if path[:length] in self.sources:
                return self.sources[path[:length]]
        return ()

    def remove(self, path: Path) -> None:
        """Remove a path, and maps and lists above it that become empty."""
        parent = read(self.data, path[:-1])
        if isinstance(parent, dict):
            parent.pop(path[-1], None)
        elif isinstance(parent, list) and isinstance(path[-1], int) and path[-1] < len(parent):
            # The elements after it move, so only the source of the list remains known.
            del parent[path[-1]]
            self.forget_elements(path[:-1])
        if not parent and len(path) > 1:
            self.remove(path[:-1])

    def forget_elements(self, path: Path) -> None:
        """Remove the sources of a list's elements."""
        for known in [each for each in self.sources if each[: len(path)] == path and each != path]:
            del self.sources[known]

    def document(self, origin: str) -> tuple[SourceDocument, list[Path]]:
        """Return the data as a document with one line for each path, and the paths by line."""
        places = list(places_of(self.data))
        positions = {path: (line, 1) for line, path in enumerate(places, 1)}
        return SourceDocument(origin, 1, self.data, positions, {}), places


def places_of(value: Any, path: Path = ()) -> Any:
    """Return every path of the data, parents first."""
    yield path
    if isinstance(value, dict):
        for key, below in value.items():
            yield from places_of(below, (*path, key))
    elif isinstance(value, list):
        for index, below in enumerate(value):
            yield from places_of(below, (*path, index))


def restore_texts(document: SourceDocument, raw: Any, path: Path) -> Any:
    """Return a copy of raw data with the source text of scalars that YAML can change."""
    if isinstance(raw, dict):
        return {
            str(key): restore_texts(document, each, (*path, key))
            for key, each in raw.items()
            if each is not None
        }
    if isinstance(raw, list):
        return [restore_texts(document, each, (*path, index)) for index, each in enumerate(raw)]
    text = document.text(path)
    return raw if text is None or isinstance(raw, bool) else text
