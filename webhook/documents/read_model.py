"""Reads a document into a typed model, and reports every problem in our own words with its path."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from webhook.documents.model import UNKNOWN, DocumentPart, Model, keys_at
from webhook.documents.problem import Problem
from webhook.documents.source import SourceDocument
from webhook.documents.suggestions import closest
from webhook.objects.path import Path, display
from webhook.objects.path import read as read_path

SHOWN = 80
MAX_DEPTH = 100
KEEPS_NULL = frozenset({"value"})


M = TypeVar("M", bound=Model | DocumentPart)


@lru_cache
def reader(model: Any) -> TypeAdapter[Any]:
    """Return the type adapter of a model."""
    return TypeAdapter(model)


@dataclass(slots=True)
class Report:
    """Collects the problems of one document. `renamed` maps corrected paths to the written keys."""

    document: SourceDocument
    renamed: dict[Path, str] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def add(self, path: Path, found: str, fix: str, reason: str, severity: str = "error") -> None:
        """Add one problem at a path of the document. `path` has the correct keys."""
        written = self.author_path(path)
        line, column = self.document.position(written)
        self.problems.append(
            Problem(
                self.document.origin,
                display(written),
                found,
                fix,
                reason,
                line,
                column,
                severity,
            )
        )

    def warn(self, path: Path, found: str, fix: str, reason: str) -> None:
        """Add a problem of a document that is accepted anyway."""
        self.add(path, found, fix, reason, "warning")

    def author_path(self, path: Path) -> Path:
        """Return the path with the keys that the author wrote."""
        return tuple(self.renamed.get(path[: at + 1], step) for at, step in enumerate(path))

    @property
    def has_errors(self) -> bool:
        """Whether any problem is an error."""
        return any(each.severity == "error" for each in self.problems)


def read(
    model: type[M], data: Any, at: Path, report: Report, *, ignores_unknown: bool = True
) -> M | None:
    """Read `data`, which is at the path `at`, as `model`. Problems are reported, and return None.

    A key set to null counts as absent. An unknown key is ignored with a warning, or an error.
    """
    if too_deep(data):
        deep = f"nested more than {MAX_DEPTH} deep"
        report.add(at, deep, "write it flatter", "too-deep")
        return None
    body = without_null(data)
    found, errors = validated(model, body)
    if not errors:
        return found
    unknown = [each for each in errors if each["type"] in UNKNOWN]
    for each in unknown:
        report_unknown_field(model, each["loc"], at, report, ignored=ignores_unknown)
    body = without(body, {tuple(each["loc"]) for each in unknown})
    found, errors = validated(model, body)
    for each in errors:
        report_fault(each, body, at, report)
    return found


def validated(model: type[M], body: Any) -> tuple[M | None, list[ErrorDetails]]:
    """Return the body as the model, or its errors."""
    key: Any = model
    try:
        return reader(key).validate_python(body), []
    except ValidationError as error:
        return None, error.errors()


def too_deep(data: Any) -> bool:
    """Whether the data is nested too deeply to read it by recursion."""
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
    """Return a copy without keys that are null, except where null is a value."""
    if isinstance(value, dict):
        return {
            key: each if key in KEEPS_NULL else without_null(each)
            for key, each in value.items()
            if each is not None or key in KEEPS_NULL
        }
    if isinstance(value, list):
        return [without_null(each) for each in value]
    return value


def without(value: Any, paths: set[tuple[int | str, ...]], at: tuple[int | str, ...] = ()) -> Any:
    """Return a copy of `value` without the keys at these paths."""
    if isinstance(value, dict):
        return {
            key: without(each, paths, (*at, key))
            for key, each in value.items()
            if (*at, key) not in paths
        }
    if isinstance(value, list):
        return [without(each, paths, (*at, index)) for index, each in enumerate(value)]
    return value


def report_unknown_field(
    model: type, place: tuple[int | str, ...], at: Path, report: Report, *, ignored: bool
) -> None:
    """Report a key that the model does not have: a warning if it is ignored, else an error."""
    name = str(place[-1])
    known = keys_at(model, place[:-1])
    fix = f"remove it; known here: {', '.join(sorted(known))}"
    if close := closest(name, known):
        fix = f"did you mean `{close}`?"
    found = f"unknown field `{show_value(name)}`"
    if ignored:
        report.warn((*at, *place), f"{found}, which is ignored", fix, "unknown-field")
    else:
        report.add((*at, *place), found, fix, "unknown-field")


WANTED = {
    "string_type": "text",
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "list_type": "a list",
    "tuple_type": "a list",
    "frozen_set_type": "a list",
    "dict_type": "a map",
    "mapping_type": "a map",
    "dataclass_type": "a map",
    "model_type": "a map",
    "model_attributes_type": "a map",
}


def report_fault(fault: Mapping[str, Any], body: Any, at: Path, report: Report) -> None:
    """Report one error of pydantic in our own words."""
    place: tuple[int | str, ...] = tuple(fault["loc"])
    kind = fault["type"]
    if kind == "missing":
        name = place[-1]
        report.add((*at, *place[:-1]), f"`{name}` is missing", f"add `{name}`", "missing-field")
        return
    found = read_path(body, place)
    path = (*at, *place)
    if "fix" in fault.get("ctx", {}):
        report.add(path, fault["ctx"]["found"], fault["ctx"]["fix"], kind)
    elif kind in WANTED:
        article = f"{sort(found)} where {WANTED[kind]} belongs"
        report.add(path, article, f"write {WANTED[kind]}", "wrong-type")
    elif kind in {"string_too_short", "too_short"}:
        report.add(path, "it is empty", "give it a value or remove it", "empty-value")
    elif kind == "literal_error":
        allowed = fault["ctx"]["expected"].replace("'", "`")
        report.add(path, f"`{show_value(found)}`", f"write {allowed}", "unknown-value")
    else:
        limits = ", ".join(f"{name} {value}" for name, value in fault.get("ctx", {}).items())
        report.add(path, f"`{show_value(found)}`", f"keep to {limits or 'the schema'}", "bad-value")


def sort(value: Any) -> str:
    """Return the type of a value with its article."""
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


def show_value(value: Any) -> str:
    """Show a value in a message: on one line, escaped, cut."""
    text = (
        str(value).encode("unicode_escape").decode("ascii")
        if isinstance(value, str)
        else str(value)
    )
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"
