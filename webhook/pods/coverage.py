"""Finds containers and pod specs outside the known pod locations of an object."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final, Literal

from webhook.interface.pod_keys import (
    CONTAINER_KEYS,
    FOLDED_CONTAINER_KEYS,
    FOLDED_POD_LISTS,
    POD_KEYS,
)
from webhook.objects.path import Path, real
from webhook.pods.definition import Definition
from webhook.pods.key_case import odd_keys
from webhook.pods.location import LocationError, PodLocation
from webhook.pods.matching import matches

What = Literal["container", "pod spec"]
Known = dict[Path, frozenset[str | int] | None]

# Neither holds what somebody runs: both are the API server's or a controller's.
NOT_WALKED: Final = frozenset({"apiVersion", "kind", "metadata", "status"})
IMAGE: Final = frozenset({"image"})
MAX_DEPTH: Final = 100
MAX_NODES: Final = 200_000


def uncovered(
    document: Any, locations: Iterable[PodLocation], definition: Definition
) -> list[tuple[Path, What]]:
    """The outermost containers and pod specs that no location knows, in the document's order.

    Only schema-open subtrees are walked, the whole object where the schema is unknown. Places
    that the schema alone knows count without looking like anything. Raises LocationError when a
    subtree is too deep or too large to be walked.
    """
    starts = list(subtrees(document, definition))
    proof = definition.proof(document)
    used = list(proof.used(document)) if proof is not None else []
    if not (starts or used):
        return []
    locations = list(locations)
    known = known_places(document, locations, definition)
    found = list(walk(starts, known))
    told = {path[:size] for path, _ in found for size in range(len(path) + 1)}
    odd = [each for each in odd_keys_in(starts, locations) if each[0] not in {*known, *told}]
    # jq may locate what no schema can prove, and pieces make a pod only together.
    heads = {path[:size] for path in known for size in range(len(path) + 1)} if used else set()
    missed = [each for each in used if not is_located(each[0], known, heads)]
    return [*found, *odd, *missed]


def is_located(path: Path, known: Known, heads: set[Path]) -> bool:
    """Whether a place is, is in, or has in it a place of a pod; `heads` are what they are in."""
    if path in heads:
        return True
    for at in range(len(path)):
        keys = known.get(path[:at], frozenset())
        if keys is None or path[at] in keys:
            return True
    return False


def odd_keys_in(
    starts: list[tuple[Path, Any]], locations: Iterable[PodLocation]
) -> Iterator[tuple[Path, What]]:
    """Keys in other letter case in the pods that no schema prunes."""
    opened = {path for path, _ in starts}
    for location in locations:
        place = location.place
        if any(place[:size] in opened for size in range(len(place) + 1)):
            yield from ((real(path), "pod spec") for path in odd_keys(location))


def known_places(document: Any, locations: Iterable[PodLocation], definition: Definition) -> Known:
    """The places of pods and of what is none, with the keys that belong to them."""
    known: Known = {}
    for location in locations:
        if location.parts is not None:
            # Several pods may take pieces of one place.
            for path, keys in location.parts.known().items():
                known[path] = keys | (known.get(path) or frozenset())
            continue
        known[location.spec_path] = POD_KEYS
        known.update((path, IMAGE | CONTAINER_KEYS) for path, _ in location.extra)
    not_pods = [each.place for each in definition.profile.not_pods]
    # Each is judged by itself, and searched with the definition of its own kind.
    not_pods += [each.place for each in definition.embedded]
    known.update((each.path, None) for each in matches(not_pods, document) if each.path is not None)
    return known


def pod_like(document: Any) -> bool:
    """Whether an object of an unknown kind holds a container or pod spec anywhere in its body."""
    return next(pods_in(document), None) is not None


def pods_in(document: Any) -> Iterator[tuple[Path, What]]:
    """Containers and pod specs anywhere in the body of an object; raises LocationError."""
    return walk(list(body_of(document)), {})


def subtrees(document: Any, definition: Definition) -> Iterator[tuple[Path, Any]]:
    """The parts of the document that have to be walked."""
    programs = definition.profile.open_subtrees
    proof = definition.proof(document)
    if proof is not None:
        for path, node in proof.walked(document):
            yield from ((path, node),) if path else body_of(document)
        # The schema knows better than the profile, but its status is left out.
        programs = tuple(each for each in programs or () if each.text.startswith(".status"))
    elif programs is None:
        yield from body_of(document)
        return
    found = matches(programs, document)
    yield from ((each.path, each.value) for each in found if each.path is not None)


def body_of(document: Any) -> Iterator[tuple[Path, Any]]:
    """What people write of an object."""
    for key, value in document.items() if isinstance(document, dict) else ():
        if key not in NOT_WALKED:
            yield (key,), value


def walk(starts: list[tuple[Path, Any]], known: Known) -> Iterator[tuple[Path, What]]:
    """Depth first without recursion, so that no document can exhaust the stack.

    `known` maps known places to the keys that belong to them, None for all: a pod spec may have
    others beside, in which further pods hide.
    """
    stack = list(reversed(starts))
    count = 0
    while stack:
        path, node = stack.pop()
        count += 1
        if count > MAX_NODES:
            text = f"more than {MAX_NODES} values where pods may hide"
            raise LocationError((), "too-large", text)
        own: frozenset[str | int] | None = frozenset()
        if path in known:
            own = known[path]
        elif isinstance(node, dict) and (what := looks_like(node)):
            yield path, what
            continue
        if own is None:
            continue
        inside = [
            ((*path, key), value)
            for key, value in members(node)
            if isinstance(value, (dict, list)) and key not in own
        ]
        if inside and len(path) >= MAX_DEPTH:
            text = f"nested more than {MAX_DEPTH} deep where pods may hide"
            raise LocationError(path[:10], "too-deep", text)
        stack.extend(reversed(inside))


def members(node: Any) -> Iterable[tuple[str | int, Any]]:
    """What a map or a list holds, by key or index."""
    if isinstance(node, dict):
        return node.items()
    return enumerate(node) if isinstance(node, list) else ()


def looks_like(node: dict[Any, Any]) -> What | None:
    """Whether a map is a pod spec or a container, whatever the letter case of its keys."""
    image = beside = False
    for key, value in node.items():
        name = str(key).casefold()
        if name in FOLDED_POD_LISTS:
            if isinstance(value, list) and any(isinstance(each, dict) for each in value):
                return "pod spec"
        elif name == "image":
            image = isinstance(value, str)
        elif name in FOLDED_CONTAINER_KEYS:
            beside = True
    return "container" if image and beside else None
