"""Forms of pieces that several containers of a pod take their values from."""

from __future__ import annotations

from typing import Any, Final

from webhook.objects.lookup import frozen
from webhook.objects.path import Path, read
from webhook.pods.fragments import CONTAINER, Piece, Pieces, mapping, put

CONTAINERS: Final = "containers"
AMOUNTS: Final = "computeResources"
IDENTITIES: Final = {"env": "name", "volumeMounts": "mountPath", "volumeDevices": "devicePath"}
"""Lists of a container that are merged item by item, and what tells their items apart."""


def put_mark(parts: Pieces, pod: Any, at: Path, place: Path, value: Any) -> None:
    """A value that shows that there is a pod, and says nothing of it.

    One that is a container's is all that the object says of that container: no default goes there.
    """
    if at == CONTAINER and value is not None:
        parts.add(at, place, "told", given=True)


def put_steps(parts: Pieces, pod: Any, at: Path, place: Path, value: Any) -> None:
    """Containers whose amounts stand under another name."""
    for index, each in enumerate(value if isinstance(value, list) else ()):
        here = (*at, len(held_in(pod)))
        parts.add(here, (*place, index), given=True)
        amounts = each.get(AMOUNTS) if isinstance(each, dict) else None
        parts.add((*here, "resources"), (*place, index, AMOUNTS), given=amounts is not None)
        add_container(pod, renamed(each))


def held_in(pod: Any) -> list[Any]:
    """The containers that pieces have put there so far."""
    held = pod["spec"].get(CONTAINERS)
    return [each for each in held if each != {}] if isinstance(held, list) else []


def add_container(pod: Any, container: Any) -> None:
    """One more container."""
    pod["spec"][CONTAINERS] = [*held_in(pod), container]


def renamed(container: Any) -> Any:
    """A container with its amounts where a pod has them."""
    if not isinstance(container, dict) or container.get(AMOUNTS) is None:
        return container
    rest = {key: value for key, value in container.items() if key != AMOUNTS}
    return {**rest, "resources": container[AMOUNTS]}


def put_base(parts: Pieces, pod: Any, at: Path, place: Path, value: Any) -> None:
    """A container from which those that are there take what they lack."""
    if not isinstance(value, dict):
        return
    base = {key: each for key, each in value.items() if key != "name" and each is not None}
    if not held_in(pod):
        parts.add((*at, 0), place, given=True)
    pod["spec"][CONTAINERS] = [
        based(parts, each, base, (*at, index), place) if isinstance(each, dict) else each
        for index, each in enumerate(pod["spec"][CONTAINERS])
    ]


def based(
    parts: Pieces, own: dict[str, Any], base: dict[str, Any], at: Path, place: Path
) -> dict[str, Any]:
    """A map with what it lacks of another, deeply; lists with identities take what they lack."""
    found = dict(own)
    for key, value in base.items():
        name = "resources" if key == AMOUNTS else key
        held, here, there = own.get(name), (*at, name), (*place, key)
        if name in IDENTITIES and isinstance(value, list) and isinstance(held, list | None):
            items = lacking(held, value, IDENTITIES[name])
            put_with = behind if name == "env" else ahead
            found[name] = put_with(parts, held or [], items, here, there)
        elif isinstance(value, dict) and isinstance(held, dict | None):
            found[name] = based(parts, held or {}, value, here, there)
        elif held is None:
            parts.add(here, there, given=True)
            found[name] = value
        else:
            parts.overridden.append((here, there, value))
    return found


def lacking(held: list[Any] | None, base: list[Any], identity: str) -> dict[int, Any]:
    """The items of a list that another has none of the same name of, by index.

    An item takes the place of the first one of its name only: what repeats the name stays.
    """
    named = {frozen(mapping(each).get(identity)) for each in held or ()}
    found = {}
    for index, each in enumerate(base):
        name = frozen(mapping(each).get(identity))
        if name in named:
            named.remove(name)
        else:
            found[index] = each
    return found


