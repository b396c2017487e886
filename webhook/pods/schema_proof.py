"""What a CRD's schema proves of a definition: places nobody covers, and what has to be walked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from webhook.documents.problem import Problem
from webhook.interface.crd_schema import Spot, Steps, expression
from webhook.interface.kind_schema import KindSchema
from webhook.interface.pod_keys import CONTAINER_KEYS, POD_KEYS
from webhook.interface.pruning import Shape
from webhook.interface.schema_places import EACH_ITEM, EACH_KEY, is_below
from webhook.objects.path import Path
from webhook.pods.coverage import What
from webhook.pods.definition import Definition
from webhook.pods.schema_gaps import is_reached_in_pieces, is_reached_whole, place_of

UNCOVERED = "place-uncovered"
SHOWN = 5
"""How many places one problem names."""
# A name says nothing of what runs.
OWN_KEYS: dict[What, frozenset[str]] = {
    "container": (CONTAINER_KEYS | {"image"}) - {"name"},
    "pod spec": POD_KEYS,
}


@dataclass(frozen=True, slots=True)
class Proof:
    """One version of a kind: `opened` are its schema-open subtrees, `unknown` places that hold
    pods and that the definition neither covers nor lists as none; `pieces` are those that it
    covers where the object has the rest of a pod too; `shape` is what servers keep.
    """

    opened: tuple[Steps, ...]
    unknown: tuple[Spot, ...]
    pieces: tuple[Spot, ...]
    shape: Shape

    def walked(self, document: Any) -> Iterator[tuple[Path, Any]]:
        """The open subtrees of a document."""
        for steps in self.opened:
            yield from at_steps(document, steps)

    def used(self, document: Any) -> Iterator[tuple[Path, What]]:
        """The places that may be uncovered and that a document says something of, and what it is."""
        for spot in (*self.unknown, *self.pieces):
            steps = (*spot.steps, "spec") if spot.what == "pod template" else spot.steps
            what = what_of(spot)
            for path, value in at_steps(document, steps):
                if isinstance(value, dict) and any(value.get(key) for key in OWN_KEYS[what]):
                    yield path, what


def what_of(spot: Spot) -> What:
    """What a place holds."""
    return "pod spec" if spot.what in ("pod spec", "pod template") else "container"


def prove(definition: Definition, schema: KindSchema) -> Proof:
    """Compare a definition with the places that a version's schema has."""
    aside = [each.place for each in definition.profile.not_pods]
    opened = outermost(
        each.steps
        for each in schema.spots
        if each.what == "open" and not is_below(place_of(each), aside)
    )
    rest = [
        each
        for each in schema.spots
        if each.what != "open"
        and not is_within(each.steps, opened)
        and not is_reached_whole(each, definition, aside)
    ]
    pieces = tuple(each for each in rest if is_reached_in_pieces(each, definition))
    unknown = tuple(each for each in rest if each not in pieces)
    return Proof(opened, unknown, pieces, schema.shape)


def outermost(places: Iterable[Steps]) -> tuple[Steps, ...]:
    """The places that are in no other of them."""
    found: list[Steps] = []
    for each in sorted(places, key=len):
        if not is_within(each, found):
            found.append(each)
    return tuple(found)


def is_within(steps: Steps, others: Sequence[Steps]) -> bool:
    """Whether a place is one of others or below one."""
    return any(steps[: len(each)] == each for each in others)


def at_steps(document: Any, steps: Steps) -> Iterator[tuple[Path, Any]]:
    """What a document has at a place of its schema."""
    found: list[tuple[Path, Any]] = [((), document)]
    for step in steps:
        found = [deeper for path, node in found for deeper in one_step(path, node, step)]
    return iter(found)


def one_step(path: Path, node: Any, step: str) -> list[tuple[Path, Any]]:
    """The members of a value that one step of a schema means."""
    if step == EACH_ITEM:
        listed = node if isinstance(node, list) else ()
        return [((*path, index), each) for index, each in enumerate(listed)]
    if not isinstance(node, dict):
        return []
    if step == EACH_KEY:
        return [((*path, key), each) for key, each in node.items()]
    return [((*path, step), node[step])] if step in node else []


def uncovered_places(schema: KindSchema, proof: Proof, definition: Definition) -> list[Problem]:
    """The places that a definition misses, told when the catalog loads."""
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


def ungoverned(schema: KindSchema, *, other_versions: bool) -> Problem | None:
    """A kind or version whose schema has places for pods and that no definition is for."""
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
    """Something that a CRD shows and that is no fault of the CRD."""
    return Problem(schema.origin, path, found, fix, reason, severity="warning")
