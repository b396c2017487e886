"""Changes to a JSON document: a copy-on-write draft, and the difference to the original."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from webhook.objects.path import ABSENT, Path, display, read, token

Operation = dict[str, Any]
Container = dict[str, Any] | list[Any]


class PatchError(TypeError):
    """A write found a value of the wrong type at `path`. `wanted` is the expected type."""

    def __init__(self, path: Path, wanted: str, found: Any) -> None:
        super().__init__(f"{display(path)} is not {wanted} but {_kind(found)}")
        self.path = path
        self.wanted = wanted


class Draft:
    """A document under change. The original and every value passed in stay unchanged.

    Only containers between the root and a change are copied, each once. `changed` is whether a
    write added something new (always true after `own`, whose use cannot be seen). `version`
    counts the writes. If `keeps` returns False, nothing is written, and `refused` is set.
    """

    __slots__ = (
        "_lent",
        "_owned",
        "_paths",
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
        # Ids are unique only among existing objects, so owned containers are kept after removal.
        self._owned: dict[int, Container] = {}
        # Owned containers by path, until one moves. A caller of `own` can move one unnoticed.
        self._paths: dict[Path, Container] = {}
        self._lent = False

    def own(self, path: Path) -> Container:
        """Return the writable container at `path`. Missing maps are created, null is replaced.

        Raises PatchError when a step meets another type or an index that does not exist.
        """
        container = self._own(path, dict)
        self.version += 1
        self.changed = self._lent = True
        self._paths.clear()
        return container

    def set(self, path: Path, value: Any) -> None:
        """Set `value` at `path`. Missing maps are created; a list index must exist.

        Raises PatchError when a step meets a wrong type.
        """
        self.version += 1
        if not path:
            self.changed = self.changed or not same(self.document, value)
            self.document = value
            self._paths.clear()
            return
        if self.keeps is not None and not self.keeps(path, value):
            self.refused = True
            return
        around, step = path[:-1], path[-1]
        parent: Any = self._paths.get(around)
        if parent is None:
            parent = self._own(around, dict)
        if type(parent) is dict and type(step) is str:
            present = parent.get(step, ABSENT)
        else:
            present = _child(parent, path)
        parent[step] = value
        if type(present) is dict or type(present) is list:
            self._paths.clear()
        if not self.changed:
            self.changed = not same(present, value)

    def insert(self, list_path: Path, index: int, value: Any) -> None:
        """Insert `value` before `index` (at most the length) of a list. A missing list is created.

        Raises PatchError when there is something else than a list, or no such index.
        """
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
        self._paths.clear()

    def append(self, list_path: Path, value: Any) -> None:
        """Append `value` to a list. A missing list is created. Raises PatchError like insert."""
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
        """Remove the key or list item at `path`. An absent one is no error."""
        if not path:
            raise PatchError(path, "a member of something", self.document)
        if read(self.document, path) is ABSENT:
            return
        parent: Any = self._own(path[:-1], dict)
        del parent[path[-1]]
        self.version += 1
        self.changed = True
        self._paths.clear()

    def _own(self, path: Path, make: type[Container]) -> Container:
        """Like `own`, but a missing last container is created by `make`."""
        container = self._paths.get(path)
        if container is not None:
            return container
        if path:
            parent: Any = self._own(path[:-1], dict)
            present = _child(parent, path)
            container = self._owned.get(id(present))
            if container is None:
                container = parent[path[-1]] = self._copy(present, path, make)
        else:
            container = self._owned.get(id(self.document))
            if container is None:
                container = self.document = self._copy(self.document, path, make)
        if not self._lent:
            self._paths[path] = container
        return container

    def _copy(self, node: Any, path: Path, make: type[Container]) -> Container:
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
    """Whether two JSON values are equal. 1, 1.0 and true are three different values."""
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
    """Return the RFC 6902 operations (add, remove, replace) from `old` to `new`, in order.

    Shared containers are not compared, so `new` should share unchanged containers with `old`. Values
    in operations are copies: later writes to `new` do not change them.
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
            operations.append({"op": "remove", "path": place + token(key)})
        elif type(value) is dict and type(other) is dict:
            _compare_maps(value, other, place + token(key), operations)
        else:
            _compare(value, other, place + token(key), operations)
    if kept < len(new):
        for key, value in new.items():
            if key not in old:
                operations.append(_addition(place + token(key), value))


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
    # From the end, so that a removal does not move items that are removed later.
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
    """Return the value in `container` at the last step of `path`, ABSENT for a missing key."""
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
