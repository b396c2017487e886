"""One schema document with only the definitions that it needs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from webhook.core.policy.schema.definitions import definitions
from webhook.core.policy.schema.forms import Schema

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def complete(schemas: Mapping[str, Schema], more: Mapping[str, Schema], title: str) -> Schema:
    """One document: the schema, or one of several, with only the definitions that it needs."""
    known = {**definitions(), **more}
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
