"""Finds what an OpenAPI schema can have at a path, and whether a definition covers that path."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal

from webhook.interface.pod_keys import CONTAINER_KEYS, FOLDED_CONTAINER_KEYS, POD_KEYS
from webhook.jq.path import Program, QueryError
from webhook.objects.path import Path

EACH_ITEM = "[]"
EACH_KEY = "{}"
MAX_DEPTH = 100

SchemaWhat = Literal["container", "pod spec", "pod template", "open"]


# The keys that need not be searched, by what they belong to.
OWN_KEYS: dict[SchemaWhat | None, frozenset[str]] = {
    "container": CONTAINER_KEYS | {"image"},
    "pod spec": POD_KEYS,
    "pod template": POD_KEYS,
    None: frozenset(),
}


@dataclass(frozen=True, slots=True)
class SchemaPlace:
    """A path in a schema. Steps are keys, `[]` for list items and `{}` for values of a map."""

    steps: tuple[str, ...]
    what: SchemaWhat


def below(schema: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Return the schemas one step below."""
    yield from properties(schema).items()
    for key, step in (("items", EACH_ITEM), ("additionalProperties", EACH_KEY)):
        if isinstance(schema.get(key), dict):
            yield step, schema[key]


def properties(schema: Any) -> dict[str, Any]:
    """Return the properties of an object's schema."""
    found = schema.get("properties") if isinstance(schema, dict) else None
    return found if isinstance(found, dict) else {}


def is_open(schema: dict[str, Any]) -> bool:
    """Whether the API server keeps keys that the schema does not describe."""
    return bool(
        schema.get("x-kubernetes-preserve-unknown-fields")
        or schema.get("x-kubernetes-embedded-resource")
        or schema.get("additionalProperties") is True
        or schema.get("additionalProperties") == {}
    )


def kind_of(schema: dict[str, Any]) -> SchemaWhat | None:
    """Return what an object of this schema can be."""
    inside = properties(schema)
    if is_pod_spec(inside):
        return "pod spec"
    if is_pod_spec(properties(inside.get("spec"))) and set(inside) <= {"metadata", "spec"}:
        return "pod template"
    names = {name.casefold() for name in inside}
    if "image" in names and names & FOLDED_CONTAINER_KEYS and takes_text(inside, "image"):
        return "container"
    return None


def is_pod_spec(inside: dict[str, Any]) -> bool:
    """Whether these properties have a list of containers."""
    containers = next(
        (each for name, each in inside.items() if name.casefold() == "containers"), None
    )
    if not isinstance(containers, dict):
        return False
    item = containers.get("items")
    return isinstance(item, dict) and ("image" in properties(item) or is_open(item))


def takes_text(inside: dict[str, Any], name: str) -> bool:
    """Whether the property can be a string."""
    schema = next((each for key, each in inside.items() if key.casefold() == name), None)
    return isinstance(schema, dict) and schema.get("type", "string") == "string"


def is_known(place: SchemaPlace, pods: list[Program]) -> bool:
    """Whether a program finds the pod at this path, as a template or as a spec."""
    document, target = sample(place)
    spec = (*target, "spec") if place.what == "pod template" else target
    return any(
        path in (target, spec) or (*path, "spec") == target for path in find_paths(pods, document)
    )


def is_below(place: SchemaPlace, subtrees: Sequence[Program]) -> bool:
    """Whether a program finds this path or one above it."""
    document, target = sample(place)
    return any(target[: len(path)] == path for path in find_paths(subtrees, document))


def find_paths(programs: Sequence[Program], document: Any) -> Iterator[Path]:
    """Return the paths that the programs find. A program that fails finds nothing."""
    for program in programs:
        with suppress(QueryError):
            yield from (
                each.path for each in program.matches_or_none(document) if each.path is not None
            )


def sample(place: SchemaPlace) -> tuple[Any, Path]:
    """Return the smallest document that has this path, and the path in it."""
    target: list[str | int] = []
    node: Any = {}
    for step in reversed(place.steps):
        if step == EACH_ITEM:
            node, key = [node], 0
            target.append(key)
        else:
            name = "key" if step == EACH_KEY else step
            node = {name: node}
            target.append(name)
    return node, tuple(reversed(target))
