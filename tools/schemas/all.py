"""Every schema in one document: policies and assets from the tables, typed documents from their models."""

from __future__ import annotations

import json
from typing import Any

from pydantic_core import core_schema

from tools.schemas import models
from tools.schemas.definitions import definitions
from tools.schemas.documents import custom_resource, documents
from tools.schemas.forms import Schema
from webhook.documents.model import DocumentPart
from webhook.evaluation.exception import PolicyException
from webhook.interface.document import InterfaceSpec
from webhook.interface.names import EXCEPTION_KIND
from webhook.interface.profile import Profile
from webhook.interface.profile_document import API_VERSION, KIND

INTERFACES = {"ResourceInterface": "optimization.nvidia.com/v1alpha1", "Karta": "run.ai/v1alpha1"}


def text() -> str:
    """policies/schemas.json, which `podgate schema` prints from."""
    schemas, more = schemas_of_all()
    found = {"documents": schemas, "definitions": {**definitions(), **more}}
    return json.dumps(found, indent=1, ensure_ascii=False) + "\n"


class Generator(models.Generator):
    """The generator for editors: one text may replace a list of texts."""

    def function_before_schema(self, schema: core_schema.BeforeValidatorFunctionSchema) -> Schema:
        """A list of texts, or one of them."""
        return {"anyOf": [self.generate_inner(schema["schema"]), {"type": "string"}]}


def schemas_of_all() -> tuple[dict[str, Schema], dict[str, Schema]]:
    """The schema of each kind of document, and the definitions that typed ones refer to."""
    schemas, more = documents(), dict[str, Schema]()
    add_document_schema(schemas, more, KIND, API_VERSION, Profile)
    add_document_schema(schemas, more, EXCEPTION_KIND, API_VERSION, PolicyException)
    for kind, version in INTERFACES.items():
        add_document_schema(schemas, more, kind, version, InterfaceSpec)
    return schemas, more


def add_document_schema(
    schemas: dict[str, Schema], more: dict[str, Schema], kind: str, version: str, model: type
) -> None:
    """The schema of a document whose spec is a typed model.

    Interfaces come from elsewhere and may say more than we know, so their maps are left open.
    """
    given, others = models.model_schema(model, Generator)
    closed = issubclass(model, DocumentPart)
    inner = {name: with_nulls(each, closed=closed) for name, each in others.items()}
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
