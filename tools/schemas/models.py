"""The schemas of documents that are read into models, with the texts under the members of plain classes."""

from __future__ import annotations

import ast
import inspect
from dataclasses import is_dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any, get_type_hints

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import core_schema

from tools.schemas.forms import Schema
from webhook.documents.model import DocumentPart, key_of


class Generator(GenerateJsonSchema):
    """Pydantic's generator, which also knows the texts under the members of plain classes."""

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> Schema:
        """Defaults are shown where they are a word, a number or a switch."""
        if isinstance(schema.get("default"), DocumentPart | tuple | frozenset):
            return self.generate_inner(schema["schema"])
        return super().default_schema(schema)

    def dataclass_schema(self, schema: core_schema.DataclassSchema) -> Schema:
        """A plain class, with its docstring and the text under each member."""
        made = super().dataclass_schema(schema)
        model: Any = schema["cls"]
        made["description"] = " ".join((model.__doc__ or "").split())
        texts = member_texts(model)
        made["properties"] = {
            key: {**each, "description": texts[key]} for key, each in made["properties"].items()
        }
        return made


def model_schema(
    model: type, generator: type[GenerateJsonSchema] = Generator
) -> tuple[Schema, dict[str, Schema]]:
    """The schema of a model, and those that it refers to, by name."""
    given = TypeAdapter(model).json_schema(by_alias=True, schema_generator=generator)
    return given, given.pop("$defs", {})


@lru_cache
def member_texts(model: type) -> dict[str, str]:
    """The text under each member of a class, by its key in documents."""
    found: dict[str, str] = {}
    hints = get_type_hints(model, include_extras=True)
    for each in model.__mro__:
        if not is_dataclass(each):
            continue
        (body,) = ast.parse(inspect.getsource(each)).body
        assert isinstance(body, ast.ClassDef)
        for member, text in pairwise(body.body):
            if (
                isinstance(member, ast.AnnAssign)
                and isinstance(member.target, ast.Name)
                and isinstance(text, ast.Expr)
                and isinstance(text.value, ast.Constant)
            ):
                name = member.target.id
                found.setdefault(key_of(name, hints[name]), " ".join(str(text.value.value).split()))
    return found
