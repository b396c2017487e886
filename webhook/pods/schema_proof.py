"""Compares a definition with a CRD's schema: paths that it does not cover, and what to walk."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from webhook.documents.problem import Problem
from webhook.interface.crd_schema import Schema, Spot, Steps, expression, spots
from webhook.interface.kind_schema import KindSchema
from webhook.interface.pod_keys import CONTAINER_KEYS, POD_KEYS, POD_LISTS
from webhook.interface.pruning import Shape
from webhook.interface.schema_places import (
    EACH_ITEM,
    EACH_KEY,
    SchemaPlace,
    find_paths,
    is_below,
    is_known,
    properties,
    sample,
)
from webhook.jq.path import Program
from webhook.objects.path import Path
from webhook.pods.coverage import What
from webhook.pods.definition import Definition

UNCOVERED = "place-uncovered"
SHOWN = 5
"""How many places one problem names."""
# A name alone does not make a container.
OWN_KEYS: dict[What, frozenset[str]] = {
    "container": (CONTAINER_KEYS | {"image"}) - {"name"},
    "pod spec": POD_KEYS,
}


@dataclass(frozen=True, slots=True)
class Proof:
    """What the schema of one version of a kind proves.

    `opened` are its schema-open subtrees, `unknown` paths of pods that the definition neither
    covers nor lists as non-pods. `in_fragments` are paths that it covers if the object has the rest
    of a pod too. `shape` is what servers keep.
    """

    opened: tuple[Steps, ...]
    unknown: tuple[Spot, ...]
    in_fragments: tuple[Spot, ...]
    shape: Shape

    def walk_open(self, document: Any) -> Iterator[tuple[Path, Any]]:
        """Yield the open subtrees of a document."""
        for steps in self.opened:
            yield from at_steps(document, steps)

    def find_used(self, document: Any) -> Iterator[tuple[Path, What]]:
        """Yield the possibly uncovered paths that a document uses, and whether each is a pod spec."""
        for spot in (*self.unknown, *self.in_fragments):
            steps = (*spot.steps, "spec") if spot.what == "pod template" else spot.steps
            what = what_of(spot)
            for path, value in at_steps(document, steps):
                if isinstance(value, dict) and any(value.get(key) for key in OWN_KEYS[what]):
                    yield path, what


def what_of(spot: Spot) -> What:
    """Return what a path contains."""
    return "pod spec" if spot.what in ("pod spec", "pod template") else "container"


def prove(definition: Definition, schema: KindSchema) -> Proof:
    """Compare a definition with the paths in a version's schema."""
    aside = [each.place for each in definition.profile.not_pods]
    opened = outermost(
        each.steps
        for each in schema.spots
        if each.what == "open" and not is_below(schema_place_of(each), aside)
    )
    rest = [
        each
        for each in schema.spots
        if each.what != "open"
        and not is_within(each.steps, opened)
        and not is_covered_whole(each, definition, aside)
    ]
    in_fragments = tuple(each for each in rest if is_covered_by_fragments(each, definition))
    unknown = tuple(each for each in rest if each not in in_fragments)
    return Proof(opened, unknown, in_fragments, schema.shape)


def outermost(places: Iterable[Steps]) -> tuple[Steps, ...]:
    """Return the paths that are not inside any other."""
    found: list[Steps] = []
    for each in sorted(places, key=len):
        if not is_within(each, found):
            found.append(each)
    return tuple(found)


def is_within(steps: Steps, others: Sequence[Steps]) -> bool:
    """Return whether a path is one of the others or below one."""
    return any(steps[: len(each)] == each for each in others)


def at_steps(document: Any, steps: Steps) -> Iterator[tuple[Path, Any]]:
    """Yield the paths and values that a document has at a path of its schema."""
    found: list[tuple[Path, Any]] = [((), document)]
    for step in steps:
        found = [deeper for path, node in found for deeper in one_step(path, node, step)]
    return iter(found)


def one_step(path: Path, node: Any, step: str) -> list[tuple[Path, Any]]:
    """Return the members of a value that one step of a schema matches."""
    if step == EACH_ITEM:
        listed = node if isinstance(node, list) else ()
        return [((*path, index), each) for index, each in enumerate(listed)]
    if not isinstance(node, dict):
        return []
    if step == EACH_KEY:
        return [((*path, key), each) for key, each in node.items()]
    return [((*path, step), node[step])] if step in node else []


