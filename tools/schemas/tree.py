"""Sections and leaves by their dotted names, with their other spellings, as nested schemas."""

from __future__ import annotations

from collections.abc import Mapping

from tools.schemas.forms import Schema, anycase_closed, deprecated_spelling, sentence
from webhook.policy.catalogue import GROUPS
from webhook.policy.names import join
from webhook.policy.row import Field
from webhook.policy.table import TABLE


class Tree:
    """Sections and leaves by their dotted names, made into nested maps."""

    def __init__(self) -> None:
        self.members: dict[str, Tree | Schema] = {}

    def add(self, name: str, schema: Schema) -> None:
        """Add a leaf, unless there is one at its path or above it; it replaces a section."""
        head, _, rest = name.partition(".")
        if not rest:
            if isinstance(self.members.get(head), Tree):
                del self.members[head]
            self.members.setdefault(head, schema)
            return
        below = self.members.setdefault(head, Tree())
        if isinstance(below, Tree):
            below.add(rest, schema)

    def properties(self, prefix: str = "") -> dict[str, Schema]:
        """The members as schemas; groups are described by their dotted names below `prefix`."""
        found: dict[str, Schema] = {}
        for name, below in self.members.items():
            path = join(prefix, name)
            if isinstance(below, Tree):
                text = sentence(GROUPS.get(path, ""))
                found[name] = anycase_closed(below.properties(path), text)
            else:
                found[name] = below
        return found


def tree_of(leaves: Mapping[str, Schema], aliases: Mapping[str, str]) -> Tree:
    """The leaves at their names, then at their other spellings."""
    tree = Tree()
    for name, schema in leaves.items():
        tree.add(name, schema)
    for alias, name in aliases.items():
        if name in leaves:
            tree.add(alias, deprecated_spelling(leaves[name], name))
    return tree


def attribute_aliases(row: Field) -> dict[str, str]:
    """Other spellings of the attributes of a field."""
    prefix = f"{row.path}."
    return {
        alias.removeprefix(prefix): name.removeprefix(prefix)
        for alias, name in TABLE.aliases.items()
        if name in TABLE.attributes and alias.startswith(prefix) and name.startswith(prefix)
    }


def field_aliases() -> dict[str, str]:
    """Other spellings of fields."""
    return {alias: name for alias, name in TABLE.aliases.items() if name in TABLE.fields}
