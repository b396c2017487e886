"""Finds equal elements in long lists by content: users decide how long lists are.

A scan of a list for every element of another takes the product of their lengths. What is looked up
more than once is looked up here instead.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Any, Final, Generic, TypeVar

from webhook.objects.path import ABSENT

T = TypeVar("T")

FEW: Final = 8
"""Up to this many elements are compared one by one, which is faster than a lookup."""


def frozen(value: Any) -> Hashable:
    """A hashable JSON value. Two are equal only if the values are equal."""
    if value.__class__ is dict:
        return frozenset((key, frozen(member)) for key, member in value.items())
    if value.__class__ is list:
        return tuple(map(frozen, value))
    return value  # type: ignore[no-any-return]  # a scalar


class Lookup(Generic[T]):
    """Elements by key, and by content if several have the same key.

    `alike` compares two elements of one key, `content` gives what is hashed where there are many.
    """

    __slots__ = ("alike", "by_key", "content", "contents")

    def __init__(
        self,
        elements: Iterable[T],
        key: Callable[[T], Hashable],
        alike: Callable[[T, T], bool],
        content: Callable[[T], Hashable],
    ) -> None:
        self.alike = alike
        self.content = content
        self.by_key: dict[Hashable, list[T]] = {}
        self.contents: dict[Hashable, set[Hashable]] = {}
        for each in elements:
            self.by_key.setdefault(key(each), []).append(each)

    def has(self, key: Hashable, element: T) -> bool:
        """Whether an element with that key equals this one."""
        known = self.by_key.get(key)
        if known is None:
            return False
        if len(known) <= FEW:
            return any(self.alike(each, element) for each in known)
        contents = self.contents.get(key)
        if contents is None:
            contents = self.contents[key] = {self.content(each) for each in known}
        return self.content(element) in contents


class Growing:
    """Positions of a list's entries by one of their keys. The list can grow."""

    __slots__ = ("count", "found", "held", "key")

    def __init__(self, key: Callable[[dict[str, Any]], Hashable]) -> None:
        self.key = key
        self.held: list[Any] | None = None
        self.count = 0
        self.found: dict[Hashable, list[int]] = {}

    def at(self, held: list[Any], wanted: Hashable) -> list[int]:
        """Return the positions of the maps with that key, in order."""
        if held is not self.held or len(held) < self.count:
            self.held, self.count, self.found = held, 0, {}
        for index in range(self.count, len(held)):
            if isinstance(held[index], dict):
                self.found.setdefault(self.key(held[index]), []).append(index)
        self.count = len(held)
        return self.found.get(wanted, [])


class ListKeys:
    """Finds maps in lists by one of their members. Each list is read once for each member."""

    __slots__ = ("known",)

    def __init__(self) -> None:
        # A reference to the list is kept, so that its id stays unique.
        self.known: dict[tuple[int, str], tuple[list[Any], dict[Hashable, Any]]] = {}

    def find(self, held: list[Any], key: str, wanted: Any) -> Any:
        """Return the first map in a list whose member `key` is `wanted`, else ABSENT."""
        if len(held) <= FEW:
            for each in held:
                if isinstance(each, dict) and each.get(key) == wanted:
                    return each
            return ABSENT
        known = self.known.get((id(held), key))
        if known is None:
            found: dict[Hashable, Any] = {}
            for each in held:
                if isinstance(each, dict):
                    found.setdefault(frozen(each.get(key)), each)
            known = self.known[id(held), key] = (held, found)
        return known[1].get(frozen(wanted), ABSENT)
