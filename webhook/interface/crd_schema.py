"""A CRD's schema by steps: its nodes, the jq of a path, ids of elements, and paths of pods."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from webhook.interface.pod_keys import CONTAINER_KEYS, FOLDED_CONTAINER_KEYS
from webhook.interface.schema_places import (
    EACH_ITEM,
    EACH_KEY,
    MAX_DEPTH,
    OWN_KEYS,
    below,
    is_open,
    kind_of,
    properties,
)

Steps = tuple[str, ...]
Schema = dict[str, Any]
What = Literal["container", "pod spec", "pod template", "open", "pieces"]
EACH = frozenset({EACH_ITEM, EACH_KEY})
WHOLE_CONTAINER = 8
"""With a name and this many keys of a container, a schema is Kubernetes' own type."""


@dataclass(frozen=True, slots=True)
class Spot:
    """A path that can have a pod or fragments. `pieces` is a container that sets its image in members."""

    steps: Steps
    what: What
    node: Schema


def spots(schema: Schema) -> list[Spot]:
    """Return every path that can have containers, outer paths first."""
    found: list[Spot] = []
    stack: list[tuple[Steps, Any]] = [((), schema)]
    while stack:
        steps, node = stack.pop()
        if not isinstance(node, dict) or steps in {("metadata",), ("status",)}:
            continue
        shape = kind_of(node)
        if shape or has_image_parts(node):
            found.append(Spot(steps, shape or "pieces", node))
        if is_open(node) or len(steps) >= MAX_DEPTH:
            found.append(Spot(steps, "open", node))
        own = OWN_KEYS[shape or ("container" if has_image_parts(node) else None)]
        if shape == "pod template":
            steps, node = (*steps, "spec"), properties(node)["spec"]
        stack.extend(reversed([((*steps, to), each) for to, each in below(node) if to not in own]))
    return found


def outside(schema: Schema) -> Iterator[tuple[Steps, Schema]]:
    """Return every node outside pods, without the object's own metadata and status."""
    stack: list[tuple[Steps, Any]] = [((), schema)]
    while stack:
        steps, node = stack.pop()
        if not isinstance(node, dict) or steps in {("metadata",), ("status",)}:
            continue
        yield steps, node
        shape = kind_of(node)
        own = OWN_KEYS[shape or ("container" if has_image_parts(node) else None)]
        if shape != "pod template" and len(steps) < MAX_DEPTH:
            deeper = [((*steps, to), each) for to, each in below(node) if to not in own]
            stack.extend(reversed(deeper))


def image_key(node: Schema) -> str | None:
    """Return the property of the image, in any letter case."""
    return next((key for key in properties(node) if key.casefold() == "image"), None)


def has_image_parts(node: Schema) -> bool:
    """Whether an object is a container that sets its image in several members."""
    key = image_key(node)
    if key is None or not {name.casefold() for name in properties(node)} & FOLDED_CONTAINER_KEYS:
        return False
    return bool({"repository", "name", "tag"} & set(properties(properties(node)[key])))


def is_whole_container(node: Schema) -> bool:
    """Whether an object is a container of Kubernetes, not only a few members of one."""
    inside = properties(node)
    return "name" in inside and len(CONTAINER_KEYS & set(inside)) >= WHOLE_CONTAINER


def node_at(schema: Schema, steps: Steps) -> Schema:
    """Return the schema at a path, {} if there is none."""
    node: Any = schema
    for step in steps:
        if not isinstance(node, dict):
            return {}
        key = {EACH_ITEM: "items", EACH_KEY: "additionalProperties"}.get(step)
        node = node.get(key) if key else properties(node).get(step)
    return node if isinstance(node, dict) else {}


def takes(node: Schema, sort: str) -> bool:
    """Whether the schema describes a path with values of this JSON type."""
    return node.get("type") == sort or (
        sort != "object" and bool(node.get("x-kubernetes-int-or-string"))
    )


def expression(steps: Steps) -> str:
    """Return the paths as jq from the object's root."""
    return "".join("[]" if step in EACH else field(step) for step in steps) or "."


def field(step: str) -> str:
    """Return one key as jq."""
    plain = re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", step)
    return f".{step}" if plain else f".{json.dumps(step)}"


def last_each(steps: Steps) -> int:
    """Return the number of steps to the innermost element, 0 outside lists and maps."""
    return max((at + 1 for at, step in enumerate(steps) if step in EACH), default=0)


def ids_of(schema: Schema, steps: Steps) -> tuple[str, str] | None:
    """Return the jq of the ids of a path's elements, and the reason for it. None without elements."""
    depth = last_each(steps)
    if not depth:
        return None
    holder, element = steps[: depth - 1], steps[:depth]
    if element[-1] == EACH_KEY:
        return f"{expression(holder)} | to_entries[] | .key", "the keys of the map"
    name = name_key(schema, holder)
    if name:
        return expression((*element, name)), f"the schema requires `{name}`"
    reason = "no text is required in an element that could name it, so its position does"
    return f"{expression(holder)} | to_entries[] | .key", reason


def name_key(schema: Schema, holder: Steps) -> str | None:
    """Return the required string that identifies the items of a list."""
    listed = node_at(schema, holder)
    items = node_at(listed, (EACH_ITEM,))
    required = items.get("required")
    needed = [str(key) for key in required] if isinstance(required, list) else []
    keys = listed.get("x-kubernetes-list-map-keys")
    if isinstance(keys, list) and len(keys) == 1:
        needed.insert(0, str(keys[0]))
    texts = [key for key in needed if takes(node_at(items, (key,)), "string")]
    named = [key for key in texts if key == "name" or key.endswith("Name")]
    return next((key for key in texts if key == "name"), named[0] if named else None)
