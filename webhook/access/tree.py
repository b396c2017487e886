"""Objects of a cluster as trees, by owner references, each with its state."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from webhook.access.errors import AccessError
from webhook.access.gang import component_of, summarize
from webhook.access.object import Bound, bind
from webhook.access.selector import PodQuery
from webhook.jq.expressions import Evaluator, JqError
from webhook.pods.definition import Definition

Find = Callable[[Any], Definition | None]
KindName = tuple[str, str]
DEEPEST: Final = 100


@dataclass(slots=True)
class Node:
    """One object; `state` is "" where its kind has no definition, or one that says nothing of states.

    `problem` says why a state cannot be read. `component` and `instance` are of a pod, by the
    nearest object above whose definition selects it.
    """

    body: Mapping[str, Any]
    state: str = ""
    problem: str = ""
    component: str = ""
    instance: str = ""
    children: list[Node] = field(default_factory=list)


def metadata_of(body: Any) -> Mapping[str, Any]:
    """Return the metadata of an object, empty if it has none."""
    found = body.get("metadata") if isinstance(body, dict) else None
    return found if isinstance(found, dict) else {}


def owners_of(body: Any) -> list[str]:
    """Return the uids of an object's owners, its controller first."""
    listed = metadata_of(body).get("ownerReferences")
    rows = [each for each in (listed if isinstance(listed, list) else ()) if isinstance(each, dict)]
    rows.sort(key=lambda each: each.get("controller") is not True)
    return [str(each.get("uid")) for each in rows if each.get("uid")]


def trees(objects: Sequence[Any], find: Find, evaluator: Evaluator) -> list[Node]:
    """Return every object below its owner. Objects without an owner in the list are roots.

    A cycle of owners is cut at one of them, and a chain at DEEPEST levels.
    """
    nodes = [read(each, find, evaluator) for each in objects]
    by_uid = {str(metadata_of(each.body).get("uid")): each for each in nodes}
    owners = {
        id(node): next((by_uid[uid] for uid in owners_of(node.body) if uid in by_uid), None)
        for node in nodes
    }
    levels: dict[int, int] = {}
    roots = []
    for node in nodes:
        line, above = [], node
        while id(above) not in levels:
            levels[id(above)] = 0  # being looked at: who comes back here goes round a circle
            line.append(above)
            above = owners[id(above)] or above
        level = levels[id(above)]
        for each in reversed(line):
            owner = owners[id(each)]
            level = 1 if owner is None or level in (0, DEEPEST) else level + 1
            levels[id(each)] = level
            if level == 1 or owner is None:
                roots.append(each)
            else:
                owner.children.append(each)
    for root in roots:
        name_pods(root, find, evaluator)
    return roots


def walk(root: Node) -> Iterator[Node]:
    """Return a node and its descendants."""
    stack = [root]
    while stack:
        node = stack.pop()
        yield node
        stack.extend(reversed(node.children))


def read(body: Any, find: Find, evaluator: Evaluator) -> Node:
    """Return one object with its state."""
    node = Node(body)
    definition = find(body)
    if definition is None or not has_states(definition):
        return node
    try:
        status = bind(definition, body, evaluator).root.status()
        node.state = status.state if status is not None else ""
    except (AccessError, JqError) as error:
        node.problem = str(error)
    return node


def has_states(definition: Definition) -> bool:
    """Whether a definition has matchers for any state. Definitions of templates have none."""
    status = definition.interface.spec.structure_definition.root_component.status_definition
    return status is not None and any(matchers for _, matchers in status.status_mappings)


def name_pods(root: Node, find: Find, evaluator: Evaluator) -> None:
    """Set the component of each pod, by the nearest object above it."""
    stack: list[tuple[Node, tuple[Bound, ...]]] = [(root, ())]
    while stack:
        node, above = stack.pop()
        if node.body.get("kind") == "Pod":
            name_pod(node, above)
        definition = find(node.body)
        # Parity mode supports ids that need jq; admission supports only native ones.
        inner = (bind(definition, node.body, evaluator, "parity"), *above) if definition else above
        stack.extend((each, inner) for each in node.children)


def name_pod(node: Node, above: Sequence[Bound]) -> None:
    """Return the component and instance of one pod, by the topmost definition that selects it."""
    pod = PodQuery(node.body)
    for bound in reversed(above):
        try:
            summary = summarize(bound.spec)
            if summary.leaves:
                node.component = component_of(summary, pod)
                node.instance = instance_in(bound, pod, node.component)
                return
        except (AccessError, JqError):
            continue


def instance_in(bound: Bound, pod: PodQuery, component: str) -> str:
    """Return the instance of a pod, "" if unknown.

    Labels have names in lower case, even if the object does not.
    """
    found = bound.component(component)
    if not found.is_many or found.pod_selector is None:
        return ""
    name = (pod.instance_id(found.pod_selector) or "").casefold()
    return next((each for each in found.instance_ids() if each.casefold() == name), "")


def child_kinds(
    kind: KindName, known: Mapping[KindName, Sequence[Definition]]
) -> frozenset[KindName]:
    """Return the kinds of objects below one of a kind, in any version, including their children."""
    found: set[KindName] = {("", "Pod")}
    stack, seen = [kind], set()
    while stack:
        key = stack.pop()
        if key in seen:
            continue
        seen.add(key)
        own = {each for definition in known.get(key, ()) for each in kinds_named(definition)}
        found |= own
        stack += own
    return frozenset(found)


def kinds_named(definition: Definition) -> set[KindName]:
    """Return the kinds that one definition names below its root."""
    structure = definition.interface.spec.structure_definition
    named = [child.kind for child in structure.child_components if child.kind]
    listed = {
        (kind.group or "", kind.kind or "") for kind in (*named, *structure.additional_child_kinds)
    }
    return listed | set(definition.profile.intermediate_kinds)
