"""What an API server keeps of a custom resource: its schema, reduced to what prunes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakValueDictionary

from webhook.interface.schema_places import is_open, properties
from webhook.objects.path import Path

ALWAYS_KEPT = ("apiVersion", "kind", "metadata")


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Shape:
    """The keys at one path, the shape of its elements, and whether unknown keys are kept."""

    keys: Mapping[str, Shape]
    each: Shape | None = None
    open: bool = False

    def below(self, step: str | int) -> Shape | None:
        """Return the shape one step below, None if servers keep nothing there."""
        found = self.keys.get(step) if isinstance(step, str) else None
        return found or self.each or (ANYTHING if self.open else None)

    def keeps(self, path: Path, value: Any) -> bool:
        """Whether a value at a path in an object of this shape is kept completely."""
        shape = self
        for step in path:
            found = shape.below(step)
            if found is None or found is ANYTHING:
                return found is ANYTHING
            shape = found
        return shape.holds(value)

    def holds(self, value: Any) -> bool:
        """Whether nothing of a value is pruned."""
        if self is ANYTHING or not isinstance(value, (dict, list)):
            return True
        members = value.items() if isinstance(value, dict) else enumerate(value)
        return all(self.keeps((step,), member) for step, member in members)

    def lacking(self, value: Any, at: Path = ()) -> Iterator[tuple[Path, Shape]]:
        """Return the outermost paths of a value that are pruned, each with the shape around it."""
        if self is ANYTHING or not isinstance(value, (dict, list)):
            return
        members = value.items() if isinstance(value, dict) else enumerate(value)
        for step, member in members:
            found = self.below(step)
            if found is None:
                yield (*at, step), self
            else:
                yield from found.lacking(member, (*at, step))


ANYTHING = Shape({}, open=True)
NOTHING = Shape({})


@dataclass(slots=True)
class Shapes:
    """Creates shapes. Equal shapes are one object, because most kinds have the same pod specs.

    References are weak, so that shapes of deleted CRDs are freed.
    """

    known: WeakValueDictionary[object, Shape] = field(default_factory=WeakValueDictionary)

    def of(self, schema: Any, *, whole: bool = True) -> Shape:
        """Return the shape of an OpenAPI schema. `whole`: of an object with metadata."""
        if not isinstance(schema, dict):
            return NOTHING
        inside, opened = properties(schema), is_open(schema)
        if not inside and opened and not whole:
            return ANYTHING
        keys = {name: self.of(each, whole=False) for name, each in inside.items()}
        if whole or schema.get("x-kubernetes-embedded-resource"):
            keys |= dict.fromkeys(ALWAYS_KEPT, ANYTHING)
        items = schema.get("items") or schema.get("additionalProperties")
        each = self.of(items, whole=False) if isinstance(items, dict) else None
        if not keys and each is None and not opened:
            return NOTHING
        return self.one(keys, each, opened)

    def one(self, keys: Mapping[str, Shape], each: Shape | None, opened: bool) -> Shape:
        """Return the one shape with these inner shapes, which must be from here too."""
        # A shape keeps its inner shapes alive, so that their ids stay unique.
        mark = (tuple((name, id(keys[name])) for name in sorted(keys)), id(each), opened)
        return self.known.setdefault(mark, Shape(keys, each, opened))
