"""Analyses a native path without a document."""

import json
from dataclasses import dataclass, replace
from typing import Literal

from webhook.jq import nodes
from webhook.jq.nodes import Node, NotNativeError, Step, append_key


@dataclass(frozen=True, slots=True)
class Facts:
    """Facts about every output of a node, given the facts about its input."""

    shape: Literal["value", "entries", "entry"] = "value"
    text: str = "."
    assignable: bool = True
    iterators: tuple[str, ...] = ()
    # All outputs passed the same iterators, each inside the one before.
    nested: bool = True
    ragged: bool = False
    # An element's output depends only on that element, so outputs can be assigned to elements.
    elementwise: bool = True


def analyse(node: Node) -> tuple[Facts, Node]:
    """Return facts about a whole program, and its resolved nodes. Raises NotNativeError."""
    facts, resolved = _resolve(node, Facts())
    if facts.shape != "value":
        at = next((step.at for step in nodes.steps_of(node)), 0)
        raise NotNativeError(
            at, "only `to_entries[] | .key` and `to_entries[] | .value` are native"
        )
    return facts, resolved


def is_plain(node: Node) -> bool:
    """Whether the node has only fields and indices, guarded or not."""
    return all(
        isinstance(step, nodes.Key) or (isinstance(step, nodes.Guarded) and is_plain(step.body))
        for step in nodes.steps_of(node)
    )


def first_place(node: Node) -> Node | None:
    """Return the first field of a product, or the field of a default. None for other arithmetic."""
    *before, last = nodes.steps_of(node)
    match last:
        case nodes.Alternative(_, left, _) | nodes.Arithmetic(_, "*", left, _):
            inner = first_place(left)
            return None if inner is None else nodes.chain(*before, inner)
        case nodes.Key():
            return node
        case _:
            return None


def iterates(node: Node) -> int:
    """Return the maximum number of iterators that an output of the node passes."""
    match node:
        case nodes.Chain(steps):
            return sum(iterates(step) for step in steps)
        case nodes.Each():
            return 1
        case nodes.Guarded(_, body):
            return iterates(body)
        case nodes.Alternative(_, left, right) | nodes.Arithmetic(_, _, left, right):
            return max(iterates(left), iterates(right))
        case _:
            return 0


def elements(node: Node) -> Node:
    """Return the node up to its last iterator. Its outputs are the elements."""
    if not iterates(node):
        return nodes.Chain(())
    match node:
        case nodes.Chain(steps):
            last = max(i for i, step in enumerate(steps) if iterates(step))
            return nodes.chain(*steps[:last], elements(steps[last]))
        case nodes.Guarded(at, body):
            return nodes.Guarded(at, elements(body))
        case nodes.Alternative(_, left, right) | nodes.Arithmetic(_, _, left, right):
            return elements(left if iterates(left) >= iterates(right) else right)
        case _:
            return node


def _resolve(node: Node, given: Facts) -> tuple[Facts, Node]:
    match node:
        case nodes.Chain(steps):
            return _resolve_chain(steps, given)
        case nodes.Key():
            return _resolve_key(node, given)
        case nodes.Each(at):
            return _resolve_each(at, given)
        case nodes.Entries(at):
            return replace(_only_value(given, at), shape="entries"), node
        case nodes.Constant(_, value):
            text = json.dumps(value, ensure_ascii=False)
            return replace(given, shape="value", text=text, assignable=False), node
        case nodes.Select():
            return _resolve_select(node, given)
        case nodes.Alternative() | nodes.Arithmetic():
            return _resolve_pair(node, given)
        case _:
            return _resolve_guarded(node, given)


def _resolve_chain(steps: tuple[Step, ...], given: Facts) -> tuple[Facts, Node]:
    resolved: list[Step] = []
    for step in steps:
        given, node = _resolve(step, given)
        resolved.extend(nodes.steps_of(node))
        _shorten(resolved)
    return given, nodes.chain(*resolved)


