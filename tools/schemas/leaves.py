"""Schemas of the values of leaves."""

from __future__ import annotations

from collections.abc import Mapping

from tools.schemas.forms import (
    ANYTHING,
    FILE_MODE,
    FLAG,
    TEXT,
    TEXTS,
    Schema,
    closed_map,
    sentence,
)
from webhook.policy import object_shapes, values
from webhook.policy.leaves import LeafType
from webhook.policy.table import TABLE

VALUES: Mapping[str, Schema] = {
    "boolean": FLAG,
    "string": TEXT,
    "integer": {"type": ["integer", "string", "null"], "pattern": r"^[+-]?[0-9]{1,19}$"},
    "number": {
        "type": ["number", "string", "null"],
        "pattern": r"^[+-]?[0-9.]+([eE][+-]?[0-9]+)?$",
    },
    "quantity": {
        "type": ["number", "string", "null"],
        "pattern": r"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([numkMGTPE]|[KMGTPE]i|[eE][+-]?[0-9]+)?$",
    },
    "array": TEXTS,
    "object": {"type": ["object", "null"]},
}
"""The schema of each type of value; other types accept any value."""


def describe_leaf(leaf: LeafType) -> str:
    """What an editor shows of a leaf: the note in the table, else what is to be written."""
    note = TABLE.attributes[leaf.path][1].note if leaf.is_attribute else leaf.row.note
    return sentence(note or leaf.expected_form)


def value_of(leaf: LeafType) -> Schema:
    """What may be written as a value of a leaf."""
    if leaf.enum:
        words = [*leaf.enum, *(spelled for spelled, _ in leaf.spellings)]
        schema: Schema = {"enum": [*words, None]}
        return {"type": ["array", "null"], "items": {"enum": words}} if leaf.is_array else schema
    if leaf.path in object_shapes.MEMBERS:
        names = object_shapes.MEMBERS[leaf.path]
        return {
            **closed_map(dict.fromkeys(names, TEXT), required=names),
            "type": ["object", "null"],
        }
    if leaf.codec is values.AMOUNT_TEXT:
        return VALUES["quantity"]
    if leaf.codec is values.FILE_MODE:
        return FILE_MODE
    schema = dict(VALUES.get(leaf.value, ANYTHING))
    if leaf.value == "string" and takes_list(leaf):
        schema = {"anyOf": [schema, TEXTS]}
    return schema


def takes_list(leaf: LeafType) -> bool:
    """Whether a list may replace the text, as for command lines."""
    try:
        leaf.codec.parse(["a"], None)
    except (ValueError, TypeError):
        return False
    return True
