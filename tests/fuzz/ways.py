"""Ways to break a rule: values that are set, items that are added, amounts in any notation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

from tests.fuzz.amounts import above, unreadable

Apply = Callable[[dict[str, Any], Random], None]
ALL = ("", "containers", "initContainers", "ephemeralContainers")
ORDINARY = ("", "containers")


@dataclass(frozen=True, slots=True)
class Way:
    """One way to break a rule; `needs` is what a place must offer, of a container or of the pod.

    `of_workload`: it changes the object beside its pods.
    """

    spelling: str
    needs: str
    apply: Apply
    of_pod: bool = False
    of_workload: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Breach:
    """A rule as the body of a policy, the field it is about, and the ways to break it.

    `lists` are the containers that the rule binds. `total`: the rule is about a sum over the pod.
    `holds`: podgate may also write what is missing; the pod then holds it in the end.
    """

    field: str
    policy: Mapping[str, Any]
    ways: tuple[Way, ...]
    lists: tuple[str, ...] = ALL
    total: bool = False
    holds: Callable[[Any], bool] | None = None


def put(node: dict[str, Any], path: str, value: Any) -> None:
    """Set a value below maps that are made where they are missing."""
    *above_it, last = path.split(".")
    for step in above_it:
        inner = node.get(step)
        if not isinstance(inner, dict):
            inner = node[step] = {}
        node = inner
    node[last] = value


def add(node: dict[str, Any], key: str, *items: Any) -> None:
    """Append items to a list that is made where it is missing."""
    node[key] = [*(node.get(key) or ()), *items]


def sets(path: str, *values: Any, spelling: str = "plain", of_pod: bool = False) -> Way:
    """A way that sets one of some values; what it needs is the path without its last of three."""
    needs = ".".join(path.split(".")[:2])

    def apply(node: dict[str, Any], random: Random) -> None:
        put(node, path, random.choice(values))

    return Way(spelling, needs, apply, of_pod)


def adds(
    key: str, *items: Any, spelling: str = "plain", of_pod: bool = False, needs: str = ""
) -> Way:
    """A way that appends one of some items to a list; a tuple is several items at once."""

    def apply(node: dict[str, Any], random: Random) -> None:
        chosen = random.choice(items)
        add(node, key, *(chosen if isinstance(chosen, tuple) else (chosen,)))

    return Way(spelling, needs or key, apply, of_pod)


def volume(source: str, *values: Any, spelling: str = "plain", **more: Any) -> Way:
    """A way that adds a volume with a source."""

    def apply(node: dict[str, Any], random: Random) -> None:
        add(node, "volumes", {"name": "evil", source: random.choice(values), **more})

    return Way(spelling, f"volumes.[].{source}", apply, of_pod=True)


def context(name: str, *values: Any) -> tuple[Way, ...]:
    """Ways to set a field of a container's security context."""
    first = sets(f"securityContext.{name}", *values)
    return (first, both_levels(name, values[0], None))


def both_levels(name: str, bad: Any, good: Any) -> Way:
    """A container's own value with null beside it, as a CRD without pruning keeps it."""

    def apply(node: dict[str, Any], _: Random) -> None:
        node["securityContext"] = {"seLinuxOptions": None, name: bad, "windowsOptions": good}

    return Way("null", f"securityContext.{name}", apply)


def shared(name: str, bad: Any, good: Any) -> tuple[Way, ...]:
    """Ways to set a field that both pod and container have: overridden below, it counts too."""

    def above_containers(node: dict[str, Any], _: Random) -> None:
        put(node, f"securityContext.{name}", bad)
        for key in ("containers", "initContainers"):
            for each in node.get(key) or ():
                put(each, f"securityContext.{name}", good)

    needs = f"securityContext.{name.partition('.')[0]}"
    return (
        sets(f"securityContext.{name}", bad),
        sets(f"securityContext.{name}", bad, spelling="pod-level", of_pod=True),
        Way("pod-level", needs, above_containers, of_pod=True),
    )


def amounts(path: str, key: str, least: int, *, unit: str = "") -> tuple[Way, ...]:
    """Ways to ask for more than allowed, in every notation."""

    def plain(node: dict[str, Any], random: Random) -> None:
        put(
            node,
            path,
            {**(node_at(node, path) or {}), key: f"{least + random.randrange(60)}{unit}"},
        )

    def exotic(node: dict[str, Any], random: Random) -> None:
        scale = {"": 1, "Gi": 2**30}[unit]
        put(node, path, {**(node_at(node, path) or {}), key: above(least * scale, random)})

    def odd(node: dict[str, Any], random: Random) -> None:
        put(node, path, {**(node_at(node, path) or {}), key: unreadable(random)})

    return (
        Way("plain", path, plain),
        Way("amounts", path, exotic),
        Way("amounts", path, exotic),
        Way("unreadable", path, odd),
    )


def node_at(node: Any, path: str) -> Any:
    """What is below some maps, None where there is nothing."""
    for step in path.split("."):
        node = node.get(step) if isinstance(node, dict) else None
    return node


def tree(path: str, value: Any) -> dict[str, Any]:
    """A value below the sections of its dotted name."""
    for step in reversed(path.split(".")):
        value = {step: value}
    return {"rules": value}


def fixed(path: str, default: Any) -> dict[str, Any]:
    """A default that may not be edited."""
    return {"defaults": tree(path, default)["rules"], **tree(path, {"canEdit": False})}
