"""Every schema in one document: policies and assets from the tables, typed documents from their models."""

from __future__ import annotations

import json
from typing import Any

from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import core_schema

from tools.schemas.definitions import definitions
from tools.schemas.documents import custom_resource, documents
from tools.schemas.forms import Schema
from webhook.documents.read_model import Model
from webhook.interface import profile
from webhook.interface.document import InterfaceSpec
from webhook.interface.profile_document import ProfileSpec

INTERFACES = {"ResourceInterface": "optimization.nvidia.com/v1alpha1", "Karta": "run.ai/v1alpha1"}


def text() -> str:
    """policies/schemas.json, which `podgate schema` prints from."""
    schemas, more = schemas_of_all()
    found = {"documents": schemas, "definitions": {**definitions(), **more}}
    return json.dumps(found, indent=1, ensure_ascii=False) + "\n"


class Generator(GenerateJsonSchema):
    """Pydantic's generator, which also knows that one text may stand for a list of them."""

    def function_before_schema(self, schema: core_schema.BeforeValidatorFunctionSchema) -> Schema:
        """A list of texts, or one of them."""
        return {"anyOf": [self.generate_inner(schema["schema"]), {"type": "string"}]}


def schemas_of_all() -> tuple[dict[str, Schema], dict[str, Schema]]:
    """The schema of each kind of document, and the definitions that typed ones refer to."""
    schemas, more = documents(), dict[str, Schema]()
    typed(schemas, more, profile.KIND, profile.API_VERSION, ProfileSpec)
    for kind, version in INTERFACES.items():
        typed(schemas, more, kind, version, InterfaceSpec)
    return schemas, more


def typed(
    schemas: dict[str, Schema], more: dict[str, Schema], kind: str, version: str, model: type[Model]
) -> None:
    """The schema of a document whose spec is a typed model.

    Interfaces come from elsewhere and may say more than we know, so their maps are left open.
    """
    given = model.model_json_schema(
        by_alias=True, ref_template="#/$defs/{model}", schema_generator=Generator
    )
    closed = model is ProfileSpec
    inner = {name: with_nulls(each, closed=closed) for name, each in given.pop("$defs", {}).items()}
    more.update(inner)
    spec = with_nulls(given, closed=closed)
    schemas[kind] = custom_resource(kind, version, spec)


def with_nulls(schema: Any, *, closed: bool) -> Any:
    """A schema in which every member that may be absent may be null, which means the same."""
    if isinstance(schema, list):
        return [with_nulls(each, closed=closed) for each in schema]
    if not isinstance(schema, dict):
        return schema
    result = {key: with_nulls(each, closed=closed) for key, each in schema.items()}
    result.pop("title", None)
    if not closed:
        result.pop("additionalProperties", None)
    required = result.get("required", [])
    if isinstance(result.get("properties"), dict):
        result["properties"] = {
            name: each if name in required else {"anyOf": [each, {"type": "null"}]}
            for name, each in result["properties"].items()
        }
    return result
