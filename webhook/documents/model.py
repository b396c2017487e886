"""Base classes of document models, and the keys that documents can have.

A `Model` is of pydantic and is converted once it is read. A `DocumentPart` is a plain dataclass that
pydantic fills in, so that a review can read it as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields, is_dataclass
from typing import Annotated, Any, ClassVar, NoReturn, get_args, get_origin, get_type_hints

from pydantic import BaseModel, ConfigDict, GetCoreSchemaHandler, ValidationError
from pydantic.alias_generators import to_camel
from pydantic.fields import FieldInfo
from pydantic_core import (
    CoreSchema,
    InitErrorDetails,
    PydanticCustomError,
    PydanticOmit,
    core_schema,
)

from webhook.objects.path import Path


class Model(BaseModel):
    """Base of all document models: camelCase keys, exact types, no unknown keys."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="forbid",
        strict=True,
        frozen=True,
        hide_input_in_errors=True,
    )


class DocumentPart:
    """Base of dataclasses that are read from a document: camelCase keys, no unknown keys.

    A review reads these, so they are plain classes. Their members say with `Strict` that a number or
    a switch is not to be read from text, with `WrittenAs` that the document has another form.
    """

    __slots__ = ()
    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(
        alias_generator=to_camel, extra="forbid", hide_input_in_errors=True
    )


@dataclass(frozen=True, slots=True)
class WrittenAs:
    """A member with the type `form` in documents. `convert` converts it to the attribute's type.

    `convert` may raise `fault` or `faults`.
    """

    form: Any
    convert: Callable[[Any], Any]

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        """Read the form, then convert it."""
        return core_schema.no_info_after_validator_function(
            self.convert, handler.generate_schema(self.form)
        )


UNKNOWN = ("extra_forbidden", "unexpected_keyword_argument")


class NotWritten:
    """A member that documents do not have. The program sets it."""

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        """Reject the member as an unknown key."""
        return core_schema.no_info_plain_validator_function(self.refuse)

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: Any) -> NoReturn:
        """Exclude the member from the schema."""
        raise PydanticOmit

    @staticmethod
    def refuse(value: Any) -> NoReturn:
        """Raise the error of an unknown key."""
        raise PydanticCustomError("unexpected_keyword_argument", "no member of the document")


def fault(reason: str, found: str, fix: str) -> PydanticCustomError:
    """Return the error that a conversion raises: one problem at the path of the value."""
    return PydanticCustomError(reason, "{found}", {"found": found, "fix": fix})


def faults(reason: str, found: Iterable[tuple[Path, str, str]]) -> ValidationError:
    """Return the error that a conversion raises for several paths inside a value."""
    return ValidationError.from_exception_data(
        reason,
        [
            InitErrorDetails(type=fault(reason, text, fix), loc=at, input=None)
            for at, text, fix in found
        ],
    )


def keys_at(model: type, place: tuple[int | str, ...]) -> list[str]:
    """Return the keys that the object at `place` below `model` can have."""
    here: Any = model
    for step in place:
        inside = members(here)
        here = inside.get(str(step)) if inside else contents(here)
    return list(members(here))


def members(annotation: Any) -> dict[str, Any]:
    """Return the annotation of each member of a model, by its key. Empty for other types."""
    model = plain(annotation)
    if not isinstance(model, type) or get_args(model):
        return {}
    if issubclass(model, BaseModel):
        return {each.alias or name: each.annotation for name, each in model.model_fields.items()}
    if not is_dataclass(model):
        return {}
    hints = get_type_hints(model, include_extras=True)
    return {
        key_of(each.name, hints[each.name]): hints[each.name]
        for each in fields(model)
        if not any(isinstance(one, NotWritten) for one in get_args(hints[each.name]))
    }


def key_of(name: str, annotation: Any) -> str:
    """Return the key of a member in documents."""
    given = (each.alias for each in get_args(annotation) if isinstance(each, FieldInfo))
    return next((each for each in given if each), None) or to_camel(name)


def contents(annotation: Any) -> Any:
    """Return the type of a list's items or a map's values. None for other types."""
    inside = [each for each in get_args(plain(annotation)) if each is not Ellipsis]
    return inside[-1] if inside else None


def plain(annotation: Any) -> Any:
    """Return the annotation as documents write it, without `| None`."""
    if get_origin(annotation) is Annotated:
        other = (each.form for each in get_args(annotation) if isinstance(each, WrittenAs))
        return plain(next(other, get_args(annotation)[0]))
    kinds = [each for each in get_args(annotation) if each is not type(None)]
    optional = len(kinds) == 1 and len(get_args(annotation)) == 2
    return plain(kinds[0]) if optional else annotation
