"""podgate schema: the JSON Schema of every document of ours, for editors."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import core_schema

from webhook.cli import loading
from webhook.core.policy.schema.complete import complete
from webhook.core.policy.schema.documents import custom_resource, documents
from webhook.core.policy.schema.forms import Schema
from webhook.core.workload import profile
from webhook.core.workload.definition_model import InterfaceSpec
from webhook.core.workload.profile_model import ProfileSpec
from webhook.core.workload.typed import Model

INTERFACES = {"ResourceInterface": "optimization.nvidia.com/v1alpha1", "Karta": "run.ai/v1alpha1"}
Kind = Annotated[
    str | None,
    typer.Argument(
        metavar="[KIND]", help="The document's kind, or bare or api; absent: any of them."
    ),
]


def schema(kind: Kind = None) -> None:
    """Print the JSON Schema (draft 2020-12) of our documents, made from the tables.

    Exit code 0: printed, 2: there is no such kind.
    """
    schemas, more = schemas_of_all()
    try:
        loading.checked(kind, tuple(schemas), "KIND")
    except loading.BadInput:
        raise typer.Exit(loading.BAD_INPUT) from None
    chosen = schemas if kind is None else {kind: schemas[kind]}
    title = kind or "Documents of podgate"
    print(json.dumps(complete(chosen, more, title), indent=2, ensure_ascii=False))


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