def _shorten(steps: list[Step]) -> None:
    """Replace `to_entries[].value` at the end by the equivalent and faster `[]`."""
    match steps[-3:]:
        case [nodes.Entries(), nodes.Each(at, depth, True), nodes.Key(_, "value", True)]:
            steps[-3:] = [nodes.Each(at, depth)]
        case _:
            pass


def _only_value(given: Facts, at: int) -> Facts:
    if given.shape != "value":
        raise NotNativeError(
            at, "what `to_entries` gives is read natively by `[]` and `.key` or `.value`"
        )
    return given


def _resolve_key(node: nodes.Key, given: Facts) -> tuple[Facts, Node]:
    if given.shape == "entry" and node.key == "value":
        return replace(given, shape="value"), replace(node, entry=True)
    if given.shape == "entry" and node.key == "key":
        text = f"{given.text}|key"
        entry = replace(node, entry=True)
        return replace(given, shape="value", text=text, assignable=False), entry
    return replace(_only_value(given, node.at), text=append_key(given.text, node.key)), node


def _resolve_each(at: int, given: Facts) -> tuple[Facts, Node]:
    entries = given.shape == "entries"
    if not entries:
        _only_value(given, at)
    facts = replace(
        given,
        shape="entry" if entries else "value",
        text=f"{given.text}[]",
        iterators=(*given.iterators, given.text),
        nested=given.nested and not given.ragged,
    )
    return facts, nodes.Each(at, len(given.iterators), entries)


def _resolve_select(node: nodes.Select, given: Facts) -> tuple[Facts, Node]:
    facts, operand = _resolve(node.operand, given)
    _only_value(facts, node.at)
    if iterates(operand):
        # Besides arithmetic over two iterators, only this can need more than linear time.
        raise NotNativeError(node.at, "a condition that iterates is left to jq")
    return given, nodes.Select(node.at, operand, node.literal)


def _resolve_guarded(node: nodes.Guarded, given: Facts) -> tuple[Facts, Node]:
    facts, body = _resolve(node.body, given)
    # An error in one element ends the stream for the following elements.
    alone = isinstance(body, nodes.Each) or not iterates(body)
    facts = replace(facts, elementwise=facts.elementwise and alone)
    return facts, nodes.Guarded(node.at, body)


def _resolve_pair(node: nodes.Alternative | nodes.Arithmetic, given: Facts) -> tuple[Facts, Node]:
    (left, left_node), (right, right_node) = _resolve(node.left, given), _resolve(node.right, given)
    longer, shorter = sorted((left.iterators, right.iterators), key=len, reverse=True)
    aligned = longer[: len(shorter)] == shorter
    uneven = len(longer) != len(shorter)
    iterators = longer if aligned else tuple(dict.fromkeys((*left.iterators, *right.iterators)))
    joined = replace(
        given,
        iterators=iterators,
        nested=left.nested and right.nested and aligned,
        elementwise=left.elementwise and right.elementwise,
    )
    if isinstance(node, nodes.Arithmetic):
        _only_value(left, node.at), _only_value(right, node.at)
        if iterates(left_node) and iterates(right_node):
            raise NotNativeError(node.at, "arithmetic with iterators on both sides is left to jq")
        text = f"({left.text} {node.operator} {right.text})"
        facts = replace(joined, shape="value", text=text, assignable=False)
        facts = replace(facts, ragged=left.ragged or right.ragged)
        return facts, nodes.Arithmetic(node.at, node.operator, left_node, right_node)
    if left.shape != right.shape:
        raise NotNativeError(node.at, "an entry beside a value is left to jq")
    facts = replace(
        joined,
        shape=left.shape,
        text=f"({left.text} // {right.text})",
        assignable=left.assignable and right.assignable,
        ragged=left.ragged or right.ragged or uneven,
        elementwise=joined.elementwise and not iterates(left_node) and not iterates(right_node),
    )
    return facts, nodes.Alternative(node.at, left_node, right_node)
