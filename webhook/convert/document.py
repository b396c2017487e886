"""A document under construction: plain data, and for each of its places the one it came from."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from webhook.documents.source import SourceDocument
from webhook.objects.path import ABSENT, Path, read


@dataclass(slots=True)
class Sheet:
    """Data that is written place by place; `sources` leads from a place to the old document's."""

    data: dict[str, Any] = field(default_factory=dict)
    sources: dict[Path, Path] = field(default_factory=dict)

    def put(self, path: Path, value: Any, source: Path) -> None:
        """Write a value, with the maps above it."""
        node = self.data
        for step in path[:-1]:
            node = node.setdefault(str(step), {})
        node[str(path[-1])] = value
        self.sources[path] = source

    def append(self, path: Path, value: Any, source: Path) -> None:
        """Add an element to a list, which is made when it is absent."""
        listed = read(self.data, path)
        if listed is ABSENT:
            listed = []
            self.put(path, listed, source)
        listed.append(value)
        self.sources[*path, len(listed) - 1] = source

    def source(self, path: Path) -> Path:
        """The place of the old document that a place, or the nearest one above it, came from."""
        for length in range(len(path), -1, -1):
            if path[:length] in self.sources:
                return self.sources[path[:length]]
        return ()

    def remove(self, path: Path) -> None:
        """Take a place out, and the maps and lists above it that are empty then."""
        parent = read(self.data, path[:-1])
        if isinstance(parent, dict):
            parent.pop(path[-1], None)
        elif isinstance(parent, list) and isinstance(path[-1], int) and path[-1] < len(parent):
            # The elements behind it move, so their places are known by the list alone.
            del parent[path[-1]]
            self.forget_elements(path[:-1])
        if not parent and len(path) > 1:
            self.remove(path[:-1])

    def forget_elements(self, path: Path) -> None:
        """Forget the places inside a list."""
        for known in [each for each in self.sources if each[: len(path)] == path and each != path]:
            del self.sources[known]

    def document(self, origin: str) -> tuple[SourceDocument, list[Path]]:
        """The data as a document whose line numbers count its places; the places by line."""
        places = list(places_of(self.data))
        positions = {path: (line, 1) for line, path in enumerate(places, 1)}
        return SourceDocument(origin, 1, self.data, positions, {}), places


def places_of(value: Any, path: Path = ()) -> Any:
    """Every place of the data, parents first."""
    yield path
    if isinstance(value, dict):
        for key, below in value.items():
            yield from places_of(below, (*path, key))
    elif isinstance(value, list):
        for index, below in enumerate(value):
            yield from places_of(below, (*path, index))


def restored(document: SourceDocument, raw: Any, path: Path) -> Any:
    """A copy of raw data in which scalars that YAML may read otherwise are the author's texts."""
    if isinstance(raw, dict):
        return {
            str(key): restored(document, each, (*path, key))
            for key, each in raw.items()
            if each is not None
        }
    if isinstance(raw, list):
        return [restored(document, each, (*path, index)) for index, each in enumerate(raw)]
    text = document.text(path)
    return raw if text is None or isinstance(raw, bool) else text
