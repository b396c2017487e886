"""Tells whom an object belongs to, and so whose policies and whose exceptions reach it."""

from __future__ import annotations

from typing import Any

from webhook.catalog.catalog import Catalog, Kinds
from webhook.evaluation.outcome import OwnerReference
from webhook.evaluation.request import Request, Treatment
from webhook.objects.path import read


def names_of(request: Request, catalog: Catalog) -> list[tuple[str, str, str]]:
    """Group, kind and name by which the object may be excused.

    What a controller makes is excused with its owner, whose name somebody chose: only its exact
    user name makes a request such a one. A name that the server is going to make excuses nothing.
    What is wrapped is excused with what is around it.
    """
    found = read(request.object, ("metadata",))
    metadata = found if isinstance(found, dict) else {}
    name = "" if metadata.get("generateName") else str(metadata.get("name") or "")
    names = [(request.group, request.kind, name)] if name else []
    if name and request.subresource == "scale":
        # Its kind is Scale, whatever is scaled.
        scaled = catalog.definition_of_resource(
            request.resource_group, request.resource, request.resource_version
        )
        if scaled is not None:
            names = [(scaled.interface.group, scaled.interface.kind, name)]
    if request.treatment in (Treatment.CHILD, Treatment.DERIVED):
        for each in read(request.object, ("metadata", "ownerReferences")) or ():
            if isinstance(each, dict) and each.get("controller") is True:
                group = str(each.get("apiVersion", "")).rpartition("/")[0]
                names.append((group, str(each.get("kind", "")), str(each.get("name", ""))))
    if request.within is not None:
        names += names_of(request.within.around, catalog)
    return names


def others_of(request: Request) -> Kinds:
    """The kinds whose policies reach the object too: what controls a Pod, and what wraps it."""
    found: Kinds = ()
    if request.kind == "Pod" and not request.group and (owner := controller_of(request.object)):
        found = (owner,)
    within = request.within
    while within is not None:
        found = (*found, (within.around.group, within.around.kind))
        within = within.around.within
    return found


def controller_of(document: Any) -> tuple[str, str] | None:
    """The group and kind of the owner with `controller: true`; None when nobody controls it."""
    owner = owner_reference(document)
    return None if owner is None else (owner.api_version.rpartition("/")[0], owner.kind)


def owner_reference(document: Any) -> OwnerReference | None:
    """The owner with `controller: true`; None when nobody controls the object."""
    owners = read(document, ("metadata", "ownerReferences"))
    for owner in owners if isinstance(owners, list) else ():
        if isinstance(owner, dict) and owner.get("controller") is True:
            keys = ("apiVersion", "kind", "name", "uid")
            return OwnerReference(*(str(owner.get(key, "")) for key in keys))
    return None
