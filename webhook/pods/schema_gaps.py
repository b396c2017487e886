"""Compares a definition with a CRD's schema: places it does not reach, paths the schema lacks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from webhook.interface.crd_schema import Schema, Spot, spots
from webhook.interface.pod_keys import POD_LISTS
from webhook.interface.schema_places import (
    EACH_ITEM,
    SchemaPlace,
    given,
    is_below,
    is_known,
    properties,
    sample,
)
from webhook.jq.path import Program
from webhook.objects.path import Path
from webhook.pods.definition import Definition


def unreached(schema: Schema, definition: Definition) -> list[Spot]:
    """The places that may hold containers and that the definition does not know.

    A definition that says nothing of open subtrees is walked whole at run time and misses none.
    """
    if definition.profile.open_subtrees is None:
        return []
    aside = [*definition.profile.open_subtrees]
    aside += [each.place for each in definition.profile.not_pods]
    return [each for each in spots(schema) if not is_reached(each, definition, aside)]


def place_of(spot: Spot) -> SchemaPlace:
    """The place of a spot; pieces make a container."""
    return SchemaPlace(spot.steps, "container" if spot.what == "pieces" else spot.what)


def is_reached(spot: Spot, definition: Definition, aside: Sequence[Program]) -> bool:
    """Whether the definition locates the place, or a program of `aside` takes it out."""
    return is_reached_whole(spot, definition, aside) or is_reached_in_pieces(spot, definition)


def is_reached_whole(spot: Spot, definition: Definition, aside: Sequence[Program]) -> bool:
    """The same, whatever else the object says; pieces make a pod only together."""
    place = place_of(spot)
    if is_below(place, aside):
        return True
    whole: list[Program] = []
    for each in definition.everyone:
        whole += [plan.places for plan in each.plans if plan.places is not None]
        whole += [extra.place for extra in each.profile.extra_containers]
    return is_known(place, whole)


def is_reached_in_pieces(spot: Spot, definition: Definition) -> bool:
    """Whether the place is a piece of some pod."""
    place = place_of(spot)
    parts = [
        part.place for each in definition.everyone for plan in each.plans for part in plan.parts
    ]
    if spot.what == "pod spec" and has_lists(spot, parts):
        return True
    return spot.what != "open" and any(holds(path, place) for path in stated(parts, place))


def has_lists(spot: Spot, parts: list[Program]) -> bool:
    """Whether each list of containers that a pod spec can have is a part of some pod."""
    lists = POD_LISTS & set(properties(spot.node))
    return bool(lists) and all(
        any(holds(path, place) for path in stated(parts, place))
        for place in (SchemaPlace((*spot.steps, each, EACH_ITEM), "container") for each in lists)
    )


def stated(parts: list[Program], place: SchemaPlace) -> Iterator[Path]:
    """Where parts are in the smallest object that has something at a place."""
    document, _ = sample(place)
    yield from given(parts, document)


def holds(path: Path, place: SchemaPlace) -> bool:
    """Whether a part is the container at a place, its list, or one of its own keys."""
    _, target = sample(place)
    in_list = bool(target) and isinstance(target[-1], int) and path == target[:-1]
    own = path[:-1] == target and str(path[-1]).casefold() == "image"
    return path == target or own or in_list
