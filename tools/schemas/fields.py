"""Schemas of the values of a field below `defaults` and `rules`."""

from __future__ import annotations

from collections.abc import Iterable

from tools.schemas.forms import NULL, Schema, any_case, anycase_closed, ref
from tools.schemas.leaves import describe_leaf, value_of
from tools.schemas.rulesets import as_array, rules_of, ruleset
from tools.schemas.tree import attribute_aliases, field_aliases, tree_of
from webhook.policy.body_tree import ATTRIBUTES, INSTANCES
from webhook.policy.leaves import items_of, leaf_type
from webhook.policy.row import Field, Items
from webhook.policy.rule_objects import ITEM_RULES
from webhook.policy.table import TABLE


def attributes_of(row: Field, without: Iterable[str] = ()) -> Schema:
    """An item of a field, or the defaults of its attributes."""
    left_out = set(without)
    leaves = {
        each.name: {"description": describe_leaf(leaf), **value_of(leaf)}
        for each in items_of(row).attributes
        if each.name not in left_out
        for leaf in (leaf_type(f"{row.path}.{each.name}"),)
    }
    return anycase_closed(tree_of(leaves, attribute_aliases(row)).properties(row.path))


def map_or_list(schema: Schema) -> Schema:
    """A map, or deprecated a list of such maps."""
    return {"anyOf": [schema, {"type": "array", "items": schema, "deprecated": True}]}


def default_of(row: Field) -> Schema:
    """The value of a field below `defaults`."""
    leaf = leaf_type(row.path)
    if row.items is None:
        return {"description": describe_leaf(leaf), **value_of(leaf)}
    item = ref(attributes_name("defaults", row))
    names: list[Schema] = [{"type": "string"}] if row.extra_rules else []
    listed: Schema = {"type": ["array", "null"], "items": {"anyOf": [item, NULL, *names]}}
    parts: dict[str, Schema] = {INSTANCES: {"description": items_text(row.items), **listed}}
    if row.items.attribute_defaults:
        parts[ATTRIBUTES] = map_or_list(item)
    schema = anycase_closed(parts, describe_leaf(leaf))
    return {"anyOf": [schema, listed]} if row.extra_rules else schema


def items_text(items: Items) -> str:
    """How items are identified."""
    ways = [items.key, *(" and ".join(fallback) for fallback in items.fallbacks)]
    return f"Default items, each known by {', else by '.join(ways)}."


def rule_of(row: Field) -> Schema:
    """The value of a field below `rules`."""
    leaf = leaf_type(row.path)
    if row.items is None:
        return rules_of(leaf, leaf.legal)
    parts: dict[str, Schema] = {INSTANCES: rules_of(leaf, ITEM_RULES)}
    if attribute_rules_of(row)["properties"]:
        parts[ATTRIBUTES] = map_or_list(ref(attributes_name("rules", row)))
    schema = anycase_closed(parts, describe_leaf(leaf))
    if row.extra_rules:
        own = ruleset(as_array(row), row.extra_rules)
        names = (*own["properties"], *parts)
        schema["properties"] |= own["properties"]
        schema["patternProperties"] = {any_case(names, "[-_]*"): True}
    return schema


def attributes_name(section: str, row: Field) -> str:
    """The name of the definition of a field's attributes."""
    return f"{section}.{row.path}.{ATTRIBUTES}"


def attribute_rules_of(row: Field) -> Schema:
    """The rules of the attributes of a field."""
    leaves = {
        each.name: rules_of(leaf, leaf.legal)
        for each in items_of(row).attributes
        for leaf in (leaf_type(f"{row.path}.{each.name}"),)
        if leaf.legal
    }
    return anycase_closed(tree_of(leaves, attribute_aliases(row)).properties(row.path))


def fields_tree(section: str, role: str = "") -> dict[str, Schema]:
    """The fields below `defaults` or `rules`, or below a role there."""
    leaves = {
        row.path: ref(f"{section}.{row.path}")
        for row in TABLE.fields.values()
        if not role or not row.levels or role in row.levels
    }
    return tree_of(leaves, field_aliases()).properties()
