"""A summary of a CRD, as plain JSON that is small and quick to read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, get_args

from webhook.documents.source import SourceDocument
from webhook.interface.crd_schema import Spot, What, spots
from webhook.interface.kind_schema import KindSchema, is_crd, read_schemas
from webhook.interface.pruning import ANYTHING, NOTHING, Shape, Shapes
from webhook.interface.schema_places import properties

Json = dict[str, Any]
# Numbers of shapes that all CRDs share.
SHARED = {ANYTHING: -1, NOTHING: -2}
WHATS: dict[str, What] = {each: each for each in get_args(What)}


@dataclass(frozen=True, slots=True)
class Brief:
    """What is needed to decide whether podgate has to read the schemas of a CRD.

    `versions` are the served versions, each with whether it has the scale subresource.
    `holds_pods` is whether a schema has a path for pods.
    """

    name: str
    group: str
    kind: str
    plural: str
    versions: dict[str, bool]
    holds_pods: bool
    namespaced: bool = True


def brief_of(data: Any) -> tuple[Brief, Json] | None:
    """Return the summary of a CRD and its schemas as plain JSON. None if it is not a CRD."""
    if not is_crd(data):
        return None
    names, spec = data["spec"]["names"], data["spec"]
    name = str((data.get("metadata") or {}).get("name"))
    origin = f"{data['kind']} {name}"
    schemas, _ = read_schemas(SourceDocument(origin, 1, data, {}, {}), Shapes())
    pods = any(spot.what != "open" for each in schemas for spot in each.spots)
    brief = Brief(
        name,
        str(spec.get("group")),
        str(names["kind"]),
        str(names.get("plural")),
        dict(served_versions(spec)),
        pods,
        spec.get("scope") != "Cluster",
    )
    return brief, store_schemas(schemas)


def served_versions(spec: Json) -> Iterator[tuple[str, bool]]:
    """Return the served versions, and whether each has a scale subresource."""
    for each in spec.get("versions") or ():
        if isinstance(each, dict) and each.get("served"):
            yield str(each.get("name")), bool((each.get("subresources") or {}).get("scale"))


def kinds_with_pods(document: Any, group: str, version: str) -> frozenset[str]:
    """Return the kinds of one API version that can have pods, by the version's OpenAPI document."""
    components = document.get("components") if isinstance(document, dict) else None
    schemas = components.get("schemas") if isinstance(components, dict) else None
    named = schemas if isinstance(schemas, dict) else {}
    wanted = {"group": group, "version": version}
    inlined: Json = {}
    return frozenset(
        str(name["kind"])
        for schema in named.values()
        if isinstance(schema, dict)
        for name in schema.get("x-kubernetes-group-version-kind") or ()
        if {key: name.get(key) for key in wanted} == wanted
        and any(each.what != "open" for each in spots(inline(schema, named, inlined, frozenset())))
    )


def inline(node: Any, named: Json, inlined: Json, trail: frozenset[str]) -> Any:
    """Return a schema with its references replaced. A reference to itself is left open."""
    if isinstance(node, list):
        return [inline(each, named, inlined, trail) for each in node]
    if not isinstance(node, dict):
        return node
    # A reference with a default or a description is written below allOf.
    choices = node.get("allOf")
    target = choices[0] if isinstance(choices, list) and len(choices) == 1 else node
    name = str(target.get("$ref") or "").rpartition("/")[2]
    if not name:
        return {key: inline(each, named, inlined, trail) for key, each in node.items()}
    if name in trail:
        return {}
    if name not in inlined:
        inlined[name] = inline(named.get(name), named, inlined, trail | {name}) or {}
    return inlined[name]


@dataclass(slots=True)
class Table:
    """Shapes as rows that refer to others by number, inner ones first, each once."""

    rows: list[list[Any]] = field(default_factory=list)
    numbers: dict[Shape, int] = field(default_factory=lambda: dict(SHARED))

    def number(self, shape: Shape) -> int:
        """Return the number of a shape. A new shape gets a row."""
        known = self.numbers.get(shape)
        if known is not None:
            return known
        keys = {name: self.number(each) for name, each in shape.keys.items()}
        each = None if shape.each is None else self.number(shape.each)
        self.rows.append([keys, each, shape.open])
        self.numbers[shape] = len(self.rows) - 1
        return self.numbers[shape]


def store_schemas(schemas: Sequence[KindSchema]) -> Json:
    """Return the schemas of one CRD as plain JSON. `restore_schemas` reads it."""
    table = Table()
    versions = [
        [each.version, table.number(each.shape), [*map(row_of, each.spots)]] for each in schemas
    ]
    return {"shapes": table.rows, "versions": versions}


def row_of(spot: Spot) -> list[Any]:
    """Return a path that can have pods, with the names of its lists of containers."""
    return [list(spot.steps), spot.what, sorted(properties(spot.node))]


def restore_schemas(brief: Brief, body: Json, shapes: Shapes) -> tuple[KindSchema, ...]:
    """Read the JSON that `store_schemas` wrote. `shapes` is shared by all CRDs."""
    made: list[Shape] = []
    shared = {number: shape for shape, number in SHARED.items()}

    def numbered(number: int) -> Shape:
        return shared[number] if number < 0 else made[number]

    for keys, each, opened in body["shapes"]:
        inside = {name: numbered(number) for name, number in keys.items()}
        made.append(shapes.one(inside, None if each is None else numbered(each), opened))
    origin = f"CustomResourceDefinition {brief.name}"
    return tuple(
        KindSchema(
            origin, brief.group, brief.kind, version, tuple(map(spot_of, rows)), numbered(number)
        )
        for version, number, rows in body["versions"]
    )


def spot_of(row: Sequence[Any]) -> Spot:
    """Read the row that `row_of` wrote."""
    steps, what, lists = row
    node: Json = {"properties": {key: {} for key in lists}} if lists else {}
    return Spot(tuple(steps), WHATS[what], node)
