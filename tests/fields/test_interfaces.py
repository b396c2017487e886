"""What the interfaces of `fields` promise: declared members only, and a handler for every row."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from webhook.fields.handler import CompiledField, FieldHandler
from webhook.fields.registry import POD_HANDLERS, WORKLOAD_HANDLERS
from webhook.policy.table import TABLE

ROOT = Path(__file__).parent.parent.parent
HANDLERS = [*POD_HANDLERS.values(), *WORKLOAD_HANDLERS.values()]


def layers() -> list[str]:
    """The packages of the program from top to bottom, from the import contract."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    contracts = settings["tool"]["importlinter"]["contracts"]
    found = next(each["layers"] for each in contracts if each["type"] == "layers")
    return [name.strip() for layer in found for name in layer.split("|")]


def calls(package: str) -> Iterator[tuple[str, ast.Call]]:
    """Every call by a plain name in a package, with its file and line."""
    for path in sorted((ROOT / "webhook" / package).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                yield f"{path.relative_to(ROOT)}:{node.lineno}", node


def subclasses(of: type) -> Iterator[type]:
    """A class with all that inherit from it."""
    yield of
    for each in of.__subclasses__():
        yield from subclasses(each)


def names_in(node: ast.expr) -> set[str]:
    """The names of the classes that an isinstance compares with."""
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name)} | {
        each.attr for each in ast.walk(node) if isinstance(each, ast.Attribute)
    }


def test_no_member_is_looked_up_by_its_literal_name() -> None:
    """What is passed around below the CLI and HTTP has declared members."""
    known = layers()
    below = known[known.index("decision") :]
    assert "objects" in below
    found = [
        place
        for package in below
        for place, call in calls(package)
        if isinstance(call.func, ast.Name)
        and call.func.id in ("getattr", "hasattr")
        and isinstance(call.args[1], ast.Constant)
    ]
    assert not found


def test_nobody_asks_which_class_a_compiled_field_is() -> None:
    """What differs between fields is a member of CompiledField."""
    names = {each.__name__ for each in subclasses(CompiledField)}
    assert {"ItemsField", "ComputedField", "ContainerField"} <= names
    found = [
        place
        for place, call in calls("")
        if isinstance(call.func, ast.Name)
        and call.func.id in ("isinstance", "issubclass")
        and names & names_in(call.args[1])
    ]
    assert not found


def test_every_row_names_a_handler_that_exists() -> None:
    """A row of the catalogue names its handler by text, and no handler is without a row."""
    shapes = {row.shape for row in TABLE.fields.values()}
    assert shapes == POD_HANDLERS.keys() | WORKLOAD_HANDLERS.keys()


@pytest.mark.parametrize("handler", HANDLERS, ids=lambda each: type(each).__name__)
def test_a_handler_compiles_fields_of_its_own_scope(handler: FieldHandler) -> None:  # type: ignore[type-arg]
    assert handler.scope == ("pod" if handler in POD_HANDLERS.values() else "workload")
