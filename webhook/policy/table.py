"""TABLE of policy fields: every row of the catalogue, by path, by attribute and by alias."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from webhook.policy.catalogue import ROWS
from webhook.policy.row import Attribute, Field
from webhook.policy.values import Codec


@dataclass(frozen=True, slots=True)
class Catalogue:
    """The rows by path, the attribute leaves of itemized rows, and every alias."""

    fields: dict[str, Field] = field(default_factory=dict)
    attributes: dict[str, tuple[Field, Attribute]] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)

    def leaf_rules(self, path: str) -> frozenset[str]:
        """Return the rules that a leaf accepts: a field, or `<field>.<attribute>`."""
        if path in self.fields:
            return self.fields[path].legal_rules
        return self.attributes[path][1].legal_rules

    def leaf_codec(self, path: str) -> Codec:
        """Return the codec that reads and compares the values of a leaf."""
        if path in self.fields:
            return self.fields[path].reading()
        return self.attributes[path][1].reading()

    def owner(self, path: str) -> Field:
        """Return the row that a leaf belongs to."""
        return self.fields[path] if path in self.fields else self.attributes[path][0]


def attribute_leaves(row: Field) -> Iterator[tuple[str, Attribute]]:
    """Return each attribute of an itemized row with its leaf path, such as storage.nfs.server."""
    for attribute in row.items.attributes if row.items else ():
        yield f"{row.path}.{attribute.name}", attribute


def build(rows: tuple[Field, ...]) -> Catalogue:
    """Index the rows. Raises ValueError for a path or alias that is in the table twice."""
    catalogue = Catalogue()
    for row in rows:
        if row.path in catalogue.fields:
            raise ValueError(f"field {row.path} is twice in the table")
        catalogue.fields[row.path] = row
        for alias in row.aliases:
            if catalogue.aliases.setdefault(alias, row.path) != row.path:
                raise ValueError(f"alias {alias} is an alias of two fields")
        for leaf, attribute in attribute_leaves(row):
            catalogue.attributes[leaf] = (row, attribute)
            for alias in attribute.aliases:
                catalogue.aliases[f"{row.path}.{alias}"] = leaf
    return catalogue


TABLE = build(ROWS)
