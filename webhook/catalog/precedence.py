"""Chooses among documents of one name: a file's, then a ConfigMap's, then the cluster's own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from webhook.catalog.build import Documents
from webhook.catalog.definition_order import Document
from webhook.documents.enclosed import Key, is_enclosed, origin_of
from webhook.documents.problem import Problem

HIDDEN, ASSET = "hidden", "asset"
Name = tuple[str, ...]


def order(key: Key) -> tuple[bool, Key]:
    """Return the sort key of a document. The first of one name counts, in every process the same."""
    return not is_enclosed(key), key


def hidden(given: Documents, several: Mapping[Key, Documents]) -> dict[Key, Problem]:
    """Return a problem for each document whose name an earlier one has. `given` are those of files."""
    taken = dict(name_documents(given))
    found: dict[Key, Problem] = {}
    for key in sorted(several, key=order):
        names = dict(name_documents(several[key]))
        before = [name for name in names if name in taken]
        if before:
            found[key] = hidden_problem(origin_of(key), before[0], taken[before[0]])
        else:
            taken |= names
    return found


def hidden_problem(origin: str, name: Name, winner: str) -> Problem:
    """Return the problem of a document that does not count."""
    path = "spec.meta.id" if name[0] == ASSET else "metadata.name"
    found = f"the name of {winner}, which comes first"
    return Problem(origin, path, found, "delete one of the two, or rename it", HIDDEN)


def name_documents(documents: Documents) -> Iterator[tuple[Name, str]]:
    """Yield the name and the origin of each document.

    Definitions of two kinds may have one name: both count.
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
