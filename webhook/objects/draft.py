"""Changes to a JSON document: a copy-on-write draft, compared once with what it came from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from webhook.objects import path as pointer
from webhook.objects.path import ABSENT, Assembled, Path

Operation = dict[str, Any]
Container = dict[str, Any] | list[Any]


class PatchError(TypeError):
    """A write met a value of the wrong type: `path` is the place, `wanted` what it had to be."""

    def __init__(self, path: Path, wanted: str, found: Any) -> None:
        super().__init__(f"{pointer.display(path)} is not {wanted} but {_kind(found)}")
        self.path = path
        self.wanted = wanted


def listed(path: Path, value: Any) -> tuple[Path, Any] | None:
    """A list's place and the item as the document writes it; None where it has no such place."""
    if path and path[0].__class__ is Assembled:
        places = path[0].places
        if not places.holds(path[1:]):
            return None
        return places.real(path[1:]), places.item(path[1:], value)
    return path, value


class Draft:
    """A document under change; the original and every value handed in stay untouched.

    Only containers between the root and a change are copied, each once. `changed` tells whether
    a write put in something new (always true after `own`, whose use cannot be seen). `version`
    counts the writes. What `keeps` says no to is not written, and `refused` tells that so it was.
    """

    __slots__ = (
        "_lent",
        "_owned",
        "_places",
        "changed",
        "document",
        "keeps",
        "original",
        "refused",
        "version",
    )

    def __init__(self, document: Any, keeps: Callable[[Path, Any], bool] | None = None) -> None:
        self.keeps = keeps
        self.refused = False
        self.original = document
        self.document = document
        self.changed = False
        self.version = 0
        # Ids are unique only among the living, so owned containers are kept even when cut off.
        self._owned: dict[int, Container] = {}
        # Where owned containers are, until one moves; who borrowed one may move it unseen.
        self._places: dict[Path, Container] = {}
        self._lent = False

    def own(self, path: Path) -> Container:
        """The writable container at `path`; missing maps are made, also in place of null.

        Raises PatchError when a step meets another type or an index that does not exist.
        """
        container = self._own(path, dict)
        self.version += 1
        self.changed = self._lent = True
        self._places.clear()
        return container

    def set(self, path: Path, value: Any) -> None:
        """Put `value` at `path`, making missing maps; a list index must exist.

        Raises PatchError when a step meets a wrong type.
        """
        self.version += 1
        if not path:
            self.changed = self.changed or not same(self.document, value)
            self.document = value
            self._places.clear()
            return
        if path[0].__class__ is Assembled:
            for place, held in path[0].places.writes(path[1:], value):
                self.set(place, held)
            return
        if self.keeps is not None and not self.keeps(path, value):
            self.refused = True
            return
        around, step = path[:-1], path[-1]
        parent: Any = self._places.get(around)
        if parent is None:
            parent = self._own(around, dict)
        if type(parent) is dict and type(step) is str:
            present = parent.get(step, ABSENT)
        else:
            present = _child(parent, path)
        parent[step] = value
        if type(present) is dict or type(present) is list:
            self._places.clear()
        if not self.changed:
            self.changed = not same(present, value)

    def insert(self, list_path: Path, index: int, value: Any) -> None:
        """Insert `value` before `index` (at most the length) of a list, making a missing list.

        Raises PatchError when there is something else than a list, or no such index.
        """
        found = listed(list_path, value)
        if found is None:
            return
        list_path, value = found
        if self.keeps is not None and not self.keeps((*list_path, 0), value):
            self.refused = True
            return
        items = self._own(list_path, list)
        if not isinstance(items, list):
            raise PatchError(list_path, "a list", items)
        if not 0 <= index <= len(items):
            raise PatchError((*list_path, index), "an existing item", ABSENT)
        items.insert(index, value)
        self.version += 1
        self.changed = True
        self._places.clear()

    def append(self, list_path: Path, value: Any) -> None:
        """Put `value` at the end of a list, making a missing list; raises PatchError as insert."""
        found = listed(list_path, value)
        if found is None:
            return
        list_path, value = found
        if self.keeps is not None and not self.keeps((*list_path, 0), value):
            self.refused = True
            return
        items = self._own(list_path, list)
        if not isinstance(items, list):
            raise PatchError(list_path, "a list", items)
        items.append(value)
        self.version += 1
        self.changed = True

    def remove(self, path: Path) -> None:
        """Take away the key or list item at `path`; what is absent already is no error."""
        if not path:
            raise PatchError(path, "a member of something", self.document)
        if pointer.read(self.document, path) is ABSENT:
            return
        parent: Any = self._own(path[:-1], dict)
        del parent[path[-1]]
        self.version += 1
        self.changed = True
        self._places.clear()

    def _own(self, path: Path, make: type[Container]) -> Container:
        """As `own`, the last container being made by `make` when it is missing."""
        container = self._places.get(path)
        if container is not None:
            return container
        if path:
            parent: Any = self._own(path[:-1], dict)
            present = _child(parent, path)
            container = self._owned.get(id(present))
            if container is None:
                container = parent[path[-1]] = self._copied(present, path, make)
        else:
            container = self._owned.get(id(self.document))
            if container is None:
                container = self.document = self._copied(self.document, path, make)
        if not self._lent:
            self._places[path] = container
        return container

    def _copied(self, node: Any, path: Path, make: type[Container]) -> Container:
        kind = type(node)
        copied: Container
        if kind is dict or kind is list:
            copied = node.copy()
        elif node is None or node is ABSENT:
            copied = make()
            self.changed = True
        else:
            raise PatchError(path, "an object or a list", node)
        self._owned[id(copied)] = copied
        return copied


