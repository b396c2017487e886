"""podgate schema: the JSON Schema of podgate's documents, for editors."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any

import orjson
import typer

from webhook.cli import loading
from webhook.sources.files import shipped_folder

Schema = dict[str, Any]
DIALECT = "https://json-schema.org/draft/2020-12/schema"
Kind = Annotated[
    str | None,
    typer.Argument(
        metavar="[KIND]", help="Kind of the document, or bare, or api. Without it: all of them."
    ),
]


def schema(kind: Kind = None) -> None:
    """Print the JSON Schema (draft 2020-12) of podgate's documents.

    Exit code 0: printed, 2: there is no such kind.
    """
    known = orjson.loads((shipped_folder() / "schemas.json").read_bytes())
    schemas: dict[str, Schema] = known["documents"]
    try:
        loading.check_choice(kind, tuple(schemas), "KIND")
    except loading.BadInput:
        raise typer.Exit(loading.BAD_INPUT) from None
    chosen = schemas if kind is None else {kind: schemas[kind]}
    title = kind or "Documents of podgate"
    found = complete(chosen, known["definitions"], title)
    print(json.dumps(found, indent=2, ensure_ascii=False))


def complete(schemas: Mapping[str, Schema], known: Mapping[str, Schema], title: str) -> Schema:
    """One schema, or one of several, with only the definitions that it needs."""
    top = next(iter(schemas.values())) if len(schemas) == 1 else {"oneOf": list(schemas.values())}
    needed: dict[str, Schema] = {}
    pending = sorted(references(top))
    while pending:
        name = pending.pop()
        if name not in needed:
            needed[name] = known[name]
            pending += sorted(references(known[name]))
    used = {name: needed[name] for name in sorted(needed)}
    return {"$schema": DIALECT, "title": title, **top, "$defs": used}


def references(schema: Any) -> set[str]:
    """The definitions that a schema refers to directly."""
    found: set[str] = set()
    pending = [schema]
    while pending:
        each = pending.pop()
        if isinstance(each, dict):
            target = each.get("$ref")
            if isinstance(target, str):
                found.add(target.removeprefix("#/$defs/"))
            pending += each.values()
        elif isinstance(each, list):
            pending += each
    return found
