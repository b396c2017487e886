"""The field sets of managedFields: the paths of an object that managers have applied."""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable
from typing import Any, Final

from webhook.objects.lookup import frozen
from webhook.objects.path import Path

MOST_KEY_SETS: Final = 16
"""Items of a list have one set of keys. If a node has more sets than this, none is used."""

Node = dict[str, Any]


class FieldSets:
    """The field sets of several managers together.

    Users write them, with as many entries and items as they like: sets are merged into one, and
    what it says of a list is indexed when an item of that list is first asked about.
    """

    __slots__ = ("indexes", "root")

    def __init__(self, sets: Iterable[Any]) -> None:
        self.root: Node = {}
        self.indexes: dict[int, ItemIndex] = {}
        roots = [each for each in sets if isinstance(each, dict)]
        if len(roots) == 1:
            self.root = roots[0]
        else:
            for each in roots:
                merge(self.root, each)

    def own(self, document: Any, path: Path) -> bool:
        """Whether a set has the path `path` of `document` itself."""
        return own_below(self, self.root, document, path)

    def of_item(self, node: Node, item: Any, position: int) -> list[Any]:
        """Return the nodes for one list element."""
        index = self.indexes.get(id(node))
        if index is None:
            index = self.indexes[id(node)] = ItemIndex(node)
        return index.find(item, position)


def own_below(sets: FieldSets, node: Any, document: Any, path: Path) -> bool:
    """Whether `node`, which is for `document`, or a node below it has the path `path`."""
    for at, step in enumerate(path):
        if not isinstance(node, dict):
            return False
        if isinstance(step, int):
            if not isinstance(document, list) or step >= len(document):
                return False
            item, rest = document[step], path[at + 1 :]
            found = sets.of_item(node, item, step)
            return any(own_below(sets, each, item, rest) for each in found)
        node = node.get(f"f:{step}")
        document = document.get(step) if isinstance(document, dict) else None
    return isinstance(node, dict)


class ItemIndex:
    """The items of a list in one node: by `k:` keys, by `v:` value, by `i:` position."""

    __slots__ = ("by_keys", "by_position", "by_value", "node")

    def __init__(self, node: Node) -> None:
        self.node = node  # kept, so that its id stays its own
        self.by_keys: dict[tuple[str, ...], dict[Hashable, Any]] = {}
        self.by_value: dict[Hashable, Any] = {}
        self.by_position: dict[str, Any] = {}
        for name, child in node.items():
            sort, _, text = name.partition(":")
            if sort == "i":
                self.by_position[text] = child
            elif sort in ("k", "v"):
                self.add(sort, text, child)

    def add(self, sort: str, text: str, child: Any) -> None:
        """Add one node by its key or value. Text that is not JSON matches no item."""
        try:
            decoded = json.loads(text)
        except (ValueError, RecursionError):
            return
        if sort == "v":
            self.by_value.setdefault(frozen(decoded), child)
        elif isinstance(decoded, dict):
            keys = tuple(sorted(decoded))
            if keys in self.by_keys or len(self.by_keys) < MOST_KEY_SETS:
                held = self.by_keys.setdefault(keys, {})
                held.setdefault(tuple(frozen(decoded[key]) for key in keys), child)

    def find(self, item: Any, position: int) -> list[Any]:
        """Return the nodes for an item."""
        found = [self.by_position.get(str(position))]
        if self.by_value:
            found.append(self.by_value.get(frozen(item)))
        if isinstance(item, dict):
            found += [
                held.get(tuple(frozen(item.get(key)) for key in keys))
                for keys, held in self.by_keys.items()
            ]
        return found


def merge(into: Node, other: Node) -> None:
    """Merge two field sets. The original nodes are not changed."""
    stack = [(into, other)]
    while stack:
        target, source = stack.pop()
        for name, child in source.items():
            if not isinstance(child, dict):
                continue
            held = target.get(name)
            if held is None:
                held = target[name] = {}
            stack.append((held, child))
