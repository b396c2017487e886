"""Drafts the replicas of a component: the numbers next to its path, by their names."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from webhook.interface.crd_schema import Schema, Steps, expression, last_each, node_at, takes

COUNTS = ("replicas", "parallelism", "numNodes", "numOfHosts", "instances", "size", "nodes")
AUTOSCALING = ("elasticPolicy", "scale", "autoscaling", "scaling", "hpa")


@dataclass(slots=True)
class Scaling:
    """The scaleDefinition of a component, its scale in the profile, and the paths of the numbers."""

    paths: dict[str, str] = field(default_factory=dict)
    profile: dict[str, Any] = field(default_factory=dict)
    used: list[Steps] = field(default_factory=list)
    counts: list[Steps] = field(default_factory=list)


def scaling(schema: Schema, place: Steps, above: int = 0) -> Scaling:
    """Return the replicas of the pods at a path. Numbers in the outermost `above` objects are skipped."""
    made = Scaling()
    made.counts = [each for each in counts(schema, place) if len(each) - 1 > above]
    depth = last_each(place)
    if made.counts:
        made.paths["replicasPath"] = product(schema, made.counts, depth)
        made.used += made.counts
    if len(made.counts) == 1:
        made.profile["absent"] = default_of(schema, made.counts[0], 1)
    elif not made.counts:
        made.profile["absent"] = 1
    for key, name in (("minReplicasPath", "minReplicas"), ("maxReplicasPath", "maxReplicas")):
        bound = bound_of(schema, place, name, above)
        if bound is None or last_each(bound) != depth:
            continue
        made.paths[key] = expression(bound)
        made.used.append(bound)
        switch = (*bound[:-2], "enabled")
        if name == "maxReplicas" and node_at(schema, switch).get("type") == "boolean":
            made.profile["maximumOnlyWith"] = expression(switch)
    if "maxReplicasPath" in made.paths and "minReplicasPath" in made.paths and not made.counts:
        del made.profile["absent"]
        made.paths["replicasPath"] = made.paths["minReplicasPath"]
    return made


def counts(schema: Schema, place: Steps) -> list[Steps]:
    """Return the factors: whole numbers with known names around a path, outermost first.

    Elements need a number of their own, because their ids iterate over the same collections.
    """
    found = [
        (*place[:depth], name)
        for depth in range(1, len(place) + 1)
        for name in COUNTS
        if takes(node_at(schema, (*place[:depth], name)), "integer")
        and (name != "parallelism" or node_at(schema, (*place[:depth], "template")))
    ]
    element = last_each(place)
    found = [each for each in found if not last_each(each) or len(each) > element]
    return found if not element or any(len(each) > element for each in found) else []


def product(schema: Schema, found: list[Steps], depth: int) -> str:
    """Return the jq of the product. Absent numbers have their default; `depth` is the element's."""
    if len(found) == 1:
        return expression(found[0])
    outer = [each for each in found if len(each) <= depth]
    inner = [each for each in found if len(each) > depth]
    factors = [factor(schema, each, 0) for each in outer]
    if not inner:
        return " * ".join(factors)
    own = " * ".join(factor(schema, each, depth) for each in inner)
    if not depth:
        return " * ".join([*factors, own])
    element = f"{expression(inner[0][:depth])} | {own}"
    return " * ".join([*factors, f"({element})"]) if factors else element


def factor(schema: Schema, steps: Steps, depth: int) -> str:
    """Return the jq of one number, from the element."""
    return f"({expression(steps[depth:])} // {default_of(schema, steps, 1)})"


def default_of(schema: Schema, steps: Steps, otherwise: int) -> int:
    """Return the default of a number in the schema."""
    value = node_at(schema, steps).get("default")
    return value if isinstance(value, int) and not isinstance(value, bool) else otherwise


def bound_of(schema: Schema, place: Steps, name: str, above: int) -> Steps | None:
    """Return the path of a bound of the replicas: around the path, or in an autoscaler next to it."""
    for depth in range(len(place), above, -1):
        for steps in holders(schema, place[:depth]):
            if takes(node_at(schema, (*steps, name)), "integer"):
                return (*steps, name)
    return None


def holders(schema: Schema, steps: Steps) -> list[Steps]:
    """Return an object and the autoscaling objects in it, up to two levels deep."""
    found = [steps]
    for _ in range(2):
        found += [
            (*each, name)
            for each in found
            for name in AUTOSCALING
            if (*each, name) not in found and node_at(schema, (*each, name)).get("properties")
        ]
    return found
