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
from webhook.objects.path import Path
from webhook.pods.definition import Definition
from webhook.pods.key_case import odd_keys
from webhook.pods.location import LocationError, PodLocation
from webhook.pods.matching import matches

What = Literal["container", "pod spec"]
Known = dict[Path, frozenset[str | int] | None]

# None of them contains pods of users: the API server or a controller writes them.
NOT_WALKED: Final = frozenset({"apiVersion", "kind", "metadata", "status"})
IMAGE: Final = frozenset({"image"})
MAX_DEPTH: Final = 100
MAX_NODES: Final = 200_000


def find_uncovered(
    document: Any, locations: Iterable[PodLocation], definition: Definition
) -> list[tuple[Path, What]]:
    """Return the outermost containers and pod specs that no location covers, in document order.

    Only schema-open subtrees are searched, or the whole object if the schema is unknown. Paths that
    only the schema knows count whatever their value looks like. Raises LocationError if a subtree
    is too deep or too large.
    """
    starts = list(subtrees(document, definition))
    proof = definition.proof(document)
    used = list(proof.find_used(document)) if proof is not None else []
    if not (starts or used):
        return []
    locations = list(locations)
    known = known_places(document, locations, definition)
    found = list(walk(starts, known))
    told = {path[:size] for path, _ in found for size in range(len(path) + 1)}
    odd = [each for each in odd_keys_in(starts, locations) if each[0] not in {*known, *told}]
    # jq may locate what no schema can prove, and only all fragments together make a pod.
    heads = {path[:size] for path in known for size in range(len(path) + 1)} if used else set()
    missed = [each for each in used if not is_located(each[0], known, heads)]
    return [*found, *odd, *missed]


def is_located(path: Path, known: Known, heads: set[Path]) -> bool:
    """Return whether a path is, is in, or contains a path of a pod. `heads` are all outer paths."""
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
    """Yield keys in another letter case in the pods that no schema prunes."""
    opened = {path for path, _ in starts}
    for location in locations:
        place = location.place
        if any(place[:size] in opened for size in range(len(place) + 1)):
            yield from ((location.at(path).report, "pod spec") for path in odd_keys(location))


def known_places(document: Any, locations: Iterable[PodLocation], definition: Definition) -> Known:
    """Return the paths of pods and of known non-pods, with the keys that belong to them."""
    known: Known = {}
    for location in locations:
        if location.fragments is not None:
            # Several pods may take fragments of one path.
            for path, keys in location.fragments.known_paths().items():
                known[path] = keys | (known.get(path) or frozenset())
            continue
        known[location.spec_path] = POD_KEYS
        known.update((path, IMAGE | CONTAINER_KEYS) for path, _ in location.extra)
    not_pods = [each.place for each in definition.profile.not_pods]
    # Each is evaluated on its own, and searched with the definition of its own kind.
    not_pods += [each.place for each in definition.embedded]
    known.update((each.path, None) for each in matches(not_pods, document) if each.path is not None)
    return known


def pod_like(document: Any) -> bool:
    """Return whether an object of an unknown kind contains a container or pod spec in its body."""
    return next(pods_in(document), None) is not None


def pods_in(document: Any) -> Iterator[tuple[Path, What]]:
    """Yield containers and pod specs in the body of an object. Raises LocationError."""
    return walk(list(body_of(document)), {})


def subtrees(document: Any, definition: Definition) -> Iterator[tuple[Path, Any]]:
    """Yield the subtrees of the document that have to be searched."""
    programs = definition.profile.open_subtrees
    proof = definition.proof(document)
    if proof is not None:
        for path, node in proof.walk_open(document):
            yield from ((path, node),) if path else body_of(document)
        # The schema overrides the profile, but does not cover status.
        programs = tuple(each for each in programs or () if each.text.startswith(".status"))
    elif programs is None:
        yield from body_of(document)
        return
    found = matches(programs, document)
    yield from ((each.path, each.value) for each in found if each.path is not None)


def body_of(document: Any) -> Iterator[tuple[Path, Any]]:
    """Yield the members of an object that users write."""
    for key, value in document.items() if isinstance(document, dict) else ():
        if key not in NOT_WALKED:
            yield (key,), value


def walk(starts: list[tuple[Path, Any]], known: Known) -> Iterator[tuple[Path, What]]:
    """Search depth first without recursion, so that no document can exhaust the stack.

    `known` maps known paths to the keys that belong to them, None for all. A pod spec may have
    other keys in which further pods hide.
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
    """Return the members of a map or list, by key or index."""
    if isinstance(node, dict):
        return node.items()
    return enumerate(node) if isinstance(node, list) else ()


def looks_like(node: dict[Any, Any]) -> What | None:
    """Return whether a map is a pod spec or a container, ignoring the letter case of its keys."""
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
