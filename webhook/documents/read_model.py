"""Reads a document of ours into a typed model, telling every fault in our words with its place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic.alias_generators import to_camel

from webhook.documents.problem import Problem
from webhook.documents.source import SourceDocument
from webhook.documents.suggestions import closest, keys_at
from webhook.objects import path as pointer
from webhook.objects.path import Path

SHOWN = 80
MAX_DEPTH = 100
KEEPS_NULL = frozenset({"value"})


class Model(BaseModel):
    """What all our document models share: camelCase keys, exact types, nothing unknown."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="forbid",
        strict=True,
        frozen=True,
        hide_input_in_errors=True,
    )


M = TypeVar("M", bound=Model)


@dataclass(slots=True)
class Report:
    """Collects the problems of one document; `renamed` maps corrected places to written keys."""

    document: SourceDocument
    renamed: dict[Path, str] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def add(self, path: Path, found: str, fix: str, reason: str, severity: str = "error") -> None:
        """Record one problem at a place of the document; `path` names keys as they should be."""
        written = self.written(path)
        line, column = self.document.position(written)
        self.problems.append(
            Problem(
                self.document.origin,
                pointer.display(written),
                found,
                fix,
                reason,
                line,
                column,
                severity,
            )
        )

    def warn(self, path: Path, found: str, fix: str, reason: str) -> None:
        """Record a problem that does not stop the document from being used."""
        self.add(path, found, fix, reason, "warning")

    def written(self, path: Path) -> Path:
        """The place as the author spelled it."""
        return tuple(self.renamed.get(path[: at + 1], step) for at, step in enumerate(path))

    @property
    def failed(self) -> bool:
        """Whether anything found so far forbids using the document."""
        return any(each.severity == "error" for each in self.problems)


def read(model: type[M], data: Any, at: Path, report: Report) -> M | None:
    """`data`, which stands at `at`, as `model`; None when it is not one, with all problems told.

    A key set to null counts as absent. Unknown keys are warned about and left out.
    """
    if too_deep(data):
        found = f"nested more than {MAX_DEPTH} deep"
        report.add(at, found, "write it flatter", "too-deep")
        return None
    body = without_null(data)
    try:
        return model.model_validate(body)
    except ValidationError as error:
        unknown = [each for each in error.errors() if each["type"] == "extra_forbidden"]
    for each in unknown:
        tell_unknown(model, each["loc"], at, report)
    body = without(body, {tuple(each["loc"]) for each in unknown})
    try:
        return model.model_validate(body)
    except ValidationError as error:
        for fault in error.errors():
            tell(fault, body, at, report)
    return None


def too_deep(data: Any) -> bool:
    """Whether the data is nested deeper than what is read by recursion."""
    level = [data]
    for _ in range(MAX_DEPTH):
        level = [
            inner
            for each in level
            if isinstance(each, (dict, list))
            for inner in (each.values() if isinstance(each, dict) else each)
        ]
    return bool(level)


def without_null(value: Any) -> Any:
    """A copy in which keys set to null are absent, save where null is itself a value."""
    if isinstance(value, dict):
        return {
            key: each if key in KEEPS_NULL else without_null(each)
            for key, each in value.items()
            if each is not None or key in KEEPS_NULL
        }
    if isinstance(value, list):
        return [without_null(each) for each in value]
    return value


def without(value: Any, places: set[tuple[int | str, ...]], at: tuple[int | str, ...] = ()) -> Any:
    """A copy of `value` without the keys at `places`."""
    if isinstance(value, dict):
        return {
            key: without(each, places, (*at, key))
            for key, each in value.items()
            if (*at, key) not in places
        }
    if isinstance(value, list):
        return [without(each, places, (*at, index)) for index, each in enumerate(value)]
    return value


def tell_unknown(
    model: type[Model], place: tuple[int | str, ...], at: Path, report: Report
) -> None:
    """Warn about a key that the model does not have."""
    name = str(place[-1])
    known = keys_at(model, place[:-1])
    fix = f"remove it; known here: {', '.join(sorted(known))}"
    if close := closest(name, known):
        fix = f"did you mean `{close}`?"
    report.warn(
        (*at, *place), f"unknown field `{shown(name)}`, which is ignored", fix, "unknown-field"
    )


WANTED = {
    "string_type": "text",
    "int_type": "a whole number",
    "bool_type": "true or false",
    "list_type": "a list",
    "tuple_type": "a list",
    "frozen_set_type": "a list",
    "dict_type": "a map",
    "mapping_type": "a map",
    "dataclass_type": "a map",
    "model_type": "a map",
    "model_attributes_type": "a map",
}


def tell(fault: Mapping[str, Any], body: Any, at: Path, report: Report) -> None:
    """Put one fault that pydantic found into our words."""
    place: tuple[int | str, ...] = tuple(fault["loc"])
    kind = fault["type"]
    if kind == "missing":
        name = place[-1]
        report.add((*at, *place[:-1]), f"`{name}` is missing", f"add `{name}`", "missing-field")
        return
    found = pointer.read(body, place)
    path = (*at, *place)
    if kind in WANTED:
        article = f"{sort(found)} where {WANTED[kind]} belongs"
        report.add(path, article, f"write {WANTED[kind]}", "wrong-type")
    elif kind in {"string_too_short", "too_short"}:
        report.add(path, "it is empty", "give it a value or remove it", "empty-value")
    elif kind == "literal_error":
        allowed = fault["ctx"]["expected"].replace("'", "`")
        report.add(path, f"`{shown(found)}`", f"write {allowed}", "unknown-value")
    else:
        limits = ", ".join(f"{name} {value}" for name, value in fault.get("ctx", {}).items())
        report.add(path, f"`{shown(found)}`", f"keep to {limits or 'the schema'}", "bad-value")


def sort(value: Any) -> str:
    """What kind of value it is, with its article."""
    match value:
        case None:
            return "null"
        case bool():
            return "true or false"
        case int() | float():
            return "a number"
        case str():
            return "text"
        case list():
            return "a list"
        case _:
            return "a map"


def shown(value: Any) -> str:
    """A value as it may stand in a message: one line, escaped, cut."""
    text = (
        str(value).encode("unicode_escape").decode("ascii")
        if isinstance(value, str)
        else str(value)
    )
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"
