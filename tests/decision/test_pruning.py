"""Nothing is written where the schema of a custom resource has no place: servers would prune it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from tests import everything
from tests.decision.test_everything import catalog_of, manifests
from tests.pods.test_shipped_workloads import crd, schemas
from webhook.decision.decide import decide
from webhook.evaluation.outcome import Allowed
from webhook.evaluation.references import References
from webhook.evaluation.request import Request
from webhook.pods.definition import Definition

ALWAYS_KEPT = frozenset({"apiVersion", "kind", "metadata"})


def pruned(schema: dict[str, Any], value: Any, place: str = "") -> Iterator[str]:
    """Places that the schema does not know, as the API server would take them away."""
    if isinstance(value, list):
        for each in value:
            yield from pruned(schema.get("items") or {}, each, f"{place}[]")
    if not isinstance(value, dict):
        return
    known, others = schema.get("properties") or {}, schema.get("additionalProperties")
    whole = not place or schema.get("x-kubernetes-embedded-resource")
    for key, inner in value.items():
        if whole and key in ALWAYS_KEPT:
            continue
        if key in known:
            yield from pruned(known[key], inner, f"{place}.{key}")
        elif isinstance(others, dict):
            yield from pruned(others, inner, f"{place}[*]")
        elif others is not True and not schema.get("x-kubernetes-preserve-unknown-fields"):
            yield f"{place}.{key}"


@cache
def read_schemas(folder: Path, definition: Definition) -> dict[str, Any]:
    """The schemas of a custom kind by version; none where its CRD is not at hand."""
    profile = definition.profile
    if not any((folder / "crds").glob(f"{profile.resource}.{profile.group}*")):
        return {}
    found = schemas(folder, profile)
    for version in profile.versions:
        if version not in found:
            versions = crd(folder, profile.resource, profile.group, version)["spec"]["versions"]
            found |= {each["name"]: each["schema"]["openAPIV3Schema"] for each in versions}
    return found


def requests(folder: Path, definitions: Any) -> Iterator[tuple[str, Request, dict[str, Any]]]:
    """A creation of every manifest in every version of its kind, with that version's schema."""
    for source, raw in manifests(folder):
        group, kind = str(raw["apiVersion"]).rpartition("/")[0], str(raw["kind"])
        for definition in definitions.get((group, kind), ()):
            if "." not in group:
                continue
            for version, schema in read_schemas(folder, definition).items():
                body = {**raw, "apiVersion": f"{group}/{version}"}
                request = Request(
                    group, version, kind, "CREATE", body, raw=body, namespace="default"
                )
                yield f"{source} as {version}", request, schema


def test_every_default_has_its_place_in_the_schema(upstream_data: Path) -> None:
    catalog = catalog_of(defaults=everything.telling_defaults())
    judged: set[tuple[str, str]] = set()
    problems: list[str] = []
    for source, request, schema in requests(upstream_data, catalog.definitions):
        decision = decide(request, catalog, References())
        if isinstance(decision, Allowed):
            judged.add((request.kind, request.version))
            before = set(pruned(schema, request.object))
            found = set(pruned(schema, decision.object)) - before
            problems += [f"{source}: {place}" for place in sorted(found)]
    assert not problems, "\n".join(problems)
    assert {("MPIJob", "v1"), ("MPIJob", "v2beta1"), ("RayJob", "v1")} <= judged
    assert len(judged) > 12
