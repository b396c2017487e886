"""Of several documents of one name one counts: a file's, then a ConfigMap's, then the cluster's own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from webhook.catalog.build import Documents
from webhook.catalog.definition_order import Document
from webhook.documents.enclosed import Key, is_enclosed, origin_of
from webhook.documents.problem import Problem

HIDDEN, ASSET = "hidden", "asset"
Name = tuple[str, ...]


def order(key: Key) -> tuple[bool, Key]:
    """What documents are sorted by: the first of one name counts, in every process the same."""
    return not is_enclosed(key), key


def hidden(given: Documents, several: Mapping[Key, Documents]) -> dict[Key, Problem]:
    """What is told of each document whose name one before it has; `given` are those of files."""
    taken = dict(named(given))
    found: dict[Key, Problem] = {}
    for key in sorted(several, key=order):
        names = dict(named(several[key]))
        before = [name for name in names if name in taken]
        if before:
            found[key] = told(origin_of(key), before[0], taken[before[0]])
        else:
            taken |= names
    return found


def told(origin: str, name: Name, winner: str) -> Problem:
    """What is told of a document that does not count."""
    path = "spec.meta.id" if name[0] == ASSET else "metadata.name"
    found = f"the name of {winner}, which comes first"
    return Problem(origin, path, found, "delete one of the two, or rename it", HIDDEN)


def named(documents: Documents) -> Iterator[tuple[Name, str]]:
    """The name of each document, and where it is from.

    Definitions of one name for two kinds have nothing to do with each other: both count.
    """
    for policy in documents.policies:
        yield ("policy", policy.scope, policy.namespace, policy.name), policy.origin
    for asset in documents.assets.values():
        yield (ASSET, asset.id), asset.origin
    definitions: list[Document] = [*documents.interfaces, *documents.profiles]
    for stated in definitions:
        yield (stated.sort, *stated.key, stated.value.name), stated.document.origin
    for exception in documents.exceptions:
        yield ("exception", exception.namespace, exception.name), exception.origin
