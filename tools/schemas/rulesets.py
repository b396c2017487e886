"""Schemas of the rules that leaves take."""

from __future__ import annotations

from collections.abc import Iterator

from tools.schemas.forms import (
    FLAG,
    TEXT,
    TEXTS,
    Schema,
    any_case,
    anycase_closed,
    closed_map,
    ref,
    sentence,
)
from tools.schemas.leaves import describe_leaf, takes_list, value_of
from webhook.policy import rules, values
from webhook.policy.leaves import LeafType, leaf_type
from webhook.policy.row import Field
from webhook.policy.rule_objects import ITEM_RULES
from webhook.policy.table import TABLE


def rules_of(leaf: LeafType, legal: frozenset[str]) -> Schema:
    """The rules object of a leaf: that of its type of value, with what the leaf is."""
    return {"description": describe_leaf(leaf), **ref(ruleset_name(leaf, legal))}


def ruleset_name(leaf: LeafType, legal: frozenset[str]) -> str:
    """What distinguishes a rules object: the type of value, its words, and what is legal there."""
    own = rules.rules_for(leaf.value)
    more = [f"with-{each}" for each in sorted(legal - own)]
    less = [f"without-{each}" for each in sorted(own - legal)]
    words = [*leaf.enum] if leaf.enum else ["or-list"] if takes_list(leaf) else []
    if leaf.codec in (values.AMOUNT_TEXT, values.FILE_MODE):
        words = ["amount" if leaf.codec is values.AMOUNT_TEXT else "file-mode"]
    return ":".join(("ruleset", leaf.value, *words, *more, *less))


def ruleset(leaf: LeafType, legal: frozenset[str]) -> Schema:
    """The rules object of leaves like this one."""
    properties = {
        name: {"description": sentence(rules.TABLE[name].meaning), **argument_of(leaf, name)}
        for name in rules.TABLE
        if name in legal
    }
    return closed_map(properties, other_case=any_case(legal, "[-_]*"))


def rule_leaves() -> Iterator[tuple[LeafType, frozenset[str]]]:
    """Every leaf that takes rules, with those that it takes."""
    for row in TABLE.fields.values():
        leaf = leaf_type(row.path)
        if row.items is None:
            yield leaf, leaf.legal
            continue
        yield leaf, ITEM_RULES
        if row.extra_rules:
            yield as_array(row), row.extra_rules
        for each in row.items.attributes:
            inner = leaf_type(f"{row.path}.{each.name}")
            if inner.legal:
                yield inner, inner.legal


def as_array(row: Field) -> LeafType:
    """An itemized field that takes array rules too, as an array."""
    return LeafType(row.path, "array", values.ARRAY, row)


def argument_of(leaf: LeafType, name: str) -> Schema:
    """The argument of a rule."""
    match rules.TABLE[name].argument:
        case "boolean":
            return FLAG
        case "keys":
            return TEXTS
        case "source":
            factor = {"type": ["number", "string", "null"], "exclusiveMinimum": 0}
            return anycase_closed({"field": {"type": "string"}, "factor": factor})
        case "options":
            element: Schema = TEXT if leaf.is_array and not leaf.enum else value_of(leaf)
            if leaf.is_array and leaf.enum:
                element = {"enum": list(leaf.enum)}
            option = anycase_closed({"value": element, "displayed": TEXT})
            return {
                "type": ["array", "null"],
                "minItems": 1,
                "items": {"anyOf": [element, option]},
            }
        case _:
            return value_of(leaf)