def find_uncovered_paths(schema: KindSchema, proof: Proof, definition: Definition) -> list[Problem]:
    """Return a warning for each path that a definition does not cover."""
    refused = definition.profile.uncovered == "deny"
    then = "objects that use it are refused" if refused else "objects that use it are warned of"
    return [
        warning(
            schema,
            expression(spot.steps),
            f"the schema has a path to a {what_of(spot)} here, which the"
            f" definition of {schema.name} does not cover; {then}",
            "name it in the ResourceInterface or under extraContainers of the WorkloadProfile,"
            " or under notPods with the reason",
            UNCOVERED,
        )
        for spot in proof.unknown
    ]


def find_ungoverned(schema: KindSchema, *, other_versions: bool) -> Problem | None:
    """Return a warning for a kind or version with pods in its schema and without a definition."""
    places = [expression(each.steps) for each in schema.spots if each.what != "open"]
    if not places:
        return None
    more = f" and {len(places) - SHOWN} more" if len(places) > SHOWN else ""
    what = "it has no definition: its objects are not governed"
    if other_versions:
        what = (
            "no definition is for this version: its objects are evaluated only where the API server"
            " converts them to another"
        )
    return warning(
        schema,
        "",
        f"{schema.name} has paths to pods ({', '.join(places[:SHOWN])}{more}), but {what}",
        "add the version to the definition"
        if other_versions
        else "draft a definition with `podgate interface infer`, and give it with --interfaces",
        "kind-ungoverned",
    )


def warning(schema: KindSchema, path: str, found: str, fix: str, reason: str) -> Problem:
    """Return a warning that a CRD leads to, but that is no fault of the CRD."""
    return Problem(schema.origin, path, found, fix, reason, severity="warning")


def find_gaps(schema: Schema, definition: Definition) -> list[Spot]:
    """The places that may hold containers and that the definition does not know.

    A definition that says nothing of open subtrees is walked whole at run time and misses none.
    """
    if definition.profile.open_subtrees is None:
        return []
    aside = [*definition.profile.open_subtrees]
    aside += [each.place for each in definition.profile.not_pods]
    return [each for each in spots(schema) if not is_covered(each, definition, aside)]


def schema_place_of(spot: Spot) -> SchemaPlace:
    """Return the place of a spot. Fragments make a container."""
    return SchemaPlace(spot.steps, "container" if spot.what == "pieces" else spot.what)


def is_covered(spot: Spot, definition: Definition, aside: Sequence[Program]) -> bool:
    """Return whether the definition locates the place, or a program of `aside` excludes it."""
    return is_covered_whole(spot, definition, aside) or is_covered_by_fragments(spot, definition)


def is_covered_whole(spot: Spot, definition: Definition, aside: Sequence[Program]) -> bool:
    """Return whether the definition covers the place without other fragments of a pod."""
    place = schema_place_of(spot)
    if is_below(place, aside):
        return True
    whole: list[Program] = []
    for each in definition.everyone:
        whole += [plan.places for plan in each.plans if plan.places is not None]
        whole += [extra.place for extra in each.profile.extra_containers]
    return is_known(place, whole)


def is_covered_by_fragments(spot: Spot, definition: Definition) -> bool:
    """Return whether the place is a fragment of some pod."""
    place = schema_place_of(spot)
    programs = [
        spec.place for each in definition.everyone for plan in each.plans for spec in plan.specs
    ]
    if spot.what == "pod spec" and has_lists(spot, programs):
        return True
    return spot.what != "open" and any(
        is_of_container(path, place) for path in fragment_paths(programs, place)
    )


def has_lists(spot: Spot, programs: list[Program]) -> bool:
    """Return whether each list of containers in a pod spec is a fragment of some pod."""
    lists = POD_LISTS & set(properties(spot.node))
    return bool(lists) and all(
        any(is_of_container(path, place) for path in fragment_paths(programs, place))
        for place in (SchemaPlace((*spot.steps, each, EACH_ITEM), "container") for each in lists)
    )


def fragment_paths(programs: list[Program], place: SchemaPlace) -> Iterator[Path]:
    """Yield the paths of fragments in the smallest object that has something at a place."""
    document, _ = sample(place)
    yield from find_paths(programs, document)


def is_of_container(path: Path, place: SchemaPlace) -> bool:
    """Return whether a fragment is the container at a place, its list, or one of its keys."""
    _, target = sample(place)
    in_list = bool(target) and isinstance(target[-1], int) and path == target[:-1]
    own = path[:-1] == target and str(path[-1]).casefold() == "image"
    return path == target or own or in_list
