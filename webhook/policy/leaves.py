"""The leaves of the field table: their types, legal rules, and names."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from webhook.policy import values
from webhook.policy.names import Names, names
from webhook.policy.report import NOT_SHOWN
from webhook.policy.row import Field, Items
from webhook.policy.table import TABLE
from webhook.policy.values import Codec


@dataclass(frozen=True, slots=True)
class LeafType:
    """A field, or an attribute of an itemized field, as the readers of documents need it."""

    path: str
    value: str
    codec: Codec
    row: Field
    enum: tuple[str, ...] = ()
    spellings: tuple[tuple[str, str], ...] = ()
    secret: bool = False
    legal: frozenset[str] = frozenset()

    @property
    def expected_form(self) -> str:
        """What the author should write, for messages."""
        if not self.enum:
            return values.TABLE[self.value].wanted
        return f"{'a list' if self.is_array else 'one'} of {', '.join(self.enum)}"

    def show(self, value: Any) -> str:
        """Show a comparable value in a message, unless it is secret."""
        return NOT_SHOWN if self.secret else self.codec.show(value)

    @property
    def is_array(self) -> bool:
        """Whether options apply to the elements of the value."""
        return self.value == "array"

    @property
    def is_attribute(self) -> bool:
        """Whether it is an attribute of an item."""
        return self.path != self.row.path


@lru_cache(maxsize=1024)
def leaf_type(path: str) -> LeafType:
    """Return the leaf with this canonical path."""
    row, codec, legal = TABLE.owner(path), TABLE.leaf_codec(path), TABLE.leaf_rules(path)
    if path in TABLE.fields:
        return LeafType(path, row.value, codec, row, row.enum, row.spellings, row.secret, legal)
    attribute = TABLE.attributes[path][1]
    named = row.items is not None and attribute.name == row.items.key
    hidden = row.secret and not named
    return LeafType(path, attribute.value, codec, row, attribute.enum, (), hidden, legal)


def items_of(row: Field) -> Items:
    """Return the items of a row that is known to be itemized."""
    assert row.items is not None
    return row.items


FIELD_NAMES: Names = names(
    TABLE.fields, {alias: name for alias, name in TABLE.aliases.items() if name in TABLE.fields}
)
LEAF_NAMES: Names = names((*TABLE.fields, *TABLE.attributes), TABLE.aliases)


@lru_cache(maxsize=64)
def field_names(types: frozenset[str] | None) -> Names:
    """Return the names of fields in a policy for these workload types. None is all kinds."""
    return rename_for_types(FIELD_NAMES, types)


@lru_cache(maxsize=64)
def leaf_names(types: frozenset[str] | None) -> Names:
    """Return the names of all leaves in a policy for these workload types."""
    return rename_for_types(LEAF_NAMES, types)


def rename_for_types(known: Names, types: frozenset[str] | None) -> Names:
    """Return the names, changed for aliases that mean another field in these types."""
    meant = {
        alias.lower(): row.path
        for row in TABLE.fields.values()
        for alias in row.typed_aliases
        if types and types <= set(row.types)
    }
    return replace(known, leaves={**known.leaves, **meant}) if meant else known


@lru_cache(maxsize=256)
def attribute_names(path: str) -> Names:
    """Return the names of the attributes of an itemized field."""
    prefix = f"{path}."
    return names(
        [each.name for each in items_of(TABLE.fields[path]).attributes],
        {
            alias.removeprefix(prefix): name.removeprefix(prefix)
            for alias, name in TABLE.aliases.items()
            if name in TABLE.attributes and alias.startswith(prefix) and name.startswith(prefix)
        },
    )