def same(old: Any, new: Any) -> bool:
    """Equality of JSON values, in which 1, 1.0 and true are three different values."""
    if old is new:
        return True
    kind = type(old)
    if kind is not type(new):
        return False
    if kind is dict:
        return len(old) == len(new) and all(
            key in new and same(value, new[key]) for key, value in old.items()
        )
    if kind is list:
        return len(old) == len(new) and all(map(same, old, new))
    return bool(old == new)


def diff(old: Any, new: Any) -> list[Operation]:
    """RFC 6902 operations (add, remove, replace) that lead from `old` to `new`, in this order.

    Identical parts cost nothing, so `new` should share with `old` what did not change. Values in
    operations are copies: later writes to `new` do not reach them.
    """
    operations: list[Operation] = []
    if old is not new:
        _compare(old, new, "", operations)
    return operations


def _compare(old: Any, new: Any, place: str, operations: list[Operation]) -> None:
    kind = type(old)
    if kind is type(new):
        if kind is dict:
            _compare_maps(old, new, place, operations)
            return
        if kind is list:
            _compare_lists(old, new, place, operations)
            return
        if old == new:
            return
    operations.append({"op": "replace", "path": place, "value": _snapshot(new)})


def _compare_maps(
    old: dict[str, Any], new: dict[str, Any], place: str, operations: list[Operation]
) -> None:
    kept = len(old)
    for key, value in old.items():
        other = new.get(key, ABSENT)
        if other is value:
            continue
        if other is ABSENT:
            kept -= 1
            operations.append({"op": "remove", "path": place + pointer.token(key)})
        elif type(value) is dict and type(other) is dict:
            _compare_maps(value, other, place + pointer.token(key), operations)
        else:
            _compare(value, other, place + pointer.token(key), operations)
    if kept < len(new):
        for key, value in new.items():
            if key not in old:
                operations.append(_addition(place + pointer.token(key), value))


def _compare_lists(old: list[Any], new: list[Any], place: str, operations: list[Operation]) -> None:
    start = end = 0
    shorter = min(len(old), len(new))
    # Lists of one length need no trimming: equal pairs give no operation anyway.
    if len(old) != len(new):
        while start < shorter and same(old[start], new[start]):
            start += 1
        while end < shorter - start and same(old[-1 - end], new[-1 - end]):
            end += 1
    paired = shorter - end
    for index in range(start, paired):
        if old[index] is not new[index]:
            _compare(old[index], new[index], f"{place}/{index}", operations)
    # From the end, so that what is removed does not move what is still to be removed.
    operations.extend(
        {"op": "remove", "path": f"{place}/{index}"}
        for index in reversed(range(paired, len(old) - end))
    )
    operations.extend(
        _addition(f"{place}/{index}", new[index]) for index in range(paired, len(new) - end)
    )


def _addition(path: str, value: Any) -> Operation:
    if type(value) is dict or type(value) is list:
        value = _snapshot(value)
    return {"op": "add", "path": path, "value": value}


def _snapshot(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _snapshot(member) for key, member in value.items()}
    if isinstance(value, list):
        return [_snapshot(member) for member in value]
    return value


def _child(container: Container, path: Path) -> Any:
    """What stands in `container` at the last step of `path`, ABSENT for a key not there."""
    step = path[-1]
    if type(container) is dict and type(step) is str:
        return container.get(step, ABSENT)
    if type(container) is list and type(step) is int:
        if 0 <= step < len(container):
            return container[step]
        raise PatchError(path, "an existing item", ABSENT)
    raise PatchError(path[:-1], "an object" if type(step) is str else "a list", container)


def _kind(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "text", bool: "a boolean"}
    return "absent" if value is ABSENT else names.get(type(value), "a number")
