"""What the tables say about each leaf: its type, its legal rules, and the names that lead to it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from webhook.policy import names as spelling
from webhook.policy import values
from webhook.policy.names import Names
from webhook.policy.report import NOT_SHOWN
from webhook.policy.row import Field, Items
from webhook.policy.table import TABLE
from webhook.policy.values import Codec


@dataclass(frozen=True, slots=True)
class LeafType:
    """A field, or an attribute of an itemized field, as far as reading documents needs it."""

    path: str
    value: str
    codec: Codec
    row: Field
    enum: tuple[str, ...] = ()
    spellings: tuple[tuple[str, str], ...] = ()
    secret: bool = False
    legal: frozenset[str] = frozenset()

    @property
    def wanted(self) -> str:
        """What an author is asked to write."""
        return f"one of {', '.join(self.enum)}" if self.enum else values.TABLE[self.value].wanted

    def show(self, value: Any) -> str:
        """A comparable value for people, unless nobody may see it."""
        return NOT_SHOWN if self.secret else self.codec.show(value)

    @property
    def is_array(self) -> bool:
        """Whether options speak of elements."""
        return self.value == "array"

    @property
    def is_attribute(self) -> bool:
        """Whether it is an attribute of an item."""
        return self.path != self.row.path


@lru_cache(maxsize=1024)
def leaf_type(path: str) -> LeafType:
    """The leaf of that canonical path."""
    row, codec, legal = TABLE.owner(path), TABLE.leaf_codec(path), TABLE.leaf_rules(path)
    if path in TABLE.fields:
        return LeafType(path, row.value, codec, row, row.enum, row.spellings, row.secret, legal)
    attribute = TABLE.attributes[path][1]
    named = row.items is not None and attribute.name == row.items.key
    hidden = row.secret and not named
    return LeafType(path, attribute.value, codec, row, attribute.enum, (), hidden, legal)


def items_of(row: Field) -> Items:
    """What makes an itemized row itemized."""
    assert row.items is not None
    return row.items


FIELD_NAMES: Names = spelling.names(
    TABLE.fields, {alias: name for alias, name in TABLE.aliases.items() if name in TABLE.fields}
)
LEAF_NAMES: Names = spelling.names((*TABLE.fields, *TABLE.attributes), TABLE.aliases)


@lru_cache(maxsize=64)
def field_names(types: frozenset[str] | None) -> Names:
    """The names of fields in a policy that is for these workload types; None is for all kinds."""
    return typed(FIELD_NAMES, types)


@lru_cache(maxsize=64)
def leaf_names(types: frozenset[str] | None) -> Names:
    """The names of all leaves in a policy that is for these workload types."""
    return typed(LEAF_NAMES, types)


def typed(known: Names, types: frozenset[str] | None) -> Names:
    """The same names where some mean another field, since the policy is for that one's types."""
    meant = {
        alias.lower(): row.path
        for row in TABLE.fields.values()
        for alias in row.typed_aliases
        if types and types <= set(row.types)
    }
    return replace(known, leaves={**known.leaves, **meant}) if meant else known


@lru_cache(maxsize=256)
def attribute_names(path: str) -> Names:
    """The names of the attributes of an itemized field."""
    prefix = f"{path}."
    return spelling.names(
        [each.name for each in items_of(TABLE.fields[path]).attributes],
        {
            alias.removeprefix(prefix): name.removeprefix(prefix)
            for alias, name in TABLE.aliases.items()
            if name in TABLE.attributes and alias.startswith(prefix) and name.startswith(prefix)
        },
    )
