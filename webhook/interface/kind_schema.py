"""What a catalog keeps of a CRD: paths of pods, and what API servers do not prune."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from webhook.documents.problem import Problem
from webhook.documents.source import SourceDocument
from webhook.interface.crd_schema import Spot, spots
from webhook.interface.pod_keys import POD_LISTS
from webhook.interface.pruning import Shape, Shapes
from webhook.interface.schema_places import properties

KIND = "CustomResourceDefinition"
# The shape of a version without a schema, and of a CRD that prunes nothing.
UNDESCRIBED: dict[str, Any] = {"x-kubernetes-preserve-unknown-fields": True}


@dataclass(frozen=True, slots=True)
class KindSchema:
    """One version of a custom kind. `spots` have no schema; outer ones come first."""

    origin: str
    group: str
    kind: str
    version: str
    spots: tuple[Spot, ...]
    shape: Shape

    @property
    def name(self) -> str:
        """The kind for messages."""
        return f"{self.kind}.{self.group}/{self.version}"


def read_schemas(
    document: SourceDocument, shapes: Shapes
) -> tuple[tuple[KindSchema, ...], tuple[Problem, ...]]:
    """Return the versions of a CRD, or of each CRD in a list. Other documents are reported.

    `shapes` is shared by all CRDs that are read together, so that equal shapes are kept once.
    """
    found: list[KindSchema] = []
    for data in members(document.data):
        names = data.get("spec", {}) if isinstance(data, dict) else {}
        versions = list(versions_of(data)) if is_crd(data) else []
        if not versions:
            return (), (no_crd(document, data),)
        for version, schema in versions:
            places = tuple(map(without_schema, spots(schema)))
            found.append(
                KindSchema(
                    document.origin,
                    str(names.get("group")),
                    str(names["names"]["kind"]),
                    version,
                    places,
                    shapes.of(schema),
                )
            )
    return tuple(found), ()


def without_schema(spot: Spot) -> Spot:
    """Return a spot that keeps only the names of its lists of containers."""
    lists = sorted(POD_LISTS & set(properties(spot.node)))
    return replace(spot, node={"properties": {key: {} for key in lists}} if lists else {})


def members(data: Any) -> list[Any]:
    """Return the items of a list as kubectl prints it, else the document itself."""
    items = data.get("items") if isinstance(data, dict) else None
    if isinstance(items, list) and str(data.get("kind")).endswith("List"):
        return items
    return [data]


def is_crd(data: Any) -> bool:
    """Whether a decoded document is a CRD with a kind."""
    spec = data.get("spec") if isinstance(data, dict) and data.get("kind") == KIND else None
    names = spec.get("names") if isinstance(spec, dict) else None
    return isinstance(names, dict) and isinstance(names.get("kind"), str)


def versions_of(data: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Return each version of a CRD that is not marked as not served, with its schema."""
    spec = data["spec"]
    versions = spec.get("versions")
    for each in versions if isinstance(versions, list) else ():
        if isinstance(each, dict) and each.get("served") is False:
            continue
        if isinstance(each, dict) and isinstance(each.get("name"), str):
            body = each.get("schema")
            schema = body.get("openAPIV3Schema") if isinstance(body, dict) else None
            if not isinstance(schema, dict) or spec.get("preserveUnknownFields") is True:
                schema = UNDESCRIBED
            yield each["name"], schema


def no_crd(document: SourceDocument, data: Any) -> Problem:
    """Return the warning of a document that is not a CRD and is ignored."""
    line, column = document.position(())
    kind = data.get("kind") if isinstance(data, dict) else None
    found = f"{kind} instead of a {KIND}" if isinstance(kind, str) else f"no {KIND}"
    if kind == KIND:
        found = f"a {KIND} without spec.names.kind or spec.versions"
    fix = "give CRDs as the API server has them"
    return Problem(document.origin, "", found, fix, "not-a-crd", line, column, "warning")
