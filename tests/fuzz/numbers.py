"""Numbers of a workload beside its pods: where the shipped profiles say that each kind has them."""

from __future__ import annotations

import copy
import functools
import re
from collections.abc import Iterator
from random import Random
from typing import Any, Final

from tests.building import catalog, policy
from tests.fuzz.places import Place
from tests.fuzz.ways import Breach, Way, tree
from webhook.catalog.catalog import Catalog
from webhook.devices.definitions import has_devices
from webhook.pods.definition import Definition
from webhook.policy.table import TABLE

BOUND: Final = 1_000_000
STEP: Final = re.compile(r'\.(\w+)|(\[\])|\["([^"]+)"\]')
REPLICAS: Final = "scale.replicas"
COMPUTED: Final = frozenset({"multiNode.workers"})
"""Fields whose number is worked out from another one of the object."""


@functools.cache
def shipped() -> Catalog:
    """The shipped definitions."""
    return catalog(policy(""))


def steps_of(text: str) -> tuple[str, ...] | None:
    """The steps of a path, "[]" for each element of a list; None where it is more than a path."""
    found = [match.group(0) for match in STEP.finditer(text)]
    if "".join(found) != text:
        return None
    return tuple(
        match.group(1) or match.group(2) or match.group(3) for match in STEP.finditer(text)
    )


def definition_of(kind: str) -> Definition:
    """The shipped definition of a kind, named as places name it."""
    version, _, name = kind.rpartition(" ")
    group, _, version = version.rpartition("/")
    found = shipped().definition(group, name, version)
    assert found is not None, kind
    return found


@functools.cache
def paths_of(kind: str) -> dict[str, list[tuple[str, ...]]]:
    """Where a kind has its numbers, by field."""
    definition = definition_of(kind)
    found: dict[str, list[tuple[str, ...]]] = {}
    for field, row in definition.profile.fields.items():
        if field in TABLE.fields and TABLE.fields[field].value == "integer":
            found[field] = [steps for each in row.places if (steps := steps_of(each.text))]
    replicas = [each.replicas.text for each in definition.interface.components if each.replicas]
    found[REPLICAS] = [steps for text in replicas if (steps := steps_of(text))]
    return found


def ends_in(node: Any, steps: tuple[str, ...], *, make: bool = True) -> Iterator[dict[str, Any]]:
    """The maps of an object that may have the last step of a path; `make` adds missing ones."""
    for at, step in enumerate(steps[:-1]):
        if step == "[]":
            for each in node if isinstance(node, list) else ():
                yield from ends_in(each, steps[at + 1 :], make=make)
            return
        if not isinstance(node, dict):
            return
        if node.get(step) is None and (not make or "[]" in steps[at + 1 :]):
            return
        node = node.setdefault(step, {})
    if isinstance(node, dict):
        yield node


def reaches(document: dict[str, Any], path: tuple[str, ...]) -> bool:
    """Whether a path leads anywhere in an object."""
    return next(ends_in(document, path), None) is not None


def can_state(place: Place, field: str) -> bool:
    """Whether an object of the place's kind can have a number too large."""
    if place.subresource or place.what == "open":
        return False
    return any(reaches(place.document(), each) for each in paths_of(place.kind).get(field, ()))


def always_pulls(kind: str) -> bool:
    """Whether a kind's operator fills in that images are always pulled."""
    held = definition_of(kind).profile.shadow_defaults
    return any(
        each.value == "Always" and each.place.text.endswith(".imagePullPolicy") for each in held
    )


def pull(kind: str, document: dict[str, Any]) -> None:
    """State the pull policy beside images where the kind's own default would be another."""
    for default in definition_of(kind).profile.shadow_defaults:
        path = steps_of(default.place.text)
        if path is not None and path[-1] == "imagePullPolicy":
            for node in ends_in(document, path, make=False):
                if "image" in node:
                    node[path[-1]] = "Always"


def limit(kind: str, document: dict[str, Any]) -> None:
    """Give limits a value that have none where they are left out, which no bound lets in."""
    rows = definition_of(kind).profile.fields
    unlimited = {field for field, row in rows.items() if row.absent_is_unlimited}
    for field in sorted(unlimited | {"autoscaling.maxReplicas", "maxReplicas"}):
        for path in paths_of(kind).get(field, ()):
            annotated = "annotations" in path
            there = path[1] in ("runPolicy", "template")  # every object of the kind has it
            for node in ends_in(document, path, make=annotated or there):
                if annotated or int(node.get(path[-1]) or BOUND) >= BOUND:
                    node[path[-1]] = "2" if annotated else 2


def too_large(field: str) -> Way:
    """The way that writes a number above the bound at one of the places."""

    def apply(document: dict[str, Any], random: Random) -> None:
        kind = f"{document['apiVersion']} {document['kind']}"
        paths = [each for each in paths_of(kind)[field] if reaches(copy.deepcopy(document), each)]
        path = random.choice(paths)
        annotated = "annotations" in path
        for other in paths if annotated else ():  # of two spellings only one is read
            for node in ends_in(document, other, make=False):
                node.pop(other[-1], None)
        number = BOUND + 1 + random.randrange(1_000)
        for node in ends_in(document, path):
            node[path[-1]] = str(number) if annotated else number

    return Way("plain", "", apply, of_workload=True)


@functools.cache
def breaches() -> tuple[Breach, ...]:
    """A bound for each of the numbers."""
    fields = {field for kind in kinds_shipped() for field, paths in paths_of(kind).items() if paths}
    return tuple(
        Breach(field, tree(field, {"max": BOUND}), (too_large(field),))
        for field in sorted(fields - COMPUTED)
    )


@functools.cache
def kinds_shipped() -> frozenset[str]:
    """Every shipped kind with pods in each of its versions, as places name them."""
    return frozenset(
        f"{group}/{version} {kind}".removeprefix("/")
        for (group, kind), found in shipped().definitions.items()
        for definition in found
        if not has_devices(definition)
        for version in definition.profile.versions
    )
