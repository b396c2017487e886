"""JSON Schemas of plain forms: text, flags, maps that are closed, names in any letter case."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

Schema = dict[str, Any]
NULL: Schema = {"type": "null"}
TEXT: Schema = {"type": ["string", "number", "boolean", "null"]}
"""A text, or the value that YAML makes of it: the parser reads the source text."""
TEXTS: Schema = {"type": ["array", "null"], "items": {"type": ["string", "number", "boolean"]}}
FILE_MODE: Schema = {"type": ["string", "integer", "null"], "pattern": "^0?[0-7]{3}$"}
FLAG: Schema = {"enum": [True, False, "true", "false", None]}
ANYTHING: Schema = {}


def ref(name: str) -> Schema:
    """A reference to a definition."""
    return {"$ref": f"#/$defs/{name}"}


def closed_map(
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
    return closed_map(properties, description, other_case=any_case(properties))


def sentence(text: str) -> str:
    """The first letter a capital, a full stop at the end."""
    return f"{text[:1].upper()}{text[1:].rstrip('.')}." if text else ""


def deprecated_spelling(schema: Schema, name: str) -> Schema:
    """The schema of another spelling."""
    return {**schema, "deprecated": True, "description": f"Write {name}."}


def choice(words: Iterable[str], description: str = "") -> Schema:
    """One of some words."""
    schema: Schema = {"enum": [*words, None]}
    return {"description": description, **schema} if description else schema


def for_editors(schema: Schema, models: Mapping[str, Schema], *, required: bool = False) -> Schema:
    """The schema of a member that pydantic makes of its class, as our parser takes the member.

    Null counts as absent, and a text may be what YAML makes of it.
    """
    schema = {**schema, **models.get(str(schema.get("$ref")).rpartition("/")[2], {})} | schema
    about = {key: schema[key] for key in ("description",) if key in schema}
    if "anyOf" in schema:
        return about | for_editors(schema["anyOf"][0], models)
    if "enum" in schema:
        return about | {"enum": [*schema["enum"], *([] if required else [None])]}
    kind = schema.get("type")
    found: Schema = {"type": kind if required else [kind, "null"]}
    found |= {key: schema[key] for key in ("pattern", "minLength", "minItems") if key in schema}
    match kind:
        case "array":
            item = schema["items"]
            simple = item == {"type": "string"}
            found["items"] = item if simple else for_editors(item, models, required=True)
        case "object" if "properties" in schema:
            needed = schema.get("required", ())
            found["properties"] = {
                key: for_editors(each, models, required=key in needed)
                for key, each in schema["properties"].items()
            }
            found |= {"required": sorted(needed)} if needed else {}
            found["additionalProperties"] = False
        case "object":
            found["additionalProperties"] = dict(TEXT)
        case "string" if len(found) == 1:
            found = dict(TEXT)
        case None:
            return about
        case _:
            pass
    return about | found
