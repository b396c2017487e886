"""Finds every place of a CRD's schema that can hold pods, and proves a definition against them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal

from webhook.core.pointer import Path
from webhook.core.workload.locations import Definition
from webhook.core.workload.pod_shape import CONTAINER_KEYS, FOLDED_CONTAINER_KEYS, POD_KEYS
from webhook.core.workload.query import Program, QueryError

EACH_ITEM = "[]"
EACH_KEY = "{}"
MAX_DEPTH = 100

SchemaWhat = Literal["container", "pod spec", "pod template", "open"]


# The keys that need no further look, by what they belong to.
OWN_KEYS: dict[SchemaWhat | None, frozenset[str]] = {
    "container": CONTAINER_KEYS | {"image"},
    "pod spec": POD_KEYS,
    "pod template": POD_KEYS,
    None: frozenset(),
}


@dataclass(frozen=True, slots=True)
class SchemaPlace:
    """A place in a schema; steps are keys, `[]` for list items and `{}` for values of a map."""

    steps: tuple[str, ...]
    what: SchemaWhat

    @property
    def text(self) -> str:
        """The place as a path, such as `.spec.workerGroupSpecs[].template`."""
        return "".join("[]" if step in {EACH_ITEM, EACH_KEY} else f".{step}" for step in self.steps)


def schema_places(openapi_schema: Any) -> list[SchemaPlace]:
    """Every place that can hold pods, and every subtree that the schema leaves open.

    What belongs to a pod is not looked into, but what a kind puts beside the pod's own keys is.
    `openapi_schema` is an OpenAPI v3 schema (`openAPIV3Schema`). The object's own metadata and
    its status are left out.
    """
    found: list[SchemaPlace] = []
    stack: list[tuple[tuple[str, ...], Any]] = [((), openapi_schema)]
    while stack:
        steps, schema = stack.pop()
        if not isinstance(schema, dict) or steps in {("metadata",), ("status",)}:
            continue
        if what := kind_of(schema):
            found.append(SchemaPlace(steps, what))
        if is_open(schema) or len(steps) >= MAX_DEPTH:
            found.append(SchemaPlace(steps, "open"))
        own = OWN_KEYS[what]
        if what == "pod template":
            steps, schema = (*steps, "spec"), properties(schema)["spec"]
        deeper = [((*steps, step), each) for step, each in below(schema) if step not in own]
        stack.extend(reversed(deeper))
    return found


def below(schema: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """The schemas one step further down."""
    yield from properties(schema).items()
    for key, step in (("items", EACH_ITEM), ("additionalProperties", EACH_KEY)):
        if isinstance(schema.get(key), dict):
            yield step, schema[key]


def properties(schema: Any) -> dict[str, Any]:
    """The properties of an object's schema."""
    found = schema.get("properties") if isinstance(schema, dict) else None
    return found if isinstance(found, dict) else {}


def is_open(schema: dict[str, Any]) -> bool:
    """Whether the API server keeps what the schema does not describe."""
    return bool(
        schema.get("x-kubernetes-preserve-unknown-fields")
        or schema.get("x-kubernetes-embedded-resource")
        or schema.get("additionalProperties") is True
        or schema.get("additionalProperties") == {}
    )


def kind_of(schema: dict[str, Any]) -> SchemaWhat | None:
    """What an object of this schema can be."""
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
    """Whether the property may be text."""
    schema = next((each for key, each in inside.items() if key.casefold() == name), None)
    return isinstance(schema, dict) and schema.get("type", "string") == "string"


def unproven(places: list[SchemaPlace], definition: Definition) -> list[SchemaPlace]:
    """The places that the definition neither locates, nor walks, nor lists as no pods."""
    pods: list[Program] = []
    for each in definition.everyone:
        pods.extend(plan.places for plan in each.plans if plan.places is not None)
        pods.extend(extra.place for extra in each.profile.extra_containers)
    walked = definition.profile.open_subtrees
    if walked is None:
        return []
    aside = [*walked, *(each.place for each in definition.profile.not_pods)]
    return [each for each in places if not is_known(each, pods) and not is_below(each, aside)]


def is_known(place: SchemaPlace, pods: list[Program]) -> bool:
    """Whether a program gives the pod at this place, be it as a template or as its spec."""
    document, target = sample(place)
    spec = (*target, "spec") if place.what == "pod template" else target
    return any(
        path in (target, spec) or (*path, "spec") == target for path in given(pods, document)
    )


def is_below(place: SchemaPlace, subtrees: Sequence[Program]) -> bool:
    """Whether a program gives this place or one above it."""
    document, target = sample(place)
    return any(target[: len(path)] == path for path in given(subtrees, document))


def given(programs: Sequence[Program], document: Any) -> Iterator[Path]:
    """The places that the programs find; one that does not suit the document finds nothing."""
    for program in programs:
        with suppress(QueryError):
            yield from (
                each.path for each in program.matches_or_none(document) if each.path is not None
            )


def sample(place: SchemaPlace) -> tuple[Any, Path]:
    """The smallest document with something at the place, and where that is."""
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
