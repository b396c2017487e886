"""Forgeries of a review: who else may send it, and what its author may say of the owner."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from webhook.catalog.catalog import Catalog
from webhook.evaluation.request import Request

OWNER = {"name": "o", "uid": "11111111-1111-4111-8111-111111111111", "controller": True}
PERSON = "somebody@example.com"


def tenants(request: Request) -> Iterator[str]:
    """Who may be sent by the workload's own people: a person, accounts of its own namespace."""
    yield PERSON
    yield ""
    last = request.user.rpartition(":")[2]
    for account in ("default", last):
        yield f"system:serviceaccount:{request.namespace}:{account}"
    yield last
    yield request.user.upper()
    yield f" {request.user}"


def strangers(request: Request) -> Iterator[str]:
    """Names of the control plane's form that are almost the true one, but nobody's."""
    prefix, _, last = request.user.rpartition(":")
    yield f"{request.user}2"
    yield f"{request.user}:"
    yield f"{prefix}:x{last}"
    yield f"system:serviceaccount:other:{last}"
    yield "system:node:node-a"


def without_owner(request: Request, document: Any) -> Request:
    """The same object as a workload of its own, by a person."""
    left = copy.deepcopy(document)
    left["metadata"].pop("ownerReferences", None)
    return replace(request, object=left, user=PERSON, groups=())


def owned(request: Request, version: str, kind: str) -> Request:
    """The same object with an owner that its author made up."""
    document = copy.deepcopy(request.object)
    owner = {**OWNER, "apiVersion": version, "kind": kind}
    document["metadata"]["ownerReferences"] = [owner]
    return replace(request, object=document)


def owners(rules: Catalog) -> Iterator[tuple[str, str]]:
    """Every kind with a definition: what controllers may make children of is among them."""
    for (group, kind), definitions in rules.definitions.items():
        version = definitions[0].versions[0]
        yield (f"{group}/{version}" if group else version), kind


def containers_in(value: Any) -> Iterator[Any]:
    """Every container in an object, wherever its kind has them."""
    if isinstance(value, dict):
        if "image" in value:
            yield value
        value = list(value.values())
    for each in value if isinstance(value, list) else ():
        yield from containers_in(each)
