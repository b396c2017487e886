"""Plays an object through both passes: created, and changed in several ways."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Iterator
from typing import Any

from webhook.admission.judge import judge_review
from webhook.admission.review import respond
from webhook.catalog.catalog import Catalog
from webhook.evaluation.outcome import Allowed, Decision, Denied
from webhook.evaluation.references import References
from webhook.evaluation.request import Request, Stage, go_on

Document = dict[str, Any]


def rearranged(node: Any, order: Callable[[list[Any]], list[Any]]) -> Any:
    """A copy whose lists and maps are in another order."""
    if isinstance(node, dict):
        return {key: rearranged(node[key], order) for key in order(list(node))}
    if isinstance(node, list):
        return order([rearranged(each, order) for each in node])
    return node


def altered(node: Any, key: str = "") -> Any:
    """A copy in which every value is slightly another one; what names things stays."""
    if isinstance(node, dict):
        return {name: altered(value, name) for name, value in node.items()}
    if isinstance(node, list):
        return [altered(each) for each in node]
    if key in ("apiVersion", "kind", "namespace", "name", "key", "mountPath", "groupName"):
        return node
    if isinstance(node, str):
        return node + "x"
    return node + 1 if node.__class__ is int else node


def reverse(held: list[Any]) -> list[Any]:
    """The list from its end."""
    return held[::-1]


def shuffle(held: list[Any]) -> list[Any]:
    """The list in some order, the same each time."""
    return random.Random(7).sample(held, len(held))


def turned(body: Document, order: Callable[[list[Any]], list[Any]]) -> Document:
    """The object with every list in another order; the texts in it stay."""
    return {**body, "spec": rearranged(body["spec"], order)}


def changes(body: Document, small: Document) -> dict[str, tuple[Document, Document | None]]:
    """Object and old object by what is done; `small` is the same with hardly an entry."""
    now: Document = copy.deepcopy(body)
    return {
        "created": (now, None),
        "reversed": (turned(now, reverse), body),
        "shuffled": (turned(now, shuffle), body),
        "altered": ({**altered(now), "metadata": now["metadata"]}, body),
        "relabelled": ({**now, "metadata": {**now["metadata"], "labels": {"a": "b"}}}, body),
        "filled": (now, small),
        "emptied": (copy.deepcopy(small), body),
    }


def request_of(
    body: Document, old: Document | None, stage: Stage, go_on: Callable[[], None] = go_on
) -> Request:
    """The request of a person."""
    group, _, version = str(body["apiVersion"]).rpartition("/")
    return Request(
        group,
        version,
        str(body["kind"]),
        "CREATE" if old is None else "UPDATE",
        body,
        old,
        uid="7",
        namespace="team",
        name="web",
        user="someone@example.com",
        field_manager="m0",
        replaces=old is not None,
        stage=stage,
        go_on=go_on,
    )


def decide(catalog: Catalog, request: Request) -> Decision:
    """The decision on it."""
    return judge_review(request, catalog, References())


def passes(catalog: Catalog, body: Document, old: Document | None) -> Iterator[str]:
    """Both passes, the answers included; gives the outcome of each."""
    for stage in (Stage.MUTATE, Stage.VALIDATE):
        request = request_of(body, old, stage)
        decision = decide(catalog, request)
        assert isinstance(decision, Allowed | Denied)
        respond(request, decision)
        yield type(decision).__name__
