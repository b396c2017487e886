"""JSON Schemas of plain forms: text, flags, maps that are closed, names in any letter case."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

Schema = dict[str, Any]
NULL: Schema = {"type": "null"}
TEXT: Schema = {"type": ["string", "number", "boolean", "null"]}
"""Text, and what YAML makes of it: the parser goes by the source text."""
TEXTS: Schema = {"type": ["array", "null"], "items": {"type": ["string", "number", "boolean"]}}
FILE_MODE: Schema = {"type": ["string", "integer", "null"], "pattern": "^0?[0-7]{3}$"}
FLAG: Schema = {"enum": [True, False, "true", "false", None]}
ANYTHING: Schema = {}


def ref(name: str) -> Schema:
    """A reference to a definition."""
    return {"$ref": f"#/$defs/{name}"}


def closed(
    properties: Mapping[str, Schema],
    description: str = "",
    *,
    required: Iterable[str] = (),
    other_case: str = "",
) -> Schema:
    """A map that has these members only, or null; `other_case` is a pattern for more of them."""
    schema: Schema = {"type": ["object", "null"]}
    if description:
        schema["description"] = description
    schema["properties"] = dict(properties)
    if other_case:
        schema["patternProperties"] = {other_case: True}
    if listed := sorted(required):
        schema["required"] = listed
        schema["type"] = "object"
    schema["additionalProperties"] = False
    return schema


def any_case(names: Iterable[str], between: str = "") -> str:
    """A pattern for names in whatever letter case, with `between` allowed between letters."""
    return f"^(?:{'|'.join(between.join(letters(name)) for name in sorted(names))})$"


def letters(name: str) -> list[str]:
    """Each character of a name as a pattern for both its cases."""
    return [f"[{c.lower()}{c.upper()}]" if c.isalpha() else f"[{c}]" for c in name]


def anycase_closed(properties: Mapping[str, Schema], description: str = "") -> Schema:
    """A map whose members' letter case does not matter."""
    return closed(properties, description, other_case=any_case(properties))


def sentence(text: str) -> str:
    """The first letter a capital, a full stop at the end."""
    return f"{text[:1].upper()}{text[1:].rstrip('.')}." if text else ""


def deprecated(schema: Schema, name: str) -> Schema:
    """The schema of another spelling."""
    return {**schema, "deprecated": True, "description": f"Write {name}."}


def choice(words: Iterable[str], description: str = "") -> Schema:
    """One of some words."""
    schema: Schema = {"enum": [*words, None]}
    return {"description": description, **schema} if description else schema
