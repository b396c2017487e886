"""Pods of Tekton's tasks: steps are containers that take values from a template and from overrides.

steps       containers with their amounts under computeResources, behind those that are there
base        a container from which those that are there take what they lack
over        variables that the containers that are there get besides their own
amounts     {name, computeResources or resources} over those of the container of that name
shared      amounts of the whole pod, in place of those of the containers that are there
workspaces  volumes of workspaces, behind what is there; claim templates are left out
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from webhook.objects.lookup import frozen
from webhook.objects.path import Path, read
from webhook.pods.assemble import Assembler
from webhook.pods.fragments import Fragment, FragmentForm, PodBuilder, mapping, put

CONTAINERS: Final = "containers"
AMOUNTS: Final = "computeResources"
IDENTITIES: Final = {"env": "name", "volumeMounts": "mountPath", "volumeDevices": "devicePath"}
"""Lists of a container that are merged item by item, and what tells their items apart."""


def put_steps(builder: PodBuilder, pod: Any, at: Path, path: Path, value: Any) -> None:
    """Containers whose amounts stand under another name."""
    for index, each in enumerate(value if isinstance(value, list) else ()):
        here = (*at, len(containers_in(pod)))
        builder.add(here, (*path, index), given=True)
        amounts = each.get(AMOUNTS) if isinstance(each, dict) else None
        builder.add((*here, "resources"), (*path, index, AMOUNTS), given=amounts is not None)
        add_container(pod, rename_amounts(each))


def containers_in(pod: Any) -> list[Any]:
    """The containers that pieces have put there so far."""
    existing = pod["spec"].get(CONTAINERS)
    return [each for each in existing if each != {}] if isinstance(existing, list) else []


def add_container(pod: Any, container: Any) -> None:
    """One more container."""
    pod["spec"][CONTAINERS] = [*containers_in(pod), container]


def rename_amounts(container: Any) -> Any:
    """A container with its amounts where a pod has them."""
    if not isinstance(container, dict) or container.get(AMOUNTS) is None:
        return container
    rest = {key: value for key, value in container.items() if key != AMOUNTS}
    return {**rest, "resources": container[AMOUNTS]}


def put_base(builder: PodBuilder, pod: Any, at: Path, path: Path, value: Any) -> None:
    """A container from which those that are there take what they lack."""
    if not isinstance(value, dict):
        return
    base = {key: each for key, each in value.items() if key != "name" and each is not None}
    if not containers_in(pod):
        builder.add((*at, 0), path, given=True)
    pod["spec"][CONTAINERS] = [
        merge_base(builder, each, base, (*at, index), path) if isinstance(each, dict) else each
        for index, each in enumerate(pod["spec"][CONTAINERS])
    ]


def merge_base(
    builder: PodBuilder, own: dict[str, Any], base: dict[str, Any], at: Path, path: Path
) -> dict[str, Any]:
    """A map with what it lacks of another, deeply; lists with identities take what they lack."""
    found = dict(own)
    for key, value in base.items():
        name = "resources" if key == AMOUNTS else key
        existing, here, there = own.get(name), (*at, name), (*path, key)
        if name in IDENTITIES and isinstance(value, list) and isinstance(existing, list | None):
            items = lacking(existing, value, IDENTITIES[name])
            put_with = behind if name == "env" else ahead
            found[name] = put_with(builder, existing or [], items, here, there)
        elif isinstance(value, dict) and isinstance(existing, dict | None):
            found[name] = merge_base(builder, existing or {}, value, here, there)
        elif existing is None:
            builder.add(here, there, given=True)
            found[name] = value
        else:
            builder.overridden.append((here, there, value))
    return found


def lacking(existing: list[Any] | None, base: list[Any], identity: str) -> dict[int, Any]:
    """The items of a list that another has none of the same name of, by index.

    An item takes the place of the first one of its name only: what repeats the name stays.
    """
    named = {frozen(mapping(each).get(identity)) for each in existing or ()}
    found = {}
    for index, each in enumerate(base):
        name = frozen(mapping(each).get(identity))
        if name in named:
            named.remove(name)
        else:
            found[index] = each
    return found


def ahead(
    builder: PodBuilder, existing: list[Any], items: dict[int, Any], at: Path, path: Path
) -> list[Any]:
    """A list with items of another place ahead of its own, behind which defaults go."""
    own = next((each.path for each in builder.fragments if each.pod == at[:-1]), None)
    if own is not None:
        builder.fragments.append(Fragment(at, (*own, at[-1]), "same", bool(existing), len(items)))
    note_items(builder, items, at, path, 0)
    return [*items.values(), *existing]


def behind(
    builder: PodBuilder, existing: list[Any], items: dict[int, Any], at: Path, path: Path
) -> list[Any]:
    """A list with items of another place behind its own, ahead of which defaults go."""
    note_items(builder, items, at, path, len(existing))
    return [*existing, *items.values()]


def note_items(
    builder: PodBuilder, items: dict[int, Any], at: Path, path: Path, first: int
) -> None:
    """Remember where items are, given by their index there; they can be read only."""
    for position, index in enumerate(items):
        builder.add((*at, first + position), (*path, index), "told", given=True)


def put_over(builder: PodBuilder, pod: Any, at: Path, path: Path, value: Any) -> None:
    """Variables that every container that is there gets besides its own."""
    if not isinstance(value, list):
        return
    for index, each in enumerate(pod["spec"][CONTAINERS]):
        if not isinstance(each, dict) or not isinstance(each.get("env"), list | None):
            continue
        here, items = (*at, index, "env"), dict(enumerate(value))
        changed = {**each, "env": behind(builder, each.get("env") or [], items, here, path)}
        pod["spec"][CONTAINERS] = replace_item(pod["spec"][CONTAINERS], index, changed)


def replace_item(listed: list[Any], index: int, value: Any) -> list[Any]:
    """A list with another item at an index."""
    return [*listed[:index], value, *listed[index + 1 :]]


def put_amounts(builder: PodBuilder, pod: Any, at: Path, path: Path, value: Any) -> None:
    """Amounts of containers by name, over their own; what no container has is one of its own."""
    for position, each in enumerate(value if isinstance(value, list) else ()):
        given = mapping(each)
        key = AMOUNTS if AMOUNTS in given else "resources"
        there = (*path, position, key)
        listed = containers_in(pod)
        names = [mapping(existing).get("name") for existing in listed]
        if given.get("name") not in names:
            add_container(pod, {"name": given.get("name")})
            listed = containers_in(pod)
            builder.add((*at, len(listed) - 1), (*path, position), "told", given=True)
            names.append(given.get("name"))
        index = names.index(given.get("name"))
        here = (*at, index, "resources")
        existing = mapping(read(listed[index], ("resources",)))
        amounts = over(builder, existing, mapping(given.get(key)), here, there)
        changed = {**listed[index], "resources": amounts}
        pod["spec"][CONTAINERS] = replace_item(listed, index, changed)


def over(
    builder: PodBuilder, existing: dict[str, Any], given: dict[str, Any], at: Path, path: Path
) -> dict[str, Any]:
    """Amounts with others over them, entry by entry."""
    found = dict(existing)
    for key, value in given.items():
        here, there = (*at, key), (*path, key)
        if isinstance(value, dict):
            found[key] = over(builder, mapping(existing.get(key)), value, here, there)
        else:
            builder.add(here, there, given=True)
            found[key] = value
    return found


def put_shared(builder: PodBuilder, pod: Any, at: Path, path: Path, value: Any) -> None:
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
        builder.add((*at, 0, "resources"), path, given=True)
        without[0] = {**without[0], "resources": value}
    pod["spec"][CONTAINERS] = without


def put_workspaces(builder: PodBuilder, pod: Any, at: Path, path: Path, value: Any) -> None:
    """Volumes of workspaces; those of claim templates are claims of the object."""
    for index, each in enumerate(value if isinstance(value, list) else ()):
        if isinstance(each, dict) and each.get("volumeClaimTemplate") is None:
            existing = read(pod, at)
            existing = existing if isinstance(existing, list) else []
            builder.add((*at, len(existing)), (*path, index), "told", given=True)
            put(pod, at, [*existing, {key: kept for key, kept in each.items() if key != "subPath"}])


class TektonAssembler(Assembler):
    """Assembles the pod of a task, one container for each step."""

    def own_forms(self) -> Mapping[str, FragmentForm]:
        return {
            "steps": FragmentForm(put_steps, behind=True),
            "base": FragmentForm(put_base, behind=True),
            "over": FragmentForm(put_over, behind=True),
            "amounts": FragmentForm(put_amounts, behind=True),
            "shared": FragmentForm(put_shared, behind=True),
            "workspaces": FragmentForm(put_workspaces, behind=True),
        }
