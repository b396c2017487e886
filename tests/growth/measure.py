"""Plays an object through both passes: created, and changed in several ways."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from webhook.admission.judge import decide_review
from webhook.admission.review import respond
from webhook.catalog.catalog import Catalog
from webhook.evaluation.outcome import Allowed, Decision, Denied
from webhook.evaluation.references import References
from webhook.evaluation.request import Request, Stage, go_on

Document = dict[str, Any]


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


def changed(body: Document, small: Document, change: str) -> tuple[Document, Document | None]:
    """Object and old object of a change; `small` is the same with hardly an entry."""
    match change:
        case "created":
            return body, None
        case "altered":
            return {**altered(body), "metadata": body["metadata"]}, body
        case _:
            return small, body


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
    return decide_review(request, catalog, References())


def passes(catalog: Catalog, body: Document, old: Document | None) -> Iterator[str]:
    """Both passes, the answers included; gives the outcome of each."""
    for stage in (Stage.MUTATE, Stage.VALIDATE):
        request = request_of(body, old, stage)
        decision = decide(catalog, request)
        assert isinstance(decision, Allowed | Denied)
        respond(request, decision)
        yield type(decision).__name__
