"""Follows native jq through a CRD's schema: where a path leads, or its first unknown step."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from webhook.interface.schema_places import is_open, properties
from webhook.jq import nodes
from webhook.jq.analyse import analyse
from webhook.jq.nodes import Node, NotNativeError
from webhook.jq.parse import parse

Schema = dict[str, Any]


class At(NamedTuple):
    """A path in a schema. None means any value, if the schema does not describe it."""

    schema: Schema | None
    text: str = ""
    shape: Literal["value", "entries", "entry"] = "value"


class NotInSchemaError(Exception):
    """The schema does not have the path. `path` ends with the first unknown step."""

    def __init__(self, path: str, known: tuple[str, ...] = ()) -> None:
        super().__init__(path)
        self.path = path
        self.known = known


def targets(text: str, schema: Schema) -> list[At]:
    """Return where a native path leads in a schema. Other jq can lead anywhere.

    Raises NotInSchemaError.
    """
    try:
        _, node = analyse(parse(text))
    except NotNativeError:
        return [At(None)]
    return follow(node, At(schema))


def follow(node: Node, at: At) -> list[At]:
    """Return the paths that a node finds from one path."""
    match node:
        case nodes.Chain(steps):
            found = [at]
            for step in steps:
                found = [deeper for each in found for deeper in follow(step, each)]
            return found
        case nodes.Key():
            return [key_of(node, at)]
        case nodes.Each():
            return [member_of(node, at)]
        case nodes.Entries():
            return [at._replace(shape="entries")]
        case nodes.Select(_, operand, _):
            follow(operand, at)
            return [at]
        case nodes.Alternative(_, left, right) | nodes.Arithmetic(_, _, left, right):
            return [*follow(left, at), *follow(right, at)]
        case nodes.Guarded(_, body):
            return follow(body, at)
        case _:
            return [At(None)]


def key_of(node: nodes.Key, at: At) -> At:
    """Follow one key or index."""
    if at.shape == "entry":
        return at._replace(shape="value") if node.key == "value" else At({"type": "string"})
    text = f"{at.text}[{node.key}]" if isinstance(node.key, int) else f"{at.text}.{node.key}"
    if at.schema is None or text == ".metadata":
        return At(None, text)
    if isinstance(node.key, int):
        return below(at, text, ("items",))
    inside = properties(at.schema)
    if node.key in inside:
        found = inside[node.key]
        return At(found if isinstance(found, dict) else None, text)
    return below(at, text, ("additionalProperties",))


def member_of(node: nodes.Each, at: At) -> At:
    """Return the schema of a list's items or a map's values."""
    found = below(at, f"{at.text}[]", ("items", "additionalProperties"))
    return found._replace(shape="entry" if node.entries else "value")


def below(at: At, text: str, keys: tuple[str, ...]) -> At:
    """Return the schema below one of the schema's own keys."""
    if at.schema is None:
        return At(None, text)
    for key in keys:
        if isinstance(at.schema.get(key), dict) and at.schema[key]:
            return At(at.schema[key], text)
    if is_open(at.schema):
        return At(None, text)
    raise NotInSchemaError(text, tuple(sorted(properties(at.schema))))