def ahead(
    parts: Pieces, held: list[Any], items: dict[int, Any], at: Path, place: Path
) -> list[Any]:
    """A list with items of another place ahead of its own, behind which defaults go."""
    own = next((each.real for each in parts.pieces if each.pod == at[:-1]), None)
    if own is not None:
        parts.pieces.append(Piece(at, (*own, at[-1]), "same", bool(held), len(items)))
    tell(parts, items, at, place, 0)
    return [*items.values(), *held]


def behind(
    parts: Pieces, held: list[Any], items: dict[int, Any], at: Path, place: Path
) -> list[Any]:
    """A list with items of another place behind its own, ahead of which defaults go."""
    tell(parts, items, at, place, len(held))
    return [*held, *items.values()]


def tell(parts: Pieces, items: dict[int, Any], at: Path, place: Path, first: int) -> None:
    """Remember where items are, given by their index there; they can be read only."""
    for position, index in enumerate(items):
        parts.add((*at, first + position), (*place, index), "told", given=True)


def put_over(parts: Pieces, pod: Any, at: Path, place: Path, value: Any) -> None:
    """Variables that every container that is there gets besides its own."""
    if not isinstance(value, list):
        return
    for index, each in enumerate(pod["spec"][CONTAINERS]):
        if not isinstance(each, dict) or not isinstance(each.get("env"), list | None):
            continue
        here, items = (*at, index, "env"), dict(enumerate(value))
        changed = {**each, "env": behind(parts, each.get("env") or [], items, here, place)}
        pod["spec"][CONTAINERS] = replaced(pod["spec"][CONTAINERS], index, changed)


def replaced(listed: list[Any], index: int, value: Any) -> list[Any]:
    """A list with another item at an index."""
    return [*listed[:index], value, *listed[index + 1 :]]


def put_amounts(parts: Pieces, pod: Any, at: Path, place: Path, value: Any) -> None:
    """Amounts of containers by name, over their own; what no container has is one of its own."""
    for position, each in enumerate(value if isinstance(value, list) else ()):
        given = mapping(each)
        key = AMOUNTS if AMOUNTS in given else "resources"
        there = (*place, position, key)
        listed = held_in(pod)
        names = [mapping(held).get("name") for held in listed]
        if given.get("name") not in names:
            add_container(pod, {"name": given.get("name")})
            listed = held_in(pod)
            parts.add((*at, len(listed) - 1), (*place, position), "told", given=True)
            names.append(given.get("name"))
        index = names.index(given.get("name"))
        here = (*at, index, "resources")
        held = mapping(read(listed[index], ("resources",)))
        amounts = over(parts, held, mapping(given.get(key)), here, there)
        changed = {**listed[index], "resources": amounts}
        pod["spec"][CONTAINERS] = replaced(listed, index, changed)


def over(
    parts: Pieces, held: dict[str, Any], given: dict[str, Any], at: Path, place: Path
) -> dict[str, Any]:
    """Amounts with others over them, entry by entry."""
    found = dict(held)
    for key, value in given.items():
        here, there = (*at, key), (*place, key)
        if isinstance(value, dict):
            found[key] = over(parts, mapping(held.get(key)), value, here, there)
        else:
            parts.add(here, there, given=True)
            found[key] = value
    return found


def put_shared(parts: Pieces, pod: Any, at: Path, place: Path, value: Any) -> None:
    """Amounts of the whole pod, which stand for those of the containers that are there."""
    if not isinstance(value, dict):
        return
    without = [
        {key: kept for key, kept in each.items() if key != "resources"}
        if isinstance(each, dict)
        else each
        for each in pod["spec"][CONTAINERS]
    ]
    if isinstance(without[0], dict):
        parts.add((*at, 0, "resources"), place, given=True)
        without[0] = {**without[0], "resources": value}
    pod["spec"][CONTAINERS] = without


def put_workspaces(parts: Pieces, pod: Any, at: Path, place: Path, value: Any) -> None:
    """Volumes of workspaces; those of claim templates are claims of the object."""
    for index, each in enumerate(value if isinstance(value, list) else ()):
        if isinstance(each, dict) and each.get("volumeClaimTemplate") is None:
            held = read(pod, at)
            held = held if isinstance(held, list) else []
            parts.add((*at, len(held)), (*place, index), "told", given=True)
            put(pod, at, [*held, {key: kept for key, kept in each.items() if key != "subPath"}])
